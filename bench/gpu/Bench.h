// Measures kernel times of every shape, and the roof of its footprint.
#pragma once

#include <functional>

#include "autotune/measure/CudaRoof.h"
#include "bench/gpu/Records.h"
#include "bench/gpu/Tuned.h"
#include "bench/kit/Kernels.h"

namespace normc::gpu {
using namespace bench;

struct BenchOptions {
  int rounds = 15;
  double sampleSeconds = 1.5e-3;
  bool evenWrong = false;  ///< time kernels that the gate refuses, too; they are marked
  std::string driver = gate::CudaDriver::kLibrary;
  Choices tuned;  ///< schedules that won are timed with the default
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Json&)> record;
};

/// A record where a shape begins, and one with median time, interval, bytes, and the ratio to the roof that
/// was measured between. A kernel that the gate refuses is not timed, and the record says why. What ended in
/// `before`, the records of earlier runs, is left out, unless tuning has decided on it since; what began and
/// did not end is not tried again. Returns early when the device is lost.
void benchAll(const gate::CudaDevice&, const Kernels&, const std::vector<ProblemText>& shapes,
              const std::vector<Json>& before, const BenchOptions&);

/// Copy and triad of tensors from 4 MiB to 1 GiB; `quick`: one small size.
void benchRoofs(const gate::CudaDevice&, bool quick, const std::function<bool()>& stop,
                const std::function<void(const Json&)>& record);

}  // namespace normc::gpu
