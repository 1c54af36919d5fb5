// Built-in norms through the MLIR lowering.
#include <set>

#include "tests/end_to_end/NormCases.h"

namespace normc {
namespace {

const Divided<NormCase>& allCases() {
  static const Divided<NormCase> all = normCases(codegen::cpu::strategies);
  return all;
}

/// Layout channels_first is not for every norm.
TEST(NormCases, HaveEachNormInEachTypeAndWithAMask) {
  std::set<std::pair<std::string, std::string>> found;
  for (const std::vector<NormCase>& part : {allCases().sample, allCases().rest})
    for (const NormCase& c : part) found.emplace(c.list, c.problem.substr(0, c.problem.find(':')));
  for (const char* list : {"Odd", "Wide", "Masked", "Segmented", "SegmentedMasked", "F64", "BF16", "F16"})
    for (const BuiltinNorm& norm : builtinNorms())
      EXPECT_TRUE(found.contains({list, norm.name})) << norm.name << " in " << list;
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
