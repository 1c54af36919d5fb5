// The kernels that a package holds without tuning, and the calls that each is limited to: up to how many rows
// one strategy was measured to be faster than the other.
#pragma once

#include <vector>

#include "codegen/package/Writer.h"
#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

struct DefaultCandidate {
  Schedule schedule;
  package::Limits limits = {};
};

/// Returns one candidate for each strategy that pays, and for whole channels one for each reason. The first
/// serves any call.
std::vector<DefaultCandidate> defaultCandidates(const Problem&, const Isa&);

}  // namespace normc::codegen::cpu
