// Declarations of the driver's functions, for code that links the fake driver:
// its own sources, and tests.
#pragma once

#include "runtime/abi/CudaDriver.h"

#pragma GCC visibility push(default)
namespace normc::cuda {
extern "C" {
#define NORMC_CUDA_DECLARE(name, parameters) CUresult name parameters;
NORMC_CUDA_DRIVER_API(NORMC_CUDA_DECLARE)
NORMC_CUDA_DRIVER_API_OPTIONAL(NORMC_CUDA_DECLARE)
NORMC_CUDA_HOST_API(NORMC_CUDA_DECLARE)
#undef NORMC_CUDA_DECLARE
}
}  // namespace normc::cuda
#pragma GCC visibility pop
