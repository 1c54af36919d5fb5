#include "tools/normc/Verify.h"

#include <map>
#include <ostream>
#include <stdexcept>

#include "autotune/candidates/Remeasure.h"
#include "autotune/records/Standing.h"
#include "autotune/tune/Interrupt.h"
#include "autotune/tune/ThisDevice.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Progress.h"
#include "tools/normc/TargetFlag.h"
#include "tools/normc/TemporaryFolder.h"
#include "tools/normc/TuneReport.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

/// Prints a choice that was measured again.
std::string textOf(const tune::Remeasured& again) {
  const std::string head(again.verdict ? tune::name(*again.verdict) : "not measured");
  return again.reason.empty() ? head : head + ": " + shortOf(again.reason);
}

}  // namespace

ExitCode verifyRecords(const std::string& file, const std::vector<std::string>& norms, double wait,
                       Output& out) {
  std::vector<Norm> given;
  for (const std::string& norm : norms)
    for (const Norm& each : normsOf(norm)) given.push_back(each);
  const tune::Database database = valueOf(tune::readDatabase(file), ExitCode::Refused);
  const std::string session = tune::newSession();
  const int64_t stamp = tune::newStamp(database.records);
  std::map<std::string, tune::Hardware> byTarget;
  std::optional<tune::Journal> journal;
  const tune::Interrupt interrupt;
  Json results = Json::array();
  Table table({"record", "problem", ">rows", "policy", ">then", ">now", "", "schedule"});
  int64_t confirmed = 0, ties = 0, slower = 0, failures = 0, passed = 0, choices = 0;
  const tune::Standing standing(database.records);
  const auto isTried = [&](const tune::Record& r) {
    return r.kind == tune::RecordKind::Choice && r.conclusion->verdict == tune::Verdict::Won &&
           !standing.isSuperseded(r);
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
          tune::runsHere(choice.device.arch) ? "" : "code for " + choice.device.arch + " does not run here";
      if (reason.empty() && !byTarget.contains(choice.device.arch))
        byTarget.emplace(choice.device.arch, hardwareFor(choice.device.arch + ":host"));
      const Result<Problem> problem = tune::problemOf(choice.task, given);
      if (reason.empty()) reason = tune::whyNotMeasured(choice, problem, byTarget.at(choice.device.arch));
      tune::Remeasured again{.reason = reason};
      if (reason.empty()) {
        const TemporaryFolder folder;
        const auto measured =
            tune::measureAgain(choice, *problem, byTarget.at(choice.device.arch),
                               {*journal, session, stamp + int64_t(results.size()), folder.path(), wait,
                                [&] { return interrupt.requested(); }});
        if (!measured) break;
        again = *measured;
      }
      ++(!again.verdict                           ? passed
         : again.verdict == tune::Verdict::Won    ? confirmed
         : again.verdict == tune::Verdict::Tie    ? ties
         : again.verdict == tune::Verdict::Slower ? slower
                                                  : failures);
      table.row({database.id(i).substr(0, 8), choice.task.problem.text(), std::to_string(choice.task.rows),
                 choice.task.policy, digitsText(1 / choice.conclusion->ratio, 3) + "x",
                 again.ratio.value != 1 ? digitsText(1 / again.ratio.value, 3) + "x" : "", textOf(again),
                 choice.schedule});
      Json result = {{"id", database.id(i)},
                     {"problem", choice.task.problem.text()},
                     {"schedule", choice.schedule},
                     {"then", choice.conclusion->ratio},
                     {"verdict", textOf(again)}};
      if (again.verdict)
        result.update({{"now", again.ratio.value}, {"low", again.ratio.low}, {"high", again.ratio.high}});
      results.push_back(result);
    }
  } catch (const std::runtime_error& error) {
    throw refused(error.what());
  }
  if (out.json)
    out.result({{"complete", !interrupt.requested()},
                {"confirmed", confirmed},
                {"ties", ties},
                {"slower", slower},
                {"failed", failures},
                {"not_measured", passed},
                {"choices", results}});
  else
    out.results() << table.text() << "\n"
                  << counted(int64_t(results.size()), "choice") << ": " << confirmed
                  << " faster than the default again, " << ties << " no longer beyond the noise, " << slower
                  << " slower, " << failures << " wrong or failed, " << passed << " not measured"
                  << (interrupt.requested() ? "; interrupted, the rest is not measured" : "") << "\n";
  return interrupt.requested() ? ExitCode::Interrupted
         : slower || failures  ? ExitCode::CheckFailed
                               : ExitCode::Ok;
}

}  // namespace normc::cli
