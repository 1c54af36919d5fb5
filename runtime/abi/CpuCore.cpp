#include "runtime/abi/CpuCore.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace normc {

std::string_view coreOf(const CpuFacts& f) {
  constexpr unsigned kZen = 0x17, kZen5 = 0x1a, kRocketLake = 0xa7, kGraniteRapids = 0xad,
                     kGraniteRapidsD = 0xae;
  if (!f.avx2) return "";
  if (f.vendor == "AuthenticAMD" && f.family >= kZen)
    return !f.avx512 ? "zen3" : f.family < kZen5 ? "zen4" : "zen5";
  if (f.vendor != "GenuineIntel" || !f.gfni) return "";
  const bool granite = f.model == kGraniteRapids || f.model == kGraniteRapidsD;
  return f.family == 6 && (granite || (f.model == kRocketLake && f.amxTile)) ? "granite" : "cove";
}

#if defined(__x86_64__)
static CpuFacts detect(char (&vendor)[12]) {
  unsigned eax, ebx, ecx, edx;
  CpuFacts facts;
  if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx)) return facts;
  for (int i = 0; const unsigned part : {ebx, edx, ecx}) std::memcpy(vendor + 4 * i++, &part, 4);
  facts.vendor = {vendor, sizeof vendor};
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = eax >> 8 & 0xf, model = eax >> 4 & 0xf;
  facts.family = family == 0xf ? family + (eax >> 20 & 0xff) : family;
  facts.model = family == 6 || family == 0xf ? model | (eax >> 12 & 0xf0) : model;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return facts;
  constexpr unsigned kAmxTile = 1 << 24;  // edx
  facts.avx2 = ebx & bit_AVX2;
  facts.avx512 = ebx & bit_AVX512F;
  facts.gfni = ecx & bit_GFNI;
  facts.amxTile = edx & kAmxTile;
  return facts;
}
#endif

std::string_view cpuCore() {
#if defined(__x86_64__)
  static const std::string_view detected = [] {
    char vendor[12];
    return coreOf(detect(vendor));
  }();
  return detected;
#else
  return "";
#endif
}

}  // namespace normc
