// Not a test, but a measurement: how long the default kernels of some norms take to compile, one after
// another in this process.
//
//   normc_compile_time [--target host] [--norms layer_norm,rms_norm,batch_norm,power_norm] [--features 1024]
//   [--dtype f32] [--rounds 5] [--list no]
//
// 0 features: for any number. The time of a kernel is the median of the rounds. `--list yes` prints each
// kernel.
#include <map>

#include "codegen/Target.h"
#include "tests/codegen/Support.h"
#include "tests/codegen/Times.h"

using namespace normc;
using namespace normc::codegen;

int main(int count, char** arguments) {
  std::map<std::string, std::string> flags{
      {"--target", "host"},   {"--norms", "layer_norm,rms_norm,batch_norm,power_norm"},
      {"--features", "1024"}, {"--dtype", "f32"},
      {"--rounds", "5"},      {"--list", "no"}};
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count || !flags.contains(arguments[i]))
      return std::fprintf(stderr, "normc_compile_time: no value for, or no flag '%s'\n", arguments[i]), 1;
    flags[arguments[i]] = arguments[i + 1];
  }
  auto target = findTarget(flags["--target"]);
  if (!target) return std::fprintf(stderr, "%s\n", llvm::toString(target.takeError()).c_str()), 1;

  std::vector<std::unique_ptr<BoundSchedule>> kernels;
  std::vector<std::string> names;
  const auto norms = listOf(flags["--norms"]);
  for (const BuiltinNorm& norm : builtinNorms()) {
    if (!llvm::is_contained(norms, norm.name)) continue;
    for (Entry entry : {Entry::Forward, Entry::Backward, Entry::Infer})
      for (const std::string& text : listOf(flags["--features"])) {
        const int64_t number = std::stoll(text);
        auto problem =
            problemOf(norm, {.entry = entry, .features = number ? number : 4, .dtype = flags["--dtype"]});
        if (problem && !number) problem->features.reset();
        if (!problem || !checkProblem(*problem)) continue;
        const auto bound = (*target)->bind(*problem);
        for (const Candidate& candidate : bound->defaults()) {
          kernels.push_back(llvm::cantFail(bound->parse(candidate.schedule)));
          names.push_back(problem->text() + " " + candidate.schedule);
        }
      }
  }

  const int rounds = std::stoi(flags["--rounds"]);
  std::vector<std::vector<Time>> times(kernels.size());
  for (int round = -1; round < rounds; ++round)  // the first loads LLVM
    for (auto [kernel, samples] : llvm::zip(kernels, times)) {
      const Time begin = Time::now();
      llvm::cantFail(kernel->compile("k"));
      if (round >= 0) samples.push_back(Time::now().since(begin));
    }
  std::vector<Time> medians;
  double sum = 0;
  for (auto [samples, name] : llvm::zip(times, names)) {
    std::ranges::sort(samples, {}, &Time::processor);
    medians.push_back(samples[samples.size() / 2]);
    sum += medians.back().processor;
    if (flags["--list"] == "yes") std::printf("%6.1f ms  %s\n", medians.back().processor, name.c_str());
  }
  std::printf("%s: %zu kernels, %.1f ms of the processor in the mean\n", (*target)->spelling().c_str(),
              kernels.size(), sum / double(kernels.size()));
  report("a kernel", medians);
}
