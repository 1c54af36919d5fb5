// The fake driver with kernels that work from the moment it is opened: what the dry
// run of bench/gpu/run gives to normc-gpu as its driver.
#include "tests/gpu/CpuKernels.h"

[[gnu::constructor]] static void begin() { fake_cuda_set_launcher(normc::test::runOnCpu, nullptr); }
