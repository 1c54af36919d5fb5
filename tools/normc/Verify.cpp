#include "tools/normc/Verify.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <stdexcept>

#include "autotune/records/Standing.h"
#include "autotune/space/Space.h"
#include "autotune/tune/ThisDevice.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Hardware.h"
#include "tools/normc/Interrupt.h"
#include "tools/normc/Maker.h"
#include "tools/normc/Progress.h"
#include "tools/normc/TemporaryFolder.h"
#include "tools/normc/TuneReport.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

constexpr int kRounds = 40;
constexpr double kSlower = 1.02;

/// Finds the problem of a choice again: its norm is the one with the hash that the record holds.
class Problems {
 public:
  explicit Problems(const std::vector<std::string>& files) {
    for (const std::string& file : files)
      for (const Norm& norm : normsOf(file)) given_.push_back(norm);
  }

  /// Empty where no norm has the hash.
  std::optional<Problem> of(const tune::Task& task) const {
    const auto problem = parseProblem(task.problem.text(), [&](std::string_view name) -> Result<Norm> {
      for (const Norm& norm : given_)
        if (norm->name == name && norm->structuralHash() == task.norm) return norm;
      return findNorm(name);
    });
    if (!problem || problem->spec->structuralHash() != task.norm) return std::nullopt;
    return *problem;
  }

  /// Why there is none.
  std::string whyNone(const tune::Task& task) const {
    const std::string& name = task.problem.norm;
    for (const Norm& norm : given_)
      if (norm->name == name)
        return "its " + name + " (hash " + task.norm.substr(0, 8) +
               ") is another than that of --norm (hash " + norm->structuralHash().substr(0, 8) + ")";
    return "of a norm that is not built in (" + name + ", hash " + task.norm.substr(0, 8) +
           "): give its file by --norm";
  }

 private:
  std::vector<Norm> given_;
};

/// Why a choice cannot be measured here; empty if it can.
std::string whyNot(const tune::Record& choice, const Hardware& hardware, const Problems& problems) {
  if (choice.device != hardware.site.device) return "made on another device";
  if (choice.toolchain != hardware.site.toolchain) return "made with another toolchain";
  const auto problem = problems.of(choice.task);
  if (!problem) return problems.whyNone(choice.task);
  for (const codegen::TargetPtr& target : hardware.generators)
    if (target->generator() == choice.generator)
      return target->bind(*problem)->whyIllegal(choice.schedule).value_or("");
  return "by a generator that is not part of this normc";
}

/// What became of a choice; without a verdict it could not be measured.
struct Again {
  measure::Ratio ratio{1, 1, 1};
  std::string verdict, reason;

  std::string text() const {
    const std::string head = verdict.empty() ? "not measured" : verdict;
    return reason.empty() ? head : head + ": " + shortOf(reason);
  }
};

/// Whether a candidate failed by itself, as its record says then.
bool failed(const tune::LiveLab& lab, const tune::Screened& one) {
  return one.status != tune::Status::Ok && !lab.made(one.point)->unavailable;
}

/// Nothing where it was interrupted.
std::optional<Again> measureAgain(const tune::Record& choice, const Problem& problem, const Hardware& hardware,
                                  tune::Journal& journal, const std::string& session, int64_t stamp,
                                  const Interrupt& interrupt) {
  const auto landscape = valueOf(
      tune::landscapeOf(hardware.generators, problem, hardware.workloadOf(choice.task)), ExitCode::Refused);
  const size_t byDefault = landscape.byDefault();
  const tune::Landscape two({landscape[byDefault], {choice.generator, choice.schedule, 1, {1, 1}}}, 0);
  tune::Setting setting{choice.task, print(*problem.spec), hardware.site.device, hardware.site.toolchain, session};
  setting.stamp = stamp;
  const TemporaryFolder folder;
  const Maker maker(two, hardware.generators, problem, folder.path(), interrupt);
  tune::LiveLab lab(two, setting,
                    {[&](const std::vector<size_t>& points) { return maker.make(points); },
                     [&] { return interrupt.requested(); }, tune::Worker::besideThis(), &journal},
                    {});
  Again again;
  tune::Outcome outcome;
  const auto end = [&](std::string verdict, std::string reason = {}) {
    again.verdict = std::move(verdict), again.reason = std::move(reason);
    outcome.decision = {1, again.verdict == "tie", again.ratio, 1, again.ratio};
    lab.conclude(outcome, "verify", again.verdict);
    return again;
  };
  const tune::Screened byDefaultNow = lab.screen({0}).at(0);
  if (interrupt.requested()) return std::nullopt;
  if (byDefaultNow.status != tune::Status::Ok)
    return Again{.reason = "its default is " + std::string(tune::name(byDefaultNow.status)) + ": " + byDefaultNow.reason};
  const tune::Screened one = lab.screen({1}).at(0);
  if (interrupt.requested()) return std::nullopt;
  if (one.status == tune::Status::Duplicate) return end("tie", one.reason);
  if (failed(lab, one)) return end(std::string(tune::name(one.status)), one.reason);
  if (one.status != tune::Status::Ok) return Again{.reason = one.reason};
  const std::vector<tune::Samples> samples = lab.race({0, 1}, kRounds);
  if (samples[0].size() < size_t(kRounds) && interrupt.requested()) return std::nullopt;
  if (samples[0].empty()) return Again{.reason = "its default failed in the race, after it had passed the gate"};
  if (samples[1].empty()) return end(std::string(tune::name(lab.raced(1))), "in the race, after it had passed the gate");
  again.ratio = measure::pairedRatio(samples[1], samples[0]);
  outcome.racers = {{0, samples[0]}, {1, samples[1]}};
  return end(again.ratio.low > kSlower ? "slower" : again.ratio.high < 1 ? "won" : "tie");
}

}  // namespace

