// The Halide generator as a second opinion: random specs by reference, MLIR and Halide;
// shapes at every edge of its loops; the same bits for any number of threads; AArch64 under qemu-user.
#include <gtest/gtest.h>

#include <random>

#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Schedule.h"
#include "dsl/Print.h"
#include "dsl/Tolerance.h"
#include "runtime/abi/Sums.h"
#include "tests/Sample.h"
#include "tests/end_to_end/AArch64Run.h"
#include "tests/end_to_end/Drawn.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

using codegen::halide::Schedule;

template <typename Case>
class WithHalide : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto target = codegen::halide::findTarget("host");
    if (!target) GTEST_SKIP() << llvm::toString(target.takeError());
  }
};
using HalideAgreement = WithHalide<int>;

codegen::TargetPtr halideFor(const codegen::cpu::Isa& isa) {
  return llvm::cantFail(codegen::halide::findTarget(isa.name));
}

/// Any legal schedule of the strategy.
Schedule draw(uint64_t seed, const Problem& problem, const codegen::cpu::Isa& isa,
              codegen::Strategy strategy) {
  std::mt19937_64 random(seed);
  const int64_t lanes = isa.vectorBytes / bytes(problem.statistics());
  for (int tries = 0; tries < 10000; ++tries) {
    Schedule s{.strategy = strategy};
    s.vector = lanes >> random() % 3;
    s.rows = int64_t(1) << random() % 4;
    s.unroll = int64_t(1) << random() % 3;
    s.tile = int64_t(1) << random() % 3;
    s.columns = int64_t(16) << random() % 4;
    s.grain = random() % 2 ? 5 : 32;
    s.scalarTail = random() % 2;
    if (!codegen::halide::whyIllegal(problem, s, isa)) return s;
  }
  ADD_FAILURE() << "no schedule of " << problem.text() << " is legal";
  return {.strategy = strategy};
}

void agree(int seed, std::optional<Entry> only = {}) {
  const auto isa = seed % 2 ? hostIsa() : llvm::cantFail(codegen::cpu::findIsa("x86-64-v3"));
  Drawn d = normc::draw(uint64_t(7000 + seed), isa, only);
  for (uint64_t next = 9000; codegen::halide::whyIllegal(d.problem); ++next)
    d = normc::draw(next + uint64_t(1000 * seed), isa, only);
  const auto strategies = codegen::legalStrategies(d.problem);  // MLIR's may be another one
  const bool shared = llvm::is_contained(strategies, d.schedule.strategy);
  const Schedule schedule =
      draw(uint64_t(seed), d.problem, isa, shared ? d.schedule.strategy : strategies.front());
  SCOPED_TRACE(print(*d.problem.spec) + d.problem.text() + " " + schedule.text() + " " + isa.name.str());
  const auto kernel = compiled(d.problem, halideFor(isa), schedule.text());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Question& question : standardQuestions(d.problem, d.features)) {
    const gate::Verdict verdict = kernel->judge(d.problem, question);
    ASSERT_TRUE(verdict.ok) << verdict.text;
  }
}

class HalideRandomSpecs : public HalideAgreement {};
class HalideRandomGradientsOfInference : public HalideAgreement {};
TEST_P(HalideRandomSpecs, AgreeWithTheReference) { agree(GetParam()); }
TEST_P(HalideRandomGradientsOfInference, AgreeWithTheReference) { agree(GetParam(), Entry::InferBackward); }
INSTANTIATE_TEST_SUITE_P(Seeds, HalideRandomGradientsOfInference, testing::Range(0, 12));
INSTANTIATE_TEST_SUITE_P(Seeds, HalideRandomSpecs, testing::Range(0, 30));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, HalideRandomGradientsOfInference, testing::Range(12, 60));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, HalideRandomSpecs, testing::Range(30, 120));
/// An infinity in a window of geometric means, which a logarithm lost.
INSTANTIATE_TEST_SUITE_P(Found, HalideRandomSpecs, testing::Values(100));

/// Two levels of sums, several tiles of columns, rests of everything.
constexpr int kEdges[] = {1, 7, 65, 1023, 1040, 4099};

