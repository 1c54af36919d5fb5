// Any legal mix of flags with any legal schedule, not the built-in norms and defaults
// alone: random specs, shapes, types, layouts, masks and knobs, in random thread order.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Traits.h"
#include "dsl/Print.h"
#include "tests/cuda/Emulated.h"
#include "tests/dsl/RandomSpec.h"

namespace normc {
namespace {

namespace cuda = codegen::cuda;

struct Drawn {
  Problem problem;
  cuda::Arch arch;
  cuda::Schedule schedule;
  int64_t features;
};

class Draw {
 public:
  explicit Draw(uint64_t seed, bool clusters = false, std::optional<Entry> only = {},
                Drawing drawing = Drawing::Plain)
      : random_(seed),
        parts_(seed + 1000),
        types_(seed + 2000),
        held_(seed + 3000),
        clusters_(clusters),
        only_(only),
        drawing_(drawing) {}

  Drawn kernel() {
    for (;;) {
      Drawn d;
      d.arch = archOf(pick<const char*>("sm_80", "sm_90", "sm_100"));
      if (!problem(d)) continue;
      auto strategies = codegen::legalStrategies(d.problem);
      if (strategies.empty()) continue;
      const auto strategy = strategies[random_() % strategies.size()];
      const cuda::KernelTraits traits = cuda::traitsOf(d.problem, strategy);
      if (clusters_ && (!traits.lines || traits.width <= 32 || !d.arch.clusters())) continue;
      for (int tries = 0; tries < 500; ++tries) {
        d.schedule = clusters_ ? clustered(traits) : schedule(traits, d.arch);
        d.schedule.strategy = strategy;
        if (!cuda::whyIllegal(traits, d.schedule, d.arch)) return d;
      }
    }
  }

  /// Some of what every kernel has to pass, and sizes and a state of their own.
  std::vector<gate::Trial> trials(const Drawn& d) {
    auto standard = gate::standardTrials(d.problem, d.features);
    std::vector<gate::Trial> some;
    for (int i = 0; i < 5; ++i) some.push_back(standard[random_() % standard.size()]);
    const Extents extents{d.problem.segmented ? int64_t(1 + random_() % 4) : 1, int64_t(random_() % 70),
                          d.features};
    some.push_back({.extents = extents,
                    .mask = allHardMasks()[random_() % allHardMasks().size()],
                    .step = int64_t(random_() % 6),
                    .seed = random_() % 1000});
    return some;
  }

  uint64_t number() { return random_(); }

 private:
  template <typename T, typename... Rest>
  T pick(T first, Rest... rest) {
    const T list[] = {first, T(rest)...};
    return list[random_() % std::size(list)];
  }

  bool problem(Drawn& d) {
    Problem& p = d.problem;
    p.spec = std::make_shared<const Spec>(randomSpec(random_(), drawing_));
    const Spec& spec = *p.spec;
    p.entry = pick(Entry::Forward, Entry::Backward, Entry::Forward, Entry::Backward, Entry::Infer);
    p.entry = only_.value_or(p.entry);
    p.data = pick(DType::F32, DType::F32, DType::BF16, DType::F16);
    if (spec.scale || spec.bias) p.params = pick(DType::F32, DType::F32, p.data);
    p.layout = pick(Layout::FeaturesLast, Layout::FeaturesLast, Layout::ChannelsFirst);
    p.segmented = spec.needsSegments() || p.layout == Layout::ChannelsFirst || random_() % 3 == 0;
    p.mask = random_() % 3 == 0;
    for (const std::string& binding : bindingNames(spec)) p.bindings[binding] = pick<int64_t>(1, 2, 4);
    int64_t groups = 1;
    for (const auto& [name, value] : p.bindings) groups = std::max(groups, value);
    for (const Groups& g : {spec.groups, spec.pre ? spec.pre->groups : Groups()})
      if (g.binding.empty()) groups = std::max(groups, g.count);
    d.features = groups * pick<int64_t>(1, 3, 7, 8, 16, 24, 33, 40, 64, 128);
    if (spec.isQuantizedPer(QuantizePer::Block)) d.features *= spec.quantize->size;
    if (spec.rope) d.features = std::lcm(4 * d.features, 2 * p.groups(spec.rope->groups));
    if (random_() % 4) p.features = d.features;
    types(p);
    return bool(checkProblem(p));
  }

