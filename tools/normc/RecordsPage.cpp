#include "tools/normc/RecordsPage.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <ostream>

#include "autotune/records/Standing.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Page.h"
#include "tools/normc/RecordFiles.h"
#include "tools/normc/TaskRecords.h"

namespace normc::cli {
namespace {

using tune::Record;

/// Returns the day of a stamp, in UTC.
std::string dayOf(int64_t stamp) {
  const time_t seconds = stamp / 1000;
  tm day = {};
  char text[32] = "an unknown day";
  if (stamp > 0 && gmtime_r(&seconds, &day)) (void)std::strftime(text, sizeof text, "%Y-%m-%d", &day);
  return text;
}

std::string machineOf(const tune::Device& device) {
  std::string text = device.text();
  for (const auto& [fact, value] : device.facts) {
    const bool bytes = fact.ends_with("cache") || fact.ends_with("bytes");
    text += ", " + fact + " " + (bytes ? bytesText(double(value)) : std::to_string(value));
  }
  return text;
}

/// Returns the choice that counts; null if there is none.
const Record* standingOf(const TaskRecords& problem, const tune::Standing& standing) {
  const Record* best = nullptr;
  for (const Record* choice : problem.choices)
    if (standing.reasonRejected(*choice).empty() && (!best || tune::newer(*choice, *best))) best = choice;
  return best;
}

/// Returns the candidates of a stage with the median of all their samples, the fastest first.
std::vector<Mark> marksOf(const TaskRecords& problem, const std::string& stage, const Record* chosen) {
  std::vector<Mark> marks;
  for (const auto& [name, times] : timesOf(problem, stage)) {
    const measure::Ratio ratio = measure::pairedRatio(times.samples, times.reference);
    marks.push_back({ratio.value, ratio.low, ratio.high, name, chosen && name == nameOf(*chosen)});
  }
  std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    return a.value != b.value ? a.value < b.value : a.text < b.text;
  });
  return marks;
}

std::string choiceText(const Record& choice) {
  const tune::Conclusion& c = *choice.conclusion;
  const std::string schedule = "<code>" + escaped(nameOf(choice)) + "</code>";
  if (c.verdict == tune::Verdict::Tie) return "The default stays: " + schedule + ".";
  return "Chosen: " + schedule + ", " + digitsText(1 / c.ratio, 3) + " times as fast as the default [" +
         digitsText(1 / c.high, 3) + ", " + digitsText(1 / c.low, 3) + "], " +
         secondsText(measure::median(choice.samples)) + " a call.";
}

/// Returns what was rejected and why, and a line about candidates with the code of another one.
std::string rejectedText(const TaskRecords& problem) {
  std::map<std::string, const Record*> newest;
  for (const Record* r : problem.trials)
    if (const Record*& last = newest[nameOf(*r)]; !last || tune::newer(*r, *last)) last = r;
  std::vector<std::vector<std::string>> rows{{"rejected", "", "reason"}};
  int64_t same = 0;
  for (const auto& [name, r] : newest) {
    same += r->status == tune::Status::Duplicate;
    if (isFailure(r->status)) rows.push_back({name, std::string(tune::name(r->status)), r->reason});
  }
  std::string text;
  if (rows.size() > 1) text += tableOf(rows);
  if (rows.size() == 1) text += element("p", "No candidate was rejected.", "class=\"faint\"");
  if (same)
    text +=
        element("p", counted(same, "candidate") + " had the code of another one, which was measured for it.",
                "class=\"faint\"");
  return text;
}

std::string sectionOf(const TaskRecords& problem, const tune::Standing& standing) {
  const Record& any = *problem.any;
  int64_t stamp = 0, screenedRows = 0;
  for (const Record* r : problem.trials) {
    stamp = std::max(stamp, r->stamp);
    screenedRows = std::max(screenedRows, r->screenedRows);
  }
  for (const Record* r : problem.choices) stamp = std::max(stamp, r->stamp);
  const Record* chosen = standingOf(problem, standing);
  std::string text = element("h2", escaped(any.task.text())) +
                     element("p",
                             escaped(machineOf(any.device) + "; " + toolsOf(any) + "; hash of the norm " +
                                     shortHash(any.task.norm) + "; measured on " + dayOf(stamp)),
                             "class=\"faint\"") +
                     element("p", chosen ? choiceText(*chosen) : "Nothing is decided.");
  if (const auto marks = marksOf(problem, "screen", chosen); !marks.empty())
    text += element("h3", "Candidates") + landscapePicture(marks);
  if (screenedRows)
    text += element("p", "They were screened with " + counted(screenedRows, "row") + ".", "class=\"faint\"");
  if (const auto marks = marksOf(problem, "race", chosen); !marks.empty())
    text += element("h3", "Race") + racePicture(marks);
  return text + rejectedText(problem);
}

}  // namespace

std::string recordsPage(const tune::Database& all) {
  const std::map<std::string, TaskRecords> problems = taskRecordsOf(all);
  if (problems.empty()) return "";
  std::string body =
      element("h1", "Tuning") +
      element("p", escaped(all.counts.text()) +
                       ". Times are those of a call over those of the default in the same rounds: below 1 is "
                       "faster. The interval holds 95 %. The name of a candidate appears where its mark is "
                       "pointed at.");
  const tune::Standing standing(all.records);
  for (const auto& [key, problem] : problems) body += sectionOf(problem, standing);
  return page("normc: tuning", body);
}

ExitCode reportRecords(const tune::Database& all, const std::string& path, const std::vector<NamedFile>& read,
                       std::ostream& said, Output& out) {
  if (path.empty()) throw usage("normc records report needs the name of the page to write", "-o report.html");
  const std::string text = recordsPage(all);
  if (text.empty()) throw nothingTo("show");
  requireOwnFile({"the page", path}, read);
  requireWritable(path);
  writeFile(path, text);
  if (out.json)
    out.result({{"file", path}, {"records", all.counts.records}});
  else
    said << path << "\n";
  return ExitCode::Ok;
}

}  // namespace normc::cli
