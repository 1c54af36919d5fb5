#include "codegen/emulator/ptx/Translate.h"

#include <cstddef>

#include "codegen/emulator/State.h"
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Support/Alignment.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

//===-- Variables ---------------------------------------------------------------------------===//

static constexpr uint64_t kRedZone = 64;

static std::vector<StringRef> symbolsOf(const Function& f) {
  std::vector<StringRef> names;
  const auto add = [&](const auto& self, const Operand& operand) -> void {
    if (!operand.name.empty()) names.push_back(operand.name);
    for (const Operand& element : operand.elements) self(self, element);
  };
  for (const Statement& s : f.statements)
    for (const Operand& operand : s.operands) add(add, operand);
  return names;
}

/// Gives each variable in shared memory that the entry uses an offset, and its name that address; those in
/// global memory have addresses of their own.
void Kernel::place() {
  const std::vector<StringRef> used = symbolsOf(text_);
  // Its alignment is not larger than promised.
  const auto behind = [](uint64_t cursor, uint64_t align) {
    return align < 512 ? alignTo(cursor, Align(2 * align)) + align : alignTo(cursor, Align(align));
  };
  uint64_t cursor = kRedZone, dynamicAlign = 16;
  SmallVector<std::pair<const Variable*, uint64_t>> shared;
  std::vector<const Variable*> dynamic;
  for (const auto* list : {&module_.variables, &text_.variables})
    for (const Variable& v : *list) {
      if (!is_contained(used, v.name)) continue;
      if (v.space != Space::Shared) {
        if (v.space != Space::Local)
          symbols_[v.name] = b.CreatePtrToInt(ir_.getNamedGlobal(v.name), b.getInt64Ty());
        continue;
      }
      if (v.isExternal || v.bytes == 0) {
        dynamicAlign = std::max(dynamicAlign, v.align);
        dynamic.push_back(&v);
        continue;
      }
      const uint64_t at = behind(cursor, v.align);
      shared.push_back({&v, at});
      entry.shared.push_back({v.name, at, v.bytes});
      entry.staticBytes = alignTo(entry.staticBytes, Align(v.align)) + v.bytes;
      cursor = at + v.bytes + kRedZone;
    }
  entry.dynamicOffset = behind(cursor, dynamicAlign);
  for (const Variable* v : dynamic) shared.push_back({v, entry.dynamicOffset});
  Value* field = b.CreateConstGEP1_64(b.getInt8Ty(), thread_, offsetof(Thread, shared));
  Value* base = b.CreatePtrToInt(b.CreateLoad(b.getPtrTy(), field, "shared"), b.getInt64Ty());
  for (auto [v, at] : shared) symbols_[v->name] = b.CreateAdd(base, b.getInt64(at), v->name);
}

void Kernel::declareLocals() {
  for (const Variable& v : text_.variables) {
    if (v.space != Space::Local) continue;
    auto* local = b.CreateAlloca(ArrayType::get(b.getInt8Ty(), v.bytes), nullptr, v.name);
    local->setAlignment(Align(v.align));
    entry.stackBytes += v.bytes + v.align;
    symbols_[v.name] = b.CreatePtrToInt(local, b.getInt64Ty());
  }
  for (auto [i, name] : enumerate(text_.parameters)) {
    symbols_[name] = b.CreatePtrToInt(b.CreateConstGEP1_64(b.getInt64Ty(), words_, i), b.getInt64Ty());
  }
}

//===-- Control flow --------------------------------------------------------------------------===//

