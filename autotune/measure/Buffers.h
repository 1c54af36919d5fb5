// The memory that all candidates of one problem are timed on: the sets of X-sized tensors that a policy
// requires, one copy of the small tensors, a state after every warmup, and saved statistics similar to those
// of a forward.
#pragma once

#include <vector>

#include "autotune/gate/Arguments.h"
#include "autotune/measure/Copy.h"
#include "autotune/measure/CudaRoof.h"
#include "autotune/measure/Tensors.h"

namespace normc::measure {

struct BufferOptions {
  int sets = 1;
  uint64_t scatter = 0;  ///< as in TensorMaker
  /// True: as in training, the state is updated in place and each set has its own saved statistics. False:
  /// the state is never written back, so that all calls do the same.
  bool asInTraining = false;
};

class Buffers {
 public:
  /// `plan`: any plan of the problem; it gives the fields of state and saved statistics. `device`: the device
  /// of the plan; null for the host.
  Buffers(const host::Plan&, const Problem&, const Extents&, const BufferOptions& = {},
          const gate::CudaDevice* device = nullptr);
  /// Makes one set, as in training, on tensors that are shared with other objects.
  Buffers(const host::Plan&, const Problem&, const Extents&, const TensorSet&);

  /// Runs `forward`, the forward of this backward problem, on the inputs of each set, to fill what it passes
  /// to the backward: the set's saved statistics and residual_out. Overwrites the first output.
  void saveFrom(const host::Plan& forward);

  int sets() const { return int(sets_.size()); }
  const gate::CudaDevice* device() const { return device_; }
  const normc_sizes& sizes() const { return arguments_.front().sizes(); }
  /// Returns all arguments of a call except the workspace.
  const normc_args& args(int set) const { return arguments_[size_t(set)].args(); }
  const TensorSet& tensors(int set) const { return sets_[size_t(set)]; }
  const Held& output(int set) const { return tensors(set).output(); }
  const Held& state() const { return state_; }
  int64_t bytesOfTransfer() const { return bytesOfTransfer(problem_, extents_); }
  /// Returns the X-sized tensors of each set on a device, as operands of a copy or a triad. Of tensors with
  /// types of several sizes as many bytes of each as the smallest has.
  std::vector<RoofBuffers> roofBuffers() const;

  /// Returns the X-sized bytes that one set of a problem takes.
  static int64_t bytesOfSet(const Problem&, const Extents&);
  /// Returns the bytes of an X-sized tensor of a call; the mean of all, since their types may differ.
  static int64_t bytesOfTransfer(const Problem&, const Extents&);
  /// Returns how often a call moves an X-sized tensor if it reads and writes each once.
  static Traffic leastTraffic(const Problem&);

 private:
  Buffers(const host::Plan&, const Problem&, const Extents&, const gate::CudaDevice*, uint64_t scatter,
          std::vector<TensorSet>, bool asInTraining);
  Held placed(Memory) const;
  void makeState(const host::Plan&, bool inPlace);
  void makeSaved(bool ofEachSet);

  Problem problem_;
  Extents extents_;
  const gate::CudaDevice* device_;
  uint64_t scatter_;
  std::vector<TensorSet> sets_;
  std::vector<gate::Arguments> arguments_;  ///< one for each set
  Held state_, stateOut_;
  std::vector<Held> saved_;  ///< one for each set, or one for all
};

}  // namespace normc::measure