  /// Draws types of single tensors.
  void types(Problem& p) {
    const Spec& spec = *p.spec;
    constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16};
    if (drawing_ != Drawing::Quantized && types_() % 4 == 0) p.output = kTypes[types_() % 3];
    if (spec.hasResidual(Side::Before) && types_() % 2) p.stream = kTypes[types_() % 3];
    p.roundsNormalized = (spec.scale || spec.bias) && bytes(p.data) == 2 && spec.perRow() && types_() % 2;
  }

  /// Often legal; whyIllegal decides.
  cuda::Schedule schedule(const cuda::KernelTraits& traits, const cuda::Arch& arch) {
    cuda::Schedule s;
    s.threads = pick<int64_t>(32, 64, 96, 128, 256);
    s.team = pick<int64_t>(1, 2, 4, 8, 16, 32, 64, s.threads, s.threads);
    s.vector = int64_t(1) << random_() % 5;
    if (s.vector > arch.accessBytes / traits.dataBytes) s.vector = 1;
    const int64_t fitting = (traits.width + s.team * s.vector - 1) / (s.team * s.vector);
    s.tile = traits.width ? pick(int64_t(0), fitting, fitting) : pick<int64_t>(0, 1, 1, 2, 3);
    if (traits.columns || traits.streams) s.tile = pick<int64_t>(1, 1, 2, 3);
    s.rows = pick<int64_t>(1, 1, 2, 3, 4);
    s.chunks = pick<int64_t>(1, 2, 3, 8, 64);
    s.blocks = pick<int64_t>(0, 0, 1, 2);
    s.hints = pick<int64_t>(0, 0, 1, 2);
    if (traits.columns) s.tile = 1, s.hold = pick<int64_t>(0, 1, 2, 5);
    if (traits.lines && s.tile > 1 && parts_() % 2) share(s);
    hold(traits, s);
    return s;
  }

  /// Some of the run goes to shared memory.
  void share(cuda::Schedule& s) {
    s.shared = 1 + int64_t(parts_() % uint64_t(s.tile - 1));
    s.tile -= s.shared;
    s.rows = 1;
  }

  /// Scale and bias of rows stay in shared memory, often.
  void hold(const cuda::KernelTraits& traits, cuda::Schedule& s) {
    if (traits.heldBytes && s.tile > 0 && traits.width % s.vector == 0) s.hold = int64_t(held_() % 2);
  }

  /// Draws a schedule for rows that a team of one warp does not hold.
  cuda::Schedule clustered(const cuda::KernelTraits& traits) {
    cuda::Schedule s;
    s.cluster = pick<int64_t>(2, 2, 4);
    s.team = 32;
    s.threads = s.team * pick<int64_t>(1, 2, 3, 4);
    s.vector = pick<int64_t>(1, 1, 2, 4);
    const int64_t access = s.team * s.cluster * s.vector;
    s.tile = (traits.width + access - 1) / access;
    s.rows = pick<int64_t>(1, 1, 2, 3);
    s.chunks = pick<int64_t>(1, 2, 3, 8, 64);
    s.prefetch = cuda::Prefetch::fromKnob(pick<int64_t>(0, 1));
    if (s.vector * traits.dataBytes == cuda::kCopiedBytes && traits.width % s.vector == 0)
      s.prefetch = cuda::Prefetch::fromKnob(pick<int64_t>(0, 1, 2, 3));
    hold(traits, s);
    return s;
  }

