// The CUDA state of one normc_context: the driver, opened at first use, and the devices that plans are made
// for.
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
  /// `library`: the driver library; empty: libcuda.so.1.
  explicit Cuda(std::string library) : library_(std::move(library)) {}

  normc_status driver(std::shared_ptr<const Driver>& driver) const;
  /// Returns the device with the context of the calling thread; every plan there shares one object.
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
