// Checks that sums have the guarantee of runtime/abi/Sums.h, on which dsl/Tolerance.h relies: no level of
// them is long.
#include <gtest/gtest.h>

#include <set>

#include "autotune/candidates/Space.h"
#include "runtime/abi/Sums.h"
#include "tests/Sample.h"
#include "tests/codegen/Chains.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

/// A call of few rows has no long level at all; of many, the last level is as long as it has to be.
std::vector<Extents> callsOf(const Problem& problem) {
  const int64_t features = problem.features.value_or(16384);
  // Rows that are processed together leave a rest.
  if (problem.segmented) return {{8, 16, features}, {8, 15, features}, {64, 3135, features}};
  return {{1, 128, features}, {1, 127, features}, {1, 50175, features}};
}

/// Returns the number of loops that add up.
int64_t expectShortChains(const Problem& problem, const cpu::Schedule& schedule, const cpu::Isa& isa) {
  const std::vector<Chains> chains = chainsOf(problem, schedule, isa, callsOf(problem));
  const std::string where = problem.text() + " " + schedule.text() + " for " + isa.name.str();
  for (const Chains& c : chains) EXPECT_LE(c.within, kLongestChain) << where;
  for (const Chains& c : {chains.at(0), chains.at(1)}) EXPECT_LE(c.last, kLongestChain) << where;
  return chains.at(0).loops;
}

/// A case has every seventh schedule of a space: no knob has seven values. The sample is the first case of
/// each space.
constexpr int kParts = 7;

/// Every slab, strategy and direction there is, with the schedules that a tuner tries. Those that differ only
/// in how many rows a task has, or what is fetched ahead, add up alike.
class SpacesOfSchedules : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(SpacesOfSchedules, HaveShortChains) {
  const auto& [text, part] = GetParam();
  const Problem problem = problemOf(text);
  std::set<std::string> seen;
  for (const char* set : {"x86-64-v3", "x86-64-v4"}) {
    const cpu::Isa isa = isaOf(set);
    const Workload load{problem.segmented ? 64 : 1, 3136, problem.features.value_or(1), 2};
    auto landscape = tune::landscapeOf({llvm::cantFail(findTarget(set))}, problem, load);
    ASSERT_TRUE(landscape) << normc::text(landscape.errors());
    for (size_t i = 0; i < landscape->size(); ++i) {
      cpu::Schedule schedule = llvm::cantFail(cpu::parseSchedule((*landscape)[i].schedule));
      schedule.grain = 32, schedule.fetch = false;
      if (seen.insert(set + schedule.text()).second && int(seen.size()) % kParts == part)
        expectShortChains(problem, schedule, isa);
    }
  }
  EXPECT_GT(seen.size(), 50u);
}

constexpr const char* kSlabs[] = {"layer_norm:forward@f32[*x1000]",
                                  "layer_norm:backward@f32[*x16384]",
                                  "group_norm_segment:forward@f32[*x*x96]{groups=4}",
                                  "instance_norm:backward@f32[*x*x72]",
                                  "batch_norm:forward@f32[*x768]",
                                  "batch_norm:backward@f32[*x100]",
                                  "batch_norm:forward@f32[*x24x*]{layout=channels_first}",
                                  "layer_norm:forward@f32[*x1000x*]{layout=channels_first}",
                                  "layer_norm:backward@f32[*x5000x*]{layout=channels_first}"};
INSTANTIATE_TEST_SUITE_P(Slabs, SpacesOfSchedules,
                         testing::Combine(testing::ValuesIn(kSlabs), testing::Values(0)));
INSTANTIATE_TEST_SUITE_P(RestOfSlabs, SpacesOfSchedules,
                         testing::Combine(testing::ValuesIn(kSlabs), testing::Range(1, kParts)));

struct Default {
  BuiltinNorm norm;
  Wish wish;
  cpu::Isa isa;
};

/// In the sample each norm meets each entry, number of features, layout and core that it has, and these each
/// other.
const Divided<Default>& defaults() {
  static const Divided<Default> all = [] {
    std::vector<Default> list;
    for (const BuiltinNorm& norm : builtinNorms())
      for (Entry entry : kEntries)
        for (int64_t features : {256, 1000, 4096})
          for (bool channelsFirst : {false, true})
            for (const cpu::Isa& isa : {isaOf("x86-64-v3"), isaOf("x86-64-v4:cove"), isaOf("aarch64")}) {
              const Wish wish{.entry = entry, .features = features, .channelsFirst = channelsFirst};
              if (problemOf(norm, wish)) list.push_back({norm, wish, isa});
            }
    return divided(list, [](const Default& d) {
      return Properties{d.norm.name, std::string(name(d.wish.entry)), std::to_string(d.wish.features),
                        d.wish.channelsFirst ? "channels first" : "features last", d.isa.name.str()};
    });
  }();
  return all;
}

/// Returns the number of loops that add up.
int64_t expectShortChains(const std::vector<Default>& list) {
  int64_t loops = 0;
  for (const Default& d : list) {
    const Problem problem = *problemOf(d.norm, d.wish);
    for (Strategy strategy : cpu::strategies(problem))
      loops += expectShortChains(problem, cpu::defaultSchedule(problem, d.isa, strategy), d.isa);
  }
  return loops;
}

TEST(Chains, AreShortInSampledDefaults) { EXPECT_GT(expectShortChains(defaults().sample), 100); }
TEST(RestOfChains, AreShortInEveryDefault) { EXPECT_GT(expectShortChains(defaults().rest), 1000); }

}  // namespace
}  // namespace normc::codegen
