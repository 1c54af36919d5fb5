// normc tune NORM... --features N: finds the fastest right schedule for a device
#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>

#include "autotune/candidates/CandidateCompiler.h"
#include "autotune/gate/Trials.h"
#include "autotune/measure/Buffers.h"
#include "autotune/measure/Clock.h"
#include "autotune/measure/Policy.h"
#include "autotune/search/Search.h"
#include "autotune/tune/Hints.h"
#include "autotune/tune/Interrupt.h"
#include "autotune/tune/ThisDevice.h"
#include "dsl/Print.h"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/FreeMemory.h"
#include "tools/normc/Progress.h"
#include "tools/normc/RecordFiles.h"
#include "tools/normc/TargetFlag.h"
#include "tools/normc/TemporaryFolder.h"
#include "tools/normc/TuneBundle.h"
#include "tools/normc/TuneLandscape.h"
#include "tools/normc/TuneReport.h"
#include "tools/normc/TuneSubcommand.h"
#include "tools/normc/TuneTasks.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

/// Seconds to wait for a quiet core where there is no budget; a process that hangs in a race is reported much
/// later.
constexpr double kExhaustivePatience = 60;

/// The share of a budget for timing a copy beside the kernels.
constexpr double kCopyShare = 0.04;
/// With --total, a problem gets this share of its --budget at least: less measures too little to choose.
constexpr double kLeastOfBudget = 0.25;

/// Returns the word quoted for a shell.
std::string shellWord(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// Returns the errors of the exception that is handled now.
std::vector<Diagnostic> errorsNow() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.diagnostics();
  } catch (const std::exception& error) {
    return {{.message = error.what()}};
  }
}

class Tuning {
 public:
  Tuning(const TuneFlags& flags, Output& out)
      : flags_(flags),
        out_(out),
        place_(flags.place),
        hardware_(hardwareFor(oneTarget(flags.target, "tune"), place_)),
        budget_(secondsOf("--budget", flags.budget)),
        total_(flags.total.empty() ? 0 : secondsOf("--total", flags.total)) {
    if (const std::string name = hardware_.site.device.arch;
        !flags.dryRun && !place_.onCuda() && !tune::runsHere(name))
      throw usage("code for " + name + " cannot be measured on this processor, which has " + normc_cpu_isa(),
                  "--dry-run shows its candidates");
    tasks_ = tasksOf(flags, place_.onCuda() ? 1 : hardware_.machine.threadsFor(flags.threads));
    if (!flags.records.empty()) openRecords();
  }

  ExitCode run() {
    if (flags_.dryRun) return dryRun();
    if (!journal_) out_.note("the measurements of this run are not kept; --records FILE.jsonl keeps them");
    tune::Interrupt interrupt;
    Progress progress(out_, "tuning", int64_t(tasks_.size()));
    std::vector<Tuned> results;
    for (const TuneTask& task : tasks_) requireMemoryFor(task);
    for (const TuneTask& task : tasks_) {
      const double budget = nextBudget(tasks_.size() - results.size());
      if (interrupt.requested() || budget == 0) break;
      try {
        results.push_back(tune(task, budget, results.size(), interrupt, progress));
      } catch (...) {  // what was measured before is not lost
        progress.clear();
        if (!results.empty()) report(results, /*whole=*/true, flags_.records, out_, {}, errorsNow());
        throw;
      }
    }
    const bool whole = !interrupt.requested();
    progress.clear();
    std::vector<tune::Task> undone;
    for (size_t i = results.size(); whole && i < tasks_.size(); ++i) undone.push_back(tasks_[i].task);
    report(results, whole, flags_.records, out_, undone);
    const bool failed = std::any_of(results.begin(), results.end(),
                                    [](const Tuned& t) { return !t.outcome.failure.empty(); });
    return !whole || !undone.empty() ? ExitCode::Interrupted : failed ? ExitCode::CheckFailed : ExitCode::Ok;
  }

 private:
  /// Returns the budget of the next of the problems that are left; 0: --total leaves too little for one. The
  /// rest of the total is divided evenly, and what a problem does not need is for the others.
  double nextBudget(size_t left) const {
    if (total_ == 0) return budget_;
    const double rest = total_ - (measure::secondsNow() - begun_), least = kLeastOfBudget * budget_;
    return rest < least ? 0 : std::min(budget_, std::max(least, rest / double(left)));
  }

  void openRecords() {
    if (flags_.dryRun && !std::filesystem::exists(flags_.records)) return;  // it makes none
    try {
      if (!flags_.dryRun) journal_.emplace(flags_.records);
    } catch (const std::runtime_error& error) {
      throw refused(error.what());
    }
    known_ = valueOf(tune::readDatabase(flags_.records), ExitCode::Refused);
    noteFlaws(flags_.records, known_.counts, out_);
  }

