// A step whose batch is divided between ranks, by compiled kernels: ranks of unequal rows, one of them empty,
// get what the reference gets on all rows, and what the kernels of one rank get.
#include <gtest/gtest.h>

#include "dsl/HardInputs.h"
#include "dsl/Library.h"
#include "dsl/Tolerance.h"
#include "tests/Sample.h"
#include "tests/dsl/Ranks.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"

namespace normc {
namespace {

struct Case {
  std::string norm;
  std::string dtype = "f32";
  bool mask = false;
  bool channelsFirst = false;
  Padding padding = Padding::Exclude;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.norm << "@" << c.dtype << (c.mask ? " mask" : "") << (c.channelsFirst ? " channels_first" : "")
       << (c.padding == Padding::Exclude ? "" : " left out");
}

/// In the sample each norm meets each type, layout and padding, and these each other.
Divided<Case> cases() {
  std::vector<Case> all;
  for (const char* norm :
       {"batch_norm", "batch_norm_unbiased", "batch_renorm", "power_norm_v", "power_norm"}) {
    for (const char* dtype : {"f32", "f64", "bf16", "f16"}) all.push_back({norm, dtype});
    for (const bool channelsFirst : {false, true})
      for (const Padding padding : {Padding::Exclude, Padding::LeaveOutOfStatistics})
        all.push_back({norm, "f32", true, channelsFirst, padding});
    all.push_back({norm, "f64", true, false, Padding::LeaveOutOfStatistics});
    all.push_back({norm, "f64", false, true});
  }
  return divided(all, [](const Case& c) {
    const char* padding = !c.mask ? "none" : c.padding == Padding::Exclude ? "excluded" : "left out";
    return Properties{c.norm, c.dtype, c.channelsFirst ? "channels first" : "features last", padding};
  });
}

constexpr int64_t kFeatures = 37;
constexpr double kMean = 3, kSigma = 0.5;

class Ranks : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    Spec spec = **findNorm(c.norm);
    spec.padding = c.padding;
    if (spec.renorm.kind != Renorm::None) spec.renorm.start = 0;
    problem_.spec = std::make_shared<const Spec>(spec);
    problem_.data = typeNamed(c.dtype).value();
    problem_.params = problem_.statistics();
    problem_.layout = c.channelsFirst ? Layout::ChannelsFirst : Layout::FeaturesLast;
    problem_.segmented = c.channelsFirst;
    problem_.mask = c.mask;
    problem_.features = kFeatures;
    whole_.extents = c.channelsFirst ? Extents{9, 11, kFeatures} : Extents{1, 99, kFeatures};
    counts_ = c.channelsFirst ? std::vector<int64_t>{2, 0, 6, 1} : std::vector<int64_t>{23, 0, 71, 5};
    const int64_t count = whole_.extents.totalRows() * kFeatures;
    whole_.x = normalValues(count, problem_.data, 1, kMean, kSigma),
    whole_.dy = normalValues(count, problem_.data, 2);
    if (spec.scale) whole_.scale = normalValues(kFeatures, problem_.params, 3, 1, 0.5);
    if (spec.bias) whole_.bias = normalValues(kFeatures, problem_.params, 4);
    if (c.mask) whole_.mask = hardMask(HardMask::Scattered, whole_.extents);
    whole_.state = initialState(problem_, whole_.extents);
    for (auto& [field, values] : whole_.state)
      for (double& value : values)
        value = field == "step" ? 4 : round(value / 2 + 0.75, problem_.statistics());
  }

  Outputs run(Entry entry, const ReferenceCall& call) {
    auto& kernel = kernels_[entry];
    Problem problem = problem_;
    problem.entry = entry;
    if (!kernel) {
      const auto isa = hostIsa();
      kernel =
          compiled(problem, codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Streamed), isa);
    }
    if (!kernel->plan) {
      ADD_FAILURE() << kernel->error;
      return {};
    }
    gate::CallResult result = gate::Call(kernel->plan, problem, call, {}).run();
    EXPECT_EQ(result.fault, "") << name(entry);
    return result.outputs;
  }
  Outputs evaluated(Entry entry, const ReferenceCall& call) {
    Problem problem = problem_;
    problem.entry = entry;
    auto result = evaluate(problem, call);
    EXPECT_TRUE(result) << text(result.errors());
    Outputs outputs;
    for (auto& [name, quantity] : result->outputs) {
      outputs[name] = quantity.value;
      want_[name] = quantity;
    }
    return outputs;
  }

  void expectOneAloneIsRight();

  Problem problem_;
  ReferenceCall whole_;
  std::vector<int64_t> counts_;
  std::map<Entry, std::unique_ptr<Compiled>> kernels_;
  std::map<std::string, Quantity> want_;
};

/// Outputs that both have.
bool isCompared(const std::string& output) {
  return !output.starts_with("partial.") && output != "saved.count" && output != "saved.second_moment";
}

void Ranks::expectOneAloneIsRight() {
  const bool segments = whole_.extents.segments > 1;
  const Outputs got = stepOverRanks(
      problem_, whole_, {segments ? whole_.extents.segments : whole_.extents.rows}, Exchange::Gather,
      [&](Entry entry, const ReferenceCall& call) { return run(entry, call); });
  for (const auto& [output, values] : got) {
    if (!isCompared(output)) continue;
    Tolerance tolerance = toleranceOf(problem_, output, whole_.extents);
    // Sums of f64 lose digits of f64 data to the mean (docs/many-ranks.md).
    if (problem_.data == DType::F64) tolerance.relative *= 1 + kMean * kMean / (kSigma * kSigma);
    const Agreement agreement = compare(want_.at(output), values, tolerance);
    EXPECT_TRUE(agreement.ok) << output << ": " << agreement.text;
  }
}

/// And one rank alone, which is a forward and a backward in parts, does what the fused entries do.
TEST_P(Ranks, OfUnequalRowsAgreeWithOne) {
  stepOfOne(whole_, [&](Entry entry, const ReferenceCall& call) { return evaluated(entry, call); });
  expectOneAloneIsRight();
  const RunEntry kernels = [&](Entry entry, const ReferenceCall& call) { return run(entry, call); };
  const Outputs one = stepOfOne(whole_, kernels);
  for (const Exchange exchange : {Exchange::Sum, Exchange::Gather}) {
    const Outputs got = stepOverRanks(problem_, whole_, counts_, exchange, kernels);
    for (const auto& [output, values] : got) {
      if (!isCompared(output)) continue;
      SCOPED_TRACE(output);
      Tolerance tolerance = toleranceOf(problem_, output, whole_.extents);
      // dx of the reference uses exact statistics, and dscale is the sum of as many roundings as there are
      // ranks.
      tolerance.relative *= 2, tolerance.ulps *= double(counts_.size());
      const Agreement agreement = compare(want_.at(output), values, tolerance);
      EXPECT_TRUE(agreement.ok) << agreement.text;
      if (problem_.data != DType::F64) continue;
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], one.at(output)[i], 1e-12 * std::max(1.0, std::abs(values[i]))) << i;
    }
  }
}

NORMC_INSTANTIATE_SAMPLE(Norms, Ranks, cases(),
                         [](const auto& info) { return testName(testing::PrintToString(info.param)); });

}  // namespace
}  // namespace normc
