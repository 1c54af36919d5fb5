// The device, the driver and the machine: what a figure belongs to.
#pragma once

#include "autotune/gate/CudaDevice.h"
#include "bench/gpu/Records.h"

namespace normc::gpu {

/// "sm_90"
std::string archOf(const gate::CudaDevice&);

/// One object; "theoretical_gbps" is what memory clock and bus width come to, 0 where the driver does not
/// say.
Json factsOf(const gate::CudaDevice&);

}  // namespace normc::gpu
