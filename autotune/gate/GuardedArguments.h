// Arguments of a call in memory between guards: what the gate judges kernels by, and `normc run` calls them
// with.
#pragma once

#include "autotune/gate/Arguments.h"
#include "autotune/gate/Storage.h"

namespace normc::gate {

/// A flat buffer of the C API, with the fields it holds.
struct FieldBuffer {
  std::vector<normc_field> fields;
  Storage memory;

  bool empty() const { return fields.empty(); }
  /// Returns the one number of a field without dimensions; absent where there is no such field.
  std::optional<double> scalar(const std::string& field) const;
};

class GuardedArguments : public Arguments {
 public:
  /// Makes and binds a buffer for each argument, filled with a pattern that is NaN in every float type.
  GuardedArguments(Arguments, const Placement& = {});

  FieldBuffer state, stateOut, saved;
  Storage workspace;

  Storage& operator[](Tensor tensor) { return tensors_.at(tensor); }
  const Storage& operator[](Tensor tensor) const { return tensors_.at(tensor); }
  /// Returns the memory that a call writes an output to: its own, or the input's where it is in place.
  const Storage& written(Tensor output) const;
  const Placement& placement() const { return placement_; }

  /// Both do nothing on the host. download() returns when the device is done; an error of a kernel shows
  /// there, as CudaError.
  void upload();
  void download();

 private:
  std::vector<Storage*> storages();

  Placement placement_;
  std::map<Tensor, Storage> tensors_;
};

}  // namespace normc::gate
