// The instruction sets that packages hold kernels for, and which of them this processor and its operating
// system run.
//
// One row for each: a new set is a row here and what detects it in Isa.cpp. Compilers are known by the words
// that they take for a set; nothing here includes them.
#pragma once

#include <string>
#include <string_view>

namespace normc {

/// Sets of one machine are ordered: a higher level includes the lower ones.
struct Isa {
  std::string_view name;     ///< in manifests and on the command line
  std::string_view machine;  ///< "x86_64", "aarch64"
  int level;
  int vectorBytes;                ///< bytes of the widest register
  int registers;                  ///< how many of those there are
  bool masks16;                   ///< loads and stores of 16-bit lanes can be masked
  bool roundsBF16;                ///< by an instruction, which takes denormals for zeros whatever the mode
  std::string_view needs;         ///< instructions that the name of the lowest set does not imply
  std::string_view llvmCpu;       ///< LLVM's word for the processor
  std::string_view llvmFeatures;  ///< for LLVM, beyond the processor's
  std::string_view halide;        ///< Halide's target, without its run-time features
};

/// The narrowest of each machine first.
inline constexpr Isa kIsas[] = {
    {"x86-64-v3", "x86_64", 3, 32, 16, false, false, "", "x86-64-v3", "",
     "x86-64-linux-sse41-avx-avx2-fma-f16c"},
    {"x86-64-v4", "x86_64", 4, 64, 32, true, false, "", "x86-64-v4", "-prefer-256-bit",
     "x86-64-linux-sse41-avx-avx2-fma-f16c-avx512-avx512_skylake"},
    // Halide 21 rounds bf16 in its own way.
    {"x86-64-v4-bf16", "x86_64", 5, 64, 32, true, true, "", "x86-64-v4", "-prefer-256-bit,+avx512bf16",
     "x86-64-linux-sse41-avx-avx2-fma-f16c-avx512-avx512_skylake"},
    {"aarch64", "aarch64", 1, 16, 32, false, false, "arithmetic in half precision (fphp, asimdhp)", "generic",
     "+neon,+fullfp16", "arm-64-linux-arm_fp16"},
};

/// Returns null for a name that is none of a set.
const Isa* findIsa(std::string_view name);

/// Returns all names, for errors: "x86-64-v3, x86-64-v4, ...".
std::string isaNames();

/// True if a processor that runs `set` runs code for `other` as well.
bool includes(const Isa& set, const Isa& other);

/// Returns the newest set that code can use here; null on a processor older than all of them. Detected once;
/// thread-safe.
const Isa* cpuIsa();

}  // namespace normc
