// A package as programs read it: opened by the runtime, so that what they say of it holds for every
// host, with the manifest beside it, whose form the runtime has checked.
//
// A refusal of the runtime is thrown as host::Error.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "dsl/Problem.h"
#include "runtime/abi/Manifest.h"
#include "runtime/normc.hpp"

namespace normc::gate {

/// The manifest lacks what programs read and the runtime does not need.
struct PackageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class PackageFile {
 public:
  /// `cudaLibrary`: the driver that plans for a CUDA device go through. Throws PackageError, too.
  explicit PackageFile(const std::string& path, int threads = 0,
                       const std::string& cudaLibrary = CudaDriver::kLibrary);

  const std::string& path() const { return path_; }
  const std::string& cudaLibrary() const { return cudaLibrary_; }
  const host::Context& context() const { return context_; }
  const host::Package& package() const { return package_; }
  const package::Manifest& manifest() const { return manifest_; }
  const std::vector<package::Kernel>& kernels() const { return manifest_.kernels; }
  int64_t bytes() const { return bytes_; }

  /// Returns the bytes of one blob, not verified.
  std::string bytesOf(const package::Blob&) const;

  /// Returns the same package with no kernel but this, in memory: one that the runtime would never choose
  /// beside the others.
  PackageFile alone(size_t kernel) const;

  /// Returns the plan of a problem's text, or what is wrong with the text; `options` as in host::Plan.
  Result<host::Plan> plan(const std::string& problem, normc_request options = {}) const;

  /// Reads a problem's text by the norms of the package.
  Result<Problem> problem(const std::string& text) const;

 private:
  PackageFile(const std::string& path, const std::string& bytes, const std::string& cudaLibrary);
  Result<std::shared_ptr<const Spec>> find(std::string_view norm) const;

  std::string path_, cudaLibrary_;
  host::Context context_;
  host::Package package_;
  package::Manifest manifest_;
  int64_t bytes_ = 0;
};

}  // namespace normc::gate
