// Knobs that few default schedules have, judged on every machine.
#include <gtest/gtest.h>

#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

TEST(Knobs, WideStreamsAndNonTemporalPrefetchesAreRight) {
  for (const char* text : {"batch_norm:forward@f32[*x1100]", "batch_norm:backward@bf16[*x*]",
                           "power_norm:forward@f16[*x513]{mask}", "power_norm:backward@f64[*x1024]"}) {
    const Problem problem = problemOf(text);
    auto schedule = codegen::cpu::defaultSchedule(problem, hostIsa(), codegen::Strategy::Streamed);
    schedule.stream = 2;
    schedule.fetch = schedule.nta = schedule.wide = true;
    expectRight(problem, schedule);
  }
}

}  // namespace
}  // namespace normc
