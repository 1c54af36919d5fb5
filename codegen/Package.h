// Compiles several kernels and writes them into a package.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/Target.h"

namespace normc::codegen {

/// One kernel to build.
struct Job {
  Problem problem;
  TargetPtr target;
  std::string schedule;
  package::Limits limits = {};  ///< limits of the calls that the kernel is offered for
  /// The reason for this schedule, in the manifest: default, given (by the user), candidate (of a tuning),
  /// fallback, or the record.
  std::string origin = "default";
  bool fromRecord = false;                  ///< the schedule is from a record, which `origin` names
  std::vector<std::string> selection = {};  ///< the steps of the choice, a line each
  std::string core = {};                    ///< the core whose calls prefer the kernel; empty: any

  /// Returns the set, and the core if there is one: "x86-64-v4:cove".
  std::string targetText() const { return target->name().str() + (core.empty() ? "" : ":" + core); }
};

/// Returns the default kernels of a package for a problem: one for each worthwhile strategy.
std::vector<Job> defaultJobs(const Problem&, const TargetPtr&);

/// Adds, after each job whose schedule some devices of the target cannot run, a job that they can run, unless
/// there is a kernel for any number of features. The runtime uses it if the other is refused.
void addFallbacks(std::vector<Job>&);

/// Prepares jobs of one set of instructions for several cores. A problem whose kernels are the same for all
/// of them has these once, for any core; else each of its kernels names the core of its target.
void separateCores(std::vector<Job>&);

struct PackageOptions {
  unsigned threads = 0;      ///< 0: all processors
  CubinOptions cubins = {};  ///< without them a package is small, and the driver compiles its PTX
  /// Called after each kernel, by one thread at a time.
  std::function<void(size_t done, size_t total, const Job&)> progress;
  /// Called with a note for the user about a kernel that was made, e.g. that ptxas was missing.
  std::function<void(const Job&, const std::string& note)> note;
};

/// Returns the bytes of a package. The first failure stops the work and is returned.
llvm::Expected<std::string> buildPackage(const std::vector<Job>&, const PackageOptions& = {});

}  // namespace normc::codegen
