// Compiles many kernels and packs them.
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
  package::Limits limits = {};              ///< of the calls the kernel is offered for
  std::string origin = "default";           ///< why this schedule: for the manifest
  bool fromRecord = false;                  ///< a record chose the schedule; `origin` says which
  std::vector<std::string> selection = {};  ///< what was tried to choose it, a line each
};

/// The kernels a package holds for a problem by default: one for each strategy that pays.
std::vector<Job> defaultJobs(const Problem&, const TargetPtr&);

/// Behind each job whose schedule not every device of the target can run, one that it can, unless a kernel
/// for any number of features is there. The runtime takes it where the other is refused.
void addFallbacks(std::vector<Job>&);

struct PackageOptions {
  unsigned threads = 0;  ///< 0: all of the machine
  /// Called after each kernel, from one thread at a time.
  std::function<void(size_t done, size_t total, const Job&)> progress;
  /// What a user should know of a kernel that was made all the same, e.g. that ptxas was missing.
  std::function<void(const Job&, const std::string& note)> note;
};

/// The bytes of a package. The first failure stops the work and is returned.
llvm::Expected<std::string> buildPackage(const std::vector<Job>&, const PackageOptions& = {});

}  // namespace normc::codegen
