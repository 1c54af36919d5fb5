// The device's approximate functions, here with correct or nearly correct rounding: no result may depend on
// the last bits of an approximation.
#include <bit>
#include <cmath>

#include "codegen/emulator/Hooks.h"

namespace normc::emulator {

static float emuRsqrt(float x) { return float(1 / std::sqrt(double(x))); }
static double emuRsqrtD(double x) { return 1 / std::sqrt(x); }
static float emuExp2(float x) { return float(std::exp2(double(x))); }
static float emuLog2(float x) { return float(std::log2(double(x))); }
static float emuTanh(float x) { return float(std::tanh(double(x))); }

static uint16_t toBf16(double x) {
  if (std::isnan(x)) return 0x7fff;
  // Rounds to odd first, so that the second rounding takes the cut bits into account.
  auto narrow = float(x);
  auto bits = std::bit_cast<uint32_t>(narrow);
  if (double(narrow) != x && std::isfinite(narrow) && !(bits & 1)) {
    bool above = std::fabs(double(narrow)) > std::fabs(x);
    bits = above ? bits - 1 : bits | 1;
  }
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Functions for type conversions that the processor does not have; the host's code generator emits calls of
// them. A bf16 is returned like a float, in the lower half of its bits.
static float floatToBf16(float x) { return std::bit_cast<float>(uint32_t(toBf16(double(x)))); }
static float doubleToBf16(double x) { return std::bit_cast<float>(uint32_t(toBf16(x))); }

std::span<const Hook> mathHooks() {
  static const Hook hooks[] = {hook("emu.rsqrt", emuRsqrt),       hook("emu.rsqrt.d", emuRsqrtD),
                               hook("emu.exp2", emuExp2),         hook("emu.log2", emuLog2),
                               hook("emu.tanh", emuTanh),         hook("__truncsfbf2", floatToBf16),
                               hook("__truncdfbf2", doubleToBf16)};
  return hooks;
}

}  // namespace normc::emulator
