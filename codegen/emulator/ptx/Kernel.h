// One entry of a PTX module while it becomes a function for this processor: registers, operands, calls of the
// emulator's functions (Hooks.h), checks before accesses.
#pragma once

#include "codegen/emulator/Program.h"
#include "codegen/emulator/ptx/Parse.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace normc::emulator::ptx {

class Kernel {
 public:
  Kernel(const Module&, const Function&, llvm::Module&, Program::State&);

  llvm::IRBuilder<> b;
  Entry entry;

  /// Makes `emu.NAME(thread, words)`. An error names all instructions that are not emulated.
  llvm::Error translate();

  /// The instruction that is translated.
  const Statement& now() const { return *now_; }
  /// Records that it cannot be emulated; translation goes on, to find all of them.
  void refuse(const llvm::Twine& why);
  /// True if each word from `first` on is a type or one of `known`. Refuses the instruction otherwise.
  bool knows(size_t first, std::initializer_list<llvm::StringRef> known);

  //===-- Operands: numbers are integers of the register's width ------------------------------------===//

  /// Returns the lower `bits` bits. Refuses the instruction if the register has fewer.
  llvm::Value* readBits(const Operand&, unsigned bits);
  /// Returns the operand as a value of the type: an integer, a float or a vector of two.
  llvm::Value* read(const Operand&, const Type&);
  llvm::Value* readPredicate(const Operand&);
  /// Returns the address that an operand in brackets names, or an address in a register.
  llvm::Value* address(const Operand&, uint8_t space);
  /// Stores the results of an instruction in its first operand: both if that is a pair, as `%r1|%p2`.
  void writePair(llvm::Value* first, llvm::Value* second);
  /// Returns how many bytes of parameters there are from an address on, which names one; nothing if it does
  /// not.
  std::optional<uint64_t> parameterBytes(const Operand&) const;
  /// Stores a value of any type; an integer is extended, with its sign if the type has one.
  void write(const Operand&, llvm::Value*, const Type& = {});
  llvm::Type* typeFor(const Type&);
  /// True if nothing reads the register that an instruction writes.
  bool isIgnored(const Operand& result) const {
    return result.kind == Operand::Sink ||
           (result.kind == Operand::Register && occurrences_[result.index] == 1);
  }
  unsigned bitsOf(const Operand& reg) const { return text_.registers[reg.index].bits; }
  /// Operand i; refuses the instruction and returns a sink if it has fewer.
  const Operand& operand(size_t i);
  size_t operands() const { return now_->operands.size(); }

  //===-- The emulator's functions ------------------------------------------------------------------===//

  /// Returns a call of `emu.NAME(thread, arguments...)`. An i1 argument is passed as an i32.
  llvm::Value* call(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments);
  llvm::Value* call(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments) {
    return call(name, b.getVoidTy(), arguments);
  }
  /// The hook returns a bool.
  llvm::Value* callBool(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments);
  /// Returns a call without the thread, of a mathematical function.
  llvm::Value* callMath(llvm::StringRef name, llvm::Value* argument);

  llvm::Value* i32(uint32_t value) { return b.getInt32(value); }
  /// Returns the site of an instruction that only waits.
  llvm::Value* site();
  /// Returns the site of an instruction that accesses memory through this pointer; `bytes` 0: an argument of
  /// the call says how many.
  llvm::Value* site(llvm::Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags);
  /// Checks `bytes` bytes at a pointer before the access. The kernel ignores those behind the first `used`;
  /// 0: none.
  void check(llvm::Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags, uint64_t used = 0);
  llvm::Value* sreg(uint32_t index);

 private:
  void place();
  void declareLocals();
  void declareRegisters();
  void controlFlow();
  void statement(const Statement&);
  bool operation();
  void checkAssignments();
  void countLoops();
  llvm::BasicBlock* blockOf(uint32_t label);
  llvm::Value* symbol(llvm::StringRef name);
  llvm::Value* special(llvm::StringRef name);

  const Module& module_;
  const Function& text_;
  llvm::Module& ir_;
  Program::State& state_;
  llvm::Function* function_ = nullptr;
  llvm::Value *thread_ = nullptr, *words_ = nullptr;
  const Statement* now_ = nullptr;
  bool refused_ = false;
  std::vector<std::string> problems_;
  std::vector<llvm::AllocaInst*> registers_;  ///< null if it does not occur
  std::vector<unsigned> occurrences_;         ///< of a register in the text
  llvm::DenseMap<const llvm::LoadInst*, const Statement*> reads_;
  std::vector<llvm::BasicBlock*> blocks_;  ///< by label
  llvm::StringMap<llvm::Value*> symbols_;  ///< addresses of variables
};

//===-- Groups of instructions: false: not one of them --------------------------------------------===//

bool integerOperation(Kernel&);  // Integers.cpp
bool floatOperation(Kernel&);    // Floats.cpp
bool conversion(Kernel&);        // Conversions.cpp: mov, cvt, cvta, selp, setp
bool memoryOperation(Kernel&);   // Memory.cpp: ld, st, atom, red
bool copyOperation(Kernel&);     // Copies.cpp: cp.async, st.async
bool warpOperation(Kernel&);     // Warps.cpp: shfl, vote, match, redux, elect
bool synchronisation(Kernel&);   // Barriers.cpp: bar, fence, mbarrier, clusters

}  // namespace normc::emulator::ptx
