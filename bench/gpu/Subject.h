// One norm on several sets of buffers of a device, ready to be called again and
// again: what the benchmarks time.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/Subject.h"
#include "bench/gpu/Kernels.h"
#include "bench/gpu/Shapes.h"

namespace normc::gpu {

class Subject {
 public:
  /// Makes the plan, and for a backward runs its forward on every set. The state says that ten thousand steps
  /// are done: past every warmup.
  Subject(const gate::CudaDevice&, const Kernels&, const Shape&, int sets);

  const Buffers& buffers() const { return buffers_; }
  size_t kernel() const { return subject_.plan().kernel(); }
  int sets() const { return buffers_.sets(); }
  /// Bytes of the X-sized buffers of one set: as many as the roof of this entry reads and writes.
  static int64_t footprint(const Shape&);

  /// One call on the device's stream.
  void enqueue(int set) const { subject_.call(set); }
  /// Returns the output tensors of a set, the X-sized one first, then the state.
  std::vector<std::vector<char>> outputs(int set) const;
  /// Fills all of that but the state with kPoison, which makes it NaN.
  void poison(int set) const;
  static constexpr uint8_t kPoison = 0xff;
  /// The state as it was before the first call.
  void resetState() const;

 private:
  /// Tensors that a call writes.
  std::vector<const Held*> written(int set) const;

  const gate::CudaDevice& device_;
  Problem problem_;
  Buffers buffers_;
  measure::Subject subject_;
  std::vector<char> freshState_;
};

}  // namespace normc::gpu
