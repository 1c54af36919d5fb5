// Runs CUDA kernels on the CPU, from PTX.
//
//   Program   a module, translated and compiled for this processor, once
//   Memory    the memory that kernels may access
//   run       one launch: each GPU thread is a fiber of the calling host thread
//
// The code of a package is executed as it is, up to ptxas. docs/emulator.md describes the method and its
// guarantees.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/emulator/Memory.h"
#include "codegen/emulator/Report.h"
#include "llvm/Support/Error.h"
#include "runtime/abi/CudaLimits.h"

namespace normc::emulator {

/// The order in which runnable threads continue. No order may change a result.
enum class Order { Ascending, Descending, Random };

enum class Checks {
  None,    ///< a wrong access may end the process; nothing is counted
  Bounds,  ///< bounds, alignment, read-only memory, uninitialised regions; traffic is counted
  All,     ///< also races and uninitialised shared memory
};

struct Options {
  Order order = Order::Ascending;
  uint64_t seed = 1;  ///< for Order::Random
  Checks checks = Checks::All;
  uint64_t maxSteps = 4'000'000'000;  ///< limit of memory accesses and waits of a launch
};

struct Launch {
  std::string function;
  Dim3 grid, block, cluster;
  uint32_t sharedBytes = 0;  ///< dynamic shared memory
  bool cooperative = false;  ///< all blocks are resident at once
  uint32_t mostShared =
      limits::sharedOfBlock(90);    ///< bytes, static and dynamic, that a block of the device has
  std::span<const uint64_t> words;  ///< parameters, 8 bytes each (runtime/abi/cuda.h)
};

/// Immutable. Several host threads may run launches of one program at once, each with its own Memory. They
/// share the module's variables in global memory.
class Program {
 public:
  /// Compiles the entries of PTX text, which may end with a zero. An error names the line and the instruction
  /// that cannot be emulated, and its entry; no instruction is skipped silently.
  static llvm::Expected<Program> compile(llvm::StringRef ptx);

  std::vector<std::string> functions() const;  ///< entry functions, in the module's order
  size_t parameters(const std::string& function) const;

  /// Returns the report of a launch; an error if a device would refuse the launch.
  llvm::Expected<Report> run(const Launch&, Memory&, const Options& = {}) const;

  struct State;

 private:
  explicit Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace normc::emulator
