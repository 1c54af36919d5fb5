// libcuda, opened at run time when a CUDA device is first needed, and its
// errors as sentences.
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

  /// Opens `library` and initialises it. It stays loaded: its threads outlive the calls.
  static normc_status open(const std::string& library, std::shared_ptr<const Driver>& driver);

  const cuda::DriverTable* operator->() const { return &table_; }
  int version() const { return version_; }
  static std::string versionText(int version);  ///< "12.8" of 12080

  /// The number of devices, and one of them: refused with the number that there are.
  normc_status count(int& devices) const;
  normc_status device(int ordinal, cuda::CUdevice& device) const;
  int attribute(cuda::CUdevice device, cuda::CUdevice_attribute attribute) const;  ///< 0 if it cannot say
  std::string name(cuda::CUdevice device) const;

  /// Fails, with `doing` as what was tried, unless the result is success. Never allocates.
  template <typename... Parts>
  normc_status check(cuda::CUresult result, const Parts&... doing) const {
    if (result == cuda::CUDA_SUCCESS) [[likely]]
      return NORMC_OK;
    return refuse(statusOf(result), result, doing...);
  }

  /// "DOING failed: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected; WHAT WOULD HELP".
  template <typename... Parts>
  [[gnu::cold, gnu::noinline]] normc_status refuse(normc_status status, cuda::CUresult result,
                                                   const Parts&... doing) const {
    Message message;
    (message << ... << doing);
    message << " failed: ";
    explain(result, message);
    return setLastError(status, message);
  }

  /// Name and meaning of an error, and what would help where something would.
  void explain(cuda::CUresult result, Message& message) const;
  static normc_status statusOf(cuda::CUresult result);

 private:
  Driver() = default;

  cuda::DriverTable table_;
  int version_ = 0;
};

}  // namespace normc::runtime
