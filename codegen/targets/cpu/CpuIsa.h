// The instruction sets a package may hold code for, and the cores that default schedules know.
#pragma once

#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace normc::codegen::cpu {

/// Cores of one instruction set that like different schedules: whoever compiles for one gets its defaults, in code that
/// all of the set run.
enum class Core {
  Any,   ///< no one in particular
  Zen,   ///< AMD's; a Zen 4 was measured
  Cove,  ///< Intel's from Sunny Cove (Ice Lake) on; an Emerald Rapids was measured
};

struct Isa {
  llvm::StringRef name;      ///< as in manifests and on the command line
  std::string triple;        ///< for LLVM
  llvm::StringRef cpu;       ///< for LLVM
  llvm::StringRef features;  ///< for LLVM, beyond the cpu's
  int64_t vectorBytes;       ///< of the widest register
  int64_t registers;         ///< how many of those there are
  bool masks16;              ///< loads and stores of 16-bit lanes can be masked
  bool roundsBF16 = false;   ///< by an instruction, which takes denormals for zeros
  Core core = Core::Any;     ///< for whom schedules are chosen where nobody measured any
};

/// All of them, the narrowest of each architecture first.
const std::vector<Isa>& instructionSets();

/// `x86-64-v3`, `x86-64-v4`, `x86-64-v4-bf16`, `aarch64`, or `host`: the best that this processor runs, for its core. After
/// a colon the core, if schedules are to be chosen for one: `x86-64-v4:zen`, `x86-64-v4:cove`, `host:any`, `x86-64-v3:host`.
llvm::Expected<Isa> findIsa(llvm::StringRef name);

/// `any`, `zen`, `cove`.
llvm::StringRef name(Core);

/// The name that findIsa takes for it: that of the set, and of the core if there is one.
std::string spelling(const Isa&);

}  // namespace normc::codegen::cpu