void Kernel::declareRegisters() {
  occurrences_.resize(text_.registers.size());
  const auto count = [&](const auto& self, const Operand& operand) -> void {
    if (operand.kind == Operand::Register || (operand.kind == Operand::Address && operand.name.empty()))
      ++occurrences_[operand.index];
    for (const Operand& element : operand.elements) self(self, element);
  };
  for (const Statement& s : text_.statements) {
    if (s.guard) ++occurrences_[*s.guard];
    for (const Operand& operand : s.operands) count(count, operand);
  }
  registers_.resize(text_.registers.size());
  for (size_t i = 0; i < registers_.size(); ++i) {
    if (!occurrences_[i]) continue;
    auto* type = b.getIntNTy(text_.registers[i].bits);
    registers_[i] = b.CreateAlloca(type, nullptr, text_.registers[i].name);
    b.CreateStore(Constant::getAllOnesValue(type), registers_[i]);  // not a number, if it is read
  }
}

BasicBlock* Kernel::blockOf(uint32_t label) {
  if (!blocks_[label]) blocks_[label] = BasicBlock::Create(b.getContext(), text_.labels[label], function_);
  return blocks_[label];
}

bool Kernel::operation() {
  return memoryOperation(*this) || conversion(*this) || floatOperation(*this) || integerOperation(*this) ||
         warpOperation(*this) || synchronisation(*this) || copyOperation(*this);
}

void Kernel::statement(const Statement& s) {
  now_ = &s;
  refused_ = false;
  LLVMContext& context = b.getContext();
  const bool open = !b.GetInsertBlock()->getTerminator();
  if (s.label) {
    BasicBlock* block = blockOf(*s.label);
    if (open) b.CreateBr(block);
    return b.SetInsertPoint(block);
  }
  if (!open)
    b.SetInsertPoint(BasicBlock::Create(context, "", function_));  // behind a branch, without a label
  BasicBlock* after = nullptr;
  if (s.guard) {
    Value* guard = readPredicate({.kind = Operand::Register, .index = *s.guard, .negated = s.guardNegated});
    after = BasicBlock::Create(context, "", function_);
    BasicBlock* guarded = s.target ? blockOf(*s.target) : BasicBlock::Create(context, "", function_);
    b.CreateCondBr(guard, guarded, after);
    if (s.target) return b.SetInsertPoint(after);
    b.SetInsertPoint(guarded);
  }
  if (s.target)
    b.CreateBr(blockOf(*s.target));
  else if (s.words[0] == "ret" || s.words[0] == "exit")
    b.CreateRetVoid();
  else if (!operation())
    refuse("this instruction is not emulated");
  if (!after) return;
  if (!b.GetInsertBlock()->getTerminator()) b.CreateBr(after);
  b.SetInsertPoint(after);
}

void Kernel::controlFlow() {
  blocks_.resize(text_.labels.size());
  for (const Statement& s : text_.statements) statement(s);
  if (!b.GetInsertBlock()->getTerminator()) b.CreateRetVoid();
  for (auto [label, block] : enumerate(blocks_))
    if (block && !block->getTerminator())
      problems_.push_back("in @" + entry.name + ": the label " + text_.labels[label] + " is not defined");
}

//===-- Checks --------------------------------------------------------------------------------===//

/// Finds registers that are read and on some path not written before. NVPTX makes a pair of such a register
/// and another one where it needs the other half alone, so a `mov` of a list may read one.
void Kernel::checkAssignments() {
  DenseMap<const Value*, unsigned> index;
  for (auto [i, place] : enumerate(registers_))
    if (place) index[place] = unsigned(i);
  const ReversePostOrderTraversal<llvm::Function*> order(function_);
  const BasicBlock* first = &function_->getEntryBlock();  // it has the first values alone, which do not count
  DenseMap<const BasicBlock*, BitVector> after;
  const auto before = [&](const BasicBlock* block) {
    BitVector written(unsigned(registers_.size()), block != first);
    for (const BasicBlock* from : predecessors(block))
      if (auto known = after.find(from); known != after.end()) written &= known->second;
    return written;
  };
  const auto pass = [&](const Instruction& i, BitVector& written) {
    auto* store = dyn_cast<StoreInst>(&i);
    auto place = store ? index.find(store->getPointerOperand()) : index.end();
    if (place != index.end() && i.getParent() != first) written.set(place->second);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const BasicBlock* block : order) {
      BitVector written = before(block);
      for (const Instruction& i : *block) pass(i, written);
      auto [at, isNew] = after.try_emplace(block, written);
      changed |= isNew || at->second != written;
      at->second = std::move(written);
    }
  }
  for (const BasicBlock* block : order) {
    BitVector written = before(block);
    for (const Instruction& i : *block) {
      pass(i, written);
      auto* load = dyn_cast<LoadInst>(&i);
      auto reader = load ? reads_.find(load) : reads_.end();
      if (reader == reads_.end() || written.test(index.at(load->getPointerOperand()))) continue;
      now_ = reader->second;
      const bool pairs = now_->words[0] == "mov" && now_->operands[1].kind == Operand::List;
      if (pairs) continue;
      refused_ = false;
      refuse("it reads " + text_.registers[index.at(load->getPointerOperand())].name +
             ", which is not written on every path to it");
    }
  }
}

