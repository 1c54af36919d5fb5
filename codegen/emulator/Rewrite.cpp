#include "codegen/emulator/Rewrite.h"

#include <cstddef>

#include "codegen/emulator/State.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"

namespace normc::emulator {

using namespace llvm;

//===-- Kernel --------------------------------------------------------------------------===//

Kernel::Kernel(Function& f, Program::State& state) : function(f), builder(f.getContext()), state_(state) {
  entry.name = f.getName().str();
  entry.parameters = uint32_t(f.arg_size());
}

void Kernel::nameInstructions() {
  ModuleSlotTracker slots(function.getParent());
  slots.incorporateFunction(function);
  for (BasicBlock& block : function)
    for (Instruction& i : block) {
      if (!i.mayReadOrWriteMemory() && !isa<CallBase>(i)) continue;
      std::string text;
      raw_string_ostream out(text);
      i.print(out, slots);
      StringRef line = StringRef(text).split(", !").first.trim();
      text_[&i] = line.str();
      if (const DebugLoc& loc = i.getDebugLoc(); loc && loc.getLine())
        text_[&i] += " (" + cast<DIScope>(loc.getScope())->getFilename().str() + ":" +
                     std::to_string(loc.getLine()) + ")";
    }
}

void Kernel::refuse(const Instruction& i, const Twine& why) {
  std::string text = text_.lookup(&i);
  if (text.empty()) raw_string_ostream(text) << i;
  problems_.push_back(("in @" + entry.name + ": " + why + ": " + StringRef(text).trim()).str());
}

Value* Kernel::call(StringRef name, Type* result, ArrayRef<Value*> arguments) {
  SmallVector<Value*> values{thread};
  for (Value* v : arguments) {
    if (v->getType()->isIntegerTy(1)) v = builder.CreateZExt(v, builder.getInt32Ty());
    if (v->getType()->isPointerTy()) v = builder.CreateAddrSpaceCast(v, builder.getPtrTy());
    values.push_back(v);
  }
  SmallVector<Type*> types;
  for (Value* v : values) types.push_back(v->getType());
  FunctionCallee hook = function.getParent()->getOrInsertFunction(("emu." + name).str(),
                                                                  FunctionType::get(result, types, false));
  return builder.CreateCall(hook, values);
}

Value* Kernel::callBool(StringRef name, ArrayRef<Value*> arguments) {
  return builder.CreateTrunc(call(name, builder.getInt8Ty(), arguments), builder.getInt1Ty());
}

Value* Kernel::callMath(StringRef name, Value* argument) {
  Type* type = argument->getType();
  return builder.CreateCall(function.getParent()->getOrInsertFunction(("emu." + name).str(), type, type),
                            argument);
}

Value* Kernel::site(const Instruction& i) {
  Site site;
  site.text = text_.lookup(&i);
  state_.sites.push_back(site);
  return i32(uint32_t(state_.sites.size() - 1));
}

/// Returns log2 of the bytes that one access of the device moves. Code for an sm below 100 has no accesses of
/// 32 bytes.
static uint8_t widthOf(const Function& f, uint64_t bytes, uint64_t align, unsigned space) {
  unsigned sm = 1000;
  if (f.getFnAttribute("target-cpu").getValueAsString().ltrim("sm_").consumeInteger(10, sm)) sm = 1000;
  uint64_t most = sm >= 100 && space == Space::Global ? 32 : 16;
  uint64_t width = std::min({most, align, bytes & -bytes});
  return uint8_t(countr_zero(std::max<uint64_t>(1, width)));
}

Value* Kernel::site(const Instruction& i, Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags) {
  Value* number = site(i);
  Site& site = state_.sites.back();
  unsigned space = pointer->getType()->isPointerTy() ? pointer->getType()->getPointerAddressSpace() : 0;
  site.bytes = uint32_t(bytes);
  site.align = uint32_t(align);
  site.space = uint8_t(space);
  site.flags = flags;
  site.width = widthOf(function, bytes ? bytes : align, align, space);
  return number;
}

bool Kernel::isLocal(Value* pointer) const {
  return pointer->getType()->getPointerAddressSpace() == Space::Local ||
         isa<AllocaInst>(getUnderlyingObject(pointer, 0));
}

void Kernel::check(const Instruction& i, Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags) {
  if (isLocal(pointer)) return;
  call(flags & Site::Strong ? "strong" : "access", {pointer, site(i, pointer, bytes, align, flags)});
}

void Kernel::checkRange(const Instruction& i, Value* pointer, Value* bytes, uint64_t align, uint8_t flags) {
  if (isLocal(pointer)) return;
  call("range",
       {pointer, builder.CreateZExt(bytes, builder.getInt64Ty()), site(i, pointer, 0, align, flags)});
}

void Kernel::replace(Instruction& i, Value* value) {
  if (value) i.replaceAllUsesWith(value);
  i.eraseFromParent();
}

Value* Kernel::sreg(uint32_t index) {
  uint64_t offset = offsetof(Thread, sreg) + 4 * index;
  return builder.CreateLoad(builder.getInt32Ty(),
                            builder.CreateConstGEP1_64(builder.getInt8Ty(), thread, offset));
}

//===-- Shared memory -------------------------------------------------------------------===//

static constexpr uint64_t kRedZone = 64;

/// Gives each variable in shared memory that the kernel uses an offset, and its uses the address.
static void placeShared(Kernel& kernel, Function& f) {
  const DataLayout& layout = f.getParent()->getDataLayout();
  SetVector<GlobalVariable*> used;
  for (BasicBlock& block : f)
    for (Instruction& i : block)
      for (Value* operand : i.operands())
        if (auto* v = dyn_cast<GlobalVariable>(operand); v && v->getAddressSpace() == Space::Shared)
          used.insert(v);
  auto isDynamic = [&](GlobalVariable* v) {
    return v->isDeclaration() || layout.getTypeAllocSize(v->getValueType()) == 0;
  };
  uint64_t cursor = kRedZone, dynamicAlign = 16;
  DenseMap<GlobalVariable*, uint64_t> offset;
  for (GlobalVariable* v : used) {
    // The alignment that the optimiser assumes and NVPTX writes.
    uint64_t align = layout.getPreferredAlign(v).value();
    if (isDynamic(v)) {
      dynamicAlign = std::max(dynamicAlign, align);
      continue;
    }
    uint64_t bytes = layout.getTypeAllocSize(v->getValueType());
    // Its alignment is not larger than required.
    offset[v] = align < 512 ? alignTo(cursor, 2 * align) + align : alignTo(cursor, align);
    kernel.entry.shared.push_back({v->getName().str(), offset[v], bytes});
    kernel.entry.staticBytes = alignTo(kernel.entry.staticBytes, align) + bytes;
    cursor = offset[v] + bytes + kRedZone;
  }
  kernel.entry.dynamicOffset =
      dynamicAlign < 512 ? alignTo(cursor, 2 * dynamicAlign) + dynamicAlign : alignTo(cursor, dynamicAlign);
  IRBuilder<>& b = kernel.builder;
  Type* pointer = b.getPtrTy(Space::Shared);
  Value* field = b.CreateConstGEP1_64(b.getInt8Ty(), kernel.thread, offsetof(Thread, shared));
  Value* base = b.CreateLoad(pointer, field, "shared");
  for (GlobalVariable* v : used) {
    uint64_t at = isDynamic(v) ? kernel.entry.dynamicOffset : offset[v];
    Value* address = b.CreateConstGEP1_64(b.getInt8Ty(), base, at, v->getName());
    for (BasicBlock& block : f)
      for (Instruction& i : block) i.replaceUsesOfWith(v, address);
  }
}

//===-- One kernel ----------------------------------------------------------------------===//

static void readAttributes(const Function& f, Entry& entry) {
  auto numbers = [&](StringRef attribute) {
    std::array<uint32_t, 3> values{};
    SmallVector<StringRef> parts;
    f.getFnAttribute(attribute).getValueAsString().split(parts, ',', -1, false);
    for (size_t i = 0; i < parts.size() && i < 3; ++i) parts[i].trim().getAsInteger(10, values[i]);
    if (values[0])
      for (uint32_t& value : values) value = std::max(value, 1u);
    return values;
  };
  auto most = numbers("nvvm.maxntid");
  if (most[0]) entry.maxThreads = std::min<uint32_t>(1024, most[0] * most[1] * most[2]);
  entry.exactThreads = numbers("nvvm.reqntid");
  entry.cluster = numbers("nvvm.cluster_dim");
  entry.flushDenormals = f.getDenormalMode(APFloat::IEEEsingle()).Output == DenormalMode::PreserveSign;
}

/// Returns a function with the same body that takes the thread and the words of the parameters.
static Function* withWords(Kernel& kernel) {
  Function& old = kernel.function;
  LLVMContext& context = old.getContext();
  Type* pointer = PointerType::get(context, 0);
  auto* type = FunctionType::get(Type::getVoidTy(context), {pointer, pointer}, false);
  auto* f = Function::Create(type, GlobalValue::ExternalLinkage, "emu." + old.getName(), old.getParent());
  f->addFnAttr(Attribute::NoUnwind);
  f->splice(f->begin(), &old);
  kernel.thread = f->getArg(0);
  IRBuilder<>& b = kernel.builder;
  b.SetInsertPoint(&f->getEntryBlock(), f->getEntryBlock().begin());
  for (Argument& argument : old.args()) {
    Value* word = b.CreateConstGEP1_64(b.getInt64Ty(), f->getArg(1), argument.getArgNo());
    Value* value = b.CreateLoad(argument.getType(), word, argument.getName());
    argument.replaceAllUsesWith(value);
  }
  return f;
}

static void checkParameters(Kernel& kernel, std::vector<std::string>& problems) {
  for (Argument& argument : kernel.function.args()) {
    Type* type = argument.getType();
    bool word =
        (type->isPointerTy() && !argument.hasByValAttr()) || type->isIntegerTy(64) || type->isDoubleTy();
    if (word) continue;
    std::string text;
    raw_string_ostream(text) << *type;
    problems.push_back("in @" + kernel.entry.name + ": parameter " + std::to_string(argument.getArgNo()) +
                       " is " + text + "; it has to be a word of 8 bytes: a pointer, i64 or double");
  }
}

/// Counts steps in loops, so that a loop without calls of the emulator is detected as a runaway.
static void countLoops(Kernel& kernel, Function& f) {
  DominatorTree dominators(f);
  LoopInfo loops(dominators);
  auto calls = [](Loop* loop) {
    for (BasicBlock* block : loop->blocks())
      for (Instruction& i : *block)
        if (auto* call = dyn_cast<CallInst>(&i);
            call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("emu."))
          return true;
    return false;
  };
  for (Loop* loop : loops.getLoopsInPreorder()) {
    if (calls(loop)) continue;
    kernel.builder.SetInsertPoint(loop->getHeader()->getTerminator());
    kernel.call("tick", {kernel.site(*loop->getHeader()->getTerminator())});
  }
}

static void rewriteInstruction(Kernel& kernel, Instruction& i) {
  kernel.builder.SetInsertPoint(&i);
  if (auto* local = dyn_cast<AllocaInst>(&i)) {
    auto bytes = local->getAllocationSize(kernel.function.getParent()->getDataLayout());
    if (!bytes) return kernel.refuse(i, "a local variable of variable size");
    kernel.entry.stackBytes += bytes->getFixedValue() + local->getAlign().value();
    return;
  }
  if (rewriteMemory(kernel, i)) return;
  auto* call = dyn_cast<CallBase>(&i);
  if (!call) return;
  auto* plain = dyn_cast<CallInst>(call);
  if (!plain) return kernel.refuse(i, "this kind of call is not emulated");
  if (plain->isInlineAsm()) return rewritePtx(kernel, *plain);
  Function* callee = plain->getCalledFunction();
  if (!callee) return kernel.refuse(i, "an indirect call is not emulated");
  if (callee->getName().starts_with("emu.") || callee->isIntrinsic()) {
    if (callee->isIntrinsic()) rewriteIntrinsic(kernel, *plain);
    return;
  }
  kernel.refuse(i, callee->isDeclaration()
                       ? "@" + callee->getName() + " is called, but not defined in the module"
                       : "a recursive call of @" + callee->getName() + " is not emulated");
}

static Error rewriteKernel(Function& old, Program::State& state, std::vector<std::string>& problems) {
  Kernel kernel(old, state);
  readAttributes(old, kernel.entry);
  checkParameters(kernel, problems);
  kernel.nameInstructions();
  // Requires the parameters: finds loads that NVPTX converts to ld.global.nc.
  std::vector<Instruction*> work;
  for (BasicBlock& block : old)
    for (Instruction& i : block) {
      work.push_back(&i);
      auto* load = dyn_cast<LoadInst>(&i);
      if (!load) continue;
      auto* argument = dyn_cast<Argument>(getUnderlyingObject(load->getPointerOperand(), 0));
      bool constant = argument && argument->hasNoAliasAttr() && argument->onlyReadsMemory();
      if (constant) load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(old.getContext(), {}));
    }
  Function* f = withWords(kernel);
  placeShared(kernel, *f);
  for (Instruction* i : work) rewriteInstruction(kernel, *i);
  for (BasicBlock& block : *f)
    for (Instruction& i : block) i.dropUnknownNonDebugMetadata();
  countLoops(kernel, *f);
  problems.insert(problems.end(), kernel.problems().begin(), kernel.problems().end());
  state.entries.push_back(std::move(kernel.entry));
  return Error::success();
}

