// Rewrites a module for NVPTX so that this processor can run it: operations that only a GPU has
// become calls of the emulator's functions (Hooks.h), and every access is checked.
#pragma once

#include "codegen/emulator/Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace normc::emulator {

/// Adds entries, sites and variables to the state; leaves in the module one function
/// `emu.NAME(thread, words)` for each entry. The module is one of ours: a copy.
llvm::Error rewrite(llvm::Module&, Program::State&);

/// One kernel while it is rewritten.
class Kernel {
 public:
  Kernel(llvm::Function& f, Program::State& state);

  llvm::Function& function;
  llvm::IRBuilder<> builder;
  llvm::Value* thread = nullptr;
  Entry entry;

  /// Remembers that an instruction cannot be emulated.
  void refuse(const llvm::Instruction&, const llvm::Twine& why);
  llvm::ArrayRef<std::string> problems() const { return problems_; }

  /// A call of `emu.NAME(thread, arguments...)`. An i1 goes as an i32; one that comes back is an i8.
  llvm::Value* call(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments);
  llvm::Value* call(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments) {
    return call(name, builder.getVoidTy(), arguments);
  }
  llvm::Value* callBool(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments);
  /// The same without the thread: a function of mathematics.
  llvm::Value* callMath(llvm::StringRef name, llvm::Value* argument);

  llvm::Value* i32(uint32_t value) { return builder.getInt32(value); }
  /// The site of an instruction that only waits.
  llvm::Value* site(const llvm::Instruction&);
  /// The site of one that touches memory through this pointer.
  llvm::Value* site(const llvm::Instruction&, llvm::Value* pointer, uint64_t bytes, uint64_t align,
                    uint8_t flags);
  /// Checks `bytes` bytes at a pointer before they are touched, if it can lead out of local variables.
  void check(const llvm::Instruction&, llvm::Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags);
  void checkRange(const llvm::Instruction&, llvm::Value* pointer, llvm::Value* bytes, uint64_t align,
                  uint8_t flags);

  /// Replaces an instruction by a value (null: by nothing).
  void replace(llvm::Instruction&, llvm::Value* value);
  llvm::Value* sreg(uint32_t index);

  void nameInstructions();  ///< before anything is changed

 private:
  bool isLocal(llvm::Value* pointer) const;

  Program::State& state_;
  llvm::DenseMap<const llvm::Instruction*, std::string> text_;
  std::vector<std::string> problems_;
};

/// Loads, stores, atomics, copies of memory. False: not one of them.
bool rewriteMemory(Kernel&, llvm::Instruction&);
/// A call of an intrinsic of NVVM, or a generic one that needs a rewrite. False: it may stay as it is.
bool rewriteIntrinsic(Kernel&, llvm::CallInst&);
/// An intrinsic that only computes. False: not one of them.
bool rewriteMath(Kernel&, llvm::CallInst&, llvm::StringRef name);
/// Inline PTX.
void rewritePtx(Kernel&, llvm::CallInst&);

}  // namespace normc::emulator