/// Counts steps in loops, so that a loop without calls of the emulator is detected as a runaway.
void Kernel::countLoops() {
  DominatorTree dominators(*function_);
  LoopInfo loops(dominators);
  const auto calls = [](Loop* loop) {
    for (BasicBlock* block : loop->blocks())
      for (Instruction& i : *block)
        if (auto* call = dyn_cast<CallInst>(&i);
            call && call->getCalledFunction() && call->getCalledFunction()->getName().starts_with("emu."))
          return true;
    return false;
  };
  for (Loop* loop : loops.getLoopsInPreorder()) {
    if (calls(loop)) continue;
    b.SetInsertPoint(loop->getHeader()->getTerminator());
    Statement header;
    header.text = "the loop at " + loop->getHeader()->getName().str();
    now_ = &header;
    call("tick", {site()});
  }
}

//===-- The whole -----------------------------------------------------------------------------===//

Error Kernel::translate() {
  auto* type = FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, false);
  function_ = llvm::Function::Create(type, GlobalValue::ExternalLinkage, "emu." + entry.name, ir_);
  function_->addFnAttr(Attribute::NoUnwind);
  thread_ = function_->getArg(0);
  words_ = function_->getArg(1);
  b.SetInsertPoint(BasicBlock::Create(b.getContext(), "entry", function_));
  place();
  declareLocals();
  declareRegisters();
  BasicBlock* body = BasicBlock::Create(b.getContext(), "body", function_);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  controlFlow();
  if (problems_.empty()) {
    checkAssignments();
    countLoops();
  }
  if (problems_.empty()) {
    state_.entries.push_back(std::move(entry));
    return Error::success();
  }
  return createStringError("cannot be emulated: " + join(problems_, "\n  "));
}

static void declare(const Variable& v, llvm::Module& ir, Program::State& state) {
  auto* type = ArrayType::get(llvm::Type::getInt8Ty(ir.getContext()), v.bytes);
  std::vector<uint8_t> bytes = v.initial;
  bytes.resize(v.bytes);
  auto* global = new GlobalVariable(ir, type, /*isConstant=*/false, GlobalValue::ExternalLinkage,
                                    ConstantDataArray::get(ir.getContext(), bytes), v.name);
  global->setAlignment(Align(v.align));
  state.variables.push_back({v.name, v.bytes, v.space == Space::Constant});
}

Error translate(const Module& module, llvm::Module& ir, Program::State& state) {
  state.sites.push_back({});  // for faults without an instruction
  state.sites.back().text = "the end of the kernel";
  for (const Variable& v : module.variables) {
    if (v.space == Space::Shared && !v.initial.empty())
      return createStringError(
          v.name + " is in shared memory and has an initial value, which a device does not give it");
    if (v.space == Space::Shared) continue;
    if (v.isExternal) return createStringError(v.name + " is used, but not defined in the module");
    declare(v, ir, state);
  }
  for (const Function& f : module.entries)
    if (Error error = Kernel(module, f, ir, state).translate()) return error;
  return Error::success();
}

}  // namespace normc::emulator::ptx
