// Counts how long the chains of additions in lowered loops are, for a call of given sizes, without running
// it.
//
// A chain is what one accumulator takes in one loop: so many additions follow each other at one level of a
// sum. An accumulator is a value that a loop carries, or an element of memory that it reads, adds to and
// writes again.
#pragma once

#include <cstdint>

#include "codegen/targets/cpu/Compile.h"
#include "dsl/StateFields.h"

namespace normc::codegen {

struct Chains {
  int64_t within = 0;  ///< the longest of a level whose result is added to another
  int64_t last = 0;    ///< the longest of the last levels that loops carry
  int64_t inTask =
      0;  ///< the longest of sums that a task leaves in memory, where the fold over tasks takes them up
  int64_t loops = 0;  ///< that add something up
};

/// Returns the chains of all phases of the kernel that the MLIR lowering makes for a CPU, for each of some
/// calls. One task does everything. Fails the test where the kernel cannot be planned, or a number of steps
/// depends on memory.
std::vector<Chains> chainsOf(const Problem&, const cpu::Schedule&, const cpu::Isa&,
                             const std::vector<Extents>& calls);

}  // namespace normc::codegen
