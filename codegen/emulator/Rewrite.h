// Rewrites a module for NVPTX so that this processor can run it: GPU operations become calls of the
// emulator's functions (Hooks.h), and every access is checked.
#pragma once

#include "codegen/emulator/Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace normc::emulator {

/// Adds entries, sites and variables to the state; the module then has one function `emu.NAME(thread, words)`
/// for each entry. The module is the emulator's own copy.
llvm::Error rewrite(llvm::Module&, Program::State&);

/// One kernel during the rewrite.
class Kernel {
 public:
  Kernel(llvm::Function& f, Program::State& state);

  llvm::Function& function;
  llvm::IRBuilder<> builder;
  llvm::Value* thread = nullptr;
  Entry entry;

  /// Records that an instruction cannot be emulated.
  void refuse(const llvm::Instruction&, const llvm::Twine& why);
  llvm::ArrayRef<std::string> problems() const { return problems_; }

  /// Returns a call of `emu.NAME(thread, arguments...)`. An i1 argument is passed as an i32; an i1 result is
  /// an i8.
  llvm::Value* call(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments);
  llvm::Value* call(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments) {
    return call(name, builder.getVoidTy(), arguments);
  }
  llvm::Value* callBool(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments);
  /// Returns a call without the thread, of a mathematical function.
  llvm::Value* callMath(llvm::StringRef name, llvm::Value* argument);

  llvm::Value* i32(uint32_t value) { return builder.getInt32(value); }
  /// Returns the site of an instruction that only waits.
  llvm::Value* site(const llvm::Instruction&);
  /// Returns the site of an instruction that accesses memory through this pointer.
  llvm::Value* site(const llvm::Instruction&, llvm::Value* pointer, uint64_t bytes, uint64_t align,
                    uint8_t flags);
  /// Checks `bytes` bytes at a pointer before the access, if the pointer may be outside of local variables.
  void check(const llvm::Instruction&, llvm::Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags);
  void checkRange(const llvm::Instruction&, llvm::Value* pointer, llvm::Value* bytes, uint64_t align,
                  uint8_t flags);

  /// Replaces an instruction by a value; null removes it.
  void replace(llvm::Instruction&, llvm::Value* value);
  llvm::Value* sreg(uint32_t index);

  void nameInstructions();  ///< must precede all changes

 private:
  bool isLocal(llvm::Value* pointer) const;

  Program::State& state_;
  llvm::DenseMap<const llvm::Instruction*, std::string> text_;
  std::vector<std::string> problems_;
};

/// Rewrites loads, stores, atomics, copies of memory. False: not one of them.
bool rewriteMemory(Kernel&, llvm::Instruction&);
/// Rewrites a call of an intrinsic of NVVM, or of a generic one. False: it may stay unchanged.
bool rewriteIntrinsic(Kernel&, llvm::CallInst&);
/// Rewrites an intrinsic that only computes. False: not one of them.
bool rewriteMath(Kernel&, llvm::CallInst&, llvm::StringRef name);
/// Rewrites inline PTX.
void rewritePtx(Kernel&, llvm::CallInst&);

}  // namespace normc::emulator
