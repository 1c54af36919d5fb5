// A CUDA driver whose launches run on the emulator: the fake driver
// (codegen/emulator/driver) with a launcher that looks up the IR of a module by its
// image. The runtime uses it as it uses a device.
//
// There is one fake driver in a process, so one of these at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/emulator/Emulator.h"

namespace normc::emulator {

class EmulatedDriver {
 public:
  /// `library`: the path of libnormc_fake_cuda.so; the runtime is given the same. It starts with one device
  /// of the compute capability.
  static llvm::Expected<std::unique_ptr<EmulatedDriver>> open(const std::string& library, int major,
                                                              int minor);
  ~EmulatedDriver();

  /// The tensors that the first parameters point to. An allocation that several share gets the rights of all
  /// of them.
  struct Operand {
    std::string name;      ///< of its region in reports
    bool written = false;  ///< else writing to it is a fault
    bool given =
        true;  ///< holds values when a call begins; else reading what no phase has written is a fault
  };
  /// Modules loaded from this image, PTX or a cubin, run this program.
  void add(const std::string& image, Program, std::vector<Operand> operands);

  Options options;  ///< of the launches from now on
  size_t guardBytes =
      0;  ///< at both ends of every allocation, and up to a line more before its first operand: off limits

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