/// A norm, an entry, and a number of features, or "*" for a kernel that serves all of them.
using Edge = std::tuple<std::string, std::string, std::string>;

class HalideShapes : public WithHalide<Edge> {};

TEST_P(HalideShapes, AreRightAtEveryEdge) {
  const auto& [norm, entry, number] = GetParam();
  const Problem problem = problemOf(norm + ":" + entry + "@f32[*x" + number + "]");
  std::map<std::string, std::unique_ptr<Compiled>> kernels;  // by schedule
  for (codegen::Strategy strategy : codegen::legalStrategies(problem)) {
    const std::string schedule = codegen::halide::defaultSchedule(problem, hostIsa(), strategy).text();
    auto& kernel = kernels[schedule] = compiled(problem, halideFor(hostIsa()), schedule);
    ASSERT_TRUE(kernel->plan) << kernel->error;
  }
  for (int64_t features : kEdges)
    for (int64_t rows : {1, 3, 35, 337}) {
      if (problem.features.value_or(features) != features) continue;
      if (rows * features > 500000) continue;  // the reference takes its time
      const auto question = gate::questionFor(problem, {.extents = {1, rows, features}, .step = 3});
      ASSERT_TRUE(question) << text(question.errors());
      for (const auto& [schedule, kernel] : kernels) {
        const gate::Verdict verdict = gate::judge(kernel->plan, problem, *question);
        EXPECT_TRUE(verdict.ok) << schedule << " " << verdict.text;
      }
    }
}

/// In the sample each number of features meets each norm and each entry, and these each other.
Divided<Edge> edges() {
  std::vector<std::string> numbers{"*"};
  for (int features : kEdges) numbers.push_back(std::to_string(features));
  std::vector<Edge> all;
  for (const std::string& number : numbers)
    for (const char* norm : {"layer_norm", "batch_norm", "power_norm"})
      for (const char* entry : {"forward", "backward"}) all.push_back({norm, entry, number});
  return divided(all,
                 [](const Edge& e) { return Properties{std::get<0>(e), std::get<1>(e), std::get<2>(e)}; });
}
std::string edgeName(const testing::TestParamInfo<Edge>& info) {
  const auto& [norm, entry, number] = info.param;
  return norm + "_" + entry + "_" + (number == "*" ? "any" : number);
}
NORMC_INSTANTIATE_SAMPLE(Norms, HalideShapes, edges(), edgeName);

class HalideTallTensors : public HalideAgreement {};

