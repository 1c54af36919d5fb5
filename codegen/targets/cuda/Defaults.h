// Default schedules, chosen without a measurement: the most that registers were seen to hold without spills,
// and enough blocks to fill a device.
#pragma once

#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {

/// Returns a schedule that is chosen from sizes alone. It is legal whenever a legal one exists.
Schedule defaultSchedule(const KernelTraits&, const Arch&, Strategy);

Schedule defaultSchedule(const Problem&, const Arch&, Strategy);

/// A schedule that is faster than the default for calls of at most so many rows.
struct FewRows {
  Schedule schedule;
  int64_t rowsMax;
};
/// Returns that of lines which was measured; nothing if there is none.
std::optional<FewRows> scheduleForFewRows(const KernelTraits&, const Arch&);

/// Returns that of a kernel whose blocks have whole columns, made from its default: rows stay in registers,
/// and one launch of few blocks ends before three of many would. It holds as many rows as its calls have, no
/// more.
FewRows columnsOfFewRows(const KernelTraits&, Schedule);

}  // namespace normc::codegen::cuda