  tune::Setting settingOf(const TuneTask& t, double budget) const {
    tune::Setting setting{t.task, print(*t.problem.spec), hardware_.site.device, hardware_.site.toolchain,
                          session_};
    setting.quietPatience = flags_.exhaustive ? kExhaustivePatience : tune::kQuietShare * budget;
    if (!flags_.exhaustive) setting.quietShare = tune::kQuietShare;
    if (!place_.onCuda()) {
      setting.screenRows = tune::screeningRows(t.task, setting.spec, hardware_.machine.lastCache);
      return setting;
    }
    setting.deviceIndex = place_.index();
    setting.cudaLibrary = place_.cudaLibrary();
    setting.sampleSeconds = tune::kCudaSampleSeconds;
    return setting;
  }

  void requireMemoryFor(const TuneTask& t) const {
    requireMemory("the gate of " + t.task.text(), gate::bytesOfTrials(t.problem, t.task.features));
    if (!place_.onCuda())
      requireMemory(
          "a race of " + t.task.text(),
          2 * measure::Buffers::bytesOfSet(t.problem, {t.task.segments, t.task.rows, t.task.features}));
  }

  Tuned tune(const TuneTask& t, double budget, size_t index, const tune::Interrupt& interrupt,
             Progress& progress) {
    const double begun = measure::secondsNow();
    requireMemoryFor(t);
    const tune::Landscape landscape = landscapeOf(t, hardware_, flags_, Illegal::Refused);
    tune::Setting setting = settingOf(t, budget);
    setting.begun = begun;
    setting.stamp = tune::newStamp(known_.records);
    const TemporaryFolder folder;
    const tune::CandidateCompiler compiler(landscape, hardware_.generators, t.problem, folder.path(),
                                           [&] { return interrupt.requested(); });
    tune::SearchOptions options;
    options.budget = (1 - kCopyShare) * budget;
    options.exhaustive = flags_.exhaustive;
    options.seed = uint64_t(flags_.seed);
    if (!flags_.schedules.empty()) {
      options.keepAll = true;
      options.finalists = int(flags_.schedules.size());
    }
    tune::addHints(landscape, known_.records, setting, options);
    options.progress = [&](const tune::SearchOptions::Progress& p) {
      const double part =
          flags_.exhaustive ? double(p.done) / double(std::max<size_t>(p.total, 1)) : p.seconds / budget;
      progress.show((double(index) + std::min(part, 1.0)) / double(tasks_.size()),
                    t.task.problem.text() + ": " + p.phase + ", " + counted(int64_t(p.done), "candidate"));
    };
    tune::LiveLab lab(
        landscape, setting,
        {[&](size_t point) { return compiler.compile(point); }, [&] { return interrupt.requested(); },
         tune::Worker::besideThis(), journal_ ? &*journal_ : nullptr},
        flags_.fresh ? std::map<size_t, tune::Screened>{}
                     : tune::rememberedFrom(landscape, known_.records, setting));
    Tuned tuned{.task = t.task,
                .outcome = tune::search(landscape, lab, options),
                .landscape = landscape,
                .named = !flags_.schedules.empty(),
                .norms = normFiles(),
                .place = placeFlags()};
    if (!tuned.outcome.failure.empty()) return tuned;
    conclude(t.problem, tuned, lab, budget);
    return tuned;
  }

  std::string normFiles() const {
    std::string files;
    for (const std::string& input : flags_.problems.inputs)
      if (namesFile(input)) files += shellWord(input) + " ";
    return files;
  }
  std::string placeFlags() const {
    const TuneFlags usual;
    std::string text;
    const auto add = [&](const char* flag, const std::string& value, const std::string& byDefault) {
      if (value != byDefault) text += std::string(flag) + shellWord(value);
    };
    add(" --target ", flags_.target, usual.target);
    add(" --device ", flags_.place.device, usual.place.device);
    add(" --cuda-library ", flags_.place.cudaLibrary, usual.place.cudaLibrary);
    return text;
  }

  void conclude(const Problem& problem, Tuned& tuned, tune::LiveLab& lab, double budget) const {
    for (const tune::Racer& racer : tuned.outcome.racers)
      if (racer.point == tuned.landscape.byDefault()) tuned.defaultSamples = racer.samples;
    // A few that were named are no search: what a whole one chose stays.
    if (tuned.outcome.decided && flags_.schedules.empty()) lab.conclude(tuned.outcome);
    tuned.disturbed = lab.disturbed();
    tuned.patient = lab.patient();
    // A budget that is spent leaves no time for a copy.
    const double left = flags_.exhaustive ? kExhaustivePatience : budget - lab.now();
    if (tuned.outcome.complete && left > 0)
      tuned.copySeconds = lab.copySeconds(measure::Buffers::leastTraffic(problem), left);
    tuned.outcome.seconds = lab.now();
  }

