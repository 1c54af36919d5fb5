// Where Intel's cores from Sunny Cove on like another schedule than the one that AMD's do.
#pragma once

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Changes a default schedule to what was measured to be faster there: what one row or strip stores follows each other,
/// whole columns are wide, and no step is of half a register.
void tuneForIntelCove(const Problem&, const Isa&, Schedule&);

/// Bytes of x up to which whole columns are fastest on such a core, for any number of rows; nothing where that is as
/// elsewhere.
std::optional<int64_t> residentBytesOnIntelCove(const Problem&, const Isa&);

/// Rows of a backward with sums per feature up to which tasks share each row, from as many features on as other cores do;
/// 0 where that is as elsewhere.
int64_t splitRowsOnIntelCove(const Problem&, const Isa&);

}  // namespace normc::codegen::cpu
