// Short ways from a text to a problem, a plan, a compiled object.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cuda/Compile.h"
#include "dsl/Library.h"

namespace normc::codegen {

/// The problem of a text that must be right; its norm is built in.
Problem problemOf(const std::string& text);
/// The problem of the last norm in `norms`, a file's text; `rest` follows its name, e.g.
/// `:forward@f32[*x64]`.
Problem problemOf(const std::string& norms, const std::string& rest);

/// A problem of a norm that is built in, with what its shape and bindings (all 4) ask for.
/// Nothing where the language refuses it.
struct Wish {
  Entry entry = Entry::Forward;
  int64_t features = 48;
  std::string dtype = "f32";
  bool mask = false;
  bool channelsFirst = false;
};
std::optional<Problem> problemOf(const BuiltinNorm&, const Wish&);

cpu::Isa isaOf(llvm::StringRef name);
/// All instruction sets, and those with schedules for a core of their own.
std::vector<cpu::Isa> setsAndCores();
Strategy strategyOf(llvm::StringRef name);

/// A kernel in the norm dialect, and the context it lives in.
class Planned {
 public:
  Planned(const Problem&, Strategy);
  KernelOp kernel() { return kernel_; }
  std::string error;  ///< empty where the plan exists

 private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  KernelOp kernel_;
};

/// Replaces the functions that Halide's generator does not have.
void expandMath(KernelOp);

/// A context that knows norm dialect and what its regions hold.
mlir::DialectRegistry normDialects();

}  // namespace normc::codegen
