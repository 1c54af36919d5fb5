// Built-in norms through the MLIR lowering.
#include "tests/end_to_end/NormCases.h"

namespace normc {
namespace {

const Divided<NormCase>& allCases() {
  static const Divided<NormCase> all = normCases(codegen::cpu::strategies);
  return all;
}

class BuiltinNorms : public testing::TestWithParam<NormCase> {};

TEST_P(BuiltinNorms, PassTheGate) {
  const Problem problem = problemOf(GetParam().problem);
  const auto schedule = codegen::cpu::defaultSchedule(problem, hostIsa(), GetParam().strategy);
  expectPassesTheGate(problem, *compiled(problem, schedule, hostIsa()));
}

#define NORMC_SUITE(name, ...) NORMC_NORM_SUITE(name, BuiltinNorms, allCases())
NORMC_SHAPES(NORMC_SUITE);
NORMC_CPU_TYPES(NORMC_SUITE);

}  // namespace
}  // namespace normc
