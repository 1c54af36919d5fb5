// The roofs of a CUDA device: a copy (one read, one write), a triad (two reads, one write), and a read, as
// the next layer reads an output. They have the same footprint as a kernel and are written by hand as PTX.
//
// Every access is 16 bytes, threads stride over the grid, and several accesses are in flight. Block size,
// grid size and the number of accesses in flight are tuned for every footprint, so that kernels are compared
// with the fastest such loop on this device. The triad computes in f32; the meaning of the bytes does not
// affect the time.
#pragma once

#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/CudaTimer.h"

namespace normc::measure {

enum class RoofKind { Copy, Triad, Read };
const char* name(RoofKind);

/// The buffers of one set. `second` is read only by a triad. Bytes after the last multiple of 16 are not
/// moved. A read never writes to `to`: its store depends on a condition that no sum fulfils.
struct RoofBuffers {
  gate::DeviceAddress to = 0, first = 0, second = 0;
  int64_t bytes = 0;
};

struct RoofLaunch {
  int block = 256, grid = 1;
  int inFlight = 1;  ///< accesses in flight of one thread, for each buffer
};

/// A module of a device, of which the object is the owner.
class LoadedModule {
 public:
  LoadedModule(const gate::CudaDevice&, const std::string& ptx, const std::string& doing);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  cuda::CUmodule handle() const { return handle_; }

 private:
  const gate::CudaDevice& device_;
  cuda::CUmodule handle_ = nullptr;
};

class Roof {
 public:
  explicit Roof(const gate::CudaDevice&);

  void enqueue(RoofKind, const RoofLaunch&, const RoofBuffers&) const;
  /// Returns the fastest launch for these sets of buffers.
  RoofLaunch tuned(RoofKind, const std::vector<RoofBuffers>& sets) const;

  /// Returns the module's text: entries copy_N, triad_N and read_N for each N of kInFlight.
  static std::string ptx();
  static constexpr int kInFlight[] = {1, 2, 4};

 private:
  struct Function {
    RoofKind kind;
    int inFlight;
    cuda::CUfunction function;
  };

  const gate::CudaDevice& device_;
  const LoadedModule module_;
  std::vector<Function> functions_;
};

/// Returns the bytes that a roof moves.
inline int64_t bytesMoved(RoofKind kind, int64_t tensorBytes) {
  return (kind == RoofKind::Copy ? 2 : kind == RoofKind::Triad ? 3 : 1) * (tensorBytes / 16 * 16);
}

}  // namespace normc::measure
