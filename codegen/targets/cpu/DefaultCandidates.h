// Which calls the default schedule of each strategy is offered for: up to how many
// rows one form of a kernel was measured to be faster than the other. A package
// limits the kernel to them.
#pragma once

#include <vector>

#include "codegen/package/Writer.h"
#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

struct DefaultCandidate {
  Schedule schedule;
  package::Limits limits = {};
};

/// One for each strategy that pays, and where channels are whole one for each reason why: first what serves any call.
std::vector<DefaultCandidate> defaultCandidates(const Problem&, const Isa&);

}  // namespace normc::codegen::cpu
