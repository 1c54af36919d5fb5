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

/// LLVM 22 knows no store past the caches of 16-bit floats: it is shown words, as by the other generator
/// (lower/AccessLowering.cpp).
static Value* asWords(IRBuilder<>& b, Value* value) {
  auto* type = cast<FixedVectorType>(value->getType());
  if (!type->getElementType()->is16bitFPTy() || type->getNumElements() % 2) return value;
  Type* words = FixedVectorType::get(b.getFloatTy(), type->getNumElements() / 2);
  return b.CreateIntrinsic(Intrinsic::arithmetic_fence, {words}, {b.CreateBitCast(value, words)});
}

/// The plain store knows no more than the element's alignment: two that differ are not made one again. `remembered`:
/// where the function keeps that there was one that passed the caches.
static void streamWhere(Value* past, StoreInst& plain, Value* remembered) {
  auto* type = cast<FixedVectorType>(plain.getValueOperand()->getType());
  const uint64_t element = type->getScalarSizeInBits() / 8;
  IRBuilder<> b(&plain);
  Instruction *there = nullptr, *here = nullptr;
  SplitBlockAndInsertIfThenElse(b.CreateIsNotNull(past), plain.getIterator(), &there, &here);
  b.SetInsertPoint(there);
  StoreInst* streamed = b.CreateAlignedStore(asWords(b, plain.getValueOperand()), plain.getPointerOperand(), Align(element * type->getNumElements()));
  streamed->copyMetadata(plain);
  streamed->setMetadata(LLVMContext::MD_nontemporal,
                        MDNode::get(b.getContext(), ConstantAsMetadata::get(b.getInt32(1))));
  b.CreateStore(b.getTrue(), remembered);
  plain.setAlignment(Align(element));
  plain.moveBefore(here->getIterator());
}

/// Such stores are weakly ordered: what follows the task has to see them.
static void fenceReturns(Function& f, Value* remembered) {
  SmallVector<Instruction*> returns;
  for (BasicBlock& block : f)
    if (isa<ReturnInst>(block.getTerminator())) returns.push_back(block.getTerminator());
  for (Instruction* end : returns) {
    IRBuilder<> b(end);
    Instruction* past = SplitBlockAndInsertIfThen(b.CreateLoad(b.getInt1Ty(), remembered), end->getIterator(), /*Unreachable=*/false);
    IRBuilder<>(past).CreateFence(AtomicOrdering::SequentiallyConsistent);
  }
}

/// Markers that were torn apart leave their stores as they are.
static void stream(Function& f) {
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
  if (stores.empty()) return;
  IRBuilder<> b(&*f.getEntryBlock().getFirstInsertionPt());
  Value* remembered = b.CreateAlloca(b.getInt1Ty());
  b.CreateStore(b.getFalse(), remembered);
  for (auto [past, store] : stores) streamWhere(past, *store, remembered);
  fenceReturns(f, remembered);
}

Expected<std::string> machineCode(StringRef bitcode, const cpu::Isa& isa, cpu::Emit kind) {
  LLVMContext context;
  auto module = parseBitcodeFile(MemoryBufferRef(bitcode, "halide"), context);
  if (!module)
    return createStringError("the Halide generator wrote bitcode that cannot be read: " +
                             toString(module.takeError()));
  auto machine = machineFor({isa.triple, isa.cpu.str(), isa.features.str()});
  if (!machine) return machine.takeError();
  layOut(**module, **machine);
  for (Function& f : **module)
    if (!f.isDeclaration()) stream(f);
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
