// normc-bundle FOLDER [--records FILE] [--budget SECONDS] [--device N]: measures what `normc tune export`
// packed. It needs normc-worker and the runtime beside it, and no compiler.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>

#include "autotune/tune/Bundle.h"

namespace {

constexpr const char* kUsage =
    "normc-bundle FOLDER [--records FILE] [--budget SECONDS] [--device N] [--cuda-library FILE]\n"
    "  measures the candidates of a bundle on this machine; results go to FOLDER/results.jsonl.\n"
    "  A run that was stopped goes on from there. Bring the results back: normc tune import FILE --records "
    "DB\n";

int usage(const std::string& wrong) {
  std::fprintf(stderr, "normc-bundle: error: %s\n%s", wrong.c_str(), kUsage);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  normc::tune::BundleRun run;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool last = i + 1 == argc;
    if (argument == "--help") return std::fputs(kUsage, stdout), 0;
    if (argument == "--records" && !last)
      run.records = argv[++i];
    else if (argument == "--budget" && !last)
      run.budget = std::atof(argv[++i]);
    else if (argument == "--device" && !last)
      run.deviceIndex = std::atoi(argv[++i]);
    else if (argument == "--cuda-library" && !last)
      run.cudaLibrary = argv[++i];
    else if (argument.starts_with("-"))
      return usage("there is no flag " + argument + ", or it lacks its value");
    else if (run.folder.empty())
      run.folder = argument;
    else
      return usage("one folder at a time, not also " + argument);
  }
  if (run.folder.empty()) return usage("no folder is given");
  if (!(run.budget > 0)) return usage("--budget must be a number of seconds");
  if (run.records.empty()) run.records = run.folder + "/results.jsonl";
  sigset_t signals;
  sigemptyset(&signals), sigaddset(&signals, SIGINT), sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  run.stop = [] {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
  };
  run.say = [](const std::string& line) { std::printf("%s\n", line.c_str()), std::fflush(stdout); };
  try {
    run.worker = normc::tune::Worker::besideThis();
    const bool whole = normc::tune::runBundle(run);
    return whole ? 0 : run.stop() ? 4 : 1;
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "normc-bundle: error: %s\n", error.what());
    return 3;
  }
}
