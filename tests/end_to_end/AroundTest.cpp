// What surrounds a norm, a clause at a time and in mixes: residual, gate and modulation around each kind of
// statistic, in all types, layouts, strategies and masks, judged by the gate. Random specs mix them further.
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "codegen/plan/Planner.h"
#include "dsl/Library.h"
#include "tests/Sample.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

using codegen::Strategy;

struct Clauses {
  const char *name, *text;
};
const Clauses kClauses[] = {
    {"ResidualBefore", "residual before"},
    {"ResidualWithoutStream", "residual before(stream = no)"},
    {"ResidualAfter", "residual after; activation silu"},
    {"GateBefore", "gate silu(at = before)"},
    {"GateAfter", "gate gelu; residual before"},
    {"GateOfSegmentBefore", "gate tanh(at = before, per = segment); residual before"},
    {"GateOfSegmentAfter", "gate identity(per = segment); residual after"},
    {"GateOfFeatureBefore", "gate sigmoid(at = before, per = feature); residual before(stream = no)"},
    {"GateOfFeatureAfter", "gate silu(per = feature); activation tanh"},
    {"Modulation", "modulate scale, shift"},
    {"ModulationOfRows", "modulate shift, per = row; activation gelu_tanh"},
    {"FactorOfRows", "modulate scale(offset = 0), per = row; gate silu"},
    {"All", "residual before; modulate scale, shift; gate silu(per = segment); activation silu"},
    {"AllInFront",
     "gate silu(at = before, per = segment); residual before; modulate scale(offset = -0.5); activation "
     "sigmoid"},
};

struct Base {
  const char *name, *norm, *shape, *options;
};
const Base kBases[] = {
    {"Rms", "rms_norm", "[*x*x100]", ""},
    {"Layer", "layer_norm", "[*x*x*]", ""},
    {"Batch", "batch_norm", "[*x*x40]", ""},
    {"Power", "power_norm", "[*x*x*]", ""},
    {"PowerReleased", "power_norm_released", "[*x*x48]", "heads=4"},
    {"Renorm", "batch_renorm", "[*x*x33]", ""},
    {"Unified", "unified_norm", "[*x*x24]", ""},
    {"Instance", "instance_norm", "[*x*x36]", ""},
    {"Groups", "group_norm", "[*x*x96]", "groups=4"},
    {"GroupsOfSegments", "group_norm_segment", "[*x*x*]", "groups=4"},
    {"BatchChannels", "batch_norm", "[*x12x*]", "layout=channels_first"},
    {"PowerChannels", "power_norm", "[*x*x*]", "layout=channels_first"},
    {"InstanceChannels", "instance_norm", "[*x12x*]", "layout=channels_first"},
    {"GroupsOfChannels", "group_norm_segment", "[*x12x*]", "groups=4,layout=channels_first"},
};

using Case =
    std::tuple<Base, Clauses, std::string>;  ///< and the entry; "other" is an inference, or its gradient

class Around : public testing::TestWithParam<Case> {};

/// In the sample each base meets each entry and every third clause, each clause each entry and every third
/// base, and no two bases that follow each other meet the same.
Divided<Case> cases() {
  Divided<Case> all;
  std::vector<Case> candidates;
  for (size_t base = 0; base < std::size(kBases); ++base)
    for (size_t clauses = 0; clauses < std::size(kClauses); ++clauses)
      for (const char* entry : {"forward", "backward", "other"})
        ((base + clauses) % 3 ? all.rest : candidates).push_back({kBases[base], kClauses[clauses], entry});
  const Divided<Case> third = divided(candidates, [](const Case& c) {
    return Properties{std::get<0>(c).name, std::get<1>(c).name, std::get<2>(c)};
  });
  all.sample = third.sample;
  all.rest.insert(all.rest.end(), third.rest.begin(), third.rest.end());
  return all;
}

/// Properties that alternate from case to case; random specs draw the other combinations.
struct Mix {
  uint64_t turn = 0;
  std::string entry, type;
  bool mask = false, leavesOut = false;
};

/// Entry, mask and padding take bits of their own, so that each meets each type.
Mix mixOf(const Case& c) {
  const auto& [base, clauses, part] = c;
  Mix mix;
  for (const std::string_view text : {clauses.text, base.name})
    for (const char letter : text) mix.turn += uint64_t(letter);
  const bool hasState = findNorm(base.norm)->get()->running.has_value();
  mix.entry = part != "other" ? part : mix.turn / 16 % 2 && hasState ? "infer_backward" : "infer";
  mix.turn += part == "forward" ? 1 : part == "backward" ? 2 : 3;
  constexpr const char* kTypes[] = {"f32", "bf16", "f64", "f16"};
  mix.type = kTypes[mix.turn % 4];
  mix.mask = mix.turn / 4 % 2;
  mix.leavesOut = mix.turn / 8 % 2 && hasState;
  return mix;
}

