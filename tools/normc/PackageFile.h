// A package as the verbs read it: opened by the runtime, so that what they say holds for every
// host, with the manifest beside it, whose form the runtime has checked.
#pragma once

#include <optional>
#include <string>

#include "autotune/gate/CudaDevice.h"
#include "dsl/Problem.h"
#include "runtime/abi/Manifest.h"
#include "runtime/normc.hpp"
#include "tools/normc/Failure.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// A refusal of the runtime: INVALID_ARGUMENT is the command line's fault, all else that of what it names.
Failure failureOf(const host::Error&);

/// Calls `body`; what the runtime or a device refuses becomes a Failure.
template <typename Body>
auto translated(Body&& body) {
  try {
    return body();
  } catch (const host::Error& error) {
    throw failureOf(error);
  } catch (const gate::CudaError& error) {
    throw refused(error.what());
  }
}

class PackageFile {
 public:
  /// `cudaLibrary`: the driver that plans for a CUDA device go through.
  explicit PackageFile(const std::string& path, int threads = 0,
                       const std::string& cudaLibrary = gate::CudaDriver::kLibrary);

  const std::string& path() const { return path_; }
  const host::Context& context() const { return context_; }
  const host::Package& package() const { return package_; }
  const package::Manifest& manifest() const { return manifest_; }
  const std::vector<package::Kernel>& kernels() const { return manifest_.kernels; }
  int64_t bytes() const { return bytes_; }

  /// The bytes of one blob, not verified.
  std::string bytesOf(const package::Blob&) const;

  /// The same package with no kernel but this, in memory: one that the runtime would never choose beside the
  /// others.
  PackageFile alone(size_t kernel, const std::string& cudaLibrary = gate::CudaDriver::kLibrary) const;

  /// The plan of a problem's text; `options` as in host::Plan.
  host::Plan plan(const std::string& problem, normc_request options = {}) const;

  /// Reads a problem's text by the norms of the package.
  Problem problem(const std::string& text) const;

 private:
  PackageFile(const std::string& path, const std::string& bytes, const std::string& cudaLibrary);
  Result<std::shared_ptr<const Spec>> find(std::string_view norm) const;

  std::string path_;
  host::Context context_;
  host::Package package_;
  package::Manifest manifest_;
  int64_t bytes_ = 0;
};

}  // namespace normc::cli