//===-- The module ------------------------------------------------------------------------===//

static void collectVariables(Module& module, Program::State& state, std::vector<std::string>& problems) {
  const DataLayout& layout = module.getDataLayout();
  for (GlobalVariable& v : module.globals()) {
    if (v.getAddressSpace() == Space::Shared) {
      if (v.hasInitializer() && !isa<UndefValue>(v.getInitializer()))
        problems.push_back(("@" + v.getName() +
                            " is in shared memory and has an initial value, which a device does not give it")
                               .str());
      for (User* user : v.users())
        if (!isa<Instruction>(user))
          problems.push_back(("the address of @" + v.getName() + " is used outside of a function").str());
      continue;
    }
    if (v.getName().starts_with("llvm.")) continue;
    if (v.isDeclaration()) {
      problems.push_back(("@" + v.getName() + " is used, but not defined in the module").str());
      continue;
    }
    v.setLinkage(GlobalValue::ExternalLinkage);
    state.variables.push_back({v.getName().str(), layout.getTypeAllocSize(v.getValueType()),
                               v.isConstant() || v.getAddressSpace() == Space::Constant});
  }
}

Error rewrite(Module& module, Program::State& state) {
  std::vector<std::string> problems;
  state.sites.push_back({});  // for faults without an instruction
  state.sites.back().text = "the end of the kernel";
  for (const char* name : {"llvm.used", "llvm.compiler.used"})
    if (GlobalVariable* v = module.getNamedGlobal(name)) v->eraseFromParent();
  SmallVector<Constant*> shared;
  for (GlobalVariable& v : module.globals())
    if (v.getAddressSpace() == Space::Shared) shared.push_back(&v);
  convertUsersOfConstantsToInstructions(shared);
  collectVariables(module, state, problems);

  SmallVector<Function*> kernels;
  for (Function& f : module)
    if (!f.isDeclaration() && f.getCallingConv() == CallingConv::PTX_Kernel) kernels.push_back(&f);
  if (kernels.empty()) return createStringError("the module has no entry function (ptx_kernel)");
  for (Function* f : kernels)
    if (Error error = rewriteKernel(*f, state, problems)) return error;
  if (!problems.empty()) return createStringError("cannot be emulated: " + join(problems, "\n  "));
  for (Function* f : kernels) f->eraseFromParent();
  // Device functions have been inlined; the remaining ones have no callers.
  for (Function& f : make_early_inc_range(module))
    if (f.use_empty() && !f.getName().starts_with("emu.")) f.eraseFromParent();
  for (GlobalVariable& v : make_early_inc_range(module.globals()))
    if (v.getAddressSpace() == Space::Shared) v.eraseFromParent();
  return Error::success();
}

}  // namespace normc::emulator
