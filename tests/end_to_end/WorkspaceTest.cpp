// Workspace of calls that leave outputs out.
#include <gtest/gtest.h>

#include "codegen/Package.h"
#include "runtime/normc.hpp"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

TEST(Workspace, ForAnOutputThatIsLeftOutIsALineAndSixteenMebibytesAtMost) {
  const std::string text = "batch_norm:backward@f32[*x*x*]{layout=channels_first}";
  const std::string bytes = llvm::cantFail(codegen::buildPackage(
      codegen::defaultJobs(problemOf(text), llvm::cantFail(codegen::findTarget("host")))));
  host::Context context;
  const host::Plan plan(host::Package(context, bytes.data(), bytes.size()), text);
  constexpr int64_t kLine = int64_t(2097152) * 4, kMost = 16 << 20, kOfFeatures = 1 << 20;
  EXPECT_LT(plan.workspaceBytes(host::Plan::sizes(1, 2097152, 32)), kLine + kMost + kOfFeatures);
  EXPECT_LT(plan.workspaceBytes(host::Plan::sizes(1, 16 * 2097152, 32)), 16 * kLine + kMost + kOfFeatures);
}

TEST(Workspace, OfTasksOverlapsWhereLinesAreLongAndOtherOutputsAreTheSame) {
  constexpr int64_t kRows = 10, kFeatures = (1 << 20) + 3;
  const std::string text = "layer_norm:backward@f32[*x*]";
  const std::string bytes = llvm::cantFail(codegen::buildPackage(
      codegen::defaultJobs(problemOf(text), llvm::cantFail(codegen::findTarget("host")))));
  normc_context_options two{};
  two.max_threads = 2;
  host::Context context(two);
  const host::Plan plan(host::Package(context, bytes.data(), bytes.size()), text);
  const normc_sizes sizes = host::Plan::sizes(1, kRows, kFeatures);
  std::vector<float> x(kRows * kFeatures), dy(x.size()), dx(x.size()), scale(kFeatures, 1), dbias(kFeatures);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 13), dy[i] = float(i % 7) - 3;
  std::vector<char> saved(plan.savedBytes(sizes)), workspace(plan.workspaceBytes(sizes));
  for (size_t i = 0; i < saved.size(); i += 4) reinterpret_cast<float&>(saved[i]) = 1;
  auto dscaleOf = [&](bool withDx) {
    std::vector<float> dscale(kFeatures);
    host::Call call;
    call.x = {x.data(), {kRows, kFeatures}}, call.dy = {dy.data(), {kRows, kFeatures}};
    if (withDx) call.dx = {dx.data(), {kRows, kFeatures}};
    call.scale = {scale.data(), {kFeatures}}, call.dscale = {dscale.data(), {kFeatures}},
    call.dbias = {dbias.data(), {kFeatures}};
    call.saved = saved, call.workspace = workspace;
    plan(call);
    return dscale;
  };
  EXPECT_EQ(dscaleOf(false), dscaleOf(true));
}

}  // namespace
}  // namespace normc
