// Every built-in norm, entry, strategy, storage type, layout and mask, compiled
// and judged on hostile data.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

using codegen::Strategy;

/// What a suite asks of all built-in norms. Problems that the language refuses are left out.
struct Demand {
  std::string dtype = "f32";
  int64_t features = 768;
  bool mask = false;
  bool channelsFirst = false;
  bool segmented = false;
};

struct Case {
  std::string problem;
  Strategy strategy;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " " << codegen::name(c.strategy).str(); }

std::vector<Case> casesOf(const Demand& demand) {
  std::vector<Case> cases;
  for (const BuiltinNorm& norm : builtinNorms()) {
    bool perSegment = norm.spec->reduce == Reduce::Segment || norm.spec->reduce == Reduce::SegmentFeatures;
    std::string d = std::to_string(demand.features), options, shape = "*x" + d;
    if (demand.channelsFirst) shape = "*x" + d + "x*";
    else if (demand.segmented || perSegment) shape = "*x*x" + d;
    auto add = [&](const std::string& option) { options += (options.empty() ? "{" : ",") + option; };
    for (const std::string& binding : bindingNames(*norm.spec)) add(binding + "=4");
    if (demand.channelsFirst) add("layout=channels_first");
    if (demand.mask) add("mask");
    if (!options.empty()) options += "}";
    for (const char* entry : {"forward", "backward", "infer"}) {
      std::string text = norm.name + ":" + entry + "@" + demand.dtype + "[" + shape + "]" + options;
      auto problem = parseProblem(text, findNorm);
      if (!problem) continue;
      for (Strategy s : codegen::legalStrategies(*problem)) cases.push_back({text, s});
    }
  }
  return cases;
}

class BuiltinNorms : public testing::TestWithParam<Case> {};

TEST_P(BuiltinNorms, PassTheGate) {
  Problem problem = problemOf(GetParam().problem);
  auto isa = hostIsa();
  auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, GetParam().strategy), isa);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Trial& trial : gate::standardTrials(problem, *problem.features)) {
    gate::Verdict verdict = gate::judge(kernel->plan, problem, trial);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.problem + "_" + codegen::name(info.param.strategy).str();
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

#define NORMC_SUITE(name, ...) \
  INSTANTIATE_TEST_SUITE_P(name, BuiltinNorms, testing::ValuesIn(casesOf(__VA_ARGS__)), caseName)
NORMC_SUITE(Wide, {.features = 768});
NORMC_SUITE(Odd, {.features = 100});
NORMC_SUITE(Masked, {.features = 40, .mask = true});
NORMC_SUITE(Segmented, {.features = 72, .segmented = true});
NORMC_SUITE(SegmentedMasked, {.features = 36, .mask = true, .segmented = true});
NORMC_SUITE(ChannelsFirst, {.features = 24, .channelsFirst = true});
NORMC_SUITE(ChannelsFirstMasked, {.features = 12, .mask = true, .channelsFirst = true});
NORMC_SUITE(F64, {.dtype = "f64", .features = 52});
NORMC_SUITE(BF16, {.dtype = "bf16", .features = 140});
NORMC_SUITE(F16, {.dtype = "f16", .features = 140});

}  // namespace
}  // namespace normc
