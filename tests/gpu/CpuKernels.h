// Kernels in plain C++ for the fake driver: what a device would do with the entries
// of the tests' package (tests/runtime/TestPackage.h) and of autotune/measure/CudaRoof.h.
#pragma once

#include "codegen/emulator/driver/FakeCuda.h"
#include "codegen/package/Writer.h"

namespace normc::test {

/// layer_norm forward and backward in f32 for 128 features, for sm_90, with the text of the real norm; and a
/// forward that serves so many rows at most, if any.
package::Writer layerNormPackage(int64_t fewRows = 0, const std::string& schedule = "scalar");

/// A launcher for them, and for copy_N and triad_N: computes in double, one task after another. Other entries
/// do nothing. `user` is ignored.
int runOnCpu(void* user, const fake_cuda_launch* launch);

}  // namespace normc::test
