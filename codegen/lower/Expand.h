// Passes that replace operations that no instruction computes, or only a slow one. Kernels are freestanding,
// so they cannot call libm.
#pragma once

#include "codegen/Pass.h"

namespace normc::codegen {

/// expand-division: replaces a division by a number that is the same for all lanes, marked `normc.products`,
/// by products with the reciprocal of the number, which is at least 1. The result is that of the division
/// (Markstein's correction), but 1 ulp off if 2^-24 of the dividend is subnormal, and +0 for -0.
PassPtr expandDivision();

/// expand-rsqrt: replaces math.rsqrt by a root and a division. A vector marked `afn` gets products instead,
/// because with few rows those two instructions took a fifth of the time: within 1 ulp and the same on every
/// processor. Vectors with an element that is zero, negative, subnormal or not finite, and f64, use a root
/// and a division.
PassPtr expandRsqrt();

/// expand-log: replaces math.log by a polynomial in f64, below 2e-16: only statistics per feature need it.
PassPtr expandLog();

/// expand-exp: replaces math.exp by a polynomial in its own type, f32 or f64, scalar or vector, for any
/// input: within 1 ulp, 0 where the result would be subnormal.
PassPtr expandExp();

/// expand-abs: replaces math.absf by a mask.
PassPtr expandAbs();

/// expand-bf16: replaces conversions from and to bf16, which is held as i16, by integer arithmetic: not every
/// processor has instructions for them, and LLVM's expansion is slow or a call. Rounds to nearest even and
/// keeps NaN. `instruction`: the processor rounds vectors by one, so these conversions stay. A vector of
/// `whole` elements fills a register of AVX-512 as bf16, and two as f32, so that one instruction joins or
/// splits it; 0: there is no such register. A conversion to bf16 and back leaves f32 in its lanes.
PassPtr expandBF16(bool instruction, int64_t whole);

/// nontemporal-words: hides from LLVM that a non-temporal store is of 16-bit floats: LLVM 22 has no such
/// store and drops the hint silently. LLVM looks through bitcasts, so a fence that costs no instruction is
/// between two of them. After expand-bf16.
PassPtr nontemporalWords();

}  // namespace normc::codegen
