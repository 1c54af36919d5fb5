// Times every candidate of a bundle on the device, without judging it: where the fast schedules are, in a
// fraction of the time of a tuning. The result serves rules for defaults; a choice is made by normc-bundle,
// behind the gate.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "bench/gpu/Records.h"

namespace normc::gpu {

struct SweepOptions {
  int rounds = 5;
  double sampleSeconds = 0.7e-3;
  std::string driver, only;  ///< only: a text in the problem
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Json&)> record;
};

/// A record where a candidate begins, and one with its time and that of the roof of its footprint, taken in
/// turns. A candidate that ended in `before`, the records of earlier runs, is left out; one that began and
/// did not end gets an error and is not tried again. Returns early when the device is lost. Throws what
/// readPlan does.
void sweepBundle(const gate::CudaDevice&, const std::string& folder, const std::vector<Json>& before,
                 const SweepOptions&);

}  // namespace normc::gpu
