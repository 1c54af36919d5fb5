// Pairs of features that are turned behind each kind of statistic, alone and beside what else surrounds a
// norm, judged by the gate. Random specs mix them further.
#include <gtest/gtest.h>

#include "codegen/plan/Planner.h"
#include "tests/Sample.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

using codegen::Strategy;

struct Norm {
  const char *name, *text, *shape, *options;
};
struct Turn {
  const char *name, *text;
};

using Case = std::tuple<Norm, Turn, std::string>;  ///< and the entry and the type

class Rope : public testing::TestWithParam<Case> {};

TEST_P(Rope, PassesTheGate) {
  const auto& [norm, turn, call] = GetParam();
  const auto problem = problemWith(norm.text, turn.text, ":" + call + norm.shape + norm.options);
  ASSERT_TRUE(problem);
  const auto strategies = codegen::cpu::strategies(*problem);
  EXPECT_FALSE(strategies.empty());
  for (const Strategy strategy : strategies)
    expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy));
}

// Runs of 40 features end inside vectors, those of 64 do not; 8 of 24 are shorter than some vectors.
const Norm kNorms[] = {{"Rms", "rms_norm", "[*x192]", ""},
                       {"Layer", "layer_norm", "[*x*x120]", "{mask}"},
                       {"Heads", "group_norm", "[*x*x120]", "{groups=3}"},
                       {"Batch", "batch_norm", "[*x192]", "{mask}"},
                       {"Power", "power_norm", "[*x*x48]", ""},
                       {"GroupsOfSegments", "group_norm_segment", "[*x*x192]", "{groups=3}"}};
const Turn kTurns[] = {{"Half", "rope half(groups = 3)"},
                       {"Interleaved", "rope interleaved(groups = 3)"},
                       {"FirstHalves", "rope half(groups = 3, features = 8)"},
                       {"FirstInterleaved", "rope interleaved(groups = 3, features = 6); residual before"},
                       {"Among",
                        "modulate scale, shift, per = row; rope half(groups = 6); gate silu; residual after; "
                        "activation tanh"}};

const char* const kCalls[] = {"forward@f32", "backward@f32", "infer@bf16", "backward@bf16", "forward@f64"};

/// In the sample each norm meets each turn and each call, and these each other.
Divided<Case> cases() {
  std::vector<Case> all;
  for (const Norm& norm : kNorms)
    for (const Turn& turn : kTurns)
      for (const char* call : kCalls) all.push_back({norm, turn, call});
  return divided(all, [](const Case& c) {
    return Properties{std::get<0>(c).name, std::get<1>(c).name, std::get<2>(c)};
  });
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  const auto& [norm, turn, call] = info.param;
  return testName(std::string(norm.name) + turn.name + "_" + call);
}
NORMC_INSTANTIATE_SAMPLE(Norms, Rope, cases(), caseName);

TEST(Rope, ServesAnyNumberOfFeatures) {
  for (const char* turn : {"rope half(groups = 2)", "rope interleaved"})
    for (const char* entry : {":forward@f32[*x*]", ":backward@f32[*x*]"}) {
      const auto problem = problemWith("rms_norm", turn, entry);
      ASSERT_TRUE(problem);
      expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident));
    }
}

/// Behind an infinity a pair that is turned by nothing has a gradient of NaN, as 0 times an infinity is; what
/// is not turned has its own gradient.
TEST(Rope, TellsAnAngleOfZeroFromAFeatureThatIsNotTurned) {
  const auto judge = [](const std::string& turn, int64_t features) {
    const auto problem =
        problemWith("batch_norm", "divide_by running; backward frozen; activation sigmoid; rope " + turn,
                    ":backward@f32[*x" + std::to_string(features) + "]");
    ASSERT_TRUE(problem);
    const auto kernel = compiled(
        *problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Streamed), hostIsa(), 1);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (const uint64_t seed : {1, 2, 3}) {
      const auto question = gate::questionFor(
          *problem, {.extents = {1, 33, features}, .data = HardInput::WithInfinity, .step = 3, .seed = seed});
      ASSERT_TRUE(question) << normc::text(question.errors());
      const gate::Verdict verdict = kernel->judge(*problem, *question);
      EXPECT_TRUE(verdict.ok) << problem->text() << ", rope " << turn << ": " << verdict.text;
    }
  };
  for (const std::string pairs : {"half", "interleaved"}) {
    judge(pairs + "(groups = 4, features = 4)", 16);   // all of them
    judge(pairs + "(groups = 2, features = 4)", 20);   // vectors cross runs
    judge(pairs + "(groups = 2, features = 6)", 96);   // vectors of turned and other features
    judge(pairs + "(groups = 2, features = 32)", 96);  // vectors of one kind
  }
}

TEST(Rope, StandsBeforeCodes) {
  for (const char* codes : {"quantize int8", "quantize e4m3(per = block, size = 12)"}) {
    const auto problem =
        problemWith("rms_norm", std::string("rope half(groups = 2); ") + codes, ":forward@f32[*x96]");
    ASSERT_TRUE(problem);
    expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident));
  }
}

