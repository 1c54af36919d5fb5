// A CUDA driver whose launches run on the emulator: the fake driver (codegen/emulator/driver) with a launcher
// that finds the program of a module by its image. The runtime uses it like a device.
//
// A process has one fake driver, so one of these objects at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/emulator/Emulator.h"

namespace normc::emulator {

class EmulatedDriver {
 public:
  /// `library`: the path of libnormc_fake_cuda.so, which the runtime is given too. The driver starts with one
  /// device of this compute capability.
  static llvm::Expected<std::unique_ptr<EmulatedDriver>> open(const std::string& library, int major,
                                                              int minor);
  ~EmulatedDriver();

  /// A tensor that a parameter points to; operands are the first parameters. An allocation that several
  /// operands share gets the rights of all of them.
  struct Operand {
    std::string name;      ///< name of its region in reports
    bool written = false;  ///< if false, a write to it is a fault
    /// Holds values when a call begins; if false, a read before a phase has written is a fault.
    bool given = true;
  };
  /// Sets the program that modules loaded from this image, PTX or a cubin, run.
  void add(const std::string& image, Program, std::vector<Operand> operands);

  Options options;        ///< for all later launches
  size_t guardBytes = 0;  ///< inaccessible bytes at both ends of every allocation; up to a cache line more
                          ///< before its first operand

  struct Launched {
    std::string function;
    Report report;
  };
  /// Returns the launches since the last call, in order. A failed launch is also a sticky error of the
  /// driver; its report has the reason.
  std::vector<Launched> takeLaunches();

 private:
  EmulatedDriver() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace normc::emulator
