#include "autotune/cli/Verify.h"

#include <map>
#include <ostream>
#include <stdexcept>

#include "autotune/cli/Failure.h"
#include "autotune/cli/Hardware.h"
#include "autotune/cli/Interrupt.h"
#include "autotune/cli/Maker.h"
#include "autotune/cli/Progress.h"
#include "autotune/space/Space.h"
#include "autotune/tune/Here.h"
#include "dsl/Library.h"
#include "dsl/Print.h"

namespace normc::cli {
namespace {

constexpr int kRounds = 40;
constexpr double kSlower = 1.02;

/// Why a choice cannot be measured here; empty if it can.
std::string whyNot(const tune::Record& choice, const Hardware& hardware) {
  if (choice.device != hardware.site.device) return "made on another device";
  if (choice.toolchain != hardware.site.toolchain) return "made with another toolchain";
  const auto problem = parseProblem(choice.task.problem, findNorm);
  if (!problem || problem->spec->structuralHash() != choice.task.norm)
    return "of a norm that is not built in";
  for (const codegen::TargetPtr& target : hardware.generators)
    if (target->generator() == choice.generator)
      return target->whyIllegal(*problem, choice.schedule).value_or("");
  return "by a generator that is not part of this normc";
}

struct Again {
  measure::Ratio ratio{1, 1, 1};
  std::string verdict;
};

Again measureAgain(const tune::Record& choice, const Hardware& hardware, tune::Journal& journal,
                   const std::string& session) {
  const Problem problem = *parseProblem(choice.task.problem, findNorm);
  const auto landscape = valueOf(
      tune::landscapeOf(hardware.generators, problem, hardware.loadOf(choice.task)), ExitCode::Refused);
  const size_t byDefault = landscape.byDefault();
  const tune::Landscape two({landscape[byDefault], {choice.generator, choice.schedule, 1, {1, 1}}}, 0);
  const tune::Setting setting{choice.task, print(*problem.spec), hardware.site.device,
                              hardware.site.toolchain, session};
  const TemporaryFolder folder;
  const Maker maker(two, hardware.generators, problem, folder.path());
  tune::LiveLab lab(two, setting,
                    {[&](const std::vector<size_t>& points) { return maker.make(points); },
                     [] { return false; }, tune::Worker::besideThis(), &journal},
                    {});
  Again again;
  for (const size_t point : {0, 1}) {
    const tune::Screened one = lab.screen({size_t(point)}).at(0);
    if (one.status != tune::Status::Ok) {
      again.verdict =
          std::string(tune::name(one.status)) + ": " + one.reason.substr(0, one.reason.find('\n'));
      return again;
    }
  }
  const std::vector<tune::Samples> samples = lab.race({0, 1}, kRounds);
  again.ratio = measure::pairedRatio(samples[1], samples[0]);
  again.verdict = again.ratio.low > kSlower ? "slower" : again.ratio.high < 1 ? "won" : "tie";
  tune::Outcome outcome;
  outcome.decision = {1, again.verdict == "tie", again.ratio, 1, again.ratio};
  outcome.racers = {{0, samples[0]}, {1, samples[1]}};
  lab.conclude(outcome, "verify", again.verdict);
  return again;
}

}  // namespace

ExitCode verifyRecords(const std::string& file, Output& out) {
  const tune::Database database = valueOf(tune::readDatabase(file), ExitCode::Refused);
  const std::string session = tune::newSession();
  std::map<std::string, Hardware> byTarget;
  std::optional<tune::Journal> journal;
  const Interrupt interrupt;
  Json results = Json::array();
  Table table({"record", "problem", ">rows", "policy", ">then", ">now", "", "schedule"});
  int64_t confirmed = 0, ties = 0, slower = 0, passed = 0, choices = 0;
  try {
    journal.emplace(file);
    for (const tune::Record& r : database.records)
      choices += r.kind == "choice" && r.conclusion->verdict == "won";
    Progress progress(out, "verifying", choices);
    for (size_t i = 0; i < database.records.size() && !interrupt.requested(); ++i) {
      const tune::Record& choice = database.records[i];
      if (choice.kind != "choice" || choice.conclusion->verdict != "won") continue;
      progress.step(int64_t(results.size()), choice.task.text());
      std::string reason =
          runsHere(choice.device.arch) ? "" : "code for " + choice.device.arch + " does not run here";
      if (reason.empty() && !byTarget.contains(choice.device.arch))
        byTarget.emplace(choice.device.arch, hardwareFor(choice.device.arch));
      if (reason.empty()) reason = whyNot(choice, byTarget.at(choice.device.arch));
      Again again;
      if (reason.empty())
        again = measureAgain(choice, byTarget.at(choice.device.arch), *journal, session);
      else
        again.verdict = "not measured: " + reason;
      ++(again.verdict == "won"      ? confirmed
         : again.verdict == "tie"    ? ties
         : again.verdict == "slower" ? slower
                                     : passed);
      table.row({database.id(i).substr(0, 8), choice.task.problem, std::to_string(choice.task.rows),
                 choice.task.policy, digitsText(1 / choice.conclusion->ratio, 3) + "x",
                 reason.empty() ? digitsText(1 / again.ratio.value, 3) + "x" : "", again.verdict,
                 choice.schedule});
      results.push_back({{"id", database.id(i)},
                         {"problem", choice.task.problem},
                         {"schedule", choice.schedule},
                         {"then", choice.conclusion->ratio},
                         {"now", again.ratio.value},
                         {"low", again.ratio.low},
                         {"high", again.ratio.high},
                         {"verdict", again.verdict}});
    }
  } catch (const std::runtime_error& error) {
    throw refused(error.what());
  }
  if (out.json)
    out.result({{"confirmed", confirmed},
                {"ties", ties},
                {"slower", slower},
                {"not_measured", passed},
                {"choices", results}});
  else
    out.results() << table.text() << "\n"
                  << counted(int64_t(results.size()), "choice") << ": " << confirmed
                  << " faster than the default again, " << ties << " no longer beyond the noise, " << slower
                  << " slower, " << passed << " not measured\n";
  return interrupt.requested() ? ExitCode::Interrupted : slower ? ExitCode::CheckFailed : ExitCode::Ok;
}

}  // namespace normc::cli
