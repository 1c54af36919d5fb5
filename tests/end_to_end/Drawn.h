// A random problem of a random spec, for tests that take any legal mix of flags.
#pragma once

#include "tests/end_to_end/Compiled.h"

namespace normc {

/// With a legal schedule of the MLIR lowering. Problems that rules forbid are drawn again.
struct Drawn {
  Problem problem;
  codegen::cpu::Schedule schedule;
  int64_t features;
};

Drawn draw(uint64_t seed, const codegen::cpu::Isa&);

}  // namespace normc
