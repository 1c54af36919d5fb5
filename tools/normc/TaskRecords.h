// Records as reports show them: those of one task, measured on one device with one toolchain.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/records/Database.h"

namespace normc::cli {

struct TaskRecords {
  const tune::Record* any = nullptr;
  std::vector<const tune::Record*> trials, choices;
};

/// Returns the trials and choices of equal circumstances (autotune/records/Standing.h) together, in the order
/// of the tasks' texts. The records outlive the result.
std::map<std::string, TaskRecords> taskRecordsOf(const tune::Database&);

/// The samples of a candidate, and those of the default in the same rounds.
struct Times {
  tune::Samples samples, reference;
};

/// Returns all samples of each candidate in a stage, by its name.
std::map<std::string, Times> timesOf(const TaskRecords&, const std::string& stage);

/// Returns the name of a candidate, `mlir:resident,rows=2`.
std::string nameOf(const tune::Record&);
/// Returns the toolchain, `llvm 22.1.8, normc 0.1.0`.
std::string toolsOf(const tune::Record&);
/// Returns the problem of a task for any sizes, `layer_norm:forward@f32[*x*]`.
std::string anySizesOf(const tune::Task&);
/// Returns the first digits of a hash, as reports show it.
inline std::string shortHash(const std::string& hash) { return hash.substr(0, 8); }

}  // namespace normc::cli
