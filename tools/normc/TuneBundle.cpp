#include "tools/normc/TuneBundle.h"

#include <cstring>
#include <filesystem>
#include <ostream>

#include "autotune/candidates/CandidateCompiler.h"
#include "autotune/tune/Bundle.h"
#include "autotune/tune/Interrupt.h"
#include "dsl/Library.h"
#include "dsl/Nearest.h"
#include "dsl/Print.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/Progress.h"
#include "tools/normc/RecordFiles.h"
#include "tools/normc/TargetFlag.h"
#include "tools/normc/TuneLandscape.h"
#include "tools/normc/TuneReport.h"
#include "tools/normc/Values.h"

namespace normc::cli {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> wordsAfterFirst(const TuneFlags& flags) {
  return {flags.problems.inputs.begin() + 1, flags.problems.inputs.end()};
}

void makeFolder(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_empty(path, error))
    throw refused("cannot export to " + path + ": it is there, and not empty");
  fs::create_directories(path, error);
  if (error) throw refused("cannot make the folder " + path + ": " + error.message());
}

/// Returns the default, then the seeds of a search, or the schedules of the command line.
std::vector<size_t> candidatesOf(const tune::Landscape& landscape, const TuneFlags& flags) {
  constexpr int64_t kMost = 4096;
  tune::SearchOptions options;
  options.seed = uint64_t(flags.seed);
  options.fromModel = int(std::min(flags.candidates, kMost));
  options.atRandom = int(std::min(flags.random, kMost));
  if (!flags.schedules.empty()) {
    options.fromModel = int(landscape.size());
    options.atRandom = 0;
  }
  return tune::seedsOf(landscape, options);
}

/// A candidate that cannot be made here, so is not in the bundle.
struct LeftOut {
  std::string problem, schedule, reason;
};

/// The default, then the seeds, as far as they can be made; to `leftOut` those that cannot.
tune::Shipped shipped(const TuneTask& t, const tune::Hardware& hardware, size_t index, const TuneFlags& flags,
                      const tune::Interrupt& interrupt, std::vector<LeftOut>& leftOut) {
  const tune::Landscape landscape = landscapeOf(t, hardware, flags, Illegal::Kept);
  const std::vector<size_t> points = candidatesOf(landscape, flags);
  const std::string folder = flags.output + "/" + std::to_string(index);
  makeFolder(folder);
  const tune::CandidateCompiler compiler(landscape, hardware.generators, t.problem, folder,
                                         [&] { return interrupt.requested(); });
  std::vector<tune::BuiltCandidate> made = compiler.compile(points);
  if (!made[0].failure.empty())
    throw refused("the default of " + t.problem.text() + " cannot be compiled: " + made[0].failure);
  tune::Shipped shipped;
  shipped.setting.task = t.task;
  shipped.setting.spec = print(*t.problem.spec);
  shipped.setting.device = {hardware.site.device.kind, hardware.site.device.arch, "", {}};
  shipped.setting.toolchain = hardware.site.toolchain;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!made[i].failure.empty()) {
      const tune::Point& point = landscape[points[i]];
      leftOut.push_back({t.problem.text(), point.generator + ":" + point.schedule, made[i].failure});
      continue;
    }
    made[i].package = std::to_string(index) + "/" + fs::path(made[i].package).filename().string();
    shipped.points.push_back(landscape[points[i]]);
    shipped.made.push_back(std::move(made[i]));
  }
  return shipped;
}

ExitCode showCandidates(const std::vector<TuneTask>& tasks, const tune::Hardware& hardware,
                        const TuneFlags& flags, Output& out) {
  Json all = Json::array();
  for (const TuneTask& t : tasks) {
    const tune::Landscape landscape = landscapeOf(t, hardware, flags, Illegal::Kept);
    all.push_back(dryRunReport(t.task, landscape, candidatesOf(landscape, flags), Shown::Seeds, out));
  }
  if (out.json) out.result({{"tasks", all}});
  return ExitCode::Ok;
}

}  // namespace

