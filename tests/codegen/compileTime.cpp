// Not a test, but a measurement: how long the default kernels of some norms take to compile, one after
// another in this process.
//
//   normc_compile_time [--target host] [--norms layer_norm,rms_norm,batch_norm,power_norm] [--features 1024]
//   [--dtype f32] [--rounds 5] [--list no]
//
// 0 features: for any number. The time of a kernel is the median of the rounds. `--list yes` prints each
// kernel.
#include <CLI/CLI.hpp>

#include "codegen/Target.h"
#include "tests/codegen/Support.h"
#include "tests/codegen/Times.h"

using namespace normc;
using namespace normc::codegen;

int main(int count, char** arguments) {
  std::string targetName = "host", normNames = "layer_norm,rms_norm,batch_norm,power_norm", features = "1024",
              dtype = "f32", list = "no";
  int rounds = 5;
  CLI::App flags("Measures how long the default kernels of built-in norms take to compile.");
  flags.add_option("--target", targetName, "As of normc compile, one [host]");
  flags.add_option("--norms", normNames, "Names, with commas between them [" + normNames + "]");
  flags.add_option("--features", features, "Numbers; 0: for any number [1024]");
  flags.add_option("--dtype", dtype, "The type of the data [f32]");
  flags.add_option("--rounds", rounds, "A kernel's time is the median of so many [5]")
      ->check(CLI::PositiveNumber);
  flags.add_option("--list", list, "yes: each kernel [no]")->check(CLI::IsMember({"yes", "no"}));
  CLI11_PARSE(flags, count, arguments);
  auto target = findTarget(targetName);
  if (!target) return std::fprintf(stderr, "%s\n", llvm::toString(target.takeError()).c_str()), 1;

  std::vector<std::unique_ptr<BoundSchedule>> kernels;
  std::vector<std::string> names;
  const auto norms = listOf(normNames);
  for (const BuiltinNorm& norm : builtinNorms()) {
    if (!llvm::is_contained(norms, norm.name)) continue;
    for (Entry entry : {Entry::Forward, Entry::Backward, Entry::Infer})
      for (const std::string& text : listOf(features)) {
        const int64_t number = std::stoll(text);
        auto problem = problemOf(norm, {.entry = entry, .features = number ? number : 4, .dtype = dtype});
        if (problem && !number) problem->features.reset();
        if (!problem || !checkProblem(*problem)) continue;
        const auto bound = (*target)->bind(*problem);
        for (const Candidate& candidate : bound->defaults()) {
          kernels.push_back(llvm::cantFail(bound->parse(candidate.schedule)));
          names.push_back(problem->text() + " " + candidate.schedule);
        }
      }
  }

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
    if (list == "yes") std::printf("%6.1f ms  %s\n", medians.back().processor, name.c_str());
  }
  std::printf("%s: %zu kernels, %.1f ms of the processor in the mean\n", (*target)->spelling().c_str(),
              kernels.size(), sum / double(kernels.size()));
  report("a kernel", medians);
}
