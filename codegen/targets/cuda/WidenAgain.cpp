#include "codegen/targets/cuda/WidenAgain.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace normc::codegen::cuda {

/// Where an instruction is: its block, the number of convergent calls in it before the instruction, and its
/// number in the function.
struct Place {
  const BasicBlock* block = nullptr;
  unsigned met = 0, number = 0;
  bool operator==(const Place& other) const { return block == other.block && met == other.met; }
};
using Places = DenseMap<const Instruction*, Place>;

/// Returns the same bits. LLVM does not know that they are, and so leaves a second widening alone.
static Value* moved(IRBuilder<>& b, Value* packed) {
  Type* word = b.getInt32Ty();
  const auto words = unsigned(packed->getType()->getPrimitiveSizeInBits().getFixedValue() / 32);
  auto* type = FixedVectorType::get(word, words);
  auto* move = InlineAsm::get(FunctionType::get(word, {word}, false), "mov.b32 $0, $1;", "=r,r",
                              /*hasSideEffects=*/false);
  Value *bits = b.CreateBitCast(packed, type), *result = PoisonValue::get(type);
  for (unsigned i = 0; i < words; ++i)
    result = b.CreateInsertElement(result, b.CreateCall(move, {b.CreateExtractElement(bits, i)}), i);
  return b.CreateBitCast(result, packed->getType());
}

/// True if the instruction widens vectors of whole words.
static bool widensWords(const Instruction& i) {
  auto* from = isa<FPExtInst>(i) ? dyn_cast<FixedVectorType>(i.getOperand(0)->getType()) : nullptr;
  return from && from->getScalarSizeInBits() == 16 && from->getNumElements() % 2 == 0;
}

/// Gives the uses of a widening at other places one of their own, which the uses of a place share.
static void widenAgain(Instruction& widening, const Places& places) {
  const auto placeOf = [&](const Use* use) { return places.lookup(cast<Instruction>(use->getUser())); };
  const Place own = places.lookup(&widening);
  SmallVector<Use*> elsewhere;
  for (Use& use : widening.uses())
    if (!isa<PHINode>(use.getUser()) && !(placeOf(&use) == own)) elsewhere.push_back(&use);
  sort(elsewhere, [&](Use* a, Use* b) { return placeOf(a).number < placeOf(b).number; });
  Place last = own;
  Value* mine = nullptr;
  for (Use* use : elsewhere) {
    if (!(placeOf(use) == last)) {
      IRBuilder<> b(cast<Instruction>(use->getUser()));
      mine = b.CreateFPExt(moved(b, widening.getOperand(0)), widening.getType());
      last = placeOf(use);
    }
    use->set(mine);
  }
}

void widenAgain(Module& module) {
  for (Function& function : module) {
    Places places;
    SmallVector<Instruction*> widenings;
    unsigned number = 0;
    for (BasicBlock& block : function) {
      unsigned met = 0;
      for (Instruction& i : block) {
        if (auto* call = dyn_cast<CallBase>(&i); call && call->isConvergent()) ++met;
        places[&i] = {&block, met, number++};
        if (widensWords(i)) widenings.push_back(&i);
      }
    }
    for (Instruction* each : widenings) widenAgain(*each, places);
  }
}

}  // namespace normc::codegen::cuda
