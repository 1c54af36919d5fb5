// The default kernels of problems, compiled here and now.
#pragma once

#include "bench/kit/Kernels.h"
#include "codegen/Target.h"

namespace normc::bench {

/// Throws std::runtime_error with the message of the compiler or the runtime.
Kernels compile(const std::vector<Problem>&, const codegen::TargetPtr&);
Kernels compile(const std::vector<Problem>&);  ///< for this processor

}  // namespace normc::bench
