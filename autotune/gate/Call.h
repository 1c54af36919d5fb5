// One call of a kernel through the C API, with arguments made from numbers.
//
// Every buffer is between two guards, and outputs are poisoned before the call. Tensors can have a row pitch,
// a misaligned address, or the memory of their input, so that every layout a host may use is tested. Runs on
// the host, or on a CUDA device for plans of that device.
#pragma once

#include <functional>
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
  /// A guard or a gap between rows was written, a call was refused, or the device failed; empty otherwise.
  std::string fault;
};

/// Owns the buffers; can run any number of times. `where` is the device of the plan, null for the host; it
/// outlives the call.
class Call {
 public:
  /// Executes a plan once: normc_execute, or another function of the C API with the same results.
  using Execute = std::function<normc_status(const normc_plan*, const normc_args*)>;

  Call(const normc_plan* plan, const Problem& problem, const ReferenceCall& arguments,
       const Placement& placement, const CudaDevice* where = nullptr);
  ~Call();

  /// Restores inputs, poisons outputs, executes, collects.
  CallResult run(const Execute& execute = normc_execute);
  /// Executes again on the current content of the buffers: the body of a timing loop. On a device it only
  /// enqueues.
  normc_status execute();

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace normc::gate
