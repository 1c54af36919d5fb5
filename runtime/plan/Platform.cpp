#include "runtime/core/Error.h"
#include "runtime/cpu/CpuPlatform.h"
#include "runtime/cuda/CudaPlatform.h"
#include "runtime/plan/Backend.h"

namespace normc::runtime {

normc_status platformOf(const Context& context, const normc_request& request,
                        std::unique_ptr<const Platform>& platform) {
  switch (request.device_type) {
    case 0:
    case kDLCPU:
      return CpuPlatform::open(request, platform);
    case kDLCUDA:
      return CudaPlatform::open(context, request, platform);
  }
  return fail(NORMC_INVALID_ARGUMENT, "request.device_type is ", request.device_type,
              "; it must be 0 or 1 (the CPU), or 2 (CUDA)");
}

}  // namespace normc::runtime
