// The standard trials of a problem with what the reference says to them.
#pragma once

#include "autotune/gate/Gate.h"

namespace normc {

/// Those of the problem that was asked last are kept: the reference takes longer than a kernel does, and the
/// strategies, generators and plans of a problem are judged one after the other.
const std::vector<gate::Question>& standardQuestions(const Problem&, int64_t features);

}  // namespace normc
