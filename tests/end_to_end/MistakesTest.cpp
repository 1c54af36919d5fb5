// The gate finds mistakes of implementers: each is planted into the plan of a kernel that passes.
#include <gtest/gtest.h>

#include <cstdio>
#include <regex>

#include "tests/Sample.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Mistakes.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

using codegen::Strategy;

struct Case {
  const char* problem;
  Strategy strategy;
  size_t number;
  std::string kind;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kind << " in " << c.problem; }

const std::pair<const char*, Strategy> kKernels[] = {
    {"layer_norm:forward@f32[*x40]", Strategy::Resident},
    {"layer_norm:backward@f32[*x40]", Strategy::Resident},
    {"layer_norm:forward@f32[*x4096]", Strategy::Split},
    {"batch_norm:forward@f32[*x40]{mask}", Strategy::Streamed},
    {"batch_norm:backward@f32[*x40]{mask}", Strategy::Streamed},
    {"batch_norm:backward@f32[*x40]", Strategy::Resident},
    {"batch_renorm:forward@f32[*x40]", Strategy::Streamed},
    {"batch_renorm:backward@f32[*x40]", Strategy::Streamed},
    {"power_norm:forward@f32[*x40]{mask}", Strategy::Streamed},
    {"power_norm:backward@f32[*x40]{mask}", Strategy::Streamed},
    {"power_norm_v:forward@f32[*x40]", Strategy::Resident},
    {"power_norm_v:backward@f32[*x40]", Strategy::Resident},
    {"mabn:forward@f32[*x40]", Strategy::Streamed},
    {"mabn:backward@f32[*x40]", Strategy::Streamed},
    {"group_norm_segment:forward@f32[*x*x40]{groups=4,mask}", Strategy::Resident},
    {"group_norm_segment:backward@f32[*x*x40]{groups=4,mask}", Strategy::Resident},
    {"adaptive_layer_norm_zero:backward@f32[*x*x40]", Strategy::Resident},
    {"gated_rms_norm:backward@f32[*x40]{groups=4}", Strategy::Resident},
    {"rms_norm_residual:backward@f32[*x40]", Strategy::Resident},
    {"qk_norm_rope:backward@f32[*x40]{heads=4}", Strategy::Resident},
};

/// Each mistake of each kernel. In the sample each kind meets each direction.
const Divided<Case>& allCases() {
  static const Divided<Case> all = [] {
    std::vector<Case> cases;
    for (const auto& [problem, strategy] : kKernels) {
      const std::vector<std::string> kinds = kindsOfMistakes(problemOf(problem), strategy);
      for (size_t i = 0; i < kinds.size(); ++i) cases.push_back({problem, strategy, i, kinds[i]});
    }
    return divided(cases, [](const Case& c) {
      return Properties{c.kind, isBackward(problemOf(c.problem).entry) ? "backward" : "forward"};
    });
  }();
  return all;
}

/// A reason why no call shows some mistakes, and which these are.
struct Excuse {
  const char *problem, *kind, *where;  ///< regular expressions
  const char* reason;
};
const Excuse kExcuses[] = {
    {".*", "SubtractedIsAdded|DifferenceIsForgotten", R"(arith\.subf (%\w+), \1 )",
     "it tests whether samples overflowed, which those of no trial do"},
    {".*", "ConditionIsIgnored", "arith.cmpf ord",
     "it tests whether samples overflowed, which those of no trial do"},
    {".*", "ConditionIsIgnored", R"(select %\w+, (%\w+), (%cst\w*) .* ogt, \1, \2 )",
     "a count is at least 1, or nothing is divided by it"},
    {".*", "ConditionIsNeverTrue", R"(select %\w+, (%cst\w*), (%\w+) .* ogt, \1, \2 )",
     "a variance is negative by a rounding at most"},
    {".*", "ConditionIsIgnored", R"(phase combine: %\w+ = arith\.select %\w+, %arg\d+, )",
     "any shift serves the first chunk, in f64"},
    {".*", "InputsAreSwapped", R"(norm\.sweep reads \[(.*@dy, @scale|@x, @work\.a, @bias))",
     "they enter as their product alone"},
    {"power_norm:backward.*", "PaddingIsCounted|ConditionIsIgnored", "phase finish",
     "without rows the sums are zero, and nu stays as it is"},
    {"mabn:.*", "LastStepIsLeftOut", "ole", "the window of 16 steps is full before the warmup ends"},
};

const char* excuseFor(const Case& c, const std::string& where) {
  for (const Excuse& excuse : kExcuses)
    if (std::regex_match(c.problem, std::regex(excuse.problem)) &&
        std::regex_match(c.kind, std::regex(excuse.kind)) &&
        std::regex_search(where, std::regex(excuse.where)))
      return excuse.reason;
  return nullptr;
}

class Mistakes : public testing::TestWithParam<Case> {};

TEST_P(Mistakes, AreFoundByTheGate) {
  const Problem problem = problemOf(GetParam().problem);
  std::string where;
  const auto kernel = compiledWithMistake(problem, GetParam().strategy, GetParam().number, where);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  std::vector<gate::Question> questions = standardQuestions(problem, *problem.features);
  if (const auto many = gate::trialOfManyTasks(*problem.features))
    for (gate::Question& question : questionsOf(problem, {*many})) questions.push_back(std::move(question));
  bool found = false;
  for (const gate::Question& question : questions) found = found || !kernel->judge(problem, question).ok;
  if (found) return;
  const char* excuse = excuseFor(GetParam(), where);
  EXPECT_TRUE(excuse) << where;
  if (excuse) std::printf("not found: %s; %s\n", excuse, where.c_str());
}

NORMC_INSTANTIATE_SAMPLE(Planted, Mistakes, allCases(), [](const auto& info) {
  return testName(std::string(info.param.problem) + "_" + codegen::name(info.param.strategy).str() + "_" +
                  info.param.kind + "_" + std::to_string(info.param.number));
});

}  // namespace
}  // namespace normc
