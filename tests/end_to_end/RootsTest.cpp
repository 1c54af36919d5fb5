// Statistics side by side take no root and no division of vectors: 1 / sqrt is within 1 ulp, a mean what a
// division gives, for any values in the other lanes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/Package.h"
#include "runtime/abi/Isa.h"
#include "runtime/normc.hpp"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

/// Returns PowerNorm of ones in inference: the inverse root of each feature's running moment.
std::vector<float> inverseRoots(const char* target, std::vector<float> moments) {
  const int64_t features = int64_t(moments.size());
  const std::string text = "power_norm:infer@f32[*x" + std::to_string(features) + "]";
  auto jobs = codegen::defaultJobs(problemOf(text), llvm::cantFail(codegen::findTarget(target)));
  const std::string bytes = llvm::cantFail(codegen::buildPackage(std::move(jobs)));
  host::Context context;
  const normc_number exact{"epsilon", 0};
  normc_request request{};
  request.denormals = NORMC_DENORMALS_KEEP;
  request.numbers = &exact, request.number_count = 1;
  host::Plan plan(host::Package(context, bytes.data(), bytes.size()), text, request);
  host::State state(plan);
  state.write("psi2", moments.data(), moments.size());
  std::vector<float> x(moments.size(), 1), y(moments.size()), scale = x, bias(moments.size());
  std::vector<char> workspace(plan.workspaceBytes(host::Plan::sizes(1, 1, features)));
  host::Call call;
  call.x = {x.data(), {1, features}}, call.y = {y.data(), {1, features}};
  call.scale = {scale.data(), {features}}, call.bias = {bias.data(), {features}};
  call.workspace = workspace, call.state = &state;
  plan(call);
  return y;
}

class Roots : public testing::TestWithParam<const char*> {};

TEST_P(Roots, AreWithinOneUlpOverTheWholeRange) {
  if (!includes(*findIsa(hostIsa().name), *findIsa(GetParam())))
    GTEST_SKIP() << "a processor with " << GetParam() << " is needed";
  std::mt19937 random(1);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::vector<float> moments;
  for (int exponent = -126; exponent <= 127; ++exponent) {
    moments.push_back(std::ldexp(1.f, exponent));
    moments.push_back(std::nextafter(std::ldexp(2.f, exponent), 0.f));
    for (int i = 0; i < 40; ++i) moments.push_back(std::ldexp(mantissa(random), exponent));
  }
  const std::vector<float> roots = inverseRoots(GetParam(), moments);
  for (size_t i = 0; i < moments.size(); ++i) {
    const double exact = 1 / std::sqrt(double(moments[i]));
    const double ulp = std::nextafter(float(exact), std::numeric_limits<float>::infinity()) - float(exact);
    ASSERT_LE(std::abs(roots[i] - exact), ulp) << "of " << moments[i];
  }
}

TEST_P(Roots, OfWhatHasNoneNearAreThoseOfTheStandardAndTouchNoOtherLane) {
  if (!includes(*findIsa(hostIsa().name), *findIsa(GetParam())))
    GTEST_SKIP() << "a processor with " << GetParam() << " is needed";
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float odd[] = {0.f, infinity, std::numeric_limits<float>::quiet_NaN(), -1.f, 1e-42f};
  constexpr size_t kFeatures = 79;  // whole vectors, and a rest
  std::vector<float> usual(kFeatures);
  for (size_t i = 0; i < kFeatures; ++i) usual[i] = 0.5f + float(i);
  const std::vector<float> alone = inverseRoots(GetParam(), usual);
  for (float number : odd) {
    std::vector<float> moments = usual;
    for (size_t i = 0; i < kFeatures; i += 5) moments[i] = number;
    const std::vector<float> roots = inverseRoots(GetParam(), moments);
    for (size_t i = 0; i < kFeatures; ++i) {
      const float wanted = i % 5 ? alone[i] : 1 / std::sqrt(number);
      if (std::isnan(wanted))
        EXPECT_TRUE(std::isnan(roots[i])) << number << ", feature " << i;
      else
        EXPECT_EQ(roots[i], wanted) << number << ", feature " << i;
    }
  }
}

/// The means that BatchNorm finds of `rows` rows: 0, but for the second, which no shift is made of.
std::vector<float> means(const char* target, codegen::Strategy strategy, int64_t rows,
                         const std::vector<float>& second) {
  const int64_t features = int64_t(second.size());
  const std::string text = "batch_norm:forward@f32[*x" + std::to_string(features) + "]";
  const auto isa = llvm::cantFail(codegen::cpu::findIsa(target));
  codegen::Job job{problemOf(text), llvm::cantFail(codegen::findTarget(target)), {}};
  job.schedule = codegen::cpu::defaultSchedule(job.problem, isa, strategy).text();
  const std::string bytes = llvm::cantFail(codegen::buildPackage({job}));
  host::Context context;
  normc_request request{};
  request.denormals = NORMC_DENORMALS_KEEP;
  host::Plan plan(host::Package(context, bytes.data(), bytes.size()), text, request);
  host::State state(plan);
  const normc_sizes sizes = host::Plan::sizes(1, rows, features);
  std::vector<float> x(rows * features), y(x.size()), scale(features, 1), bias(features);
  std::copy(second.begin(), second.end(), x.begin() + features);
  std::vector<char> workspace(plan.workspaceBytes(sizes)), saved(plan.savedBytes(sizes));
  host::Call call;
  call.x = {x.data(), {rows, features}}, call.y = {y.data(), {rows, features}};
  call.scale = {scale.data(), {features}}, call.bias = {bias.data(), {features}};
  call.workspace = workspace, call.saved = saved, call.state = &state;
  plan(call);
  std::vector<float> result(features);
  for (const normc_field& field : plan.savedFields(sizes))
    if (field.name == std::string("mean"))
      std::memcpy(result.data(), saved.data() + field.offset, field.bytes);
  return result;
}

TEST_P(Roots, MeansAreWhatADivisionGives) {
  if (!includes(*findIsa(hostIsa().name), *findIsa(GetParam())))
    GTEST_SKIP() << "a processor with " << GetParam() << " is needed";
  std::mt19937 random(1);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::vector<float> numbers;
  for (int exponent = -60; exponent <= 60; ++exponent)
    for (int i = 0; i < 5; ++i)
      numbers.push_back(std::ldexp(i % 2 ? mantissa(random) : -mantissa(random), exponent));
  for (const codegen::Strategy strategy : {codegen::Strategy::Resident, codegen::Strategy::Streamed})
    for (const int64_t rows : {11, 23, 29}) {
      const std::vector<float> found = means(GetParam(), strategy, rows, numbers);
      for (size_t i = 0; i < numbers.size(); ++i)
        ASSERT_EQ(found[i], numbers[i] / float(rows))
            << numbers[i] << " / " << rows << " " << codegen::name(strategy).str();
    }
}

INSTANTIATE_TEST_SUITE_P(Sets, Roots, testing::Values("x86-64-v3", "x86-64-v4"));

}  // namespace
}  // namespace normc
