// Every built-in norm, entry, storage type, layout and mask on the emulator, judged
// on hostile data as kernels of a CPU are.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

struct Demand {
  std::string dtype = "f32", arch = "sm_90";
  int64_t features = 768;
  bool mask = false, channelsFirst = false, segmented = false;
};

struct Case {
  std::string problem, arch;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " " << c.arch; }

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
      if (parseProblem(text, findNorm)) cases.push_back({text, demand.arch});
    }
  }
  return cases;
}

class EmulatedNorms : public testing::TestWithParam<Case> {};

TEST_P(EmulatedNorms, PassTheGate) {
  Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto arch = archOf(GetParam().arch);
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Trial& trial : gate::standardTrials(problem, *problem.features)) {
    gate::Verdict verdict = kernel->judge(problem, trial);
    ASSERT_TRUE(verdict.ok) << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.problem;
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

#define NORMC_SUITE(name, ...) \
  INSTANTIATE_TEST_SUITE_P(name, EmulatedNorms, testing::ValuesIn(casesOf(__VA_ARGS__)), caseName)
NORMC_SUITE(Wide, {.features = 768});
NORMC_SUITE(Odd, {.features = 100});
NORMC_SUITE(Masked, {.features = 40, .mask = true});
NORMC_SUITE(Segmented, {.features = 72, .segmented = true});
NORMC_SUITE(SegmentedMasked, {.features = 36, .mask = true, .segmented = true});
NORMC_SUITE(ChannelsFirst, {.features = 24, .channelsFirst = true});
NORMC_SUITE(ChannelsFirstMasked, {.features = 12, .mask = true, .channelsFirst = true});
NORMC_SUITE(BF16, {.dtype = "bf16", .features = 160});
NORMC_SUITE(F16, {.dtype = "f16", .arch = "sm_100", .features = 160});

}  // namespace
}  // namespace normc
