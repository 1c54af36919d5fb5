#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "bench/cpu/AroundNorms.h"
#include "bench/cpu/Compile.h"
#include "bench/cpu/Heat.h"
#include "bench/cpu/ShapeTable.h"
#include "bench/cpu/Table.h"
#include "bench/cpu/apart/Apart.h"
#include "bench/kit/TrainingCall.h"

namespace normc::bench {
namespace {

Problem problemOf(const std::string& norm, Entry entry, DType data, int64_t features) {
  Problem problem;
  problem.spec = *findBenchNorm(norm);
  problem.entry = entry, problem.data = data, problem.features = features, problem.segmented = true;
  for (const std::string& binding : bindingNames(*problem.spec)) problem.bindings[binding] = 2;
  return *checkProblem(problem);
}

/// The kernels of the problem and of its bare norm, and their forwards.
Kernels kernelsOf(Problem problem) {
  std::vector<Problem> all = {problem};
  if (readsSaved(problem.entry)) problem.entry = Entry::Forward, all.push_back(problem);
  const std::vector<Problem> bare = bareProblems(all);
  all.insert(all.end(), bare.begin(), bare.end());
  return compile(all);
}

double valueAt(const Held& held, DType type, int64_t i) {
  if (type != DType::BF16) return static_cast<const float*>(held.data())[i];
  const uint32_t bits = uint32_t(static_cast<const uint16_t*>(held.data())[i]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// What a call wrote into the tensors of data, and NaN in its place.
std::map<Tensor, std::vector<double>> taken(const Problem& problem, const Tensors& tensors) {
  std::map<Tensor, std::vector<double>> all;
  const Has has = hasOf(problem);
  const Shape& shape = tensors.shape;
  for (const Tensor tensor : operandsOf(problem)) {
    if (!infoOf(tensor).written(problem.entry) || infoOf(tensor).type == TypeRule::Params) continue;
    const int64_t count = isXSized(tensor, has) ? shape.elements() : shape.segments * shape.features;
    for (int64_t i = 0; i < count; ++i)
      all[tensor].push_back(valueAt(*tensors.memory[tensor], problem.data, i));
    std::memset(tensors[tensor], 0xff, size_t(count * bytes(problem.data)));
  }
  return all;
}

void expectTheSame(const Problem& problem, const Shape& shape, int threads) {
  const Kernels kernels = kernelsOf(problem);
  const Tensors tensors = tensorsOf({problem.entry, problem.data, shape, threads, ""}, {problem});
  TrainingCall ours(kernels, problem, tensors, threads);
  ours.run(1);
  const auto want = taken(problem, tensors);
  EXPECT_FALSE(want.empty());
  const double tolerance = problem.data == DType::F32 ? 1e-5 : 3e-2;
  apart::Scratch scratch;
  int ways = 0;
  for (const apart::Way& way : apart::kWays) {
    std::string why;
    const auto peer = apart::make(kernels, problem, tensors, threads, way, scratch, why);
    EXPECT_EQ(why, "");
    if (!peer) continue;
    ++ways;
    peer->run(2);
    for (const auto& [tensor, got] : taken(problem, tensors))
      for (size_t i = 0; i < got.size(); ++i) {
        const double right = want.at(tensor)[i], error = std::abs(got[i] - right);
        ASSERT_LE(error, tolerance * (2 + std::abs(right)))
            << problem.text() << ", " << peer->implementation() << ": " << name(tensor) << " at " << i;
      }
  }
  EXPECT_GE(ways, 1);
}

class ApartTest : public testing::TestWithParam<std::string> {};

TEST_P(ApartTest, ComputesWhatTheKernelDoes) {
  for (Entry entry : {Entry::Forward, Entry::Backward, Entry::Infer}) {
    expectTheSame(problemOf(GetParam(), entry, DType::F32, 64), {3, 11, 64}, 2);
    expectTheSame(problemOf(GetParam(), entry, DType::F32, 70), {2, 6, 70}, 1);  // a vector is not whole
  }
}

std::vector<std::string> allNorms() {
  std::vector<std::string> all = aroundNorms();
  for (const char* other : {"adaptive_layer_norm_zero", "gated_rms_norm", "resnet_tail"})
    all.push_back(other);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Norms, ApartTest, testing::ValuesIn(allNorms()),
                         [](const auto& info) { return info.param; });

TEST(Apart, RoundsToBf16) {
  for (const char* norm : {"rms_norm_residual", "adaptive_layer_norm", "delta_gated_rms_norm"})
    expectTheSame(problemOf(norm, Entry::Backward, DType::BF16, 64), {2, 8, 64}, 1);
}

TEST(Apart, SaysWhatItLacks) {
  Tensors tensors(DType::F64, {1, 2, 8}, false);
  apart::Scratch scratch;
  std::string why;
  const Problem problem = problemOf("rms_norm_residual", Entry::Forward, DType::F64, 8);
  Problem bare = problemOf("rms_norm", Entry::Forward, DType::F64, 8);
  const Kernels kernels = compile({bare});
  EXPECT_FALSE(apart::make(kernels, bare, tensors, 1, {}, scratch, why));
  EXPECT_EQ(why, "") << "nothing surrounds it";
  EXPECT_FALSE(apart::make(kernels, problem, tensors, 1, {}, scratch, why));
  EXPECT_NE(why.find("is not asked for rms_norm_residual:forward@f64"), std::string::npos) << why;
}

TEST(Apart, HasAColumnAndATableOfItsOwn) {
  const Problem problem = problemOf("rms_norm_residual", Entry::Forward, DType::F32, 64);
  const RaceOptions quick = {.sampleSeconds = 20e-6, .seconds = 1e-3, .minRounds = 3, .maxRounds = 3};
  const Heat heat = runHeat({Entry::Forward, DType::F32, {1, 10, 64}, 1, "10 rows"}, {problem},
                            kernelsOf(problem), {}, false, nullptr, quick);
  EXPECT_EQ(std::ranges::count(heat.entrants, Runner::Apart, &Entrant::runner), 1) << "the fastest way alone";
  EXPECT_NE(table(heat).find("/ apart"), std::string::npos) << table(heat);
  EXPECT_EQ(shapeTable({heat}, Runner::Torch), "");
}

TEST(ShapeTable, HasAColumnForEachNumberOfFeatures) {
  Heat small, large;
  small.plan = {Entry::Forward, DType::F32, {1, 8, 8}, 1, "in cache"};
  large.plan = {Entry::Forward, DType::F32, {1, 8, 16}, 1, "in cache"};
  small.entrants = {{Runner::Ours, "n", {}, {1, 1}, ""}, {Runner::Apart, "n", {}, {2, 2}, ""}};
  large.entrants = {{Runner::Ours, "n", {}, {1, 1}, ""}, {Runner::Apart, "n", {}, {8, 8}, ""}};
  const std::string text = shapeTable({small, large}, Runner::Apart);
  EXPECT_NE(text.find("Time of normc over apart"), std::string::npos) << text;
  EXPECT_NE(text.find("  0.50   0.12  0.25 [0.25, 0.25]\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace normc::bench
