#include "autotune/tune/Choose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <tuple>

#include "autotune/records/Standing.h"

namespace normc::tune {
namespace {

constexpr double kFarRows = 3, kFarFeatures = 1;  // octaves

/// Returns the problem without its shape: the part that has to be equal at every rung.
ProblemText kindOf(const Task& task) {
  ProblemText kind = task.problem;
  kind.segments = kind.rows = kind.features = std::nullopt;
  kind.segmented = false;
  return kind;
}

/// Returns the largest 2^k or 3 * 2^(k-1) that is not above `features`.
int64_t halfOctave(int64_t features) {
  int64_t power = 1;
  while (2 * power <= features) power *= 2;
  return 2 * features >= 3 * power ? 3 * power / 2 : power;
}

int64_t octave(int64_t rows) { return int64_t(std::floor(std::log2(double(std::max<int64_t>(rows, 1))))); }

enum Rung { Exact, Bucket, Neighbour, None };
constexpr const char* kRungs[] = {"exact", "bucket", "neighbour"};

/// Returns the distance of two tasks in rows: in rows of all segments and, if a feature's rows lie in runs,
/// in rows of one segment.
double rowsBetween(const Task& a, const Task& b) {
  const double all = octaves(a.totalRows(), b.totalRows());
  return rowsLieInRuns(a) ? std::max(all, octaves(a.rows, b.rows)) : all;
}

bool sameOctave(const Task& a, const Task& b) {
  return octave(a.totalRows()) == octave(b.totalRows()) &&
         (!rowsLieInRuns(a) || octave(a.rows) == octave(b.rows));
}

Rung rungOf(const Task& has, const Task& wants) {
  if (has.features == wants.features && rowsBetween(has, wants) == 0) return Exact;
  if (halfOctave(has.features) == halfOctave(wants.features) && sameOctave(has, wants)) return Bucket;
  const bool reach =
      octaves(has.features, wants.features) <= kFarFeatures && rowsBetween(has, wants) <= kFarRows;
  return reach ? Neighbour : None;
}

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

/// Returns the order of preference. `pipeline` is closest to use in a model; cold caches are next.
int policyOrder(const std::string& policy) { return policy == "pipeline" ? 0 : policy == "cold" ? 1 : 2; }

struct Entry {
  const Record* record;
  std::string id;
};

std::string sizeText(const Task& task) {
  return std::to_string(task.totalRows()) + " rows of " + std::to_string(task.features) + " features, " +
         task.policy;
}

}  // namespace

double octaves(int64_t a, int64_t b) {
  const auto atLeastOne = [](int64_t count) { return double(std::max<int64_t>(count, 1)); };
  return std::fabs(std::log2(atLeastOne(a) / atLeastOne(b)));
}

bool rowsLieInRuns(const Task& task) { return task.problem.channelsFirst(); }

std::vector<Task> tunedSizes(const Database& database, const ProblemText& problem, const std::string& norm,
                             const Device& device) {
  std::map<std::pair<int64_t, int64_t>, Task> sizes;
  for (const Record& record : database.records)
    if (record.kind == RecordKind::Choice && record.task.problem == problem && record.task.norm == norm &&
        record.device.kind == device.kind && record.device.arch == device.arch)
      sizes.emplace(std::pair(record.task.totalRows(), rowsLieInRuns(record.task) ? record.task.rows : 0),
                    record.task);
  std::vector<Task> list;
  for (const auto& [rows, task] : sizes) list.push_back(task);
  return list;
}

Pick pickFor(const Task& wanted, const Site& site, const Database& database, const Standing& standing,
             const std::function<bool(const Record&)>& usable) {
  const ProblemText kind = kindOf(wanted);
  std::vector<Entry> here[3], elsewhere;
  int64_t stale = 0;
  for (size_t i = 0; i < database.records.size(); ++i) {
    const Record& r = database.records[i];
    if (r.kind != RecordKind::Choice || r.task.norm != wanted.norm || kindOf(r.task) != kind) continue;
    if (r.device.kind != site.device.kind || r.device.arch != site.device.arch) continue;
    if (r.toolchain != site.toolchain) {
      ++stale;
      continue;
    }
    const Rung rung = rungOf(r.task, wanted);
    if (rung == None) continue;
    (r.device == site.device ? here[rung] : elsewhere).push_back({&r, database.id(i)});
  }
  const auto nearer = [&](const Entry& a, const Entry& b) {
    const auto key = [&](const Entry& e) {
      const Task& t = e.record->task;
      return std::tuple(rungOf(t, wanted), octaves(t.features, wanted.features), rowsBetween(t, wanted),
                        octaves(t.threads, wanted.threads), policyOrder(t.policy));
    };
    const auto first = key(a), second = key(b);
    if (first != second) return first < second;
    if (newer(*a.record, *b.record) || newer(*b.record, *a.record)) return newer(*a.record, *b.record);
    return a.id < b.id;
  };

  Pick pick;
  const auto take = [&](const char* rung, std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(), nearer);
    std::string found = entries.empty() ? "no choice is recorded" : "";
    for (const Entry& e : entries) {
      const Record& r = *e.record;
      const std::string which = "record " + e.id.substr(0, 8) + " (" + sizeText(r.task) + ")";
      if (const std::string reason = standing.reasonRejected(r); !reason.empty()) {
        found = which + " " + reason;
        continue;
      }
      if (r.conclusion->verdict == Verdict::Tie) {
        pick.rungs.push_back(std::string(rung) + ": " + which + " found nothing faster than the default");
        pick.origin = "default, tied in record " + e.id.substr(0, 8) + ", " + rung;
        return true;
      }
      if (!usable(r)) {
        found = which + " chose " + r.schedule + ", which cannot be made for this problem here";
        continue;
      }
      pick.record = &r;
      pick.origin = "record " + e.id.substr(0, 8) + ", " + rung + ", " + digits(1 / r.conclusion->ratio) +
                    "x the default";
      pick.rungs.push_back(std::string(rung) + ": " + which + " chose " + r.schedule + ", " +
                           digits(1 / r.conclusion->ratio) + "x the default");
      return true;
    }
    pick.rungs.push_back(std::string(rung) + ": " + found);
    return false;
  };
  for (const Rung rung : {Exact, Bucket, Neighbour})
    if (take(kRungs[rung], here[rung])) return pick;
  if (take("same architecture", elsewhere)) return pick;
  pick.rungs.push_back("default: by the sizes alone" +
                       (stale ? "; " + std::to_string(stale) + " choices are of another toolchain: tune again"
                              : std::string()));
  return pick;
}

}  // namespace normc::tune
