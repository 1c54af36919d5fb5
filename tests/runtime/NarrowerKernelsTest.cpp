// A plan that leaves rows open: which of its kernels a call runs, and what workspace is enough for.
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// y = factor x, so that results tell which kernel ran.
package::Kernel times(double factor, package::Limits limits = {}) {
  package::Kernel kernel = probe("features_last", false, false);
  kernel.scalars[0].value = factor;
  kernel.limits = limits;
  return kernel;
}

/// 2 for any number of rows, 3 for up to 64, 5 for 2 to 8.
host::Package three() {
  return openInMemory(
      packageOf({times(2), times(3, {.rowsMax = 64}), times(5, {.rowsMin = 2, .rowsMax = 8})}), context());
}

constexpr const char* kProblem = "probe:forward@f32[*x*]";

/// Returns the factor by which the plan multiplies this number of rows.
float factorOf(const Plan& plan, int64_t rows) {
  std::vector<float> x(rows * 3, 1), y(rows * 3);
  Call call;
  call.x = {x.data(), {rows, 3}}, call.y = {y.data(), {rows, 3}};
  plan(call);
  for (const float value : y) EXPECT_EQ(value, y[0]);
  return y.empty() ? 0 : y[0];
}

TEST(NarrowerKernels, ServeCallsOfTheirSizes) {
  const host::Package package = three();
  const Plan plan(package, kProblem);
  for (const auto& [rows, factor] :
       std::vector<std::pair<int64_t, float>>{{1, 3}, {2, 5}, {8, 5}, {9, 3}, {64, 3}, {65, 2}, {1000, 2}}) {
    EXPECT_EQ(factorOf(plan, rows), factor) << rows;
    EXPECT_EQ(factorOf(Plan(package, "probe:forward@f32[" + std::to_string(rows) + "x*]"), rows), factor)
        << "as with rows that are known";
    EXPECT_EQ(plan.kernel(Plan::sizes(1, rows, 3)), factor == 2 ? 0u : factor == 3 ? 1u : 2u);
  }
  EXPECT_EQ(factorOf(plan, 0), 0) << "no rows";
  EXPECT_EQ(plan.kernel(), 0u);
  EXPECT_EQ(Plan(package, "probe:forward@f32[70x*]").kernel(), 0u);
}

TEST(NarrowerKernels, AreDescribed) {
  const std::string text = Plan(three(), kProblem).describe();
  EXPECT_TRUE(has(text,
                  "chosen because: it is the only one that serves any number of rows\n"
                  "but for 2 to 8 rows: kernel 2, " +
                      hostIsa() +
                      ", by hand, scalar (default)\n"
                      "but for 0 to 64 rows: kernel 1, " +
                      hostIsa() + ", by hand, scalar (default)\n"))
      << text;
  EXPECT_FALSE(has(text, "rejected")) << text;
}

TEST(NarrowerKernels, AreLeftOutWhereOneKernelIsAskedFor) {
  const host::Package package = three();
  const Plan plan(package, kProblem, {.one_kernel = 1});
  for (const int64_t rows : {1, 2, 64, 65}) EXPECT_EQ(factorOf(plan, rows), 2);
  const std::string text = plan.describe();
  EXPECT_TRUE(has(text,
                  "rejected:\n"
                  "  kernel 2 (probe:forward@f32[*x*], " +
                      hostIsa() +
                      ", hand): serves 2 to 8 rows; the request asks for one kernel\n"
                      "  kernel 1 (probe:forward@f32[*x*], " +
                      hostIsa() + ", hand): serves 0 to 64 rows; the request asks for one kernel\n"))
      << text;
  EXPECT_EQ(Plan(package, "probe:forward@f32[2x*]", {.one_kernel = 1}).kernel(), 2u)
      << "one kernel serves all calls of two rows";
}

TEST(NarrowerKernels, ComeBehindExactFeatures) {
  package::Kernel exact = layerNorm("forward", 8), few = layerNorm("forward");
  few.limits.rowsMax = 4;
  const host::Package package = openInMemory(packageOf({few, exact}), context());
  const Plan plan(package, "layer_norm:forward@f32[*x8]");
  EXPECT_EQ(plan.kernel(Plan::sizes(1, 2, 8)), 1u);
  EXPECT_TRUE(has(plan.describe(), "kernel 0 (layer_norm:forward@f32[*x*], " + hostIsa() +
                                       ", hand): kernel 1 is compiled for exactly these features"));
}

TEST(NarrowerKernels, CountAllSegmentsAndOneSegmentsRows) {
  const auto kernel = [](double factor, package::Limits limits) {
    package::Kernel probed = probe("channels_first", true, false);
    probed.scalars[0].value = factor, probed.limits = limits;
    return probed;
  };
  const host::Package package =
      openInMemory(packageOf({kernel(2, {}), kernel(3, {.rowsMax = 1000, .runMin = 64})}), context());
  const Plan plan(package, "probe:forward@f32[*x*x*]{layout=channels_first}");
  EXPECT_TRUE(
      has(plan.describe(), "but for 0 to 1000 rows in segments of 64 to any number of rows: kernel 1,"));
  EXPECT_EQ(plan.kernel(Plan::sizes(2, 64, 5)), 1u);
  EXPECT_EQ(plan.kernel(Plan::sizes(2, 63, 5)), 0u) << "short runs";
  EXPECT_EQ(plan.kernel(Plan::sizes(16, 64, 5)), 0u) << "1024 rows";
  const Plan known(package, "probe:forward@f32[*x*x63]{layout=channels_first}");
  EXPECT_TRUE(has(known.describe(), "serves segments of 64 to any number of rows, not 63"))
      << "no call has sizes that it serves";
  const Plan many(package, "probe:forward@f32[*x*x2000]{layout=channels_first}");
  EXPECT_TRUE(has(many.describe(), "serves 0 to 1000 rows, not 2000 and more"));
}

