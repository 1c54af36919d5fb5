// Any legal mix of flags, not the built-in norms alone: random specs, shapes,
// types, layouts and schedules, compiled and judged.
#include <gtest/gtest.h>

#include "tests/end_to_end/Drawn.h"

namespace normc {
namespace {

void agree(int seed, std::optional<Entry> only = {}, Drawing drawing = Drawing::Plain) {
  codegen::cpu::Isa isa = seed % 2 ? hostIsa() : llvm::cantFail(codegen::cpu::findIsa("x86-64-v3"));
  const Drawn d = draw(uint64_t(seed), isa, only, drawing);
  EXPECT_EQ(faultOf(d, isa), "") << textOf(d, isa);
}

class RandomSpecs : public testing::TestWithParam<int> {};
class RandomGradientsOfInference : public testing::TestWithParam<int> {};
class RandomPairs : public testing::TestWithParam<int> {};
class RandomCodes : public testing::TestWithParam<int> {};
class RandomEntriesOverRanks : public testing::TestWithParam<int> {};
TEST_P(RandomSpecs, AgreeWithTheReference) { agree(GetParam()); }
TEST_P(RandomGradientsOfInference, AgreeWithTheReference) { agree(GetParam(), Entry::InferBackward); }
/// The first two bits of a seed choose the instruction set and whether rows are stored in turn.
TEST_P(RandomCodes, AgreeWithTheReference) {
  agree(GetParam(), GetParam() / 4 % 2 ? Entry::Infer : Entry::Forward, Drawing::Quantized);
}
TEST_P(RandomPairs, AgreeWithTheReference) { agree(GetParam(), {}, Drawing::WithRope); }
TEST_P(RandomEntriesOverRanks, AgreeWithTheReference) {
  constexpr Entry kEach[] = {Entry::ForwardReduce, Entry::ForwardApply, Entry::BackwardReduce,
                             Entry::BackwardApply, Entry::Commit};
  agree(GetParam(), kEach[GetParam() / 2 % 5]);
}

/// The sample is the first seeds, the rest (tests/Sample.h) those behind them.
INSTANTIATE_TEST_SUITE_P(Seeds, RandomEntriesOverRanks, testing::Range(0, 30));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomGradientsOfInference, testing::Range(0, 24));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpecs, testing::Range(0, 48));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, RandomEntriesOverRanks, testing::Range(30, 100));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, RandomGradientsOfInference, testing::Range(24, 100));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, RandomSpecs, testing::Range(48, 200));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomPairs, testing::Range(0, 24));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, RandomPairs, testing::Range(24, 200));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomCodes, testing::Range(0, 40));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, RandomCodes, testing::Range(40, 200));

}  // namespace
}  // namespace normc
