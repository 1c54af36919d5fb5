#include "tools/normc/TaskRecords.h"

#include "autotune/records/Standing.h"

namespace normc::cli {

using tune::Record;

std::map<std::string, TaskRecords> taskRecordsOf(const tune::Database& all) {
  std::map<std::string, TaskRecords> tasks;
  for (const Record& r : all.records) {
    if (r.kind == tune::RecordKind::Verify) continue;
    TaskRecords& one = tasks[tune::circumstancesOf(r)];
    one.any = &r;
    (r.kind == tune::RecordKind::Choice ? one.choices : one.trials).push_back(&r);
  }
  return tasks;
}

std::map<std::string, Times> timesOf(const TaskRecords& records, const std::string& stage) {
  std::map<std::string, Times> times;
  for (const Record* r : records.trials) {
    if (r->stage != stage || r->status != tune::Status::Ok || r->samples.empty()) continue;
    Times& one = times[nameOf(*r)];
    one.samples.insert(one.samples.end(), r->samples.begin(), r->samples.end());
    one.reference.insert(one.reference.end(), r->reference.begin(), r->reference.end());
  }
  return times;
}

std::string nameOf(const Record& r) { return r.generator + ":" + r.schedule; }

std::string toolsOf(const Record& r) {
  std::string text;
  for (const auto& [tool, version] : r.toolchain) text += (text.empty() ? "" : ", ") + tool + " " + version;
  return text;
}

std::string anySizesOf(const tune::Task& task) {
  ProblemText problem = task.problem.withoutSizes();
  problem.features.reset();
  return problem.text();
}

}  // namespace normc::cli