/// A call of two rows of 8 features, that are 4 pairs.
struct TwoRows {
  std::vector<float> x = std::vector<float>(16, 1), y = x, cos = x, sin = x;
  int64_t shape[2] = {2, 8}, pairs[2] = {2, 4}, strides[2] = {4, 1};
  DLTensor xs = view(x, shape), ys = view(y, shape), coss = view(cos, pairs), sins = view(sin, pairs);

  static DLTensor view(std::vector<float>& values, int64_t* shape) {
    return {values.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  }
  std::string run(const normc_plan* plan) {
    normc_args args = {};
    args.struct_size = sizeof args;
    args.x = &xs, args.y = &ys, args.rope_cos = &coss, args.rope_sin = &sins;
    return normc_execute(plan, &args) == NORMC_OK ? "" : normc_last_error();
  }
};

TEST(Rope, ChecksItsTables) {
  const auto problem = problemWith("rms_norm", "affine none; rope half", ":infer@f32[*x8]");
  ASSERT_TRUE(problem);
  const auto schedule = codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident);
  const auto kernel = compiled(*problem, schedule, hostIsa(), 1);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_EQ(TwoRows().run(kernel->plan), "");
  TwoRows wide;
  wide.pairs[1] = 8;
  EXPECT_EQ(
      wide.run(kernel->plan),
      "rope_cos must have the shape of x with pairs in place of features, 2 rows of 4; it has 16 elements "
      "in 2 dimensions");
  TwoRows apart;
  apart.strides[1] = 2, apart.sins.strides = apart.strides;
  EXPECT_EQ(apart.run(kernel->plan),
            "rope_sin has stride 2 in dimension 1, along its pairs; it must be 1 there");
  TwoRows shared;  // one row of the tables for both
  shared.strides[0] = 0, shared.sins.strides = shared.coss.strides = shared.strides;
  EXPECT_EQ(shared.run(kernel->plan), "");
  TwoRows without;
  const auto run = [&](const DLTensor* cos) {
    normc_args args = {};
    args.struct_size = sizeof args;
    args.x = &without.xs, args.y = &without.ys, args.rope_cos = cos, args.rope_sin = &without.sins;
    return normc_execute(kernel->plan, &args) == NORMC_OK ? "" : normc_last_error();
  };
  EXPECT_STREQ(run(nullptr), "rope_cos is null; n:infer@f32[*x8] needs it");
}

TEST(Rope, DescribesItsTablesAlone) {
  const auto problem =
      problemWith("rms_norm", "affine none; rope half(groups = 2, features = 8)", ":infer@f32[*x24]");
  ASSERT_TRUE(problem);
  const auto schedule = codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident);
  const auto kernel = compiled(*problem, schedule, hostIsa(), 1);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  std::string described;
  for (size_t i = 0;; ++i) {
    normc_tensor_info info = {};
    info.struct_size = sizeof info;
    if (normc_plan_tensor_info(kernel->plan, i, &info) != NORMC_OK) break;
    described +=
        std::string(info.name) + " " + std::to_string(info.runs) + " " + std::to_string(info.pairs) + ", ";
  }
  EXPECT_EQ(described, "x 0 0, y 0 0, rope_cos 2 4, rope_sin 2 4, ");
}

/// A feature is read again after its mate was written.
TEST(Rope, SharesNoMemoryOfInputAndOutput) {
  const auto problem = problemWith("rms_norm", "affine none; rope half", ":infer@f32[*x8]");
  ASSERT_TRUE(problem);
  const auto schedule = codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident);
  const auto kernel = compiled(*problem, schedule, hostIsa(), 1);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  TwoRows call;
  call.ys.data = call.xs.data;
  EXPECT_EQ(call.run(kernel->plan), "y is written and overlaps x; they must lie in different memory");
}

TEST(Rope, SaysWhatNoStrategyDoes) {
  const auto problem = problemWith("instance_norm", "rope half", ":forward@f32[*x*x96]");
  ASSERT_TRUE(problem);
  EXPECT_EQ(
      codegen::whyNoStrategy(*problem).value_or(""),
      "the two features of a pair that 'rope' turns have statistics of their own in each segment: reduce "
      "rows, features or segment_features");
  const auto rows = problemWith("rms_norm", "rope half", ":forward@f32[*x96]");
  ASSERT_TRUE(rows);
  EXPECT_EQ(codegen::whyIllegal(*rows, Strategy::Split).value_or(""),
            "'rope' turns pairs of features, of which a task may have one: strategy resident");
  const auto batch = problemWith("batch_norm", "rope half", ":forward@f32[*x96]");
  ASSERT_TRUE(batch);
  EXPECT_EQ(codegen::whyIllegal(*batch, Strategy::Resident).value_or(""),
            "'rope' turns pairs of features, of which a column slab has one: strategy streamed");
}

}  // namespace
}  // namespace normc