  /// The others draw how a run is divided, types of single tensors, and whether scale and bias are held.
  std::mt19937_64 random_, parts_, types_, held_;
  bool clusters_;
  std::optional<Entry> only_;
  Drawing drawing_;
};

void agree(Draw draw) {
  const Drawn d = draw.kernel();
  SCOPED_TRACE(print(*d.problem.spec) + d.problem.text() + " " + d.schedule.text() + " " + d.arch.name);
  auto kernel = emulated(d.problem, d.schedule, d.arch);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Trial& trial : draw.trials(d)) {
    kernel->driver->options.order = emulator::Order::Random;
    kernel->driver->options.seed = draw.number();
    gate::Verdict verdict = kernel->judge(d.problem, trial);
    ASSERT_TRUE(verdict.ok) << verdict.text;
  }
}

class EmulatedRandomSpecs : public testing::TestWithParam<uint64_t> {};
class EmulatedRandomClusters : public testing::TestWithParam<uint64_t> {};
class EmulatedRandomEntriesOverRanks : public testing::TestWithParam<uint64_t> {};
class EmulatedRandomGradientsOfInference : public testing::TestWithParam<uint64_t> {};
class EmulatedRandomCodes : public testing::TestWithParam<uint64_t> {};
class EmulatedRandomPairs : public testing::TestWithParam<uint64_t> {};
TEST_P(EmulatedRandomSpecs, AgreeWithTheReference) { agree(Draw(GetParam())); }
TEST_P(EmulatedRandomGradientsOfInference, AgreeWithTheReference) {
  agree(Draw(GetParam(), /*clusters=*/false, Entry::InferBackward));
}
TEST_P(EmulatedRandomEntriesOverRanks, AgreeWithTheReference) {
  constexpr Entry kEach[] = {Entry::ForwardReduce, Entry::ForwardApply, Entry::BackwardReduce,
                             Entry::BackwardApply, Entry::Commit};
  agree(Draw(GetParam(), /*clusters=*/false, kEach[GetParam() % 5]));
}
TEST_P(EmulatedRandomCodes, AgreeWithTheReference) {
  const Entry entry = GetParam() / 4 % 2 ? Entry::Forward : Entry::Infer;  // also of clusters
  agree(Draw(GetParam(), /*clusters=*/GetParam() % 4 == 0, entry, Drawing::Quantized));
}
TEST_P(EmulatedRandomPairs, AgreeWithTheReference) {
  agree(Draw(GetParam(), /*clusters=*/GetParam() % 4 == 0, {}, Drawing::WithRope));
}
TEST_P(EmulatedRandomClusters, AgreeWithTheReference) { agree(Draw(GetParam(), /*clusters=*/true)); }

/// The sample is the first seeds, the rest (tests/Sample.h) those behind them.
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedRandomClusters, testing::Range<uint64_t>(1, 21));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, EmulatedRandomClusters, testing::Range<uint64_t>(21, 41));
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedRandomEntriesOverRanks, testing::Range<uint64_t>(1, 21));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, EmulatedRandomEntriesOverRanks, testing::Range<uint64_t>(21, 41));
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedRandomGradientsOfInference, testing::Range<uint64_t>(1, 15));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, EmulatedRandomGradientsOfInference, testing::Range<uint64_t>(15, 41));
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedRandomCodes, testing::Range<uint64_t>(1, 15));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, EmulatedRandomCodes, testing::Range<uint64_t>(15, 121));
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedRandomPairs, testing::Range<uint64_t>(1, 15));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, EmulatedRandomPairs, testing::Range<uint64_t>(15, 121));
// 110: an infinity that is not turned, before an activation, beside padding.
INSTANTIATE_TEST_SUITE_P(Found, EmulatedRandomPairs, testing::Values(110));
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedRandomSpecs, testing::Range<uint64_t>(1, 33));
INSTANTIATE_TEST_SUITE_P(RestOfSeeds, EmulatedRandomSpecs, testing::Range<uint64_t>(33, 81));

}  // namespace
}  // namespace normc
