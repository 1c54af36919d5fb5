#include "codegen/targets/cuda/CacheHints.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace normc::codegen::cuda {

static constexpr unsigned kGlobal = 1;  // NVPTX's address space
static constexpr uint64_t kWord = 4;

/// Returns the words of an access that is made as one: 1, 2, 4 or 8; else 0.
static uint64_t wordsOf(Type* type, Align align, const DataLayout& layout) {
  const uint64_t bytes = layout.getTypeStoreSize(type);
  return bytes >= kWord && bytes <= 8 * kWord && isPowerOf2_64(bytes) && align >= bytes ? bytes / kWord : 0;
}

/// `ld.global.cs.v4.b32 {$0, $1, $2, $3}, [$4];` or the same for a store.
static std::string textOf(StringRef operation, uint64_t words, bool stores) {
  std::string text = operation.str(), list;
  if (words > 1) text += ".v" + std::to_string(words);
  for (uint64_t i = 0; i < words; ++i) list += (i ? ", $" : "$") + std::to_string(i + stores);
  if (words > 1) list = "{" + list + "}";
  const std::string address = "[$" + std::to_string(stores ? 0 : words) + "]";
  return text + ".b32 " + (stores ? address + ", " + list : list + ", " + address) + ";";
}

/// True if the kernel does not write the memory, so that the read-only path may load it.
static bool isReadOnly(const Value* pointer) {
  auto* argument = dyn_cast<Argument>(getUnderlyingObject(pointer, /*MaxLookup=*/0));
  return argument && argument->hasNoAliasAttr() && argument->onlyReadsMemory();
}

static void hint(LoadInst& load, uint64_t words) {
  IRBuilder<> b(&load);
  Type* word = b.getInt32Ty();
  SmallVector<Type*> types(words, word);
  const bool readOnly = isReadOnly(load.getPointerOperand());
  std::string constraints;
  for (uint64_t i = 0; i < words; ++i) constraints += "=r,";
  Type* result = words == 1 ? word : StructType::get(load.getContext(), types);
  Value* address = b.CreateAddrSpaceCast(load.getPointerOperand(), b.getPtrTy(kGlobal));
  // A load of memory that another thread may write must not move across a barrier: it has a side effect.
  auto* code =
      InlineAsm::get(FunctionType::get(result, {address->getType()}, false),
                     textOf(readOnly ? "ld.global.cs.nc" : "ld.global.cs", words, false), constraints + "l",
                     /*hasSideEffects=*/!readOnly);
  Value* loaded = b.CreateCall(code, {address});
  Value* value = loaded;
  if (words > 1) {
    value = PoisonValue::get(FixedVectorType::get(word, unsigned(words)));
    for (unsigned i = 0; i < words; ++i)
      value = b.CreateInsertElement(value, b.CreateExtractValue(loaded, i), i);
  }
  load.replaceAllUsesWith(b.CreateBitCast(value, load.getType()));
  load.eraseFromParent();
}

static void hint(StoreInst& store, uint64_t words) {
  IRBuilder<> b(&store);
  Type* word = b.getInt32Ty();
  SmallVector<Value*> operands{b.CreateAddrSpaceCast(store.getPointerOperand(), b.getPtrTy(kGlobal))};
  SmallVector<Type*> types{operands[0]->getType()};
  std::string constraints = "l";
  Type* whole = words == 1 ? word : FixedVectorType::get(word, unsigned(words));
  Value* value = b.CreateBitCast(store.getValueOperand(), whole);
  for (unsigned i = 0; i < words; ++i) {
    operands.push_back(words == 1 ? value : b.CreateExtractElement(value, i));
    types.push_back(word);
    constraints += ",r";
  }
  auto* code = InlineAsm::get(FunctionType::get(b.getVoidTy(), types, false),
                              textOf("st.global.cs", words, true), constraints, /*hasSideEffects=*/true);
  b.CreateCall(code, operands);
  store.eraseFromParent();
}

void hintCaches(Module& module) {
  for (Function& function : module)
    for (Instruction& i : make_early_inc_range(instructions(function))) {
      if (!i.hasMetadata(LLVMContext::MD_nontemporal)) continue;
      if (auto* load = dyn_cast<LoadInst>(&i)) {
        if (uint64_t words = wordsOf(load->getType(), load->getAlign(), module.getDataLayout()))
          hint(*load, words);
      } else if (auto* store = dyn_cast<StoreInst>(&i)) {
        Type* type = store->getValueOperand()->getType();
        if (uint64_t words = wordsOf(type, store->getAlign(), module.getDataLayout())) hint(*store, words);
      }
    }
}

}  // namespace normc::codegen::cuda
