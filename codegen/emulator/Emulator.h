// Runs CUDA kernels on the CPU, from the LLVM IR that the NVPTX back end is given.
//
//   Program   the module, retargeted, instrumented and compiled for this processor, once
//   Memory    what the kernels may touch
//   run       one launch: each GPU thread is a fiber of the calling host thread
//
// What ran is what ships, up to NVPTX and ptxas. docs/emulator.md says how it works and
// what it promises.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/emulator/Memory.h"
#include "codegen/emulator/Report.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
}

namespace normc::emulator {

/// Which thread goes on where several can. No order may change a result.
enum class Order { Ascending, Descending, Random };

enum class Checks {
  None,    ///< an access that is wrong ends the process, as it may; nothing is counted
  Bounds,  ///< bounds, alignment, read-only memory, uninitialised regions; traffic is counted
  All,     ///< and races, and uninitialised shared memory
};

struct Options {
  Order order = Order::Ascending;
  uint64_t seed = 1;  ///< of Order::Random
  Checks checks = Checks::All;
  uint64_t maxSteps = 4'000'000'000;  ///< memory accesses and waits, before a launch is a runaway
};

struct Launch {
  std::string function;
  Dim3 grid, block, cluster;
  uint32_t sharedBytes = 0;         ///< dynamic shared memory
  bool cooperative = false;         ///< all blocks are resident together
  std::span<const uint64_t> words;  ///< parameters, 8 bytes each (runtime/abi/cuda.h)
};

/// Immutable; any number of host threads may run launches of one program, each with a
/// Memory of its own. Variables of the module in global memory are shared by them all.
class Program {
 public:
  /// An error names the instruction and the function that cannot be emulated: nothing is
  /// ever left out silently. The module stays as it is.
  static llvm::Expected<Program> compile(const llvm::Module&);

  std::vector<std::string> functions() const;  ///< entry functions, in the module's order
  size_t parameters(const std::string& function) const;

  /// An error where a device would refuse the launch; else a report of what it did.
  llvm::Expected<Report> run(const Launch&, Memory&, const Options& = {}) const;

  struct State;

 private:
  explicit Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace normc::emulator