TEST(NarrowerKernels, AreLeftOutIfTheyTakeOtherTensors) {
  package::Kernel other = layerNorm("forward");
  other.limits.rowsMax = 8;
  std::erase_if(other.operands, [](const package::Operand& operand) { return operand.name == "bias"; });
  const host::Package package = openInMemory(packageOf({layerNorm("forward"), other}), context());
  const Plan plan(package, "layer_norm:forward@f32[*x*]");
  EXPECT_EQ(plan.kernel(Plan::sizes(1, 2, 8)), 0u);
  EXPECT_TRUE(has(plan.describe(), ": serves 0 to 8 rows; takes other tensors than kernel 0\n"))
      << plan.describe();
}

TEST(NarrowerKernels, NeedNotHaveEveryNumberOfTheOther) {
  package::Kernel general = times(2);
  general.scalars.push_back({"stream_bytes", 100});
  const host::Package package = openInMemory(packageOf({general, times(3, {.rowsMax = 64})}), context());
  const auto with = [&](const char* name) {
    const normc_number numbers[] = {{name, 7}};
    return Plan(package, kProblem, {.numbers = numbers, .number_count = 1});
  };
  EXPECT_EQ(factorOf(with("stream_bytes"), 1), 3) << "it decides nothing there";
  const Plan both = with("factor");
  EXPECT_EQ(factorOf(both, 1), 7);
  EXPECT_EQ(factorOf(both, 65), 7) << "a number of the norm is one of each kernel";
  EXPECT_EQ(refusal([&] { with("colour"); }),
            "NOT_FOUND: probe:forward@f32[*x*] has no number 'colour'; it has: factor, masked, "
            "channels_first, stream_bytes");
}

TEST(NarrowerKernels, AreAskedAboutSizesOfThePlanAlone) {
  const Plan plan(three(), "probe:forward@f32[70x*]");
  size_t index;
  const normc_sizes sizes = Plan::sizes(1, 2, 3);
  EXPECT_EQ(refusal(normc_plan_kernel(plan.get(), &sizes, &index)),
            "FAILED_PRECONDITION: the call has 2 rows; this plan (probe:forward@f32[70x*]) is for 70");
}

TEST(NarrowerKernels, RefuseUnknownFields) {
  EXPECT_EQ(refusal([&] { Plan(standard(), kProblem, {.one_kernel = 2}); }),
            "INVALID_ARGUMENT: request.one_kernel is 2; it must be 0 or 1");
  EXPECT_EQ(refusal([&] { Plan(standard(), kProblem, {.reserved = 7}); }),
            "INVALID_ARGUMENT: request.reserved is 7; it must be 0");
}

/// Backward with the workspace of `most` rows, for each number of rows up to it.
void expectEnoughFor(int64_t most, const host::Package& package) {
  LayerNorm norm(most, 10, package);
  const std::vector<char> workspace = norm.workspace;
  for (int64_t rows = 0; rows <= most; ++rows) {
    LayerNorm fewer(rows, 10, package);
    fewer.forwardPlan(fewer.forward());
    Call call = fewer.backward();
    for (size_t behind = 0; behind < 64; behind += 9) {
      std::vector<char> memory(workspace.size() + behind);
      call.workspace = {memory.data() + behind, workspace.size()};
      EXPECT_EQ(refusal([&] { fewer.backwardPlan(call); }), "accepted") << rows << " of " << most << " rows";
    }
  }
}

TEST(NarrowerKernels, FindWorkspaceOfTheMostRowsEnough) {
  // 16 rows are cut into eight chunks of two, 17 into five of four.
  package::Kernel twos = layerNorm("backward");
  twos.phases[0].minUnits = 1;
  expectEnoughFor(17, openInMemory(packageOf({layerNorm("forward"), twos}), context()));
  // One row a chunk up to sixteen of them, then four.
  twos.phases[0].multiple = 1, twos.phases[0].maxChunks = 64, twos.phases[0].enoughUnits = 4;
  for (const int64_t most : {17, 40, 100})
    expectEnoughFor(most, openInMemory(packageOf({layerNorm("forward"), twos}), context()));
  // Up to nine rows a kernel has eight times the partials of that for more.
  package::Kernel few = layerNorm("backward"), many = layerNorm("backward");
  few.phases[0].minUnits = few.phases[0].multiple = 1, few.limits.rowsMax = 9;
  many.phases[0].minUnits = 1000;
  expectEnoughFor(40, openInMemory(packageOf({layerNorm("forward"), many, few}), context()));
}

TEST(NarrowerKernels, AskForNoWorkspaceThatOnlyMoreRowsNeed) {
  package::Kernel large = layerNorm("backward"), one = layerNorm("backward");
  one.phases[0].maxChunks = 1;
  large.limits.rowsMin = 100;
  const host::Package package = openInMemory(packageOf({one, large}), context());
  const Plan plan(package, "layer_norm:backward@f32[*x10]"),
      general(package, "layer_norm:backward@f32[*x10]", {.one_kernel = 1});
  EXPECT_EQ(plan.workspaceBytes(Plan::sizes(1, 99, 10)), general.workspaceBytes(Plan::sizes(1, 99, 10)));
  EXPECT_GT(plan.workspaceBytes(Plan::sizes(1, 100, 10)), general.workspaceBytes(Plan::sizes(1, 100, 10)));
}

}  // namespace
}  // namespace normc::test
