// normc-gpu: tests and measures kernels of a package on a CUDA device, on a machine that has only the driver.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "autotune/records/Journal.h"
#include "bench/gpu/Bench.h"
#include "bench/gpu/Facts.h"
#include "bench/gpu/Host.h"
#include "bench/gpu/Shapes.h"
#include "bench/gpu/Sweep.h"
#include "bench/gpu/Table.h"
#include "bench/gpu/Trials.h"
#include "bench/kit/Text.h"

namespace normc::gpu {
namespace {

enum Exit { kOk = 0, kFailed = 1, kMore = 3, kDeviceLost = 4 };

struct Flags {
  std::string driver = gate::CudaDriver::kLibrary, package, out, only, bundle;
  std::string summary;  ///< test: the file to write
  std::string tuned;    ///< bench: the records of `bundle`
  std::vector<std::string> inputs;
  int device = 0, threads = 0, rounds = 15;
  double seconds = 1e9, hang = 60;
  bool quick = false, evenWrong = false, arch = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  std::function<bool()> stop() const {
    return [this] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds;
    };
  }
  Kernels kernels() const { return Kernels(package, driver, device); }
  gate::CudaDevice open() const { return gate::CudaDevice(device, driver); }
};

/// Shows a line, and adds it to the file of records if there is one.
std::function<void(const Json&)> recorder(const Flags& flags) {
  auto file = flags.out.empty() ? nullptr : std::make_shared<tune::Journal>(flags.out);
  return [file](const Json& record) {
    std::printf("%s\n", record.dump().c_str());
    std::fflush(stdout);
    if (file) file->appendLine(record.dump());
  };
}

int facts(const Flags& flags) {
  const gate::CudaDevice device = flags.open();
  if (flags.arch) {
    std::printf("%s\n", archOf(device).c_str());
    return kOk;
  }
  recorder(flags)(factsOf(device));
  return kOk;
}

int roofs(const Flags& flags) {
  benchRoofs(flags.open(), flags.quick, flags.stop(), recorder(flags));
  return kOk;
}

int list(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  return kOk;
}

int problems(const Flags& flags) { return list(problemsToCompile(flags.quick)); }
int tasks(const Flags& flags) { return list(argumentsToExport(flags.quick)); }

int shapes(const Flags& flags) {
  std::vector<std::string> texts;
  for (const ProblemText& shape : allShapes(flags.quick)) texts.push_back(shape.text());
  return list(texts);
}

/// Ends the program where nothing has been recorded for too long: a kernel that never ends cannot be stopped
/// from here. The next run finds out which.
class Watchdog {
 public:
  explicit Watchdog(double seconds) : thread_([this, seconds] { watch(seconds); }) {}
  ~Watchdog() {
    done_ = true;
    thread_.join();
  }
  void pat() { ++pats_; }

 private:
  void watch(double seconds) {
    auto last = std::chrono::steady_clock::now();
    for (int seen = pats_; !done_; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      const auto now = std::chrono::steady_clock::now();
      if (pats_ != seen) {
        seen = pats_;
        last = now;
      }
      if (std::chrono::duration<double>(now - last).count() < seconds) continue;
      std::fprintf(stderr, "normc-gpu: nothing has ended for %.0f s; leaving\n", seconds);
      std::_Exit(kDeviceLost);
    }
  }
  std::atomic<int> pats_ = 0;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

int test(const Flags& flags) {
  const Kernels kernels = flags.kernels();
  const auto add = recorder(flags);
  Watchdog watchdog(flags.hang);
  TestOptions options;
  options.driver = flags.driver;
  options.only = flags.only;
  options.threads =
      flags.threads ? flags.threads : int(std::clamp(std::thread::hardware_concurrency(), 1u, 12u));
  options.stop = flags.stop();
  std::vector<Json> all = readRecords(flags.out);
  const std::vector<Json> before = all;
  options.record = [&](const Json& record) {
    watchdog.pat();
    add(record);
    all.push_back(record);
  };
  const TestEnd end = testPackage(kernels, before, options);
  Json summary = testSummary(all);
  summary["finished"] = end == TestEnd::Finished;
  if (!flags.summary.empty())
    bench::writeText(flags.summary, summary.dump() + "\n");  // a line, as table reads it
  std::printf("%s\n", summary.dump().c_str());
  if (end == TestEnd::DeviceLost) return kDeviceLost;
  if (summary.at("trials_failed") != 0) return kFailed;
  return end == TestEnd::Stopped ? kMore : kOk;
}

bool wentWrong(const Json& record) { return record.contains("error") || record.contains("wrong"); }

int bench(const Flags& flags) {
  const Kernels kernels = flags.kernels();
  const std::vector<Json> before = readRecords(flags.out);
  const auto add = recorder(flags);
  bool failed = std::ranges::any_of(before, wentWrong);
  Watchdog watchdog(flags.hang);
  BenchOptions options;
  options.rounds = flags.quick ? 5 : flags.rounds;
  if (flags.quick) options.sampleSeconds = 1e-4;
  options.evenWrong = flags.evenWrong;
  options.driver = flags.driver;
  if (!flags.bundle.empty()) options.tuned = choicesOf(flags.bundle, flags.tuned, flags.driver, flags.device);
  options.stop = flags.stop();
  options.record = [&](const Json& record) {
    watchdog.pat();
    failed = failed || wentWrong(record);
    add(record);
  };
  const gate::CudaDevice device = flags.open();
  benchAll(device, kernels, allShapes(flags.quick), before, options);
  if (!device.alive()) return kDeviceLost;
  return failed ? kFailed : flags.stop()() ? kMore : kOk;
}

int sweep(const Flags& flags) {
  const auto add = recorder(flags);
  Watchdog watchdog(flags.hang);
  SweepOptions options;
  options.driver = flags.driver;
  options.only = flags.only;
  options.stop = flags.stop();
  options.record = [&](const Json& record) {
    watchdog.pat();
    add(record);
  };
  const gate::CudaDevice device = flags.open();
  sweepBundle(device, flags.bundle, readRecords(flags.out), options);
  if (!device.alive()) return kDeviceLost;
  return flags.stop()() ? kMore : kOk;
}

int enqueue(const Flags& flags) {
  const Kernels kernels = flags.kernels();
  const auto add = recorder(flags);
  bool failed = false;
  benchEnqueue(flags.driver, kernels, smallShapes(kernels), flags.quick ? 3 : 30, [&](const Json& record) {
    failed = failed || wentWrong(record);
    add(record);
  });
  return failed ? kFailed : kOk;
}

int graph(const Flags& flags) {
  const Kernels kernels = flags.kernels();
  const Json result = testGraph(flags.open(), kernels, smallShapes(kernels));
  recorder(flags)(result);
  return result.value("equal", false) ? kOk : kFailed;
}

int table(const Flags& flags) {
  std::vector<Json> records;
  for (const std::string& input : flags.inputs)
    for (Json& record : readRecords(input)) records.push_back(std::move(record));
  const std::string text = tableOf(records);
  if (flags.out.empty()) std::printf("%s", text.c_str());
  if (!flags.out.empty()) bench::writeText(flags.out, text);
  return kOk;
}

}  // namespace
}  // namespace normc::gpu

