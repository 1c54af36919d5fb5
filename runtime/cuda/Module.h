// The code of one kernel, loaded on a device when a plan is made, never later.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/Device.h"
#include "runtime/package/Package.h"

namespace normc::runtime {

class Module {
 public:
  // kUnfit where the device, or its driver, does not take the code; other failures say nothing about it.

  /// `image` is PTX with a zero at its end, or a cubin; `what` names it in errors. What the driver's compiler
  /// says about PTX that it refuses is part of the error.
  static normc_status load(const std::shared_ptr<const Device>& device, const std::string& what,
                           const char* image, std::shared_ptr<const Module>& module);
  ~Module();
  Module(const Module&) = delete;

  const Device& device() const { return *device_; }

  /// The entry `symbol` of a phase, ready to be launched as `launch` says: what it needs of the device is
  /// asked for and checked.
  normc_status function(const std::string& symbol, const Launch& launch, cuda::CUfunction& function) const;

  /// Refuses a cluster that the device has room for nowhere: of 16 blocks, or where it is but a part of a
  /// device.
  normc_status checkCluster(const std::string& symbol, const Launch& launch, cuda::CUfunction function) const;

  /// Refuses a cooperative launch of `blocks` that the device does not hold at once.
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
