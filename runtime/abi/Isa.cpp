#include "runtime/abi/Isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace normc {
namespace {

bool all(unsigned long value, unsigned long bits) { return (value & bits) == bits; }

#if defined(__x86_64__)
/// Returns the register files that the operating system saves on a context switch; 0 if unknown.
unsigned savedRegisters(unsigned leaf1Ecx) {
  if (!(leaf1Ecx & bit_OSXSAVE)) return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Returns the level of the x86-64 psABI, 0 below v3; 5 is v4 with AVX512_BF16.
int detectLevel() {
  constexpr unsigned kYmm = 0x6, kZmm = 0xe0;  // XCR0: SSE and AVX; opmask and both halves of zmm
  unsigned eax, ebx, ecx, edx, extended = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return 0;
  const unsigned registers = savedRegisters(ecx);
  const bool v2 = all(ecx, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B);
  const bool v3Leaf1 = all(ecx, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE);
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) extended = ecx;
  ebx = 0;
  __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
  if (!v2 || !v3Leaf1 || !all(registers, kYmm) || !all(extended, bit_LZCNT) ||
      !all(ebx, bit_AVX2 | bit_BMI | bit_BMI2))
    return 0;
  const bool v4 = all(ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL);
  if (!v4 || !all(registers, kZmm)) return 3;
  constexpr unsigned kBF16 = 1 << 5;  // leaf 7.1, eax
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && all(eax, kBF16) ? 5 : 4;
}
constexpr std::string_view kMachine = "x86_64";
#elif defined(__aarch64__)
/// Returns 0 below ARMv8.2, or if half-precision arithmetic is not implemented.
int detectLevel() { return all(getauxval(AT_HWCAP), HWCAP_FPHP | HWCAP_ASIMDHP) ? 1 : 0; }
constexpr std::string_view kMachine = "aarch64";
#else
#error "add the instruction sets of this processor"
#endif

}  // namespace

const Isa* findIsa(std::string_view name) {
  for (const Isa& isa : kIsas)
    if (isa.name == name) return &isa;
  return nullptr;
}

std::string isaNames() {
  std::string names;
  for (const Isa& isa : kIsas) names.append(names.empty() ? "" : ", ").append(isa.name);
  return names;
}

bool includes(const Isa& set, const Isa& other) {
  return set.machine == other.machine && set.level >= other.level;
}

const Isa* cpuIsa() {
  static const Isa* const detected = [] {
    const int level = detectLevel();
    const Isa* best = nullptr;
    for (const Isa& isa : kIsas)
      if (isa.machine == kMachine && isa.level <= level) best = &isa;
    return best;
  }();
  return detected;
}

}  // namespace normc