int main(int argc, char** argv) {
  using namespace normc::gpu;
  Flags flags;
  CLI::App app("Tests and measures the kernels of a package on a CUDA device.");
  app.require_subcommand(1);
  app.add_option("--driver", flags.driver, "The CUDA driver's library [libcuda.so.1]");
  app.add_option("--device", flags.device, "Number of the device [0]");
  app.footer(
      "Results are JSON lines, written as soon as they are known. Exit codes: 0 done; 1 something failed;\n"
      "3 time ran out, run it again to go on; 4 the device was lost, run it again to go on.");
  int (*action)(const Flags&) = nullptr;
  const auto verb = [&](const char* name, const char* what, int (*run)(const Flags&)) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->fallthrough();
    sub->callback([&action, run] { action = run; });
    sub->add_option("-o,--output", flags.out, "File to add the results to");
    sub->add_option("--seconds", flags.seconds, "Begin nothing new after this time");
    return sub;
  };
  const auto quick = [&](CLI::App* sub) {
    sub->add_flag("--quick", flags.quick, "A few small shapes only");
    return sub;
  };
  const auto packaged = [&](CLI::App* sub) {
    sub->add_option("package", flags.package, "The package (.npk)")->required();
    return sub;
  };
  verb("facts", "Device, driver, clocks, memory", facts)->add_flag("--arch", flags.arch, "Print sm_NN alone");
  quick(verb("roofs", "Copy and triad from small to large", roofs));
  quick(verb("problems", "The problems to compile for all of this", problems));
  quick(verb("tasks", "What 'normc tune export' is asked for, an argument a line", tasks));
  quick(verb("shapes", "The shapes that bench measures", shapes));
  CLI::App* tests = packaged(verb("test", "Every kernel against the reference", test));
  tests->add_option("--threads", flags.threads,
                    "Threads that evaluate references [as many as there are, to 12]");
  tests->add_option("--only", flags.only, "Only problems with this text in them");
  tests->add_option("--summary", flags.summary, "File to write the summary to");
  CLI::App* times = quick(packaged(verb("bench", "Kernel times beside copies of the same footprint", bench)));
  CLI::App* sweeps = verb("sweep", "Times of all candidates of a bundle, which are not judged", sweep);
  sweeps->add_option("bundle", flags.bundle, "The folder that 'normc tune export' made")->required();
  sweeps->add_option("--only", flags.only, "Only problems with this text in them");
  for (CLI::App* sub : {tests, times, sweeps})
    sub->add_option("--hang", flags.hang, "Leave if no kernel has ended for so many seconds [60]");
  times->add_option("--rounds", flags.rounds, "Samples of each [15]")->check(CLI::Range(3, 1000));
  times->add_flag("--even-wrong", flags.evenWrong, "Time what the gate refuses, too");
  CLI::Option* const tuned = times->add_option(
      "--tuned", flags.tuned, "The records of a bundle; what won there is timed beside the default");
  CLI::Option* const bundle = times->add_option("--bundle", flags.bundle, "The bundle's folder");
  tuned->needs(bundle);
  bundle->needs(tuned);
  quick(packaged(verb("enqueue", "Host time of one call", enqueue)));
  packaged(verb("graph", "A hundred calls captured, and the same bits", graph));
  verb("table", "The page of all results", table)->add_option("inputs", flags.inputs, "Files of results");
  CLI11_PARSE(app, argc, argv);
  try {
    return action(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normc-gpu: %s\n", error.what());
    return kFailed;
  }
}
