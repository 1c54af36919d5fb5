// The instruction sets a package may hold code for.
#pragma once

#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace normc::codegen::cpu {

struct Isa {
  llvm::StringRef name;      ///< as in manifests and on the command line
  llvm::StringRef triple;    ///< for LLVM
  llvm::StringRef cpu;       ///< for LLVM
  llvm::StringRef features;  ///< for LLVM, beyond the cpu's
  int64_t vectorBytes;       ///< of the widest register
  int64_t registers;         ///< how many of those there are
  bool masks16;              ///< loads and stores of 16-bit lanes can be masked
  bool roundsBF16 = false;   ///< by an instruction, which takes denormals for zeros
};

/// All of them, the narrowest of each architecture first.
const std::vector<Isa>& instructionSets();

/// `x86-64-v3`, `x86-64-v4`, `x86-64-v4-bf16`, `aarch64`, or `host`: the best that this processor runs.
llvm::Expected<Isa> findIsa(llvm::StringRef name);

}  // namespace normc::codegen::cpu
