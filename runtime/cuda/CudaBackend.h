// A kernel on a CUDA device: launches its phases on the caller's stream as runtime/abi/cuda.h specifies. No
// call waits for them.
#pragma once

#include "runtime/abi/cuda.h"
#include "runtime/cuda/Module.h"
#include "runtime/plan/Backend.h"

namespace normc::runtime {

class CudaBackend final : public Backend {
 public:
  static normc_status create(std::shared_ptr<const Device> device, const Binding& binding,
                             std::unique_ptr<Backend>& backend);

  /// Only enqueues, so it may be called while the stream is being captured.
  normc_status run(const Call& call) const override;
  std::string describe() const override;
  normc_status allocate(size_t bytes, std::unique_ptr<MemoryBlock>& memory) const override {
    return device_->allocate(bytes, memory);
  }
  normc_status write(void* to, const void* from, size_t bytes) const override {
    return device_->toDevice(to, from, bytes);
  }

 private:
  struct Entry {
    cuda::CUfunction aligned = nullptr, unaligned = nullptr;
    bool leftOut = false;  ///< a warmup phase that a steady plan skips
  };

  CudaBackend(std::shared_ptr<const Device> device, const Binding& binding)
      : device_(std::move(device)), kernel_(binding.kernel), scalars_(binding.scalars) {}
  normc_status loadImage(const Package& package);
  normc_status bindEntries(bool steady);
  normc_status loadBlob(const Package& package, size_t blob);
  int64_t mostBlocks(size_t phase) const;

  bool isAligned(const Call& call) const;
  size_t layOutWords(const Call& call, uint64_t* words) const;
  normc_status checkGrid(const Call& call) const;
  /// Clears, in stream order, the workspace that has to be zero.
  normc_status clear(const Call& call) const;
  bool mayOverlap(cuda::CUstream stream) const;
  normc_status launch(size_t phase, const Call& call, bool aligned, bool overlaps, uint64_t* words,
                      size_t count) const;

  std::shared_ptr<const Device> device_;
  const Kernel& kernel_;
  const std::vector<double>& scalars_;
  std::shared_ptr<const Module> module_;
  std::vector<Entry> entries_;
  std::string code_;  ///< the form of the code, as text for users
  bool steady_ = false;
};

}  // namespace normc::runtime
