// One call of a kernel through the C API, with arguments made from numbers.
//
// Every buffer lies between two guards, outputs are poisoned before the call, and
// tensors can be given a row pitch, an odd address, or the memory of their input,
// so that what a host may do is what is tried. All of it on the host, or on a CUDA
// device for the plans of one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/gate/GuardedArguments.h"
#include "dsl/Reference.h"

namespace normc::gate {

struct CallResult {
  /// As ReferenceResult::outputs, values only, in logical order.
  std::map<std::string, std::vector<double>> outputs;
  /// A guard or the memory between rows was written, a call was refused, or the device failed; empty
  /// otherwise.
  std::string fault;
};

/// Owns the buffers; can run any number of times. `where` is null for a plan of the host, else the device of
/// the plan, and outlives the call.
class Call {
 public:
  Call(const normc_plan* plan, const Problem& problem, const ReferenceCall& arguments,
       const Placement& placement, const CudaDevice* where = nullptr);
  ~Call();

  /// Restores inputs, poisons outputs, executes, collects.
  CallResult run();
  /// Executes again on whatever the buffers hold: what a timing loop calls. On a device it only enqueues.
  normc_status execute();

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace normc::gate