/// Hundreds of rows in a task: their sums must not lose digits.
TEST_P(HalideTallTensors, KeepTheirDigits) {
  static constexpr const char* problems[] = {"batch_norm:forward@f32[*x6]", "batch_norm:backward@f32[*x6]",
                                             "power_norm:forward@f32[*x6]", "layer_norm:backward@f32[*x6]"};
  const Problem problem = problemOf(problems[GetParam()]);
  for (codegen::Strategy strategy : codegen::legalStrategies(problem)) {
    auto kernel = compiled(problem, halideFor(hostIsa()),
                           codegen::halide::defaultSchedule(problem, hostIsa(), strategy).text());
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (HardInput data : {HardInput::Normal, HardInput::Mean1000}) {
      const gate::Verdict verdict =
          gate::judge(kernel->plan, problem, {.extents = {1, 150001, 6}, .data = data, .step = 3});
      EXPECT_TRUE(verdict.ok) << codegen::name(strategy).str() << " " << verdict.text;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Norms, HalideTallTensors, testing::Range(0, 4));

class HalideLongSums : public HalideAgreement {};

/// The longest legal chains of terms. The data are on a grid, so that rounding errors do not cancel.
TEST_P(HalideLongSums, AreRight) {
  const Problem problem = problemOf("batch_norm:forward@f32[*x64]");
  Schedule schedule = codegen::halide::defaultSchedule(problem, hostIsa(), codegen::Strategy::Streamed);
  schedule.rows = GetParam(), schedule.grain = kLongestChain * schedule.rows;
  auto kernel = compiled(problem, halideFor(hostIsa()), schedule.text());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (int64_t rows : {512, 1000, 5000})
    for (HardInput data : {HardInput::Normal, HardInput::OutlierRow}) {
      const gate::Verdict verdict =
          gate::judge(kernel->plan, problem, {.extents = {1, rows, 64}, .data = data});
      EXPECT_TRUE(verdict.ok) << schedule.text() << " " << verdict.text;
    }
}
TEST_P(HalideLongSums, OfWholeColumnsKeepTheirDigitsWithAnOutlier) {
  const Problem problem = problemOf("batch_norm:forward@f32[*x24]");
  Schedule schedule = codegen::halide::defaultSchedule(problem, hostIsa(), codegen::Strategy::Resident);
  schedule.rows = GetParam();
  auto kernel = compiled(problem, halideFor(hostIsa()), schedule.text());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (int64_t rows : {1029, 40000}) {  // no whole number of anything; with the third level
    const gate::Verdict verdict = gate::judge(
        kernel->plan, problem, {.extents = {1, rows, 24}, .data = HardInput::OutlierRow, .step = 2});
    EXPECT_TRUE(verdict.ok) << schedule.text() << " " << verdict.text;
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, HalideLongSums, testing::Values(1, 2, 8));

class HalideDeterminism : public HalideAgreement {};

TEST_P(HalideDeterminism, HoldsForAnyNumberOfThreads) {
  static constexpr const char* problems[] = {"layer_norm:backward@f32[*x64]", "batch_norm:forward@f32[*x64]",
                                             "power_norm:backward@f32[*x64]",
                                             "power_norm_released:backward@f32[*x64]{heads=4}"};
  const Problem problem = problemOf(problems[GetParam()]);
  const Schedule schedule =
      codegen::halide::defaultSchedule(problem, hostIsa(), codegen::legalStrategies(problem).front());
  const gate::Trial trial{.extents = {1, 1029, *problem.features}, .step = 3};
  auto arguments = gate::argumentsFor(problem, trial);
  ASSERT_TRUE(arguments);
  auto outputs = [&](int threads) {
    auto kernel = compiled(problem, halideFor(hostIsa()), schedule.text(), threads);
    const auto result = gate::Call(kernel->plan, problem, *arguments, trial.placement).run();
    EXPECT_EQ(result.fault, "");
    return result.outputs;
  };
  const auto alone = outputs(1);
  ASSERT_FALSE(alone.empty());
  for (int threads : {2, 7}) EXPECT_EQ(outputs(threads), alone) << threads << " threads";
}

INSTANTIATE_TEST_SUITE_P(Norms, HalideDeterminism, testing::Range(0, 4));

class HalideAArch64 : public HalideAgreement {};

TEST_P(HalideAArch64, AgreesWithTheReferenceUnderQemu) {
  static constexpr const char* problems[] = {
      "layer_norm:backward@f32[*x100]",     "layer_norm:forward@bf16[*x35]",  "power_norm:backward@f16[*x64]",
      "batch_norm:forward@f32[*x72]{mask}", "unified_norm:forward@f32[*x12]", "power_norm:infer@f64[*x20]"};
  const Problem problem = problemOf(problems[GetParam()]);
  const codegen::TargetPtr target = llvm::cantFail(codegen::halide::findTarget("aarch64"));
  const AArch64Kernel kernel(problem, *target);
  for (int64_t rows : {0, 1, 37}) {
    const gate::Trial trial{
        .extents = {1, rows, *problem.features}, .step = rows, .seed = uint64_t(rows) + 1};
    SCOPED_TRACE(problem.text() + " on " + trial.text(problem));
    auto arguments = gate::argumentsFor(problem, trial);
    ASSERT_TRUE(arguments) << text(arguments.errors());
    auto want = evaluate(problem, *arguments);
    ASSERT_TRUE(want) << text(want.errors());
    const AArch64Result got = kernel.run(*arguments);
    ASSERT_EQ(got.fault, "");
    for (const auto& [output, values] : got.outputs) {
      const Agreement agreement =
          compare(want->outputs.at(output), values, toleranceOf(problem, output, trial.extents));
      EXPECT_TRUE(agreement.ok) << output << ": " << agreement.text;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, HalideAArch64, testing::Range(0, 6));

}  // namespace
}  // namespace normc
