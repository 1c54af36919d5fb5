// A CUDA driver whose launches run on the emulator: the fake driver
// (autotune/emulator/driver) with a launcher that looks up the IR of a module by its
// PTX. What the runtime does with it is what it does with a device.
//
// There is one fake driver in a process, so one of these at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/emulator/Emulator.h"

namespace normc::emulator {

class EmulatedDriver {
 public:
  /// `library`: the path of libnormc_fake_cuda.so; the runtime is given the same. It starts with one device of
  /// the compute capability.
  static llvm::Expected<std::unique_ptr<EmulatedDriver>> open(const std::string& library, int major, int minor);
  ~EmulatedDriver();

  /// Modules loaded from this PTX run this program. `operands`: names of the first parameters, for reports.
  void add(const std::string& ptx, Program, std::vector<std::string> operands);

  Options options;  ///< of the launches from now on

  struct Launched {
    std::string function;
    Report report;
  };
  /// The launches since the last call, in their order. One that failed is a sticky error of the driver as
  /// well; its report says why.
  std::vector<Launched> takeLaunches();

 private:
  EmulatedDriver() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace normc::emulator
