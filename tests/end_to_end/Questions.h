// Trials of a problem with what the reference says to them.
#pragma once

#include <vector>

#include "autotune/gate/Gate.h"

namespace normc {

/// Returns the questions of trials. The reference is asked once for those that differ only in where their
/// tensors are in memory. Fails the test where it refuses one.
std::vector<gate::Question> questionsOf(const Problem&, const std::vector<gate::Trial>&);

/// Returns the questions of all standard trials, and of those of numbers. Those of the last problem are
/// cached: the reference takes longer than a kernel, and the strategies, generators and plans of a problem
/// are judged one after the other.
const std::vector<gate::Question>& standardQuestions(const Problem&, int64_t features);

}  // namespace normc
