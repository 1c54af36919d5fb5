// The roof of a CUDA device: a copy (one read, one write) and a triad (two reads, one
// write) of the same footprint, written as PTX by hand; and a loop that only reads,
// which is what the next layer does with an output.
//
// Every access is 16 bytes, threads stride over the grid, and several accesses are
// in flight. Block, grid and how many in flight are tried out for every footprint,
// so that what our kernels are held against is the best that such a loop can do on
// this device. The triad takes its operands for f32; what the bytes mean does not
// matter for the time.
#pragma once

#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/CudaTimer.h"

namespace normc::measure {

enum class RoofKind { Copy, Triad, Read };
const char* name(RoofKind);

/// The buffers of one set; `second` is read by a triad only. Bytes past the last 16 are left alone. A read
/// writes to `to` only where a sum is one that no sum can be.
struct RoofBuffers {
  gate::DeviceAddress to = 0, first = 0, second = 0;
  int64_t bytes = 0;
};

struct RoofLaunch {
  int block = 256, grid = 1;
  int inFlight = 1;  ///< accesses of one thread, of each buffer
};

class Roof {
 public:
  explicit Roof(const gate::CudaDevice&);
  ~Roof();
  Roof(const Roof&) = delete;

  void enqueue(RoofKind, const RoofLaunch&, const RoofBuffers&) const;
  /// The fastest launch for these sets of buffers.
  RoofLaunch tuned(RoofKind, const std::vector<RoofBuffers>& sets) const;

  /// The module's text: entries copy_N, triad_N and read_N for each N of kInFlight.
  static std::string ptx();
  static constexpr int kInFlight[] = {1, 2, 4};

 private:
  struct Function {
    RoofKind kind;
    int inFlight;
    cuda::CUfunction function;
  };

  const gate::CudaDevice& device_;
  cuda::CUmodule module_ = nullptr;
  std::vector<Function> functions_;
};

/// Bytes that a roof moves.
inline int64_t bytesMoved(RoofKind kind, int64_t tensorBytes) {
  return (kind == RoofKind::Copy ? 2 : kind == RoofKind::Triad ? 3 : 1) * (tensorBytes / 16 * 16);
}

}  // namespace normc::measure
