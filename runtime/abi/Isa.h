// The instruction sets that packages hold kernels for, and whether this processor and its operating system
// support them.
//
// A new set is a row here and its detection in Isa.cpp. The table has the names of the sets for each
// compiler; no compiler is included.
#pragma once

#include <string>
#include <string_view>

namespace normc {

/// Sets of one machine are ordered: a higher level includes the lower ones.
struct Isa {
  std::string_view name;     ///< in manifests and on the command line
  std::string_view machine;  ///< "x86_64", "aarch64"
  int level;
  int vectorBytes;           ///< bytes of the widest register
  int registers;             ///< number of those registers
  bool masks16;              ///< loads and stores of 16-bit lanes can be masked
  bool roundsBF16;           ///< has an instruction that rounds to bf16; it flushes denormals in every mode
  std::string_view needs;    ///< instructions beyond those that the name of the lowest set implies
  std::string_view llvmCpu;  ///< LLVM's name of the processor
  std::string_view llvmFeatures;  ///< LLVM's features beyond those of llvmCpu
  std::string_view halide;        ///< Halide's target, without run-time features
};

/// The narrowest of each machine first.
inline constexpr Isa kIsas[] = {
    {"x86-64-v3", "x86_64", 3, 32, 16, false, false, "", "x86-64-v3", "",
     "x86-64-linux-sse41-avx-avx2-fma-f16c"},
    {"x86-64-v4", "x86_64", 4, 64, 32, true, false, "", "x86-64-v4", "-prefer-256-bit",
     "x86-64-linux-sse41-avx-avx2-fma-f16c-avx512-avx512_skylake"},
    // Halide 21 rounds bf16 differently.
    {"x86-64-v4-bf16", "x86_64", 5, 64, 32, true, true, "", "x86-64-v4", "-prefer-256-bit,+avx512bf16",
     "x86-64-linux-sse41-avx-avx2-fma-f16c-avx512-avx512_skylake"},
    {"aarch64", "aarch64", 1, 16, 32, false, false, "arithmetic in half precision (fphp, asimdhp)", "generic",
     "+neon,+fullfp16", "arm-64-linux-arm_fp16"},
};

/// Returns the set of a name; null if there is none.
const Isa* findIsa(std::string_view name);

/// Returns all names, for errors: "x86-64-v3, x86-64-v4, ...".
std::string isaNames();

/// True if a processor that runs `set` runs code for `other` as well.
bool includes(const Isa& set, const Isa& other);

/// Returns the newest set that code can use here; null on a processor older than all of them. Detected once;
/// thread-safe.
const Isa* cpuIsa();

}  // namespace normc
