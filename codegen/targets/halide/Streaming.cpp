#include "codegen/targets/halide/Streaming.h"

#include "codegen/targets/Machine.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace normc::codegen::halide {

static constexpr StringRef kBegin = "normc_past", kEnd = "normc_past_end";

static bool calls(const Instruction& i, StringRef name) {
  const auto* call = dyn_cast<CallInst>(&i);
  return call && call->getCalledFunction() && call->getCalledFunction()->getName() == name;
}

/// The plain store knows no more than the element's alignment: two that differ are not made one again.
static void streamWhere(Value* past, StoreInst& plain) {
  auto* type = cast<FixedVectorType>(plain.getValueOperand()->getType());
  const uint64_t element = type->getScalarSizeInBits() / 8;
  IRBuilder<> b(&plain);
  Instruction *there = nullptr, *here = nullptr;
  SplitBlockAndInsertIfThenElse(b.CreateIsNotNull(past), plain.getIterator(), &there, &here);
  auto* streamed = cast<StoreInst>(plain.clone());
  streamed->setAlignment(Align(element * type->getNumElements()));
  streamed->setMetadata(LLVMContext::MD_nontemporal,
                        MDNode::get(b.getContext(), ConstantAsMetadata::get(b.getInt32(1))));
  streamed->insertBefore(there->getIterator());
  plain.setAlignment(Align(element));
  plain.moveBefore(here->getIterator());
}

/// Whether the function has such stores. Markers that were torn apart leave their stores as they are.
static bool stream(Function& f) {
  SmallVector<Instruction*> markers;
  SmallVector<std::pair<Value*, StoreInst*>> stores;
  for (BasicBlock& block : f) {
    Value* past = nullptr;
    for (Instruction& i : block) {
      const bool begin = calls(i, kBegin), end = calls(i, kEnd);
      if (begin) past = cast<CallInst>(i).getArgOperand(0);
      if (end) past = nullptr;
      if (begin || end) markers.push_back(&i);
      if (auto* store = dyn_cast<StoreInst>(&i);
          store && past && isa<FixedVectorType>(store->getValueOperand()->getType()))
        stores.emplace_back(past, store);
    }
  }
  for (Instruction* marker : markers) {
    marker->replaceAllUsesWith(Constant::getNullValue(marker->getType()));
    marker->eraseFromParent();
  }
  for (auto [past, store] : stores) streamWhere(past, *store);
  return !stores.empty();
}

/// Such stores are weakly ordered: what follows the task has to see them.
static void fenceReturns(Function& f) {
  for (BasicBlock& block : f)
    if (auto* end = dyn_cast<ReturnInst>(block.getTerminator()))
      IRBuilder<>(end).CreateFence(AtomicOrdering::SequentiallyConsistent);
}

Expected<std::string> machineCode(StringRef bitcode, const cpu::Isa& isa, cpu::Emit kind) {
  LLVMContext context;
  auto module = parseBitcodeFile(MemoryBufferRef(bitcode, "halide"), context);
  if (!module)
    return createStringError("the Halide generator wrote bitcode that cannot be read: " +
                             toString(module.takeError()));
  auto machine = machineFor({isa.triple.str(), isa.cpu.str(), isa.features.str()});
  if (!machine) return machine.takeError();
  layOut(**module, **machine);
  for (Function& f : **module)
    if (!f.isDeclaration() && stream(f)) fenceReturns(f);
  for (StringRef name : {kBegin, kEnd})
    if (Function* marker = (*module)->getFunction(name); marker && marker->use_empty())
      marker->eraseFromParent();
  std::string fault;
  raw_string_ostream log(fault);
  if (verifyModule(**module, &log))
    return createStringError("the Halide generator wrote bitcode that is wrong: " + fault);
  return cpu::machineCode(**module, isa, kind);
}

}  // namespace normc::codegen::halide