ExitCode exportBundle(const TuneFlags& given, Output& out) {
  TuneFlags flags = given;
  flags.problems.inputs = wordsAfterFirst(given);
  if (flags.output.empty() && !flags.dryRun)
    throw usage("normc tune export needs the name of a folder to make", "-o FOLDER");
  const tune::Hardware hardware = hardwareFor(oneTarget(flags.target, "tune"));
  const std::vector<TuneTask> tasks = tasksOf(flags, flags.threads);
  if (tasks.empty())
    throw usage("--shard is '" + flags.shard +
                "'; there are too few problems for that part, so nothing to export");
  if (flags.dryRun) return showCandidates(tasks, hardware, flags, out);
  // A schedule that cannot be read is refused before there is a folder.
  if (!flags.schedules.empty()) landscapeOf(tasks[0], hardware, flags, Illegal::Kept);
  makeFolder(flags.output);
  std::vector<tune::Shipped> all;
  std::vector<LeftOut> leftOut;
  const tune::Interrupt interrupt;
  Progress progress(out, "compiling", int64_t(tasks.size()));
  int64_t packages = 0;
  for (const TuneTask& task : tasks) {
    progress.step(int64_t(all.size()), task.problem.text());
    if (!interrupt.requested()) all.push_back(shipped(task, hardware, all.size(), flags, interrupt, leftOut));
    if (interrupt.requested())
      throw Failure(ExitCode::Interrupted,
                    {{.message = "interrupted; " + flags.output + " has no plan and cannot be run"}});
    packages += int64_t(all.back().points.size());
  }
  progress.clear();
  writeFile(flags.output + "/" + tune::kPlanFile, tune::planText(all));
  if (out.json) {
    Json without = Json::array();
    for (const LeftOut& one : leftOut)
      without.push_back({{"problem", one.problem}, {"schedule", one.schedule}, {"reason", one.reason}});
    out.result({{"folder", flags.output},
                {"tasks", all.size()},
                {"candidates", packages},
                {"left_out", without},
                {"target", hardware.site.device.arch}});
    return ExitCode::Ok;
  }
  out.results() << flags.output << ": " << counted(packages, "candidate") << " of "
                << counted(int64_t(all.size()), "problem") << " for " << hardware.site.device.arch << "\n";
  for (const LeftOut& one : leftOut)
    out.results() << "left out: " << one.problem << ", " << one.schedule << ": " << shortOf(one.reason)
                  << "\n";
  out.results() << "measure them there: normc-bundle " << flags.output
                << "; and bring the results home: normc tune import " << flags.output
                << " --records DB.jsonl\n";
  return ExitCode::Ok;
}

ExitCode runBundleHere(const TuneFlags& flags, Output& out) {
  const auto folders = wordsAfterFirst(flags);
  if (folders.size() != 1)
    throw usage("normc tune run-bundle needs one folder", "normc tune run-bundle FOLDER");
  const tune::Interrupt interrupt;
  tune::BundleRun run;
  run.folder = folders[0];
  run.records = flags.records.empty() ? run.folder + "/" + tune::kResultsFile : flags.records;
  run.worker = tune::Worker::besideThis();
  run.budget = secondsOf("--budget", flags.budget);
  const Place place(flags.place);
  run.deviceIndex = place.index();
  run.cudaLibrary = place.cudaLibrary();
  run.stop = [&] { return interrupt.requested(); };
  Json lines = Json::array();
  run.say = [&](const std::string& line) {
    lines.push_back(line);
    if (!out.json) out.results() << line << std::endl;
  };
  run.fresh = flags.fresh;
  const tune::BundleEnd end = tune::runBundle(run);
  const bool whole = end == tune::BundleEnd::Whole;
  if (out.json) out.result({{"records", run.records}, {"complete", whole}, {"tasks", lines}});
  return whole                             ? ExitCode::Ok
         : end == tune::BundleEnd::Stopped ? ExitCode::Interrupted
                                           : ExitCode::CheckFailed;
}

void refuseBundles(const std::vector<std::string>& inputs) {
  std::error_code none;
  for (const std::string& input : inputs)
    if (fs::exists(fs::path(input) / tune::kPlanFile, none) && !findNorm(input))
      throw usage(inQuotes(input) + " is a bundle, and here a norm is needed",
                  "normc tune run-bundle " + input);
}

ExitCode importResults(const TuneFlags& flags, Output& out) {
  const auto files = wordsAfterFirst(flags);
  if (files.empty() || flags.records.empty())
    throw usage("normc tune import needs results, and the records to add them to",
                "normc tune import FOLDER --records DB.jsonl");
  std::vector<std::string> results;
  std::error_code none;
  for (const std::string& file : files)
    results.push_back(fs::is_directory(file, none) ? file + "/" + tune::kResultsFile : file);
  for (const std::string& file : results) requireOwnFile({"--records", flags.records}, {{"the input", file}});
  if (isStream(flags.records)) throw refused("cannot write " + flags.records + ": it is not a regular file");
  tune::Database all, given;
  if (fs::exists(flags.records, none)) all = recordsIn(flags.records);
  for (const std::string& file : results) given.add(recordsIn(file));
  try {  // appended, since a tuning that runs may append, too
    tune::Journal journal(flags.records);
    for (const std::string& line : all.missing(given)) journal.appendLine(line);
    journal.sync();
  } catch (const std::runtime_error& error) {
    throw refused(error.what());
  }
  const int64_t before = all.counts.records;
  all.add(std::move(given));
  if (out.json) {
    Json result = countsJson(all.counts);
    result.update(
        {{"records", flags.records}, {"new", all.counts.records - before}, {"total", all.counts.records}});
    out.result(result);
    return ExitCode::Ok;
  }
  out.results() << flags.records << ": " << counted(all.counts.records - before, "new record") << "; "
                << all.counts.text() << "\n";
  return ExitCode::Ok;
}

}  // namespace normc::cli
