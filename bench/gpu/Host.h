// Measures on the host: the cost of enqueueing a call, and graphs of many calls.
#pragma once

#include <functional>

#include "autotune/gate/CudaDevice.h"
#include "bench/gpu/Records.h"
#include "bench/kit/Kernels.h"

namespace normc::gpu {
using namespace bench;

/// Microseconds of one normc_execute, through the C++ wrapper, on a small problem, on 1 and on 8 threads at
/// once, each with a stream of its own; one record a shape and number of threads.
void benchEnqueue(const std::string& driver, const Kernels&, const std::vector<ProblemText>&, int samples,
                  const std::function<void(const Json&)>& record);

/// Captures 100 calls of the shapes' plans in turn, launches the graph, and asks for the very bits that the
/// same calls give one by one.
Json testGraph(const gate::CudaDevice&, const Kernels&, const std::vector<ProblemText>&);

/// One shape a norm and entry, in f32 with few rows: for the two above.
std::vector<ProblemText> smallShapes(const Kernels&);

}  // namespace normc::gpu
