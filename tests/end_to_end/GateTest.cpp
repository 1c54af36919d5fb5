// The requirements of the gate on kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "dsl/Numbers.h"
#include "dsl/Tolerance.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

/// The problem compiled with its default.
std::unique_ptr<Compiled> byDefault(const Problem& problem) {
  const codegen::Strategy strategy = codegen::cpu::strategies(problem).front();
  return compiled(problem, codegen::cpu::defaultSchedule(problem, hostIsa(), strategy), hostIsa());
}

TEST(Gate, TimedStepsAreBehindEveryLimit) {
  const auto behind = [](Spec spec) {
    Problem problem = problemOf("batch_norm:forward@f32[*x64]");
    problem.spec = std::make_shared<const Spec>(std::move(spec));
    return gate::stepsBehindLimits(problem);
  };
  Spec spec = *problemOf("power_norm:forward@f32[*x64]").spec;
  EXPECT_EQ(behind(spec), 1);
  spec.warmup = Spec::Warmup{.steps = 20000};
  EXPECT_EQ(behind(spec), 20001);
  spec.divideBy = DivideBy::Window, spec.window.size = 30000;
  EXPECT_EQ(behind(spec), 30001);
}

std::set<int64_t> rowsAsked(int64_t features) {
  std::set<int64_t> rows;
  for (const gate::Trial& trial : gate::standardTrials(problemOf("layer_norm:backward@f32[*x*]"), features))
    rows.insert(trial.extents.rows);
  return rows;
}

TEST(Gate, AsksFewerRowsOfVeryLongOnes) {
  EXPECT_EQ(rowsAsked(1024), (std::set<int64_t>{0, 1, 3, 5, 21, 33, 129}));
  EXPECT_EQ(rowsAsked(65536), (std::set<int64_t>{0, 1, 3, 5, 16}))
      << "a million elements keep the reference busy enough";
  EXPECT_EQ(*rowsAsked(int64_t(1) << 24).rbegin(), 5) << "but never fewer than five";
}

TEST(Gate, TriesEachNumberWithAValueOfItsOwn) {
  for (const std::string& text : problemsOf({.features = 64})) {
    const Problem problem = problemOf(text);
    const std::vector<gate::Trial> trials = gate::trialsOfNumbers(problem, *problem.features);
    ASSERT_FALSE(trials.empty()) << text;
    const gate::Numbers& tried = trials.front().numbers;
    std::set<double> values;
    for (const Number& number : numbers(*problem.spec, DType::F32)) {
      SCOPED_TRACE(text + ", " + number.name);
      const double value = tried.at(number.name);
      const NumberRange& legal = number.legal;
      EXPECT_NE(value, number.value);
      EXPECT_TRUE(values.insert(value).second);
      EXPECT_TRUE(value >= legal.least && value > legal.above && value < legal.below);
      EXPECT_TRUE(!legal.whole || value == std::floor(value));
    }
    EXPECT_EQ(values.size(), tried.size()) << text;
    for (const gate::Trial& trial : trials) EXPECT_EQ(trial.numbers, tried) << text;
  }
}

TEST(Gate, RefusesAPlanWithOtherNumbersThanTheTrial) {
  const Problem problem = problemOf("layer_norm:forward@f32[*x64]");
  const auto kernel = byDefault(problem);
  ASSERT_EQ(kernel->error, "");
  const gate::Trial trial = gate::trialsOfNumbers(problem, 64).front();
  const gate::Verdict verdict = gate::judge(kernel->plan, problem, trial);
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.text,
            "layer_norm:forward@f32[*x64] on 33x64 normal step=3 epsilon=0.25 seed=43: the plan's "
            "epsilon is not that of the trial");
  EXPECT_EQ(kernel->judge(problem, trial).text, "");
}

ReferenceCall argumentsOf(const std::string& problem, const gate::Trial& trial) {
  auto arguments = gate::argumentsFor(problemOf(problem), trial);
  if (!arguments) throw std::runtime_error(text(arguments.errors()));
  return *arguments;
}

TEST(Gate, FillsTheTensorsAroundANorm) {
  const gate::Trial trial{.extents = {1, 5, 64}, .data = HardInput::Mean1000};
  const ReferenceCall call = argumentsOf("rms_norm_residual:backward@bf16[*x64]", trial);
  ASSERT_EQ(call.residualOut.size(), call.x.size());
  for (size_t i = 0; i < call.x.size(); ++i) {
    EXPECT_NEAR(call.residual[i], 1000, 20) << "as hard as x";
    EXPECT_EQ(call.residualOut[i], round(call.x[i] + call.residual[i], DType::BF16))
        << "as forward stores it";
  }
  EXPECT_EQ(call.dresidualOut.size(), call.x.size());
  EXPECT_TRUE(argumentsOf("rms_norm_residual:forward@bf16[*x64]", trial).dresidualOut.empty());
  gate::Trial without = trial;
  without.placement.leaveOut = {"dresidual_out"};
  EXPECT_TRUE(argumentsOf("rms_norm_residual:backward@bf16[*x64]", without).dresidualOut.empty());

  const gate::Trial segments{.extents = {3, 5, 64}};
  const ReferenceCall modulated = argumentsOf("adaptive_layer_norm_zero:forward@f32[*x*x64]", segments);
  for (const auto* vectors : {&modulated.gate, &modulated.modScale, &modulated.modShift})
    EXPECT_EQ(vectors->size(), 3u * 64);
}

