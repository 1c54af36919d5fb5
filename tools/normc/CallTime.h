// What a call takes: as the tuner's model has it, and as it is, beside a copy of the same reads and writes.
#pragma once

#include "autotune/measure/Copy.h"
#include "autotune/measure/Stats.h"
#include "tools/normc/PlanFlags.h"

namespace normc::cli {

struct CallTime {
  double predicted = 0;  ///< seconds, by the model that orders candidates; 0 where the target is unknown here
  double seconds = 0;    ///< measured, the median
  measure::Traffic traffic;  ///< X-sized, as the manifest has it
  int64_t tensorBytes = 0;
  measure::Ratio toCopy;  ///< over the faster of a cached and a streaming copy, paired samples of one race

  int64_t bytes() const { return traffic.total() * tensorBytes; }
};

/// Times the plan on rows x features, everything in the caches that fits there. Throws Failure on a GPU,
/// where the number of features is unknown or another than the kernel's, and where there is not enough
/// memory.
CallTime timeOf(Planned&, int64_t rows, int64_t features, int64_t threads);

std::string text(const CallTime&);
Json toJson(const CallTime&);

}  // namespace normc::cli
