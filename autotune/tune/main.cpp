// normc-bundle FOLDER [--records FILE] [--budget SECONDS] [--seconds SECONDS] [--device N]: measures what
// `normc tune export` packed. It needs normc-worker and the runtime beside it, and no compiler.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>

#include "autotune/tune/Bundle.h"
#include "autotune/worker/StandardFiles.h"

namespace {

constexpr const char* kUsage =
    "normc-bundle FOLDER [--records FILE] [--budget SECONDS] [--seconds SECONDS] [--fresh]\n"
    "             [--device N] [--cuda-library FILE]\n"
    "  measures the candidates of a bundle on this machine; results go to FOLDER/results.jsonl.\n"
    "  A run that was stopped goes on from there; --fresh measures again what is decided there. --budget is\n"
    "  for one problem, --seconds for all together. Bring the results back:\n"
    "  normc tune import FILE --records DB\n"
    "Exit codes: 0 done; 1 a default could not be measured; 2 wrong command line; 3 no worker, device, "
    "bundle\n"
    "or records; 4 interrupted; 5 --seconds are over, and the rest is left for the next run.\n";

int usage(const std::string& wrong) {
  std::fprintf(stderr, "normc-bundle: error: %s\n%s", wrong.c_str(), kUsage);
  return 2;
}

int exitCode(normc::tune::BundleEnd end) {
  switch (end) {
    case normc::tune::BundleEnd::Whole:
      return 0;
    case normc::tune::BundleEnd::Failed:
      return 1;
    case normc::tune::BundleEnd::Stopped:
      return 4;
    case normc::tune::BundleEnd::OutOfTime:
      return 5;
  }
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  normc::tune::reserveStandardFiles();
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, as some parents leave it, no worker can be waited for
  normc::tune::BundleRun run;
  bool limited = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool last = i + 1 == argc;
    if (argument == "--help") return std::fputs(kUsage, stdout), 0;
    if (argument == "--records" && !last)
      run.records = argv[++i];
    else if (argument == "--budget" && !last)
      run.budget = std::atof(argv[++i]);
    else if (argument == "--seconds" && !last)
      run.seconds = std::atof(argv[++i]), limited = true;
    else if (argument == "--fresh")
      run.fresh = true;
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
  if (limited && !(run.seconds > 0)) return usage("--seconds must be a number of seconds");
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
    return exitCode(normc::tune::runBundle(run));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normc-bundle: error: %s\n", error.what());
    return 3;
  }
}
