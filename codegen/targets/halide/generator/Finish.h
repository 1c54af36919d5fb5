// From pipelines to one object: gives lowered pipelines the calls of
// abi/kernel.h and runs Halide's code generator.
#pragma once

#include "codegen/targets/halide/generator/Memory.h"

namespace normc::halide {

/// Returns the Halide target. Throws Refusal for an unknown name.
Halide::Target targetOf(const std::string& name);

/// Lowers the driver of a phase. The result takes (const normc_kernel_args*, int64_t task):
/// writes have become stores in the order loads, then stores; the driver is gone.
Halide::Internal::LoweredFunc lowered(Halide::Func driver, const Memory&, const std::string& symbol,
                                      const Halide::Target&);

/// Writes an object or assembly.
void compile(const std::vector<Halide::Internal::LoweredFunc>&, const Halide::Target&, Halide::OutputFileType,
             const std::string& path);

}  // namespace normc::halide
