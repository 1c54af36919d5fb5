// The schedule where no measurement is near: the rule below all tables (DefaultTable.h). It knows registers
// and pages, and no core: two rows, and vectors of them in an eighth of the registers each.
#pragma once

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Returns a legal schedule for the norm alone, without what follows from codes and pairs (DefaultClauses.h).
Schedule ruleSchedule(const Problem&, const Isa&, Strategy);

}  // namespace normc::codegen::cpu
