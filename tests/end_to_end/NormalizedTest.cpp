// `round=normalized`: x0 is rounded to the type of the data before the affine, as the layers of some
// frameworks do (LlamaRMSNorm of Hugging Face), judged by the gate and by their formula.
#include <gtest/gtest.h>

#include <cmath>

#include "dsl/Tolerance.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

using codegen::Strategy;
using codegen::cpu::Isa;

std::vector<Isa> isas() {
  std::vector<Isa> all{hostIsa()};
  const Isa v3 = llvm::cantFail(codegen::cpu::findIsa("x86-64-v3"));
  if (hostIsa().name != v3.name && hostIsa().name != "aarch64") all.push_back(v3);
  return all;
}

class Normalized : public testing::TestWithParam<const char*> {};

TEST_P(Normalized, PassesTheGate) {
  const Problem problem = problemOf(GetParam());
  for (const Isa& isa : isas())
    for (const Strategy strategy : codegen::cpu::strategies(problem))
      expectRight(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa);
}

INSTANTIATE_TEST_SUITE_P(
    Problems, Normalized,
    testing::Values("rms_norm:forward@bf16[*x72]{round=normalized}",
                    "rms_norm:infer@f16[*x*]{params=f16,round=normalized}",
                    "rms_norm:forward@bf16[*x2048]{params=bf16,round=normalized}",
                    "rms_norm:backward@bf16[*x72]{round=normalized}",
                    "layer_norm:forward@f16[*x100]{mask,round=normalized}",
                    "layer_norm:forward@bf16[*x35]{params=bf16,round=normalized,y=f32}",
                    "layer_norm:backward@f16[*x64]{round=normalized}",
                    "layer_norm:forward@bf16[*x12x*]{layout=channels_first,round=normalized}",
                    "group_norm:forward@f16[*x96]{groups=4,round=normalized}",
                    "rms_norm_residual:forward@bf16[*x64]{round=normalized,stream=f32}",
                    "rms_norm_residual_int8:forward@bf16[*x64]{round=normalized}",
                    "gated_rms_norm:forward@bf16[*x64]{groups=2,round=normalized}",
                    "gated_rms_norm:backward@bf16[*x64]{groups=2,round=normalized}",
                    "qk_norm_rope:infer@bf16[*x64]{heads=2,round=normalized}"));

/// A norm of rows and its formula as a framework writes it, each step in the type that it has there.
struct Framework {
  const Problem problem;
  ReferenceCall call;

  /// Returns y of each element; without `rounds` x0 stays as it is.
  std::vector<double> y(bool rounds) const {
    const int64_t features = call.extents.features;
    const bool centres = problem.spec->center == Center::Current;
    std::vector<double> y;
    for (int64_t row = 0; row < call.extents.rows; ++row) {
      const double* x = &call.x[size_t(row * features)];
      double mean = 0, moment = 0;
      for (int64_t i = 0; centres && i < features; ++i) mean += x[i] / double(features);
      for (int64_t i = 0; i < features; ++i) moment += (x[i] - mean) * (x[i] - mean) / double(features);
      for (int64_t i = 0; i < features; ++i) {
        double v = (x[i] - mean) / std::sqrt(moment + problem.spec->epsilon);
        if (rounds) v = round(v, problem.data);
        v = v * call.scale[size_t(i)] + (problem.spec->bias ? call.bias[size_t(i)] : 0);
        y.push_back(round(v, problem.data));
      }
    }
    return y;
  }
  std::vector<double> kernel(const Isa& isa) const {
    const auto schedule = codegen::cpu::defaultSchedule(problem, isa, Strategy::Resident);
    const auto kernel = compiled(problem, schedule, isa);
    EXPECT_TRUE(kernel->plan) << kernel->error;
    if (!kernel->plan) return {};
    const gate::CallResult result = gate::Call(kernel->plan, problem, call, {}).run();
    EXPECT_EQ(result.fault, "");
    return result.outputs.at("y");
  }
};

Framework frameworkOf(const std::string& norm, const std::string& type) {
  const Problem problem = problemOf(norm + ":forward@" + type + "[*x96]{round=normalized}");
  return {problem, *gate::argumentsFor(problem, {.extents = {1, 40, 96}})};
}

int64_t differing(const std::vector<double>& a, const std::vector<double>& b) {
  int64_t count = std::abs(int64_t(a.size()) - int64_t(b.size()));
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] != b[i];
  return count;
}

/// Rows of 7, 1, 5, 5 with signs have the mean 0 and the deviation 5. A fifth of them is no tie of its type,
/// and factor and sum are exact, so no error of a kernel decides a bit.
TEST(Normalized, HasTheBitsOfAFrameworkWhereNoErrorDecides) {
  for (const char* norm : {"rms_norm", "layer_norm"})
    for (const char* type : {"bf16", "f16"}) {
      Framework framework = frameworkOf(norm, type);
      ReferenceCall& call = framework.call;
      for (size_t i = 0; i < call.x.size(); ++i)
        call.x[i] = (const double[]){7, -1, 5, -5, 1, -7, 5, -5}[(i + i / 96) % 8];
      for (size_t i = 0; i < call.scale.size(); ++i) call.scale[i] = 1 + double(37 * i % 128) / 128;
      for (size_t i = 0; i < call.bias.size(); ++i) call.bias[i] = double(int64_t(53 * i % 128) - 64) / 128;
      const std::vector<double> want = framework.y(/*rounds=*/true);
      EXPECT_GT(differing(want, framework.y(/*rounds=*/false)), 100) << "the rounding is seen";
      for (const Isa& isa : isas())
        EXPECT_EQ(framework.kernel(isa), want) << norm << ", " << type << ", " << isa.name.str();
    }
}

/// Where an error of x0 decides, the other neighbour may be multiplied.
TEST(Normalized, IsWithinAUnitOfAFrameworkElsewhere) {
  for (const char* norm : {"rms_norm", "layer_norm"})
    for (const char* type : {"bf16", "f16"}) {
      const Framework framework = frameworkOf(norm, type);
      const DType data = framework.problem.data;
      const std::vector<double> want = framework.y(/*rounds=*/true);
      EXPECT_GT(differing(want, framework.y(/*rounds=*/false)), int64_t(want.size()) / 20);
      for (const Isa& isa : isas()) {
        const std::vector<double> got = framework.kernel(isa);
        ASSERT_EQ(got.size(), want.size());
        EXPECT_LE(differing(got, want), int64_t(want.size()) / 100) << norm << ", " << type;
        for (size_t i = 0; i < got.size(); ++i) {
          const double bias = framework.problem.spec->bias ? framework.call.bias[i % 96] : 0;
          EXPECT_LE(std::abs(got[i] - want[i]), ulp(want[i], data) + 2 * ulp(want[i] - bias, data)) << i;
        }
      }
    }
}

}  // namespace
}  // namespace normc
