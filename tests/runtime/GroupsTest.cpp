// Features that do not make whole groups are refused wherever their number is first known.
#include <openssl/sha.h>

#include <cstring>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// A kernel for any number of features in eight groups.
package::Kernel inEightGroups(package::Kernel kernel) {
  kernel.problem += "{groups=8}";
  kernel.parts.bindings = {{"groups", 8}};
  kernel.featuresMultiple = 8;
  return kernel;
}

package::Kernel inferKernel() {
  package::Kernel kernel = probe("features_last", false, false);
  kernel.parts.entry = Entry::Infer;
  kernel.problem = "probe:infer@f32[*x*]";
  return inEightGroups(kernel);
}

const host::Package& grouped() {
  static const host::Package package =
      openInMemory(packageOf({inEightGroups(layerNorm("forward")), inEightGroups(layerNorm("backward")),
                              inferKernel(), inEightGroups(powerNorm("forward"))}),
                   context());
  return package;
}

std::string planned(const host::Package& package, const std::string& problem) {
  return refusal([&] { Plan(package, problem); });
}

TEST(Groups, APlanIsRefusedWhoseFeaturesTheyDoNotDivide) {
  for (const std::string problem : {"layer_norm:forward", "layer_norm:backward", "probe:infer"}) {
    EXPECT_EQ(planned(grouped(), problem + "@f32[*x60]{groups=8}"),
              "INVALID_ARGUMENT: problem '" + problem +
                  "@f32[*x60]{groups=8}': 60 features are no multiple of 8, "
                  "which its groups, pairs or blocks need");
    EXPECT_EQ(planned(grouped(), problem + "@f32[*x64]{groups=8}"), "accepted");
  }
}

TEST(Groups, AKernelForExactlyTheseFeaturesIsNotAskedForThem) {
  package::Kernel exact = layerNorm("forward", 60);
  exact.parts.bindings = {{"groups", 8}};
  const host::Package package =
      openInMemory(packageOf({inEightGroups(layerNorm("forward")), exact}), context());
  const Plan plan(package, "layer_norm:forward@f32[*x60]{groups=8}");
  EXPECT_EQ(plan.kernel(), 1u);
  EXPECT_TRUE(has(plan.describe(), ": is for multiples of 8 features, not 60")) << plan.describe();
}

constexpr const char* kForward =
    "INVALID_ARGUMENT: 60 features are no multiple of 8, which the groups, pairs or blocks of "
    "power_norm:forward@f32[*x*]{groups=8} need";

TEST(Groups, QueriesOfAnOpenPlanRefuseFeaturesTheyDoNotDivide) {
  const Plan plan(grouped(), "power_norm:forward@f32[*x*]{groups=8}");
  const normc_sizes odd = Plan::sizes(1, 4, 60), even = Plan::sizes(1, 4, 64);
  EXPECT_EQ(refusal([&] { plan.savedBytes(odd); }), kForward);
  EXPECT_EQ(refusal([&] { plan.savedFields(odd); }), kForward);
  EXPECT_EQ(refusal([&] { plan.workspaceBytes(odd); }), kForward);
  EXPECT_EQ(refusal([&] { plan.kernel(odd); }), kForward);
  EXPECT_EQ(refusal([&] { plan.stateBytes(60); }), kForward);
  EXPECT_EQ(refusal([&] { plan.stateFields(60); }), kForward);
  EXPECT_EQ(refusal([&] { State(plan, 60); }), kForward);
  std::vector<char> memory(4096);
  EXPECT_EQ(refusal(normc_plan_state_init(plan.get(), &odd, memory.data(), memory.size())), kForward);
  EXPECT_EQ(refusal([&] { plan.savedBytes(even), plan.workspaceBytes(even), State(plan, 64); }), "accepted");
  EXPECT_TRUE(has(plan.describe(), "features: multiples of 8\n")) << plan.describe();
}

/// Returns the error of a call of 4 rows; checks that nothing was written.
std::string executed(const std::string& problem, int64_t features) {
  const Plan plan(grouped(), problem);
  std::vector<float> x(4 * features, 1), out(4 * features, 7), vector(features, 1);
  const Tensor matrix(x.data(), {4, features}), written(out.data(), {4, features});
  Call call;
  std::vector<float> saved(64), workspace(1 << 14);
  call.x = matrix, call.workspace = workspace;
  if (has(problem, "backward")) {
    call.dy = matrix, call.dx = written, call.scale = {vector.data(), {features}};
    call.saved = host::Buffer(saved.data(), 128);
  } else {
    call.y = written;
    if (has(problem, "forward")) call.scale = call.bias = {vector.data(), {features}};
  }
  const std::string text = refusal([&] { plan(call); });
  EXPECT_EQ(out == std::vector<float>(4 * features, 7), text != "accepted") << problem;
  return text;
}

TEST(Groups, CallsOfAnOpenPlanRefuseFeaturesTheyDoNotDivide) {
  for (const std::string entry : {"layer_norm:forward", "layer_norm:backward", "probe:infer"}) {
    const std::string problem = entry + "@f32[*x*]{groups=8}";
    EXPECT_EQ(executed(problem, 60),
              "INVALID_ARGUMENT: 60 features are no multiple of 8, which the groups, "
              "pairs or blocks of " +
                  problem + " need");
    EXPECT_EQ(executed(problem, 64), "accepted");
  }
}

/// The package as if its manifest were from before there was the key: it has another name, of the same
/// length.
host::Package withoutTheKey(const package::Writer& writer) {
  std::string bytes = writer.bytes();
  const std::string key = "features_multiple", other = "features_multiply";
  for (size_t at = 0; (at = bytes.find(key, at)) != std::string::npos;) bytes.replace(at, key.size(), other);
  uint64_t length;
  std::memcpy(&length, bytes.data() + 16, sizeof length);
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()) + 64, length,
         reinterpret_cast<unsigned char*>(bytes.data()) + 24);
  return host::Package(context(), bytes.data(), bytes.size());
}

TEST(Groups, OfAPackageWithoutTheKeyAreWhatIsBound) {
  const host::Package bound = withoutTheKey(packageOf(inEightGroups(layerNorm("forward"))));
  EXPECT_TRUE(
      has(planned(bound, "layer_norm:forward@f32[*x60]{groups=8}"), "60 features are no multiple of 8"));
  EXPECT_EQ(planned(bound, "layer_norm:forward@f32[*x64]{groups=8}"), "accepted");
  const host::Package plain = withoutTheKey(packageOf(layerNorm("forward")));
  EXPECT_EQ(planned(plain, "layer_norm:forward@f32[*x60]"), "accepted");
}

}  // namespace
}  // namespace normc::test
