// Moments about another point than the center of the output: their gradient needs the distance from that
// point, which no sum of the other distance and a constant gives where both are large.
#include <gtest/gtest.h>

#include "codegen/Package.h"
#include "dsl/Norms.h"
#include "dsl/Result.h"
#include "runtime/normc.hpp"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

Problem problemOf(const std::string& norm, const std::string& text) {
  auto specs = parseNorms(norm, "own.norm", {});
  EXPECT_TRUE(specs) << (specs ? "" : normc::text(specs.errors()));
  auto problem = parseProblem(
      text, [&](std::string_view) -> Result<std::shared_ptr<const Spec>> { return specs->front(); });
  EXPECT_TRUE(problem) << (problem ? "" : normc::text(problem.errors()));
  return *problem;
}

struct Case {
  const char *norm, *problem;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " of " << c.norm; }

class MomentsElsewhere : public testing::TestWithParam<Case> {};

TEST_P(MomentsElsewhere, PassTheGate) {
  const Problem problem = problemOf(GetParam().norm, GetParam().problem);
  for (const char* name : {"x86-64-v3", "host"}) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(name));
    for (codegen::Strategy strategy : codegen::cpu::strategies(problem)) {
      auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
        const gate::Verdict verdict = kernel->judge(problem, question);
        EXPECT_TRUE(verdict.ok) << name << " " << codegen::name(strategy).str() << " " << verdict.text;
      }
    }
  }
}

constexpr const char* kUncentred =
    "norm m { reduce rows\n moment central\n running\n padding leave_out_of_statistics }";
constexpr const char* kRunning = "norm m { reduce rows\n center running\n moment central\n running }";
constexpr const char* kRaw =
    "norm m { reduce rows\n center running\n moment raw\n running\n affine scale, bias }";
constexpr const char* kSample = "norm m { reduce features\n moment central\n affine scale, bias }";
constexpr const char* kScaled =
    "norm m { reduce rows\n pre group_scaling(groups = 4)\n moment central\n running }";
/// Without a state: inference takes the statistics of its input.
constexpr const char* kStateless =
    "norm m { reduce rows\n center current\n moment central\n affine scale, bias }";
INSTANTIATE_TEST_SUITE_P(
    Norms, MomentsElsewhere,
    testing::Values(Case{kUncentred, "m:backward@f16[*x24]{mask}"},
                    Case{kUncentred, "m:backward@f32[*x24]{mask}"}, Case{kUncentred, "m:backward@f32[*x40]"},
                    Case{kRunning, "m:backward@f32[*x100]{mask}"}, Case{kRaw, "m:backward@f32[*x100]"},
                    Case{kSample, "m:backward@f32[*x100]"}, Case{kSample, "m:backward@bf16[*x4096]"},
                    Case{kScaled, "m:backward@f32[*x64]"}, Case{kStateless, "m:infer@f32[*x40]"},
                    Case{kStateless, "m:infer@bf16[*x100]{mask}"}));

/// Returns dx of constant columns: rho is zero, so it only depends on their gradient, for any constant.
std::vector<float> gradientOf(float constant) {
  constexpr int64_t kRows = 9, kFeatures = 20;
  const std::string norm = "norm m { reduce rows\n moment central\n running }", shape = "@f32[*x20]";
  std::vector<codegen::Job> jobs;
  for (const char* entry : {"m:forward", "m:backward"})
    for (codegen::Job& job :
         codegen::defaultJobs(problemOf(norm, entry + shape), llvm::cantFail(codegen::findTarget("host"))))
      jobs.push_back(std::move(job));
  const std::string bytes = llvm::cantFail(codegen::buildPackage(jobs));
  host::Context context;
  const host::Package package(context, bytes.data(), bytes.size());
  const host::Plan forward(package, "m:forward" + shape), backward(package, "m:backward" + shape);
  const normc_sizes sizes = host::Plan::sizes(1, kRows, kFeatures);
  std::vector<float> x(kRows * kFeatures, constant), y(x.size()), dy(x.size()), dx(x.size());
  for (size_t i = 0; i < dy.size(); ++i) dy[i] = float(i % 7) - 2;
  std::vector<char> saved(forward.savedBytes(sizes));
  std::vector<char> workspace(std::max(forward.workspaceBytes(sizes), backward.workspaceBytes(sizes)));
  host::State state(forward);
  host::Call call;
  call.x = {x.data(), {kRows, kFeatures}}, call.y = {y.data(), {kRows, kFeatures}};
  call.saved = saved, call.workspace = workspace, call.state = &state;
  forward(call);
  call.y = {}, call.state = nullptr;
  call.dy = {dy.data(), {kRows, kFeatures}}, call.dx = {dx.data(), {kRows, kFeatures}};
  backward(call);
  return dx;
}

TEST(Moments, OfConstantColumnsHaveTheGradientThatSmallOnesHave) {
  const std::vector<float> small = gradientOf(3);
  EXPECT_EQ(gradientOf(1e4f), small);
  EXPECT_NE(small, std::vector<float>(small.size()));
}

}  // namespace
}  // namespace normc
