// The interface to a kind of device: which kernels can run there (Platform), and how a call that is laid out
// runs (Backend).
//
//   runtime/cpu/CpuPlatform.h, CpuBackend.h      threads of this processor
//   runtime/cuda/CudaPlatform.h, CudaBackend.h   streams of a CUDA device
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/Context.h"
#include "runtime/core/MemoryBlock.h"
#include "runtime/package/Package.h"
#include "runtime/plan/Call.h"

namespace normc::runtime {

/// The chosen kernel of a plan. The references outlive the back end, but for `request`.
struct Binding {
  const Context& context;
  const Package& package;
  const Kernel& kernel;
  const std::vector<double>& scalars;  ///< the kernel's scalar parameters, with the request's values
  const normc_request& request;        ///< valid only while binding
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// Runs the call or its part, or enqueues it on its stream. Allocates nothing and takes no lock of the
  /// runtime.
  virtual normc_status run(const Call& call) const = 0;

  /// Returns how often the threads of a call by parts wait for each other. Only for the CPU.
  virtual int barriers(const normc_cut*) const { return 0; }

  /// Returns lines for normc_plan_describe.
  virtual std::string describe() const = 0;

  virtual normc_status allocate(size_t bytes, std::unique_ptr<MemoryBlock>& memory) const = 0;
  /// Copies memory of the host to the device, and waits for the copy.
  virtual normc_status write(void* to, const void* from, size_t bytes) const = 0;
};

class Platform {
 public:
  /// The verdict of a platform on a kernel. A higher rank is better; of kernels of one rank for the same
  /// features, a better fit.
  struct Verdict {
    std::string refusal;  ///< why it cannot run here; empty if it can
    int rank = 0;
    std::string advantage;  ///< over a kernel of lower rank: "has the newer instruction set"
    enum Fit { OfOther, OfAny, OfThis } fit = OfAny;  ///< the cores that its schedule is for
  };

  virtual ~Platform() = default;
  virtual const Place& place() const = 0;
  virtual Verdict judge(const Kernel& kernel) const = 0;
  /// Returns what to do about a package without a kernel for this device; may be empty.
  virtual std::string remedy() const = 0;
  /// Loads the code of a kernel that was not refused. Returns kUnfit if the device or its driver refuses it
  /// nevertheless.
  virtual normc_status bind(const Binding& binding, std::unique_ptr<Backend>& backend) const = 0;
};

/// Opens the platform that a request names; fails if it does not exist.
normc_status platformOf(const Context& context, const normc_request& request,
                        std::unique_ptr<const Platform>& platform);

}  // namespace normc::runtime
