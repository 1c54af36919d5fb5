#include "tools/normc/TuneReport.h"

#include <algorithm>
#include <ostream>

#include "tools/normc/Failure.h"

namespace normc::cli {
namespace {

using tune::Screened;
using tune::Status;

struct Tally {
  int64_t right = 0, same = 0, refused = 0, rejected = 0, remembered = 0;

  explicit Tally(const tune::Outcome& outcome) {
    for (const Screened& one : outcome.screened) {
      remembered += one.remembered;
      if (one.status == Status::Ok)
        ++right;
      else if (one.status == Status::Duplicate)
        ++same;
      else
        ++(one.status == Status::Refused ? refused : rejected);
    }
  }
};

std::string speedUp(const tune::Outcome& outcome) {
  const tune::Decision& d = outcome.decision;
  if (!outcome.decided) return "not decided";
  if (d.tie) return "default stays";
  return digitsText(1 / d.ratio.value, 3) + "x [" + digitsText(1 / d.ratio.high, 3) + ", " +
         digitsText(1 / d.ratio.low, 3) + "]";
}

Json jsonOf(const Tuned& t) {
  const tune::Decision& d = t.outcome.decision;
  const Tally tally(t.outcome);
  Json json = {
      {"problem", t.task.problem.text()}, {"segments", t.task.segments},  {"rows", t.task.rows},
      {"threads", t.task.threads},        {"policy", t.task.policy},      {"points", t.landscape.size()},
      {"complete", t.outcome.complete},   {"decided", t.outcome.decided}, {"seconds", t.outcome.seconds}};
  if (!t.outcome.failure.empty()) {
    json["failure"] = t.outcome.failure;
    return json;
  }
  const double seconds = measure::median(t.defaultSamples);
  json["default"] = {{"schedule", t.landscape[t.landscape.byDefault()].schedule}, {"seconds", seconds}};
  json["chosen"] = {{"schedule", t.landscape[d.chosen].schedule},
                    {"generator", t.landscape[d.chosen].generator},
                    {"tie", d.tie},
                    {"ratio", d.ratio.value},
                    {"low", d.ratio.low},
                    {"high", d.ratio.high}};
  json["leader"] = {{"schedule", t.landscape[d.leader].schedule},
                    {"generator", t.landscape[d.leader].generator},
                    {"ratio", d.leaderRatio.value},
                    {"low", d.leaderRatio.low},
                    {"high", d.leaderRatio.high}};
  json["disturbed"] = t.disturbed;
  json["patient"] = t.patient;
  if (t.copySeconds > 0) json["of_copy"] = t.copySeconds / (seconds * d.ratio.value);
  json["candidates"] = {{"right", tally.right},
                        {"same_code", tally.same},
                        {"refused", tally.refused},
                        {"rejected", tally.rejected},
                        {"remembered", tally.remembered}};
  Json raced = Json::array();
  for (const tune::Racer& racer : t.outcome.racers) {
    const measure::Ratio ratio = measure::pairedRatio(racer.samples, t.defaultSamples);
    raced.push_back({{"schedule", t.landscape[racer.point].schedule},
                     {"generator", t.landscape[racer.point].generator},
                     {"ratio", ratio.value},
                     {"low", ratio.low},
                     {"high", ratio.high},
                     {"rounds", racer.samples.size()}});
  }
  json["raced"] = raced;
  Json rejected = Json::array(), duplicates = Json::array();
  for (const Screened& one : t.outcome.screened) {
    const std::string& schedule = t.landscape[one.point].schedule;
    if (isFailure(one.status))
      rejected.push_back(
          {{"schedule", schedule}, {"status", tune::name(one.status)}, {"reason", one.reason}});
    if (one.status == Status::Duplicate)
      duplicates.push_back({{"schedule", schedule}, {"reason", one.reason}});
  }
  json["rejected"] = rejected;
  json["duplicates"] = duplicates;
  return json;
}

/// The most candidates of a task that a dry run shows for their place alone.
constexpr int64_t kMostShown = 20;

std::string reproducing(const Tuned& t, const tune::Point& point) {
  const std::string& usual = t.landscape[t.landscape.byDefault()].generator;
  return "normc tune " + t.norms + "'" + t.task.problem.text() + "'" +
         (t.task.problem.segmented ? " --segments " + std::to_string(t.task.segments) : "") + " --rows " +
         std::to_string(t.task.rows) + " --policy " + t.task.policy + " --threads " +
         std::to_string(t.task.threads) + t.place + " --schedule '" +
         (point.generator == usual ? "" : point.generator + ":") + point.schedule + "'";
}

/// Prints a line for each schedule that was named and raced, or that has the code of another one.
void printNamed(const std::vector<Tuned>& results, Output& out) {
  for (const Tuned& t : results) {
    if (!t.named) continue;
    const auto nameOf = [&](size_t point) {
      return "\n" + t.task.problem.text() + ", " + t.landscape[point].schedule + ": ";
    };
    for (const tune::Racer& racer : t.outcome.racers) {
      if (racer.point == t.landscape.byDefault() || racer.samples.empty()) continue;
      const measure::Ratio ratio = measure::pairedRatio(racer.samples, t.defaultSamples);
      out.results() << nameOf(racer.point) << digitsText(ratio.value, 3) << " [" << digitsText(ratio.low, 3)
                    << ", " << digitsText(ratio.high, 3) << "] of the default's time, "
                    << counted(int64_t(racer.samples.size()), "round") << "\n";
    }
    for (const Screened& one : t.outcome.screened)
      if (one.status == Status::Duplicate) out.results() << nameOf(one.point) << shortOf(one.reason) << "\n";
  }
}

void printRejected(const std::vector<Tuned>& results, Output& out) {
  for (const Tuned& t : results) {
    if (!t.outcome.failure.empty())
      out.results() << "\n"
                    << t.task.text()
                    << (t.outcome.interrupted ? ": not tuned: " : ": the default could not be measured: ")
                    << t.outcome.failure << "\n";
    for (const Screened& one : t.outcome.screened) {
      if (!isFailure(one.status)) continue;
      out.results() << "\n"
                    << t.task.problem.text() << ", " << t.landscape[one.point].schedule << ": "
                    << tune::name(one.status) << "\n  " << shortOf(one.reason)
                    << "\n  reproduce: " << reproducing(t, t.landscape[one.point]) << "\n";
    }
  }
}

}  // namespace

std::string shortOf(const std::string& reason) {
  const size_t first = std::min(reason.find('\n'), reason.size());
  std::string text = reason.substr(0, first);
  if (first + 1 < reason.size() && text.ends_with(':'))
    text += " " + reason.substr(first + 1, reason.find('\n', first + 1) - first - 1);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';  // a terminal would obey it
  return text;
}

void report(const std::vector<Tuned>& results, bool whole, const std::string& records, Output& out,
            const std::vector<tune::Task>& undone, const std::vector<Diagnostic>& errors) {
  if (out.json) {
    Json tasks = Json::array(), left = Json::array();
    for (const Tuned& t : results) tasks.push_back(jsonOf(t));
    for (const tune::Task& task : undone) left.push_back(task.text());
    Json json = {{"tasks", tasks},
                 {"complete", whole && undone.empty() && errors.empty()},
                 {"undone", left},
                 {"records", records}};
    if (!errors.empty()) json["errors"] = jsonOf(errors);
    out.result(json);
    return;
  }
  Table table(
      {"problem", ">rows", "policy", ">tried", ">default", ">chosen", "speed-up", ">of copy", "schedule"});
  int64_t won = 0, stayed = 0, open = 0;
  double seconds = 0;
  for (const Tuned& t : results) {
    seconds += t.outcome.seconds;
    if (!t.outcome.failure.empty()) continue;
    const tune::Decision& d = t.outcome.decision;
    const double byDefault = measure::median(t.defaultSamples), chosen = byDefault * d.ratio.value;
    ++(!t.outcome.decided ? open : d.tie ? stayed : won);
    const Tally tally(t.outcome);
    table.row({t.task.problem.text(), std::to_string(t.task.rows), t.task.policy, std::to_string(tally.right),
               secondsText(byDefault), t.outcome.decided ? secondsText(chosen) : "", speedUp(t.outcome),
               t.copySeconds > 0 ? digitsText(100 * t.copySeconds / chosen, 2) + " %" : "",
               t.outcome.decided ? t.landscape[d.chosen].schedule : ""});
  }
  const int64_t failed = int64_t(results.size()) - won - stayed - open;
  out.results() << table.text();
  printNamed(results, out);
  printRejected(results, out);
  out.results() << "\n"
                << counted(int64_t(results.size()), "problem") << " in " << secondsText(seconds) << ": "
                << won << " faster than the default, " << stayed << " as it was"
                << (open ? ", " + std::to_string(open) + " not decided" : "")
                << (failed ? ", " + std::to_string(failed) + " not measured" : "")
                << (whole ? "" : "; interrupted, the rest is not tuned")
                << (records.empty() ? "" : "; measurements are in " + records) << "\n";
  if (!undone.empty()) {
    out.results() << "not tuned, since --total leaves less than a quarter of --budget:\n";
    for (const tune::Task& task : undone) out.results() << "  " << task.text() << "\n";
  }
  const auto shared =
      std::count_if(results.begin(), results.end(), [](const Tuned& t) { return !t.patient; });
  if (shared)
    out.results() << "samples of " << counted(int64_t(shared), "problem")
                  << " were taken while others computed on the core too: a longer --budget waits longer\n";
}

Json dryRunReport(const tune::Task& task, const tune::Landscape& landscape, const std::vector<size_t>& seeds,
                  Shown shown, Output& out) {
  const auto isSeed = [&](size_t point) {
    return std::find(seeds.begin(), seeds.end(), point) != seeds.end();
  };
  std::vector<size_t> points = landscape.ranked();
  if (shown == Shown::Seeds) std::erase_if(points, [&](size_t point) { return !isSeed(point); });
  const double best = landscape[landscape.ranked().front()].predicted;
  if (out.json) {
    Json list = Json::array();
    for (const size_t point : points)
      list.push_back({{"generator", landscape[point].generator},
                      {"schedule", landscape[point].schedule},
                      {"kind", landscape[point].family},
                      {"predicted", landscape[point].predicted},
                      {"slower", landscape[point].predicted / best},
                      {"at", landscape[point].at},
                      {"default", point == landscape.byDefault()},
                      {"seed", isSeed(point)}});
    return {
        {"problem", task.problem.text()}, {"rows", task.rows}, {"policy", task.policy}, {"candidates", list}};
  }
  out.results() << task.text() << ": " << counted(int64_t(landscape.size()), "legal schedule") << "\n";
  Table table({">#", ">predicted", "generator", "kind", "schedule", ""});
  int64_t place = 0, listed = 0;
  for (const size_t point : points) {
    ++place;
    // The first by the model, and what is measured without asking it.
    if (place > kMostShown && point != landscape.byDefault() && !isSeed(point)) continue;
    ++listed;
    table.row({std::to_string(place), digitsText(landscape[point].predicted / best, 3) + "x",
               landscape[point].generator, landscape[point].family, landscape[point].schedule,
               point == landscape.byDefault() ? "the default"
               : isSeed(point)                ? "a seed"
                                              : ""});
  }
  out.results() << table.text(2);
  if (const auto hidden = int64_t(points.size()) - listed; hidden > 0)
    out.results() << "  " << hidden << " more, which --json shows\n";
  return {};
}

}  // namespace normc::cli