TEST(Gate, HasLargeGatesOfBothSignsAndZeros) {
  const auto range = [](const char* problem, HardInput data) {
    const auto gates = argumentsOf(problem, {.extents = {1, 33, 64}, .data = data}).gate;
    EXPECT_NE(std::count(gates.begin(), gates.end(), 0), 0);
    const auto [least, most] = std::minmax_element(gates.begin(), gates.end());
    return std::pair(*least, *most);
  };
  EXPECT_EQ(range("delta_gated_rms_norm:forward@f32[*x64]", HardInput::Normal), (std::pair{-100., 100.}));
  EXPECT_EQ(range("delta_gated_rms_norm:forward@f16[*x64]", HardInput::Normal), (std::pair{-30., 30.}));
  EXPECT_LE(range("gated_rms_norm:forward@f16[*x64]{groups=4}", HardInput::Mean1e4).second, 5)
      << "what is normalized has to be finite in f16";
}

TEST(Gate, SpoilsThePaddedRowsOfEveryTensor) {
  const gate::Trial trial{.extents = {1, 9, 64}, .mask = HardMask::Scattered, .nanPadding = true};
  const ReferenceCall call = argumentsOf("rms_norm_residual:backward@f32[*x64]{mask}", trial);
  ASSERT_NE(std::count(call.mask.begin(), call.mask.end(), 0), 0);
  for (const Tensor tensor : {kX, kDy, kResidual, kResidualOut, kDresidualOut}) {
    const std::vector<double>& values = *valuesOf(call, tensor);
    ASSERT_EQ(values.size(), call.x.size()) << name(tensor);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(std::isnan(values[i]), !call.mask[i / 64]) << name(tensor) << ", " << i;
  }
  for (const double scale : call.scale) EXPECT_FALSE(std::isnan(scale));
}

TEST(Gate, LeavesOutWhatTheNormHas) {
  std::set<std::string> left;
  for (const gate::Trial& trial :
       gate::standardTrials(problemOf("adaptive_layer_norm_zero:backward@f32[*x*x64]"), 64))
    left.insert(trial.placement.leaveOut.begin(), trial.placement.leaveOut.end());
  EXPECT_EQ(left, (std::set<std::string>{"dgate", "dmod_scale", "dmod_shift", "dresidual", "dresidual_out",
                                         "dx", "state_out"}));
}

TEST(Gate, FindsAnInputThatACallWrites) {
  const Problem problem = problemOf("layer_norm:forward@f32[*x64]");
  const auto kernel = byDefault(problem);
  ASSERT_EQ(kernel->error, "");
  const gate::Trial trial{.extents = {1, 5, 64}};
  const auto faultOf = [&](const DLTensor* normc_args::* tensor, const gate::Placement& placement) {
    const ReferenceCall arguments = *gate::argumentsFor(problem, trial);
    gate::Call call(kernel->plan, problem, arguments, placement);
    return call
        .run([&](const normc_plan* plan, const normc_args* args) {
          const normc_status status = normc_execute(plan, args);
          if (tensor) static_cast<float*>((args->*tensor)->data)[3] = 7;
          return status;
        })
        .fault;
  };
  EXPECT_EQ(faultOf(nullptr, {}), "");
  EXPECT_EQ(faultOf(nullptr, {.inPlace = true}), "");
  EXPECT_EQ(faultOf(&normc_args::x, {}), "x was written, which is an input; ");
  EXPECT_EQ(faultOf(&normc_args::bias, {.inPlace = true}), "bias was written, which is an input; ");
}

TEST(Gate, MissesAnOutputThatTheKernelDoesNotHave) {
  const auto problemOfBackward = [](const std::string& form) {
    return *problemWith("power_norm_v", "epsilon 1e-5 (mode = outside); backward " + form,
                        ":forward@f32[*x64]");
  };
  const Problem frozen = problemOfBackward("frozen"), exact = problemOfBackward("exact");
  const auto kernel = byDefault(frozen);
  ASSERT_EQ(kernel->error, "");
  const gate::Trial trial{.extents = {1, 5, 64}};
  EXPECT_EQ(gate::judge(kernel->plan, frozen, trial).text, "");
  const gate::Verdict verdict = gate::judge(kernel->plan, exact, trial);
  EXPECT_FALSE(verdict.ok);
  EXPECT_NE(verdict.text.find("the kernel has no output saved.second_moment"), std::string::npos)
      << verdict.text;
}

TEST(Gate, AGuardThatIsReadShowsInASum) {
  for (const DType type : {DType::F32, DType::BF16}) {
    const gate::Storage memory(256, 0);
    const double behind = memory.get(type, 256 / bytes(type));
    EXPECT_TRUE(std::abs(behind) > 1e38) << behind;
  }
}

}  // namespace
}  // namespace normc
