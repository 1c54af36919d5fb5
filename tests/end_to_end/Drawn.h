// A random problem of a random spec, for tests that take any legal mix of flags.
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

}  // namespace normc
