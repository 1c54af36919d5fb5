// Default schedules of Intel's cores from Sunny Cove (Ice Lake) on, where they differ from the general ones.
#pragma once

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Changes a default schedule to what was measured to be faster on such a core: the stores of one row or
/// strip follow each other, whole columns are wide, and no step uses half a register.
void tuneForIntelCove(const Problem&, const Isa&, Schedule&);

/// Returns the bytes of x up to which whole columns (`resident`) are fastest, for any number of rows; nothing
/// if the general limit holds.
std::optional<int64_t> residentBytesOnIntelCove(const Problem&, const Isa&);

/// Returns the number of rows up to which the tasks of a backward with sums per feature share each row
/// (`split`); 0 if the general limit holds.
int64_t splitRowsOnIntelCove(const Problem&, const Isa&);

}  // namespace normc::codegen::cpu
