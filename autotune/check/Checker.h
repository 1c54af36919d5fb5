// Where each kernel of a package is checked: on this processor, on a CUDA device, or
// on the emulator. Says of the others why they are not run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "autotune/check/Emulation.h"

namespace normc::check {

class Checker {
 public:
  /// `cudaDevice`: the device to check on; none for this processor. `emulator`: emulatorLibrary(), for
  /// kernels for CUDA devices. Throws host::Error or gate::CudaError if there is no such device or the
  /// package is damaged. The package outlives it.
  Checker(const gate::PackageFile&, std::optional<int> cudaDevice,
          const std::optional<std::string>& emulator = {});

  /// The error is of the kernel's problem, or of the emulator's driver.
  Result<gate::KernelVerdict> check(size_t kernel, gate::Judging);
  /// Returns the name of the device that kernels run on.
  std::string text() const;

 private:
  int number() const { return 10 * facts_.compute_major + facts_.compute_minor; }
  std::string archText() const { return "sm_" + std::to_string(number()); }
  std::string whyNot(const package::Kernel& kernel) const;

  const gate::PackageFile& file_;
  std::optional<Emulation> emulation_;
  normc_cuda_device facts_{};  ///< of the device
  std::unique_ptr<gate::CudaDevice> device_;
  std::optional<size_t> lostBy_;  ///< the kernel that ended the device's context
};

}  // namespace normc::check
