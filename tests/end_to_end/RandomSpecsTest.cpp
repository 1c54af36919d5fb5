// Any legal mix of flags, not the built-in norms alone: random specs, shapes,
// types, layouts and schedules, compiled and judged.
#include <gtest/gtest.h>

#include "dsl/Print.h"
#include "tests/end_to_end/Drawn.h"

namespace normc {
namespace {

void agree(int seed, std::optional<Entry> only = {}, bool quantized = false) {
  codegen::cpu::Isa isa = seed % 2 ? hostIsa() : llvm::cantFail(codegen::cpu::findIsa("x86-64-v3"));
  Drawn d = draw(uint64_t(seed), isa, only, quantized);
  SCOPED_TRACE(print(*d.problem.spec) + d.problem.text() + " " + d.schedule.text() + " " + isa.name.str());
  auto kernel = compiled(d.problem, d.schedule, isa);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  std::vector<gate::Trial> trials = gate::standardTrials(d.problem, d.features);
  for (size_t i = 0; i < trials.size(); ++i) {
    gate::Verdict verdict = gate::judge(kernel->plan, d.problem, trials[i]);
    ASSERT_TRUE(verdict.ok) << verdict.text;
  }
}

class RandomSpecs : public testing::TestWithParam<int> {};
class RandomGradientsOfInference : public testing::TestWithParam<int> {};
class RandomCodes : public testing::TestWithParam<int> {};
class RandomEntriesOverRanks : public testing::TestWithParam<int> {};
TEST_P(RandomSpecs, AgreeWithTheReference) { agree(GetParam()); }
TEST_P(RandomGradientsOfInference, AgreeWithTheReference) { agree(GetParam(), Entry::InferBackward); }
TEST_P(RandomCodes, AgreeWithTheReference) {
  agree(GetParam(), GetParam() % 2 ? Entry::Infer : Entry::Forward, /*quantized=*/true);
}
TEST_P(RandomEntriesOverRanks, AgreeWithTheReference) {
  constexpr Entry kEach[] = {Entry::ForwardReduce, Entry::ForwardApply, Entry::BackwardReduce,
                             Entry::BackwardApply, Entry::Commit};
  agree(GetParam(), kEach[GetParam() / 2 % 5]);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomEntriesOverRanks, testing::Range(0, 100));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomGradientsOfInference, testing::Range(0, 100));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpecs, testing::Range(0, 200));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomCodes, testing::Range(0, 60));

}  // namespace
}  // namespace normc
