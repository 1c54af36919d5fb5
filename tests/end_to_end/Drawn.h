// A random program: a random problem of a random spec with a random schedule, for tests that take any legal
// mix of flags.
#pragma once

#include "tests/dsl/RandomSpec.h"
#include "tests/end_to_end/Compiled.h"

namespace normc {

/// With a legal schedule of the MLIR lowering.
struct Drawn {
  Problem problem;
  codegen::cpu::Schedule schedule;
  int64_t features;
};

/// Problems that rules forbid are drawn again. `only`: the entry, which is drawn otherwise.
Drawn draw(uint64_t seed, const codegen::cpu::Isa&, std::optional<Entry> only = {},
           Drawing drawing = Drawing::Plain);

/// Returns what the gate, the compiler or the runtime says of the first fault of a program; empty if all its
/// standard trials are right.
std::string faultOf(const Drawn&, const codegen::cpu::Isa&);

/// Returns the text of the norm, of the problem and of the schedule.
std::string textOf(const Drawn&, const codegen::cpu::Isa&);

}  // namespace normc
