// Every built-in norm, entry, storage type, layout and mask on the emulator, judged
// on hostile data as kernels of a CPU are.
#include <gtest/gtest.h>

#include "codegen/plan/Planner.h"
#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/cuda/Emulated.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

struct Case {
  std::string problem, arch, list = "";
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " " << c.arch; }

bool hasOwnColumns(const std::string& problem) {
  return parseProblem(problem, findNorm)->spec->reduce == Reduce::Segment;
}

/// False for entries over ranks, and for statistics of rows, with layout channels_first: only a CPU has them.
bool hasStrategy(const std::string& problem) {
  return !codegen::legalStrategies(*parseProblem(problem, findNorm)).empty();
}

/// A norm with statistics per segment processes whole columns, and a block has those of a few features. All
/// numbers of features that are multiples of a block take the same path; with this one each segment has four
/// blocks.
constexpr int64_t kColumns = 128;

void addCases(const char* list, Demand demand, const std::string& arch, std::vector<Case>& cases) {
  for (const std::string& text : problemsOf(demand))
    if (!hasOwnColumns(text) && hasStrategy(text)) cases.push_back({text, arch, list});
  if (demand.features % kColumns == 0) demand.features = kColumns;
  for (const std::string& text : problemsOf(demand))
    if (hasOwnColumns(text)) cases.push_back({text, arch, list});
}

#define NORMC_CUDA_TYPES(suite)                             \
  suite(BF16, {.dtype = "bf16", .features = 160}, "sm_90"); \
  suite(F16, {.dtype = "f16", .features = 160}, "sm_100")

/// The lists of all suites, and what of them is a sample: each kind of norm meets each entry, type, layout
/// and mask that it has, and these each other. Each norm has each of its entries.
const Divided<Case>& allCases() {
  static const Divided<Case> all = [] {
    std::vector<Case> cases;
    auto add = [&](const char* list, const Demand& demand, const char* arch = "sm_90") {
      addCases(list, demand, arch, cases);
    };
#define NORMC_ADD(name, ...) add(#name, __VA_ARGS__)
    NORMC_SHAPES(NORMC_ADD);
    NORMC_CUDA_TYPES(NORMC_ADD);
    return divided(
        cases,
        [](const Case& c) {
          const Problem problem = *parseProblem(c.problem, findNorm);
          return Properties{c.list, kindOf(*problem.spec), std::string(name(problem.entry))};
        },
        [](const Case& c) { return c.problem.substr(0, c.problem.find("@")); });
  }();
  return all;
}

/// Else the wider one would have to be run.
TEST(EmulatedColumns, HaveOneScheduleForEveryNumberThatEndsWithABlock) {
  for (const std::string entry : {"forward", "backward", "infer"}) {
    auto schedule = [&](int64_t features) {
      auto s = defaultOf(
          *parseProblem("instance_norm:" + entry + "@f32[*x*x" + std::to_string(features) + "]", findNorm),
          archOf("sm_90"));
      EXPECT_EQ(kColumns % (s.team * s.vector), 0);
      s.chunks = 0;  // how many blocks share the segments
      return s.text();
    };
    EXPECT_EQ(schedule(kColumns), schedule(768)) << entry;
  }
}

/// Rows of odd lengths begin in every way that a row can, and so do their ends.
std::vector<Case> oddLengths() {
  std::vector<Case> cases;
  for (const char* kind : {"layer_norm:forward@f32", "rms_norm:forward@bf16", "layer_norm:infer@f16",
                           "layer_norm:backward@bf16"})
    for (const char* length : {"43", "129", "1001"})
      cases.push_back({kind + std::string("[*x") + length + "]", length[0] == '4' ? "sm_100" : "sm_90"});
  for (const char* problem :
       {"layer_norm:forward@bf16[*x4097]{params=bf16}", "group_norm:forward@bf16[*x1012]{groups=4}",
        "group_norm:forward@f32[*x*x308]{groups=4,mask}", "batch_norm:forward@bf16[*x101]"})
    cases.push_back({problem, "sm_80"});
  // Groups so short that a thread has one, or several, to itself.
  for (const char* problem :
       {"group_norm:forward@f32[*x39]{groups=3}", "group_norm:forward@f32[*x315]{groups=21}"})
    cases.push_back({problem, "sm_90"});
  return cases;
}

class EmulatedNorms : public testing::TestWithParam<Case> {};

TEST_P(EmulatedNorms, PassTheGate) {
  Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto arch = archOf(GetParam().arch);
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    gate::Verdict verdict = kernel->judge(problem, question);
    ASSERT_TRUE(verdict.ok) << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) { return testName(info.param.problem); }

#define NORMC_SUITE(name, ...)                  \
  NORMC_INSTANTIATE_SAMPLE(name, EmulatedNorms, \
                           part(allCases(), [](const Case& c) { return c.list == #name; }), caseName)
INSTANTIATE_TEST_SUITE_P(OddLengths, EmulatedNorms, testing::ValuesIn(oddLengths()), caseName);
NORMC_SHAPES(NORMC_SUITE);
NORMC_CUDA_TYPES(NORMC_SUITE);

}  // namespace
}  // namespace normc
