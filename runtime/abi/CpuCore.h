// Cores: kinds of processors that need different schedules although they run the same instructions. A package
// may hold kernels of one instruction set for several cores, and the runtime takes those of the core it runs
// on. Their schedules are measured: codegen/targets/cpu/defaults/CORE.jsonl.
// docs/add-a-target.md says what a new core needs.
#pragma once

#include <array>
#include <string_view>

namespace normc {

inline constexpr std::array<std::string_view, 5> kCores = {
    "cove",     // Intel from Ice Lake on
    "granite",  // Granite Rapids
    "zen3",     // AMD from Zen 1 to Zen 3
    "zen4",     // Zen 4
    "zen5",     // AMD from Zen 5 on
};

/// What CPUID says of a processor.
struct CpuFacts {
  std::string_view vendor;  ///< "GenuineIntel"
  unsigned family = 0, model = 0;
  bool avx2 = false, avx512 = false, gfni = false, amxTile = false;
};

/// Returns the name of the core of such a processor; empty: none of kCores. On Intel GFNI tells Ice Lake and
/// what followed, small cores too; on AMD AVX-512 tells Zen 4 and what followed, so one that hides it counts
/// as zen3. A virtual machine may report the model of another processor: a Rocket Lake with AMX, which no
/// Rocket Lake has, is taken for a Granite Rapids.
std::string_view coreOf(const CpuFacts&);

/// Returns the core of this machine's processor; empty: none of kCores. Detected once; thread-safe.
std::string_view cpuCore();

}  // namespace normc
