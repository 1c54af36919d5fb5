// A package on a device: what it holds, and plans from it.
#pragma once

#include <map>
#include <string>

#include "autotune/measure/CudaTimer.h"
#include "bench/gpu/Records.h"
#include "dsl/Problem.h"
#include "runtime/abi/Manifest.h"
#include "runtime/normc.hpp"

namespace normc::gpu {

using namespace measure;

/// The least X-sized transfers of one call, as the manifest says: what is read again is no merit of a kernel.
struct Traffic {
  int reads = 0, writes = 0;
  int total() const { return reads + writes; }
};

class Kernels {
 public:
  /// `driver`: the file of the CUDA driver.
  Kernels(const std::string& file, const std::string& driver, int device);

  int device() const { return device_; }
  const std::vector<package::Kernel>& kernels() const { return manifest_.kernels; }
  /// Reads the text by the norms that the package brings along.
  Problem problem(const std::string& text) const;
  /// A plan for the device; throws host::Error.
  host::Plan plan(const std::string& text, bool steady = false) const;
  /// The same, where few rows must not run another kernel.
  host::Plan planOfOneKernel(const std::string& text) const;
  Traffic traffic(size_t kernel) const;

 private:
  int device_;
  host::Context context_;
  host::Package package_;
  package::Manifest manifest_;
  std::map<std::string, std::shared_ptr<const Spec>, std::less<>> norms_;
};

}  // namespace normc::gpu
