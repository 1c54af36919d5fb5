// Long runs and columns whose ends, or a row of each sequence, are unlike the rest: a shift that came from
// there would cost the variance its digits.
#include <gtest/gtest.h>

#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

struct Case {
  const char* problem;
  Extents extents;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " of " << c.extents.rows << " rows"; }

class Frames : public testing::TestWithParam<Case> {};

TEST_P(Frames, CostNoDigits) {
  const Problem problem = problemOf(GetParam().problem);
  const auto question =
      gate::questionFor(problem, {.extents = GetParam().extents, .data = HardInput::Framed, .step = 2});
  ASSERT_TRUE(question) << text(question.errors());
  for (const char* name : {"x86-64-v3", "host:zen4", "host:cove"}) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(name));
    for (codegen::Strategy strategy : codegen::cpu::strategies(problem)) {
      auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (const normc_plan* plan : kernel->plans->of(question->trial)) {
        const gate::Verdict verdict = gate::judge(plan, problem, *question);
        EXPECT_TRUE(verdict.ok) << name << " " << codegen::name(strategy).str() << " " << verdict.text;
        for (const auto& [output, error] : verdict.relativeError)
          if (output == "saved.rstd") EXPECT_LT(error, 2e-6) << name << " " << codegen::name(strategy).str();
      }
    }
  }
}
// The vectors that a shift samples depend on the length of a vector, so on the schedule.
TEST(FramedRows, CostNoDigitsWhateverTheLengthOfAVector) {
  const codegen::cpu::Isa isa = hostIsa();
  for (const int64_t lanes : {8, 16, 32})
    for (const int64_t vectors : {5, 7, 9, 12, 24, 31, 32, 33}) {
      const int64_t features = lanes * vectors + (vectors == 9);
      if (features < 128) continue;  // shorter rows have no frame
      const Problem problem = problemOf("layer_norm:forward@f32[*x" + std::to_string(features) + "]");
      codegen::cpu::Schedule schedule =
          codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Resident);
      schedule.vector = lanes, schedule.unroll = 1, schedule.rows = 2;
      if (codegen::cpu::whyIllegal(problem, schedule, isa)) {
        EXPECT_EQ(lanes, 32) << "the set has the other lengths";
        continue;
      }
      auto kernel = compiled(problem, schedule, isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      const auto question =
          gate::questionFor(problem, {.extents = {1, 33, features}, .data = HardInput::Framed});
      const gate::Verdict verdict = gate::judge(kernel->plan, problem, *question);
      EXPECT_TRUE(verdict.ok) << features << " by " << lanes << " " << verdict.text;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Problems, Frames,
    testing::Values(Case{"layer_norm:forward@f32[*x16384]", {1, 3, 16384}},
                    Case{"layer_norm:forward@f32[*x150528]", {1, 2, 150528}},
                    Case{"layer_norm:forward@f32[*x*]", {1, 2, 150528}},
                    Case{"layer_norm:forward@f32[*x*]", {1, 3, 1000}},
                    Case{"group_norm:forward@f32[*x508]{groups=4}", {1, 33, 508}},
                    Case{"instance_norm:forward@f32[*x3x*]{layout=channels_first}", {2, 50176, 3}},
                    Case{"instance_norm:forward@f32[*x*x24]", {2, 4096, 24}},
                    Case{"group_norm_segment:forward@f32[*x8x*]{groups=2,layout=channels_first}",
                         {2, 50176, 8}},
                    Case{"batch_norm:forward@f32[*x3x*]{layout=channels_first}", {2, 50176, 3}},
                    Case{"batch_norm:forward@f32[*x24]", {1, 1024, 24}},
                    Case{"batch_norm:forward@f32[*x300]", {1, 2048, 300}}));

}  // namespace
}  // namespace normc
