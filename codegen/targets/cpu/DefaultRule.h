// The schedule where no measurement is near: the rule below all tables (DefaultTable.h). It knows registers,
// pages and cache lines, and no core.
#pragma once

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Returns a legal schedule for the norm alone, without what follows from codes and pairs.
Schedule ruleSchedule(const Problem&, const Isa&, Strategy);

/// Changes a schedule of the norm alone so that it suits codes (`quantize`) and pairs (`rope`) of its output.
void fitClauses(const Problem&, Schedule&);

/// Returns the number of lanes for a statistic of that width: a narrow one fills half a register instead of
/// one and a half.
int64_t lanesForWidth(int64_t width, int64_t lanes);

}  // namespace normc::codegen::cpu
