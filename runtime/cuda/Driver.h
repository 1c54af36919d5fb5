// libcuda, opened at run time when a CUDA device is first needed, and its errors as sentences.
#pragma once

#include <memory>
#include <string>

#include "runtime/abi/CudaDriver.h"
#include "runtime/core/Error.h"

namespace normc::runtime {

class Driver {
 public:
  /// The oldest driver that has every function of the table, 11.8.
  static constexpr int kOldestVersion = 11080;

  /// Opens and initialises `library`. It is never unloaded, because its threads outlive the calls.
  static normc_status open(const std::string& library, std::shared_ptr<const Driver>& driver);

  const cuda::DriverTable* operator->() const { return &table_; }
  int version() const { return version_; }
  static std::string versionText(int version);  ///< "12.8" of 12080

  /// Returns the number of devices, and a device by number; the error for a wrong number has the number of
  /// devices.
  normc_status count(int& devices) const;
  normc_status device(int ordinal, cuda::CUdevice& device) const;
  /// Returns an attribute of a device; 0 if the driver cannot report it.
  int attribute(cuda::CUdevice device, cuda::CUdevice_attribute attribute) const;
  std::string name(cuda::CUdevice device) const;

  /// Returns an error that begins with `doing` unless the result is success. Never allocates.
  template <typename... Parts>
  normc_status check(cuda::CUresult result, const Parts&... doing) const {
    if (result == cuda::CUDA_SUCCESS) [[likely]]
      return NORMC_OK;
    return refuse(statusOf(result), result, doing...);
  }

  /// Returns an error: "DOING failed: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected; ADVICE".
  template <typename... Parts>
  [[gnu::cold, gnu::noinline]] normc_status refuse(normc_status status, cuda::CUresult result,
                                                   const Parts&... doing) const {
    Message message;
    (message << ... << doing);
    message << " failed: ";
    explain(result, message);
    return setLastError(status, message);
  }

  /// Appends the name and meaning of an error, and advice if there is any.
  void explain(cuda::CUresult result, Message& message) const;
  static normc_status statusOf(cuda::CUresult result);

 private:
  Driver() = default;

  cuda::DriverTable table_;
  int version_ = 0;
};

}  // namespace normc::runtime
