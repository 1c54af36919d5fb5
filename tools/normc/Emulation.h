// CUDA kernels of a package on the emulator (docs/emulator.md), judged as they would
// be on a device: through the runtime, with a driver of ours that runs no PTX.
//
// A package holds PTX, the emulator takes the IR it was made of. So each kernel is
// compiled again from its problem and schedule, and only if that gives the package's
// PTX byte for byte is the IR known to be the kernel's.
#pragma once

#include <string>

#include "tools/normc/Judge.h"

namespace normc::cli {

class Emulation {
 public:
  /// Throws where this normc was built without the emulator, its driver is missing, or the package is
  /// damaged.
  explicit Emulation(const PackageFile&);

  /// Throws where this normc cannot emulate: it was built without, or the emulator's driver is missing.
  static void require();

  /// The trials of a kernel for a CUDA device, on a device of its own.
  KernelVerdict judge(size_t kernel, Judging) const;

 private:
  std::string blob(size_t index) const;

  const PackageFile& file_;
  std::string library_;
};

}  // namespace normc::cli
