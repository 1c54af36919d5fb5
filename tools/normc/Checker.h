// Where each kernel of a package is checked: on this processor, on a CUDA device, or
// on the emulator. Says of the others why they are not run.
#pragma once

#include <optional>
#include <string>

#include "tools/normc/Emulation.h"
#include "tools/normc/Judge.h"
#include "tools/normc/Place.h"

namespace normc::cli {

class Checker {
 public:
  /// Throws where there is no such device, or no emulator. Both arguments outlive it.
  Checker(const PackageFile&, const Place&, bool emulate);

  KernelVerdict check(size_t kernel, Judging);
  /// What kernels run on, in words.
  std::string text() const;

 private:
  int number() const { return 10 * facts_.compute_major + facts_.compute_minor; }
  std::string archText() const { return "sm_" + std::to_string(number()); }
  std::string whyNot(const package::Kernel& kernel) const;

  const PackageFile& file_;
  const Place& place_;
  std::optional<Emulation> emulation_;
  normc_cuda_device facts_{};  ///< of the device
  std::unique_ptr<gate::CudaDevice> device_;
  std::optional<size_t> lostBy_;  ///< the kernel that ended the device's context
};

}  // namespace normc::cli
