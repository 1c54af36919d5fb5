// Arguments of a call in memory between guards, for the gate and for `normc run`.
#pragma once

#include "autotune/gate/Arguments.h"
#include "autotune/gate/Storage.h"

namespace normc::gate {

/// A flat buffer of the C API and its fields.
struct FieldBuffer {
  std::vector<normc_field> fields;
  Storage memory;

  bool empty() const { return fields.empty(); }
  /// Returns the value of a field without dimensions; empty if there is no such field.
  std::optional<double> scalar(const std::string& field) const;
};

class GuardedArguments : public Arguments {
 public:
  /// Makes and binds a buffer for each argument, filled with a pattern that is NaN in every float type.
  /// `partials`: the number of those that an entry adds up.
  GuardedArguments(Arguments, const Placement& = {}, size_t partials = 1);

  FieldBuffer state, stateOut, saved, partials;
  Storage workspace;

  Storage& operator[](Tensor tensor) { return tensors_.at(tensor); }
  const Storage& operator[](Tensor tensor) const { return tensors_.at(tensor); }
  /// Returns the memory that a call writes an output to: its own, or that of its input if it is in place.
  const Storage& written(Tensor output) const { return tensors_.at(memoryOf(output)); }
  const Placement& placement() const { return placement_; }
  /// True if a call leaves the tensor as it was given: it is an input, and no output uses its memory.
  bool staysAsGiven(Tensor) const;

  /// Copy all buffers to or from the device; they do nothing on the host. download() returns when the device
  /// is done, and throws CudaError if a kernel failed.
  void upload();
  void download();

 private:
  /// Returns the tensor whose memory a call uses for this one.
  Tensor memoryOf(Tensor) const;
  std::vector<Storage*> storages();

  Placement placement_;
  std::map<Tensor, Storage> tensors_;
};

}  // namespace normc::gate
