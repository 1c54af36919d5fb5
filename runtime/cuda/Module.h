// The code of one kernel, loaded on a device when a plan is made, never later.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/Device.h"
#include "runtime/package/Package.h"

namespace normc::runtime {

class Module {
 public:
  // Status kUnfit: the device or its driver does not support the code. Other failures are not caused by the
  // code.

  /// `image` is PTX with a zero at its end, or a cubin; `what` is its name in errors. If the driver's
  /// compiler refuses PTX, its log is part of the error.
  static normc_status load(const std::shared_ptr<const Device>& device, const std::string& what,
                           const char* image, std::shared_ptr<const Module>& module);
  ~Module();
  Module(const Module&) = delete;

  const Device& device() const { return *device_; }

  /// Returns the entry `symbol` of a phase, prepared for `launch`: the required attributes are set and
  /// checked.
  normc_status function(const std::string& symbol, const Launch& launch, cuda::CUfunction& function) const;

  /// Refuses a cluster that does not fit on the device: e.g. of 16 blocks, or on a partition of a device.
  normc_status checkCluster(const std::string& symbol, const Launch& launch, cuda::CUfunction function) const;

  /// Refuses a cooperative launch if its `blocks` cannot be resident on the device together.
  normc_status checkTogether(const std::string& symbol, const Launch& launch, int64_t blocks,
                             cuda::CUfunction function) const;

 private:
  Module(std::shared_ptr<const Device> device, std::string what)
      : device_(std::move(device)), what_(std::move(what)) {}

  std::shared_ptr<const Device> device_;
  std::string what_;
  cuda::CUmodule handle_ = nullptr;
};

}  // namespace normc::runtime
