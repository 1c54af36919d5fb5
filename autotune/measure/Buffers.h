// The memory that all candidates of one problem are timed on: as many sets of X-sized
// tensors as a policy wants, the small tensors once, a state past every warmup, saved
// statistics that look like those of a forward.
#pragma once

#include <vector>

#include "autotune/gate/Arguments.h"
#include "autotune/measure/CudaRoof.h"
#include "autotune/measure/Tensors.h"

namespace normc::measure {

struct BufferOptions {
  int sets = 1;
  uint64_t scatter = 0;  ///< as TensorMaker
  /// As in training: the state is updated where it is, and each set has saved statistics of its own. Else the
  /// state is never written back, so that all calls do the same.
  bool asInTraining = false;
};

class Buffers {
 public:
  /// Any plan of the problem tells where state and saved statistics have their fields. `device`: that of the
  /// plan; null for the host.
  Buffers(const host::Plan&, const Problem&, const Extents&, const BufferOptions& = {},
          const gate::CudaDevice* device = nullptr);
  /// One set, as in training, on tensors that others use as well.
  Buffers(const host::Plan&, const Problem&, const Extents&, const TensorSet&);

  /// Of a backward: the saved statistics of each set become those that this plan, the problem's forward,
  /// writes for its x. Overwrites the output.
  void saveFrom(const host::Plan& forward);

  int sets() const { return int(sets_.size()); }
  const gate::CudaDevice* device() const { return device_; }
  const normc_sizes& sizes() const { return arguments_.front().sizes(); }
  /// All arguments of a call but the workspace.
  const normc_args& args(int set) const { return arguments_[size_t(set)].args(); }
  const TensorSet& tensors(int set) const { return sets_[size_t(set)]; }
  const Held& output(int set) const { return tensors(set).output(); }
  const Held& state() const { return state_; }
  int64_t tensorBytes() const { return output(0).bytes(); }
  /// The X-sized tensors of each set, on a device, for what a copy or a triad of them takes.
  std::vector<RoofBuffers> roofBuffers() const;

  /// Returns the X-sized bytes that one set of a problem takes.
  static int64_t bytesOfSet(const Problem&, const Extents&);

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
  std::vector<gate::Arguments> arguments_;  ///< of each set
  Held state_, stateOut_;
  std::vector<Held> saved_;  ///< of each set, or of all
};

}  // namespace normc::measure
