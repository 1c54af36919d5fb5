// One norm on several sets of buffers of a device, ready to be called again and
// again: what the benchmarks time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/CudaRoof.h"
#include "bench/gpu/Kernels.h"
#include "bench/gpu/Shapes.h"

namespace normc::gpu {

/// Device memory of `bytes`, full of numbers of the type that look normal.
gate::CudaMemory filled(const gate::CudaDevice&, DType, int64_t bytes, unsigned seed);

class Subject {
 public:
  /// Makes the plan, and for a backward runs its forward on every set. The state says that ten thousand steps
  /// are done: past every warmup.
  Subject(const gate::CudaDevice&, const Kernels&, const Shape&, int sets);

  const host::Plan& plan() const { return plan_; }
  size_t kernel() const { return plan_.kernel(); }
  int sets() const { return int(sets_.size()); }
  /// Bytes of the X-sized buffers of one set: as many as the roof of this entry reads and writes.
  static int64_t footprint(const Shape&);

  /// One call on the device's stream.
  void enqueue(int set) const;
  /// The same X-sized buffers for the roof.
  std::vector<RoofBuffers> roofBuffers() const;
  /// Returns the outputs of a call: the X-sized output of a set, then dscale and dbias, or the state.
  std::vector<std::vector<char>> outputs(int set) const;
  /// Fills all of that but the state with kPoison, which makes it NaN.
  void poison(int set) const;
  static constexpr uint8_t kPoison = 0xff;
  /// The state as it was before the first call.
  void resetState() const;

 private:
  friend class Rival;
  struct Set {
    gate::CudaMemory x, y, dy, dx, saved;
  };

  host::Call callOn(const Set&) const;
  void prepareState(const Problem&);
  void runForward(const Kernels&, const Problem&);
  const gate::CudaMemory& output(int set) const { return backward_ ? sets_[set].dx : sets_[set].y; }
  host::Tensor wide(const gate::CudaMemory&) const;
  host::Tensor narrow(const gate::CudaMemory&) const;

  const gate::CudaDevice& device_;
  Shape shape_;
  Problem problem_;
  bool backward_;
  host::Plan plan_;
  std::vector<Set> sets_;
  gate::CudaMemory scale_, bias_, dscale_, dbias_, state_, workspace_;
  std::vector<char> freshState_;
  std::vector<host::Call> calls_;
};

/// Another plan of the same problem on a subject's buffers, with a workspace of its own. The subject outlives
/// it.
class Rival {
 public:
  Rival(const Subject&, host::Plan);
  void enqueue(int set) const { plan_(calls_[size_t(set)]); }

 private:
  host::Plan plan_;
  gate::CudaMemory workspace_;
  std::vector<host::Call> calls_;
};

}  // namespace normc::gpu
