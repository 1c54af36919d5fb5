// normc_judge_defaults: every default kernel of the built-in norms, judged by the gate. A count, not a test:
// it takes hours.
//
//   normc_judge_defaults [GENERATOR [TYPE [PART PARTS]]]
//
// GENERATOR is mlir or halide, TYPE that of the data. PART of PARTS numbers of features are taken, so that
// several can run side by side.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Defaults.h"
#include "tests/end_to_end/Demand.h"

using namespace normc;

int main(int count, char** arguments) {
  const std::string generator = count > 1 ? arguments[1] : "mlir";
  const std::vector<std::string> types = count > 2 ? std::vector<std::string>{arguments[2]}
                                                   : std::vector<std::string>{"f32", "f64", "bf16", "f16"};
  const size_t part = count > 4 ? std::strtoul(arguments[3], nullptr, 10) : 0,
               parts = count > 4 ? std::strtoul(arguments[4], nullptr, 10) : 1;
  const std::vector<codegen::TargetPtr> targets = runnableTargets(generator);
  if (targets.empty()) {
    std::fprintf(stderr,
                 "normc_judge_defaults: no target of the generator '%s' runs here; legal: mlir, halide\n",
                 generator.c_str());
    return 2;
  }
  Judged judged;
  std::set<std::string> seen;  // several numbers of features may be one of whole groups and blocks
  const std::vector<int64_t> features = manyFeatures();
  for (size_t i = part; i < features.size(); i += parts) {
    const Judged before = judged;
    for (const std::string& type : types)
      for (const std::string& text : problemsOf({.dtype = type, .features = features[i]}))
        if (seen.insert(text).second) judgeDefaults(problemOf(text), targets, judged);
    std::printf(
        "%lld features: %lld kernels, %lld trials, %zu wrong; largest error over allowed so far %.2f\n",
        (long long)features[i], (long long)(judged.kernels - before.kernels),
        (long long)(judged.trials - before.trials), judged.wrong.size() - before.wrong.size(),
        judged.worstRatio);
    for (size_t w = before.wrong.size(); w < judged.wrong.size(); ++w)
      std::printf("  %s\n", judged.wrong[w].c_str());
    std::fflush(stdout);
  }
  std::printf("%lld kernels, %lld trials, %zu wrong; largest error over allowed %.2f: %s\n",
              (long long)judged.kernels, (long long)judged.trials, judged.wrong.size(), judged.worstRatio,
              judged.worst.c_str());
  return judged.wrong.empty() ? 0 : 1;
}