ExitCode verifyRecords(const std::string& file, const std::vector<std::string>& norms, Output& out) {
  const Problems problems(norms);
  const tune::Database database = valueOf(tune::readDatabase(file), ExitCode::Refused);
  const std::string session = tune::newSession();
  const int64_t stamp = tune::newStamp(database.records);
  std::map<std::string, Hardware> byTarget;
  std::optional<tune::Journal> journal;
  const Interrupt interrupt;
  Json results = Json::array();
  Table table({"record", "problem", ">rows", "policy", ">then", ">now", "", "schedule"});
  int64_t confirmed = 0, ties = 0, slower = 0, failures = 0, passed = 0, choices = 0;
  const auto isTried = [&](const tune::Record& r) {
    return r.kind == "choice" && r.conclusion->verdict == "won" && !tune::isSuperseded(r, database.records);
  };
  try {
    journal.emplace(file);
    for (const tune::Record& r : database.records) choices += isTried(r);
    Progress progress(out, "verifying", choices);
    for (size_t i = 0; i < database.records.size() && !interrupt.requested(); ++i) {
      const tune::Record& choice = database.records[i];
      if (!isTried(choice)) continue;
      progress.step(int64_t(results.size()), choice.task.text());
      std::string reason =
          runsHere(choice.device.arch) ? "" : "code for " + choice.device.arch + " does not run here";
      if (reason.empty() && !byTarget.contains(choice.device.arch))
        byTarget.emplace(choice.device.arch, hardwareFor(choice.device.arch + ":host"));
      if (reason.empty()) reason = whyNot(choice, byTarget.at(choice.device.arch), problems);
      Again again;
      if (reason.empty()) {
        const auto measured = measureAgain(choice, *problems.of(choice.task), byTarget.at(choice.device.arch), *journal,
                                           session, stamp + int64_t(results.size()), interrupt);
        if (!measured) break;
        again = *measured;
      } else {
        again.reason = reason;
      }
      ++(again.verdict == "won"      ? confirmed
         : again.verdict == "tie"    ? ties
         : again.verdict == "slower" ? slower
         : again.verdict.empty()     ? passed
                                     : failures);
      table.row({database.id(i).substr(0, 8), choice.task.problem.text(), std::to_string(choice.task.rows),
                 choice.task.policy, digitsText(1 / choice.conclusion->ratio, 3) + "x",
                 again.ratio.value != 1 ? digitsText(1 / again.ratio.value, 3) + "x" : "", again.text(),
                 choice.schedule});
      results.push_back({{"id", database.id(i)},
                         {"problem", choice.task.problem.text()},
                         {"schedule", choice.schedule},
                         {"then", choice.conclusion->ratio},
                         {"now", again.ratio.value},
                         {"low", again.ratio.low},
                         {"high", again.ratio.high},
                         {"verdict", again.text()}});
    }
  } catch (const std::runtime_error& error) {
    throw refused(error.what());
  }
  if (out.json)
    out.result({{"confirmed", confirmed},
                {"ties", ties},
                {"slower", slower},
                {"failed", failures},
                {"not_measured", passed},
                {"choices", results}});
  else
    out.results() << table.text() << "\n"
                  << counted(int64_t(results.size()), "choice") << ": " << confirmed
                  << " faster than the default again, " << ties << " no longer beyond the noise, " << slower
                  << " slower, " << failures << " wrong or failed, " << passed << " not measured\n";
  return interrupt.requested()  ? ExitCode::Interrupted
         : slower || failures ? ExitCode::CheckFailed
                              : ExitCode::Ok;
}

}  // namespace normc::cli
