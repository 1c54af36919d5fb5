// A planned kernel as the request of normc-halide-gen (codegen/targets/halide/generator/Request.h).
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/targets/halide/Schedule.h"

namespace normc::codegen::halide {

/// Returns the request. `emit`: object, halide, stmt, asm. Transcendental functions must have been expanded.
/// `count`: segments, rows, features for which traffic is counted, or nothing.
std::string requestOf(KernelOp, const Schedule&, const cpu::Isa&, llvm::StringRef emit,
                      llvm::ArrayRef<int64_t> count = {});

}  // namespace normc::codegen::halide
