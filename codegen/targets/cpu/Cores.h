// The cores that have measured default schedules: one file for each, defaults/CORE.jsonl. A new core is a new
// file (docs/performance.md, Tables of default schedules).
//
// Cores share instruction sets but need different schedules. A core never changes which instructions are
// used.
#pragma once

#include <string>
#include <vector>

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace normc::codegen::cpu {

struct Core {
  llvm::StringRef name;                 ///< of the file: "zen3"
  std::vector<std::string> processors;  ///< LLVM's names of processors with this core: "znver3"
  std::string measured;                 ///< machine and date
  llvm::StringRef lines;                ///< the rest of the file: a JSON object in each line
  std::string sibling;                  ///< the core whose lines serve where this one has none; empty: none
};

/// Returns all cores, by name.
const std::vector<Core>& cores();

/// Returns the core of a name; null: there is no table of it.
const Core* findCore(llvm::StringRef name);

/// Returns the core of a processor, by its name and features as LLVM reads them from the machine; null: it
/// has no table. A virtual machine may report the model of another processor: a Rocket Lake with AMX, which
/// no Rocket Lake has, is taken for a Granite Rapids.
const Core* coreOfProcessor(llvm::StringRef name, const llvm::StringMap<bool>& features);

/// Returns the core of this machine's processor; null: it has no table.
const Core* hostCore();

}  // namespace normc::codegen::cpu