TEST_P(Around, PassesTheGate) {
  const auto& [base, clauses, part] = GetParam();
  const Mix mix = mixOf(GetParam());
  std::string options = base.options;
  if (mix.mask) options += options.empty() ? "mask" : ",mask";
  if (!options.empty()) options = "{" + options + "}";
  const std::string padding = mix.leavesOut ? "; padding leave_out_of_statistics" : "";
  const auto problem =
      problemWith(base.norm, clauses.text + padding, ":" + mix.entry + "@" + mix.type + base.shape + options);
  ASSERT_TRUE(problem);
  const auto strategies = codegen::cpu::strategies(*problem);
  const Strategy strategy = strategies[mix.turn / 3 % strategies.size()];
  expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy));
}

TEST(AroundCases, HaveEachTypeWithEachEntryMaskAndPadding) {
  std::set<std::pair<std::string, std::string>> entries;
  std::set<std::tuple<std::string, bool, bool>> masks;
  const Divided<Case> all = cases();
  for (const std::vector<Case>& part : {all.sample, all.rest})
    for (const Case& c : part) {
      const Mix mix = mixOf(c);
      entries.emplace(mix.type, mix.entry), masks.emplace(mix.type, mix.mask, mix.leavesOut);
    }
  EXPECT_EQ(entries.size(), 4u * 4);
  EXPECT_EQ(masks.size(), 4u * 2 * 2);
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  const auto& [base, clauses, part] = info.param;
  return std::string(base.name) + clauses.name + "_" + part;
}
NORMC_INSTANTIATE_SAMPLE(Norms, Around, cases(), caseName);

/// Sums over the rows of a segment are cut by segment: tasks depend on sizes alone, and so do all bits.
TEST(AroundSums, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const char* base : {"layer_norm", "batch_norm", "power_norm"}) {
    const auto problem = problemWith(base, "residual before; gate silu(per = segment); modulate scale, shift",
                                     ":backward@f32[*x*x96]");
    ASSERT_TRUE(problem);
    auto schedule =
        codegen::cpu::defaultSchedule(*problem, hostIsa(), codegen::legalStrategies(*problem).front());
    schedule.grain = 16;
    for (const Extents& extents : {Extents{3, 700, 96}, Extents{50, 9, 96}}) {
      const gate::Trial trial{.extents = extents, .step = 3};
      const auto arguments = gate::argumentsFor(*problem, trial);
      ASSERT_TRUE(arguments);
      Bits alone;
      for (int threads : {1, 2, 5}) {
        const auto kernel = compiled(*problem, schedule, hostIsa(), threads);
        ASSERT_TRUE(kernel->plan) << kernel->error;
        const auto result = gate::Call(kernel->plan, *problem, *arguments, trial.placement).run();
        ASSERT_EQ(result.fault, "");
        if (threads == 1) alone = bitsOf(result);
        EXPECT_EQ(bitsOf(result), alone) << base << ", " << threads << " threads";
      }
    }
  }
}

/// Expects gradients of a gate that are near 1e38, and finite. Each gate is 0, where its slope is 1/4.
void expectFiniteGradients(const std::string& gate, double dy, double y) {
  const auto problem = problemWith("rms_norm", gate, ":backward@f32[*x24]");
  ASSERT_TRUE(problem);
  const gate::Trial trial{.extents = {1, 33, 24}};
  const auto drawn = gate::argumentsFor(*problem, trial);
  ASSERT_TRUE(drawn);
  ReferenceCall arguments = *drawn;
  llvm::fill(arguments.x, 1.0);
  llvm::fill(arguments.scale, y);
  llvm::fill(arguments.saved.at("rstd"), 1.0);
  llvm::fill(arguments.dy, dy);
  llvm::fill(arguments.gate, 0.0);
  for (Strategy strategy : codegen::cpu::strategies(*problem)) {
    const auto kernel =
        compiled(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy), hostIsa());
    ASSERT_TRUE(kernel->plan) << kernel->error;
    const auto result = gate::Call(kernel->plan, *problem, arguments, trial.placement).run();
    ASSERT_EQ(result.fault, "");
    for (double each : result.outputs.at("dgate")) EXPECT_TRUE(std::isfinite(each) && each > 0.9e38) << each;
  }
}

TEST(AroundGates, GradientIsFiniteWhereAProductOfItIsNot) {
  expectFiniteGradients("gate sigmoid", 1.5e38, 3);
}
TEST(AroundGates, GradientIsFiniteWhereItsSumWithoutTheSlopeIsNot) {
  expectFiniteGradients("gate sigmoid(per = feature)", 2e37, 1);
}

/// A row that several tasks share: its second phase goes by features, and sums what each has of its own.
TEST(AroundSums, OfEachFeatureOfSharedRowsAreRight) {
  for (const char* base : {"layer_norm", "rms_norm"}) {
    for (const char* clauses : {"gate silu(per = feature)", "residual after; gate gelu(per = feature)"}) {
      const auto problem = problemWith(base, clauses, ":backward@f32[*x300]");
      ASSERT_TRUE(problem) << base << ", " << clauses;
      ASSERT_TRUE(llvm::is_contained(codegen::cpu::strategies(*problem), codegen::Strategy::Split));
      expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), codegen::Strategy::Split));
    }
  }
}

}  // namespace
}  // namespace normc
