// CUDA as one normc_context sees it: the driver, opened when it is first wanted,
// and the devices that plans are made for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/cuda/Device.h"

namespace normc::runtime {

class Cuda {
 public:
  /// `library` is what to open instead of libcuda.so.1, or empty.
  explicit Cuda(std::string library) : library_(std::move(library)) {}

  normc_status driver(std::shared_ptr<const Driver>& driver) const;
  /// A device in the context that is right for the calling thread; the same object for every plan there.
  normc_status device(int ordinal, std::shared_ptr<const Device>& device) const;

  normc_status info(int ordinal, normc_cuda_device& info) const;

 private:
  using Key = std::pair<int, cuda::CUcontext>;

  std::string library_;
  mutable std::mutex mutex_;  // guards what follows; never taken by execute
  mutable std::shared_ptr<const Driver> driver_;
  mutable std::map<Key, std::weak_ptr<const Device>> devices_;
};

}  // namespace normc::runtime