  ExitCode dryRun() {
    Json all = Json::array();
    for (const TuneTask& t : tasks_) {
      const tune::Landscape landscape = landscapeOf(t, hardware_, flags_, Illegal::Refused);
      tune::SearchOptions options;
      options.seed = uint64_t(flags_.seed);
      tune::addHints(landscape, known_.records, settingOf(t, budget_), options);
      all.push_back(dryRunReport(t.task, landscape, tune::seedsOf(landscape, options), Shown::All, out_));
    }
    if (out_.json) out_.result({{"tasks", all}});
    return ExitCode::Ok;
  }

  const TuneFlags& flags_;
  Output& out_;
  Place place_;
  tune::Hardware hardware_;
  double begun_ = measure::secondsNow();
  double budget_, total_;  ///< seconds of a problem, and of all; 0: no limit
  std::vector<TuneTask> tasks_;
  std::optional<tune::Journal> journal_;
  tune::Database known_;
  std::string session_ = tune::newSession();
};

ExitCode tuneAll(const TuneFlags& flags, const CLI::App& parser, Output& out) {
  const TuneSubcommand word = wordIn(flags);
  refuseUnused(parser, word);
  if (!flags.records.empty()) requireOwnFile({"--records", flags.records}, normFilesOf(flags.problems));
  try {
    if (word == TuneSubcommand::Export) return exportBundle(flags, out);
    if (word == TuneSubcommand::RunBundle) return runBundleHere(flags, out);
    if (word == TuneSubcommand::Import) return importResults(flags, out);
    refuseBundles(flags.problems.inputs);
    return Tuning(flags, out).run();
  } catch (const std::runtime_error& error) {  // a worker that cannot be started, a full disk
    throw refused(error.what(),
                  flags.records.empty() ? "" : "what was measured until then is in " + flags.records);
  }
}

}  // namespace

Action declareTune(CLI::App& parser) {
  auto flags = std::make_shared<TuneFlags>();
  flags->problems.declare(parser, "Feature counts to tune for", Calls::Single);
  addList(parser, "--rows", flags->rows, "Numbers of rows to tune for [2048]");
  addWhole(parser, "--elements", flags->elements,
           "Instead of --rows: as many as give x so many elements, rounded down to a power of two", 1);
  addList(parser, "--policy", flags->policies,
          joined({measure::kPolicyNames.begin(), measure::kPolicyNames.end()}) +
              ": the state of the caches before a call; with pipeline, the output is read after it [warm]");
  flags->place.declare(parser);
  parser.add_option("--target", flags->target, "What to compile for [host]")->type_name("TARGET");
  parser.add_option("--budget", flags->budget, "Time for one problem, all included, e.g. 20s, 2m [20s]")
      ->type_name("TIME");
  parser
      .add_option("--total", flags->total,
                  "Time for all problems together, divided evenly; what is not begun in it is said")
      ->type_name("TIME");
  parser
      .add_option("--records", flags->records,
                  "Where measurements are kept, and where an earlier run left off")
      ->type_name("FILE");
  parser
      .add_option(
          "--schedule", flags->schedules,
          "Only this, beside the default; halide:TEXT is of that generator; may be given several times")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  parser.add_flag("--exhaustive", flags->exhaustive, "Every legal schedule, however long it takes");
  parser.add_flag("--dry-run", flags->dryRun,
                  "Show the candidates in the order of the model; measure nothing");
  parser.add_flag("--fresh", flags->fresh, "Measure again what the records know");
  parser.add_option("--shard", flags->shard, "Part i of n of the problems, for many machines")
      ->type_name("i/n");
  addWhole(parser, "--segments", flags->segments, "Segments, where there are three dimensions [8]", 1);
  addWhole(parser, "--threads", flags->threads, "That kernels may use, one for each processor at most [all]");
  addWhole(parser, "--seed", flags->seed, "Of the candidates that are drawn at random [1]");
  parser.add_option("-o,--output", flags->output, "Of export: the folder to make")->type_name("FOLDER");
  addWhole(parser, "--candidates", flags->candidates, "Of export: how many to pack for each problem [48]", 1);
  addWhole(parser, "--random", flags->random, "Of export: how many more of them at random [3]", 0);
  parser.footer(
      "normc tune export NORM... -o FOLDER   packs candidates for a measurement elsewhere, by\n"
      "                                      normc-bundle FOLDER\n"
      "normc tune export NORM... --dry-run   shows these candidates\n"
      "normc tune run-bundle FOLDER          measures them on this machine, as normc-bundle does\n"
      "normc tune import FILE... --records DB.jsonl   brings results home\n\n"
      "A schedule is timed only after it agreed with the reference; it replaces the default only where\n"
      "it is faster beyond the noise. docs/tuning.md says how.");
  return [flags, &parser](Output& out) { return tuneAll(*flags, parser, out); };
}

}  // namespace normc::cli
