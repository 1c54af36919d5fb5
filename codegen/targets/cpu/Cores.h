// The tables of default schedules that were measured: one file for each core of runtime/abi/CpuCore.h,
// defaults/CORE.jsonl (docs/performance.md, Tables of default schedules).
#pragma once

#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"

namespace normc::codegen::cpu {

struct Core {
  llvm::StringRef name;   ///< of the file: "zen3"
  std::string measured;   ///< machine and date
  llvm::StringRef lines;  ///< the rest of the file: a JSON object in each line
  std::string sibling;    ///< the core whose lines serve where this one has none; empty: none
};

/// Returns all cores, by name.
const std::vector<Core>& cores();

/// Returns the core of a name; null: there is no table of it.
const Core* findCore(llvm::StringRef name);

/// Returns the core of this machine's processor; null: it has no table.
const Core* hostCore();

}  // namespace normc::codegen::cpu
