// Halide 21 has no store that passes the caches. A kernel whose schedule streams comes
// from its generator as bitcode, in which two functions that nobody defines stand
// around such stores; here they become what they are, and the bitcode an object.
#pragma once

#include "codegen/targets/cpu/Object.h"

namespace normc::codegen::halide {

/// Stores of vectors between `normc_past(past)` and `normc_past_end()` pass the caches where `past` is not 0;
/// they lie at multiples of their size then. The code has been optimised, and is not again. An error where
/// the bitcode is none.
llvm::Expected<std::string> machineCode(llvm::StringRef bitcode, const cpu::Isa&, cpu::Emit);

}  // namespace normc::codegen::halide
