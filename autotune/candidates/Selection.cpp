#include "autotune/candidates/Selection.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autotune/candidates/Hardware.h"
#include "autotune/candidates/Space.h"

namespace normc::tune {
namespace {

using codegen::Job;
using package::Limits;

/// Rows for which schedules are made if no record gives sizes.
constexpr int64_t kUsualRows = 2048;

/// True if the limits admit runs of this length. `run` is 0 if the rows of a segment are not a run.
bool serveRun(const Limits& limits, int64_t run) {
  return !run || Limits{.runMin = limits.runMin, .runMax = limits.runMax}.serve(1, run);
}

class Selecting {
 public:
  Selecting(const Problem& problem, Hardware hardware, const Database& database)
      : problem_(problem), database_(database), standing_(database.records), hardware_(std::move(hardware)) {
    task_ = {problem.parts(),   problem.spec->structuralHash(), 1, kUsualRows,
             *problem.features, hardware_.machine.processors,   ""};
  }

  std::vector<Job> jobs() {
    std::vector<Task> sizes = tunedSizes(database_, task_.problem, task_.norm, hardware_.site.device);
    if (sizes.empty()) sizes.push_back(task_);
    defaults_ = codegen::defaultJobs(problem_, hardware_.generators[0]);
    std::map<int64_t, std::vector<Tuned>> runs;  // by rows of a segment if they form a run
    Job last;
    bool any = false;
    for (const Task& size : sizes) {
      last = jobFor(size);
      any |= last.fromRecord;
      runs[rowsLieInRuns(size) ? size.rows : 0].push_back({double(size.totalRows()), last});
    }
    if (!any) {
      for (Job& job : defaults_) {
        job.origin = last.origin;
        job.selection = last.selection;
      }
      return defaults_;
    }

    std::vector<Job> jobs;
    for (auto at = runs.begin(); at != runs.end(); ++at) {
      Limits within;
      if (at != runs.begin()) within.runMin = between(std::prev(at)->first, at->first) + 1;
      if (const auto next = std::next(at); next != runs.end())
        within.runMax = between(at->first, next->first);
      addJobs(at->second, within, at->first, jobs);
    }
    if (jobs.back().limits == Limits()) return jobs;
    // For calls of other sizes, and for plans without fixed sizes.
    const bool alike = codegen::strategyOf(last.schedule) == codegen::strategyOf(defaults_[0].schedule);
    jobs.push_back(runs.size() > 1 && alike ? last : defaults_[0]);
    return jobs;
  }

 private:
  /// The schedule chosen for a number of rows of all segments.
  struct Tuned {
    double rows;
    Job job;
  };
  static int64_t between(double a, double b) { return int64_t(std::sqrt(a * b)); }

  /// Adds jobs for calls with segments in `within`; some of them, with runs of `run` rows, were tuned.
  void addJobs(const std::vector<Tuned>& tuned, const Limits& within, int64_t run,
               std::vector<Job>& jobs) const {
    for (Job job :
         defaults_) {  // schedules that the target limits to fewer rows or other runs than the tuned ones
      Limits& limits = job.limits;
      if (serveRun(limits, run) && !(limits.rowsMax && double(*limits.rowsMax) < tuned.front().rows))
        continue;
      limits.runMin = std::max(limits.runMin, within.runMin);
      if (within.runMax) limits.runMax = std::min(limits.runMax.value_or(*within.runMax), *within.runMax);
      if (!limits.runMax || limits.runMin <= *limits.runMax) jobs.push_back(job);
    }
    for (size_t i = 0; i < tuned.size(); ++i) {
      const auto [here, picked] = tuned[i];
      const bool isLast = i + 1 == tuned.size();
      // The next schedule serves these rows too.
      if (!isLast && picked.schedule == tuned[i + 1].job.schedule) continue;
      Job job = picked;
      job.limits = within;
      if (!isLast) job.limits.rowsMax = between(here, tuned[i + 1].rows);
      if (isLast && codegen::strategyOf(job.schedule) != codegen::strategyOf(defaults_[0].schedule)) {
        job.limits.rowsMax = int64_t(here * std::sqrt(2.0));
        for (const Job& other : defaults_)
          if (other.limits.rowsMax && serveRun(other.limits, run) &&
              codegen::strategyOf(other.schedule) == codegen::strategyOf(job.schedule))
            job.limits.rowsMax = std::max(*job.limits.rowsMax, *other.limits.rowsMax);
      }
      jobs.push_back(std::move(job));
    }
  }
  const codegen::TargetPtr* generatorOf(const Record& record) const {
    for (const codegen::TargetPtr& each : hardware_.generators)
      if (each->generator() == record.generator && !each->bind(problem_)->whyIllegal(record.schedule))
        return &each;
    return nullptr;
  }

  Job jobFor(Task size) const {
    size.problem = task_.problem;
    size.features = task_.features;
    size.threads = task_.threads;
    const Pick pick =
        pickFor(size, hardware_.site, database_, standing_, [&](const Record& r) { return generatorOf(r); });
    Job job{.problem = problem_,
            .target = hardware_.generators[0],
            .schedule = {},
            .origin = pick.origin,
            .selection = pick.rungs};
    if (pick.record) {
      job.fromRecord = true;
      job.target = *generatorOf(*pick.record);
      job.schedule = llvm::cantFail(job.target->bind(problem_, pick.record->schedule))->text();
    } else {
      job.schedule = defaultFor(*job.target->bind(problem_), hardware_.workloadOf(size));
    }
    return job;
  }

  const Problem& problem_;
  const Database& database_;
  const Standing standing_;
  Hardware hardware_;
  Task task_;
  std::vector<Job> defaults_;
};

}  // namespace

llvm::Expected<std::vector<Job>> selectedJobs(const Problem& problem, const std::string& target,
                                              const Database& database) {
  if (problem.features) {
    auto hardware = hardwareFor(target);
    if (!hardware) return hardware.takeError();
    return Selecting(problem, std::move(*hardware), database).jobs();
  }
  auto found = codegen::findTarget(target);
  if (!found) return found.takeError();
  return codegen::defaultJobs(problem, *found);
}

}  // namespace normc::tune
