// A call of one problem as the benchmarks time it: judged by the gate first, then repeated on memory as in
// training. The state is past every warmup, and a backward has the saved statistics of its own forward.
#pragma once

#include "autotune/measure/Subject.h"
#include "bench/kit/Kernels.h"

namespace normc::bench {

/// Returns why the kernel that serves calls of these sizes must not be timed; an empty text if it is right.
/// For a kernel of any number of rows, about `elements` elements are compared, since the reference takes some
/// 100 ns for each; of a kernel for few rows all. `device`: that of the kernels; null for the host.
std::string whyWrong(const Kernels&, const Problem&, const Extents&, int64_t elements,
                     const gate::CudaDevice* device = nullptr);

class TrainingCall : public Contestant {
 public:
  /// On tensors of the host that all contestants of a race share.
  TrainingCall(const Kernels&, const Problem&, const Tensors&, int threads);
  /// On `sets` sets of buffers of a device. `call`: the problem with its rows and features, one segment.
  TrainingCall(const gate::CudaDevice&, const Kernels&, const ProblemText& call, int sets);

  double run(int64_t calls) override { return subject_.run(calls); }
  /// Returns which kernel serves the call, without those of other shapes.
  std::string implementation() const override;
  const host::Plan& plan() const { return subject_.plan(); }
  const Buffers& buffers() const { return buffers_; }
  int sets() const { return buffers_.sets(); }

  // On a device.
  /// One call on the device's stream.
  void enqueue(int set) const { subject_.call(set); }
  /// Returns the output tensors of a set, the X-sized one first, then the state.
  std::vector<std::vector<char>> outputs(int set) const;
  /// Fills the output tensors of all sets with kPoison, which makes them NaN, and makes the state what it was
  /// before the first call.
  void startAfresh() const;
  static constexpr uint8_t kPoison = 0xff;

 private:
  TrainingCall(const Kernels&, const Problem&, const Extents&, int threads, Buffers);
  std::vector<char> contentOf(const Held&) const;
  /// Returns the tensors that a call writes.
  std::vector<const Held*> written(int set) const;

  Problem problem_;
  Buffers buffers_;
  measure::Subject subject_;
  std::vector<char> freshState_;  ///< of a device
};

}  // namespace normc::bench
