// Loads, stores, atomics and copies: each is checked before it is executed.
#include "codegen/emulator/Rewrite.h"
#include "llvm/IR/IntrinsicInst.h"

namespace normc::emulator {

using namespace llvm;

static uint8_t orderingFlags(AtomicOrdering ordering, bool isVolatile) {
  uint8_t flags = isVolatile || ordering != AtomicOrdering::NotAtomic ? Site::Strong : 0;
  if (isAcquireOrStronger(ordering)) flags |= Site::Acquire;
  if (isReleaseOrStronger(ordering)) flags |= Site::Release;
  return flags;
}

static uint64_t bytesOf(const Kernel& kernel, Type* type) {
  return kernel.function.getParent()->getDataLayout().getTypeStoreSize(type);
}

static void rewriteCopy(Kernel& kernel, MemIntrinsic& copy) {
  auto flags = [&](bool source) -> uint8_t { return source ? Site::Read : Site::Write; };
  uint64_t align = copy.getDestAlign().valueOrOne().value();
  if (auto* transfer = dyn_cast<MemTransferInst>(&copy))
    kernel.checkRange(copy, transfer->getRawSource(), copy.getLength(),
                      transfer->getSourceAlign().valueOrOne().value(), flags(true));
  kernel.checkRange(copy, copy.getRawDest(), copy.getLength(), align, flags(false));
}

bool rewriteMemory(Kernel& kernel, Instruction& i) {
  if (auto* load = dyn_cast<LoadInst>(&i)) {
    uint8_t flags = Site::Read | orderingFlags(load->getOrdering(), load->isVolatile());
    unsigned space = load->getPointerAddressSpace();
    if (load->hasMetadata(LLVMContext::MD_invariant_load) &&
        (space == Space::Generic || space == Space::Global))
      flags |= Site::NonCoherent;
    Type* type = load->getType();
    kernel.check(i, load->getPointerOperand(), bytesOf(kernel, type), load->getAlign().value(), flags);
    return true;
  }
  if (auto* store = dyn_cast<StoreInst>(&i)) {
    uint8_t flags = Site::Write | orderingFlags(store->getOrdering(), store->isVolatile());
    Type* type = store->getValueOperand()->getType();
    kernel.check(i, store->getPointerOperand(), bytesOf(kernel, type), store->getAlign().value(), flags);
    return true;
  }
  if (auto* atomic = dyn_cast<AtomicRMWInst>(&i)) {
    uint8_t flags = Site::Read | Site::Write | orderingFlags(atomic->getOrdering(), true);
    kernel.check(i, atomic->getPointerOperand(), bytesOf(kernel, atomic->getType()),
                 atomic->getAlign().value(), flags);
    return true;
  }
  if (auto* atomic = dyn_cast<AtomicCmpXchgInst>(&i)) {
    uint8_t flags = Site::Read | Site::Write | orderingFlags(atomic->getSuccessOrdering(), true);
    kernel.check(i, atomic->getPointerOperand(), bytesOf(kernel, atomic->getNewValOperand()->getType()),
                 atomic->getAlign().value(), flags);
    return true;
  }
  if (auto* fence = dyn_cast<FenceInst>(&i)) {
    SmallVector<StringRef> scopes;
    i.getContext().getSyncScopeNames(scopes);
    StringRef scope = scopes[fence->getSyncScopeID()];
    // Within a block only barriers pass clocks on.
    if (scope != "block" && scope != "singlethread") kernel.call("fence", {});
    return true;
  }
  if (auto* copy = dyn_cast<MemIntrinsic>(&i)) {
    rewriteCopy(kernel, *copy);
    return true;
  }
  return false;
}

}  // namespace normc::emulator
