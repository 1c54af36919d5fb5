// The memory that all candidates of one problem are timed on: as many sets of X-sized
// tensors as a policy wants, the small tensors once, a state past every warmup, saved
// statistics that look like those of a forward.
//
// What a kernel's time could depend on beside its bytes is the same for all of them:
// values are about N(0,1), none is subnormal, and state is never written back.
#pragma once

#include <deque>

#include "autotune/measure/Tensors.h"
#include "dsl/Fields.h"
#include "runtime/normc.hpp"

namespace normc::measure {

class Buffers {
 public:
  /// Any plan of the problem tells where state and saved statistics have their fields.
  Buffers(const host::Plan&, const Problem&, const Extents&, int sets);

  int sets() const { return int(sets_.size()); }
  /// All arguments of a call but the workspace.
  host::Call call(int set) const;
  /// The X-sized output of a set.
  const Memory& output(int set) const { return sets_[size_t(set)].out; }
  int64_t tensorBytes() const { return sets_.front().out.bytes(); }

  /// X-sized bytes that one set of a problem takes.
  static int64_t bytesOfSet(const Problem&, const Extents&);

 private:
  struct Set {
    Memory x, dy, out;
  };
  host::Tensor wide(const Memory&) const;
  host::Tensor narrow(const Memory&) const;
  void fillFields(Memory&, const std::vector<normc_field>&) const;

  Problem problem_;
  Extents extents_;
  std::vector<Set> sets_;
  Memory scale_, bias_, dscale_, dbias_, mask_, stateIn_, stateOut_, saved_;
};

}  // namespace normc::measure
