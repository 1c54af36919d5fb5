// Schedules of the Halide generator. They are not those of the MLIR lowering, though
// the knobs that mean the same have the same name:
//
//   vector   lanes of the statistics type: `vectorize`
//   rows     units that one stage works on together: values of one Tuple
//   unroll   vectors of sums along a run, each with its own accumulator: rfactor width
//   tile     vectors of a column slab
//   columns  features that a stream works on before the next: residency of its partials
//   grain    least rows of a task
//   stream   rows of a step in calls that do not fit in caches, whose outputs go past them; 0: all alike
//   scalar_tail  the rest of a run one by one, not in one step with lanes that are not there

#pragma once

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::halide {

struct Schedule {
  Strategy strategy = Strategy::Streamed;
  int64_t vector = 8;
  int64_t rows = 4;
  int64_t unroll = 1;
  int64_t tile = 2;
  int64_t columns = 1024;
  int64_t grain = 32;
  int64_t stream = 0;
  bool scalarTail = false;

  /// `streamed,vector=8,rows=4,unroll=1,tile=2,columns=1024,grain=32,stream=8`
  std::string text() const;
  /// What a manifest has to know of it: how units are cut into tasks.
  cpu::Schedule cut() const;
  bool operator==(const Schedule&) const = default;
};

/// Reads the printed form. Errors name the part that is wrong.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef);

/// Why the schedule cannot be generated for this problem, with the numbers; nothing where it can.
std::optional<std::string> whyIllegal(const Problem&, const Schedule&, const cpu::Isa&);

/// A legal schedule that needs no measurement.
Schedule defaultSchedule(const Problem&, const cpu::Isa&, Strategy);

}  // namespace normc::codegen::halide
