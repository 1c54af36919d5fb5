// A package as the benchmarks use it: what it holds, and plans from it for the host or for a CUDA device.
#pragma once

#include <optional>
#include <string>

#include "autotune/measure/Copy.h"
#include "dsl/Problem.h"
#include "runtime/abi/Manifest.h"
#include "runtime/normc.hpp"

namespace normc::bench {
using namespace measure;

class Kernels {
 public:
  /// Opens a file for the host. All constructors throw host::Error.
  explicit Kernels(const std::string& file);
  /// The same for device `device` of a CUDA driver. `driver`: the file of that library.
  Kernels(const std::string& file, const std::string& driver, int device);
  /// Returns the kernels of a package in memory, for the host.
  static Kernels ofBytes(const std::string& package);

  /// Opens the same package for the host once more; its calls run on threads of the caller's.
  Kernels onThreads(normc_parallel_for, void* first) const;

  int device() const { return *device_; }
  const host::Package& package() const { return package_; }
  const std::vector<package::Kernel>& kernels() const { return manifest_.kernels; }

  /// Reads the text by the norms that the package brings along. Throws std::runtime_error.
  Problem problem(const std::string& text) const;
  /// Returns a plan; throws host::Error. `threads` 0: as many as the runtime chooses.
  host::Plan plan(const std::string& problem, int threads = 0) const;
  /// Returns a plan whose calls all run one kernel, calls of few rows too.
  host::Plan planOfOneKernel(const std::string& problem) const;
  /// Returns the X-sized transfers of a call, as the manifest says. What a kernel reads again although it
  /// could keep it on chip does not count: it is no merit.
  Traffic traffic(size_t kernel) const;

 private:
  enum class From { File, Memory };
  Kernels(From, const std::string& source, const normc_context_options&, std::optional<int> device);
  normc_request request() const { return device_ ? host::onCuda(*device_) : normc_request{}; }

  From from_;
  std::string source_;
  std::optional<int> device_;
  host::Context context_;
  host::Package package_;
  package::Manifest manifest_;
};

}  // namespace normc::bench
