// The knobs of the Halide generator and their legal values. They are not those of the MLIR lowering, but
// knobs of the same meaning have the same name:
//
//   vector   lanes of the statistics type: `vectorize`
//   rows     units that one stage works on together: values of one Tuple
//   unroll   vectors of sums along a run, each with its own accumulator: rfactor width
//   tile     vectors of a column slab
//   columns  features that a stream works on before the next: so that its partials stay in the cache
//   grain    least rows of a task
//   scalar_tail  the rest of a run element by element, not as one masked vector

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
  bool scalarTail = false;

  /// `streamed,vector=8,rows=4,unroll=1,tile=2,columns=1024,grain=32`
  std::string text() const;
  /// Returns the part that a manifest needs: how units are cut into tasks.
  cpu::Schedule cut() const;
  bool operator==(const Schedule&) const = default;
};

/// Reads the printed form. Errors name the part that is wrong.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef);
/// Sets a knob by its name in the text.
void setKnob(Schedule&, llvm::StringRef name, int64_t value);

/// Returns why the schedule cannot be generated for this problem, with the numbers; nothing if it can.
std::optional<std::string> whyIllegal(const Problem&, const Schedule&, const cpu::Isa&);
/// Returns why no schedule serves the problem.
std::optional<std::string> whyIllegal(const Problem&);

/// Returns a legal schedule, chosen without a measurement.
Schedule defaultSchedule(const Problem&, const cpu::Isa&, Strategy);

}  // namespace normc::codegen::halide
