// All records of a run as one page for people.
#pragma once

#include <string>
#include <vector>

#include "bench/gpu/Records.h"

namespace normc::gpu {

/// Markdown. Says of every part that is missing that it is; never a figure without a record.
std::string tableOf(const std::vector<Json>& records);

}  // namespace normc::gpu
