// A planned kernel as the request of normc-halide-gen (codegen/halide/Request.h).
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/targets/halide/Schedule.h"

namespace normc::codegen::halide {

/// Raised whenever a request means something else than before.
inline constexpr int64_t kSchema = 1;

/// `emit`: object, halide, stmt, asm. Transcendental functions must have been expanded.
std::string requestOf(KernelOp, const Schedule&, const cpu::Isa&, llvm::StringRef emit);

}  // namespace normc::codegen::halide
