// The instruction sets that a package may hold code for.
#pragma once

#include <string>
#include <vector>

#include "codegen/targets/cpu/Cores.h"
#include "llvm/Support/Error.h"

namespace normc::codegen::cpu {

struct Isa {
  llvm::StringRef name;        ///< as in manifests and on the command line
  std::string triple;          ///< for LLVM
  llvm::StringRef cpu;         ///< for LLVM
  llvm::StringRef features;    ///< for LLVM, beyond the cpu's
  int64_t vectorBytes;         ///< of the widest register
  int64_t registers;           ///< how many of those there are
  bool masks16;                ///< loads and stores of 16-bit lanes can be masked
  bool roundsBF16 = false;     ///< by an instruction, which takes denormals for zeros
  const Core* core = nullptr;  ///< whose table of default schedules is used; null: the rule alone
};

/// Returns all sets, the narrowest of each architecture first.
const std::vector<Isa>& instructionSets();

/// Reads `x86-64-v3`, `x86-64-v4`, `x86-64-v4-bf16`, `aarch64`, or `host`: the newest set of this processor,
/// with its core. A core after a colon chooses the table of that core, `any` none: `x86-64-v4:zen4`,
/// `x86-64-v4:cove`, `host:any`, `x86-64-v3:host`.
llvm::Expected<Isa> findIsa(llvm::StringRef name);

/// Returns the name that findIsa reads as this value: the set, and the core if there is one.
std::string spelling(const Isa&);

}  // namespace normc::codegen::cpu
