// A CUDA kernel as a host would use it, where there is no GPU: compiled, packed as
// PTX, opened by the runtime through a driver of ours, its launches run by the emulator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/gate/Gate.h"
#include "autotune/gate/Plans.h"
#include "codegen/emulator/EmulatedDriver.h"
#include "codegen/targets/cuda/Compile.h"

namespace normc {

struct Emulated {
  std::unique_ptr<emulator::EmulatedDriver> driver;
  std::unique_ptr<gate::CudaDevice> device;
  std::optional<host::Context> context;
  std::optional<host::Package> package;
  std::optional<gate::Plans> plans;
  const normc_plan* plan = nullptr;
  package::Kernel manifest;
  std::string error;

  /// Judges one trial; the verdict includes the fault of a launch. The gate's second run, which must give the
  /// same bits as the first, runs the threads in another order.
  gate::Verdict judge(const Problem&, const gate::Trial&);
  gate::Verdict judge(const Problem&, const gate::Question&);
  /// All standard trials with threads in ascending, descending and random order; the first verdict that is
  /// not good.
  gate::Verdict judgeInEveryOrder(const Problem&);
  /// All standard trials, each in one of these orders, which take turns.
  gate::Verdict judgeInTurns(const Problem&);
  /// The launches of the last trial.
  std::vector<emulator::EmulatedDriver::Launched> launches;
};

/// Faults that a test makes, to see that they are found.
struct Damage {
  std::function<void(std::string& ptx)> code;
  std::function<void(package::Kernel&)> manifest;
};

/// Replaces what matches the pattern, all of it or the first of the entry whose name has `entry`. The test
/// fails if nothing does.
Damage replaced(const std::string& pattern, const std::string& by);
Damage replacedOnce(const std::string& entry, const std::string& pattern, const std::string& by);
/// Removes the wait of the n-th grid barrier of a function, as if all blocks had arrived. -1: none.
Damage withoutWait(int n);

/// For the architecture's first device.
std::unique_ptr<Emulated> emulated(const Problem&, const codegen::cuda::Schedule&, const codegen::cuda::Arch&,
                                   const Damage& = {});
codegen::cuda::Arch archOf(const std::string& name);
/// Judges one trial of the kernel for sm_90, with a fault.
gate::Verdict judgedWith(const Damage&, const Problem&, const std::string& schedule, const gate::Trial&);
/// BatchNorm of rows that are divided by the roots of their groups' mean squares: both phases over rows have
/// sums of each row.
inline constexpr const char* kPreScaledNorm = R"(norm pre_scaled_bn {
  reduce rows
  center current
  moment central
  pre group_scaling(groups = heads, epsilon = 1e-5)
  affine scale, bias
}
)";
/// The problem of a norm that a test defines: its text, and what follows its name, e.g. ":forward@f32[*x64]".
Problem problemOf(const std::string& norm, const std::string& rest);
codegen::cuda::Schedule defaultOf(const Problem&, const codegen::cuda::Arch&);

/// A case of a suite about kernels that keep something in shared memory.
struct SharedMemoryCase {
  const char *name, *problem, *schedule;
  int64_t shared;  ///< bytes of a block
  const char* arch = "sm_90";
};
void PrintTo(const SharedMemoryCase&, std::ostream*);

}  // namespace normc
