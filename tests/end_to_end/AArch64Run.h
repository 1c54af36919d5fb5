// Kernels for AArch64 on a machine that is none: compiled and linked as a package
// holds them, and called under qemu-user by a small program (AArch64Driver.c).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/Target.h"
#include "codegen/targets/cpu/Compile.h"
#include "dsl/Reference.h"

namespace normc {

struct AArch64Result {
  /// As ReferenceResult::outputs, values only; of the state, the fields that the kernel itself writes.
  std::map<std::string, std::vector<double>> outputs;
  /// The program that is missing on this machine, or the failure; empty otherwise.
  std::string fault;
};

/// One kernel with the default schedule of the strategy, ready to be called.
class AArch64Kernel {
 public:
  AArch64Kernel(const Problem&, codegen::Strategy);
  /// The first default schedule of a target that makes code for AArch64.
  AArch64Kernel(const Problem&, const codegen::Target&);
  AArch64Result run(const ReferenceCall&) const;

 private:
  void link(llvm::Expected<codegen::CompiledKernel>);

  Problem problem_;
  package::Kernel manifest_;
  std::string shared_;                        ///< the linked object
  std::map<std::string, int64_t> addresses_;  ///< of its exported functions
  std::string fault_;
};

}  // namespace normc
