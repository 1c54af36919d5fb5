// The memory that all candidates of one problem are timed on: as many sets of X-sized
// tensors as a policy wants, the small tensors once, a state past every warmup, saved
// statistics that look like those of a forward.
//
// What a kernel's time could depend on beside its bytes is the same for all of them:
// values are about N(0,1), none is subnormal, and state is never written back.
#pragma once

#include <optional>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/Tensors.h"
#include "dsl/StateFields.h"
#include "runtime/normc.hpp"

namespace normc::measure {

/// Memory that kernels are given: of the host, or its copy on a device.
class Held {
 public:
  Held() = default;
  /// With a device, what `host` holds moves there.
  Held(Memory host, const gate::CudaDevice* device);
  /// On a device the same, repeated until it is so large: a host takes long to make a large tensor.
  Held(const Memory& pattern, int64_t bytes, const gate::CudaDevice& device);
  void* data() const { return device_.device() ? device_.data() : host_.data(); }
  int64_t bytes() const { return device_.device() ? device_.bytes() : host_.bytes(); }

 private:
  Memory host_;
  gate::CudaMemory device_;
};

class Buffers {
 public:
  /// Any plan of the problem tells where state and saved statistics have their fields. `device`: that of the
  /// plan; null for the host. `scatter`: unless 0, where the pages of a host's memory lie (scattered()).
  Buffers(const host::Plan&, const Problem&, const Extents&, int sets,
          const gate::CudaDevice* device = nullptr, uint64_t scatter = 0);

  int sets() const { return int(sets_.size()); }
  /// All arguments of a call but the workspace.
  host::Call call(int set) const;
  /// The X-sized output of a set.
  const Held& output(int set) const { return sets_[size_t(set)].out; }
  const Held& x(int set) const { return sets_[size_t(set)].x; }
  const Held& dy(int set) const { return sets_[size_t(set)].dy; }  ///< of a backward
  int64_t tensorBytes() const { return sets_.front().out.bytes(); }

  /// X-sized bytes that one set of a problem takes.
  static int64_t bytesOfSet(const Problem&, const Extents&);

 private:
  struct Set {
    Held x, dy, out;
  };
  host::Tensor placed(host::Tensor) const;
  host::Tensor wide(const Held&) const;
  host::Tensor narrow(const Held&) const;
  Held tensor(uint64_t seed) const;
  Held held(Memory memory) const;
  void fillFields(Memory&, const std::vector<normc_field>&) const;

  Problem problem_;
  Extents extents_;
  const gate::CudaDevice* device_;
  uint64_t scatter_;
  std::vector<Set> sets_;
  Held scale_, bias_, dscale_, dbias_, mask_, stateIn_, stateOut_, saved_;
};

}  // namespace normc::measure
