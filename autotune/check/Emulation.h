// CUDA kernels of a package on the emulator (docs/emulator.md), judged as they would be on a device: through
// the runtime, with a driver of ours that executes the package's PTX.
#pragma once

#include <string>

#include "autotune/gate/JudgeKernel.h"

namespace normc::check {

/// Returns the file of the emulator's driver, or why there is none: this normc was built without the
/// emulator, or the driver is not beside the program.
Result<std::string> emulatorLibrary();

class Emulation {
 public:
  /// `library`: emulatorLibrary(). Throws host::Error if the package is damaged. The package outlives it.
  Emulation(const gate::PackageFile&, std::string library);

  /// The trials of a kernel for a CUDA device, on a device of its own.
  Result<gate::KernelVerdict> judge(size_t kernel, gate::Judging) const;

 private:
  std::string blob(size_t index) const;

  const gate::PackageFile& file_;
  std::string library_;
};

}  // namespace normc::check
