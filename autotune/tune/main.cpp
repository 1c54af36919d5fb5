// normc-bundle FOLDER [--records FILE] [--budget TIME] [--seconds TIME] [--device N]: measures a bundle that
// `normc tune export` made. It needs normc-worker and the runtime in its folder, and no compiler.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "autotune/tune/Bundle.h"
#include "autotune/tune/FlagValues.h"
#include "autotune/tune/Interrupt.h"
#include "autotune/worker/StandardFiles.h"

namespace {

constexpr const char* kUsage =
    "normc-bundle FOLDER [--records FILE] [--budget TIME] [--seconds TIME] [--fresh]\n"
    "             [--device N] [--cuda-library FILE]\n"
    "  measures the candidates of a bundle on this machine; results go to FOLDER/results.jsonl.\n"
    "  A run that was stopped goes on from there; --fresh measures again what is decided there. --budget is\n"
    "  for one problem, --seconds for all together: 20s, 500ms, 2m, or a number of seconds. --device is of "
    "a\n"
    "  bundle for CUDA, N or cuda:N. Bring the results back:\n"
    "  normc tune import FILE --records DB\n"
    "Exit codes: 0 done; 1 a default could not be measured; 2 wrong command line; 3 no worker, device, "
    "bundle\n"
    "or records; 4 interrupted; 5 --seconds are over, and the rest is left for the next run.\n";

int usage(const std::string& wrong) {
  std::fprintf(stderr, "normc-bundle: error: %s\n%s", wrong.c_str(), kUsage);
  return 2;
}

/// Returns the options of a command line. Throws std::runtime_error if it is wrong.
normc::tune::BundleRun runOf(const std::vector<std::string>& words) {
  normc::tune::BundleRun run;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&] {
      if (i + 1 == words.size()) throw std::runtime_error(word + " needs a value");
      return words[++i];
    };
    const auto wrong = [&](const std::string& text, const char* rule) {
      return std::runtime_error(word + " is '" + text + "'; " + rule);
    };
    const auto seconds = [&] {
      const std::string text = value();
      if (const auto read = normc::tune::secondsIn(text)) return *read;
      throw wrong(text, normc::tune::kTimes);
    };
    const auto device = [&] {
      const std::string text = value();
      const auto index = normc::tune::cudaDeviceIn(text.starts_with("cuda:") ? text : "cuda:" + text);
      if (!index) throw wrong(text, "it must be the number of a CUDA device, e.g. 0 or cuda:0");
      return *index;
    };
    if (word == "--records")
      run.records = value();
    else if (word == "--budget")
      run.budget = seconds();
    else if (word == "--seconds")
      run.seconds = seconds();
    else if (word == "--fresh")
      run.fresh = true;
    else if (word == "--device")
      run.deviceIndex = device();
    else if (word == "--cuda-library")
      run.cudaLibrary = value();
    else if (word.starts_with("-"))
      throw std::runtime_error("there is no flag " + word);
    else if (run.folder.empty())
      run.folder = word;
    else
      throw std::runtime_error("one folder at a time, not also " + word);
  }
  if (run.folder.empty()) throw std::runtime_error("no folder is given");
  if (run.records.empty()) run.records = run.folder + "/" + normc::tune::kResultsFile;
  return run;
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
  // If a parent left it ignored, workers could not be waited for.
  std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  normc::tune::BundleRun run;
  try {
    run = runOf(words);
  } catch (const std::runtime_error& wrong) {
    return usage(wrong.what());
  }
  const normc::tune::Interrupt interrupt;
  run.stop = [&] { return interrupt.requested(); };
  run.say = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  try {
    run.worker = normc::tune::Worker::besideThis();
    return exitCode(normc::tune::runBundle(run));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normc-bundle: error: %s\n", error.what());
    return 3;
  }
}
