// What a call takes: as the tuner's model has it, and as it is, beside a copy of the same reads and writes.
#pragma once

#include "autotune/measure/Copy.h"
#include "autotune/measure/Machine.h"
#include "autotune/measure/Stats.h"
#include "dsl/Problem.h"
#include "dsl/StateFields.h"
#include "runtime/abi/Manifest.h"
#include "runtime/normc.hpp"

namespace normc::tune {

struct CallTime {
  double predicted = 0;  ///< seconds, by the model that orders candidates; 0 where the target is unknown here
  double seconds = 0;    ///< measured, the median
  measure::Traffic traffic;   ///< X-sized, as the manifest has it
  int64_t transferBytes = 0;  ///< of one transfer, the mean
  measure::Ratio toCopy;  ///< over the faster of a cached and a streaming copy, paired samples of one race

  int64_t bytes() const { return traffic.total() * transferBytes; }
};

/// Times a plan that calls of these extents run `kernel` of, on the CPU, everything in the caches that fits
/// there. Needs twice measure::Buffers::bytesOfSet. `problem` is that of the kernel, with the features of the
/// extents.
CallTime timeOf(host::Plan, const package::Kernel&, const Problem& problem, const Extents&,
                const measure::Machine&, int64_t threads);

}  // namespace normc::tune
