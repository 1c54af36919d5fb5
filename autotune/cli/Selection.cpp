#include "autotune/cli/Selection.h"

#include <algorithm>
#include <cmath>

#include "autotune/cli/Failure.h"
#include "autotune/cli/Hardware.h"
#include "autotune/space/Space.h"

namespace normc::cli {
namespace {

using codegen::Job;

/// Rows that a schedule is asked for where no record says which matter.
constexpr int64_t kUsualRows = 2048;

std::string strategyOf(const std::string& schedule) { return schedule.substr(0, schedule.find(',')); }

class Selecting {
 public:
  Selecting(const Problem& problem, const std::string& target, const tune::Database& database)
      : problem_(problem), database_(database), hardware_(hardwareFor(target)) {
    task_ = {problem.text(),    problem.spec->structuralHash(), 1, kUsualRows,
             *problem.features, hardware_.machine.processors,   ""};
  }

  std::vector<Job> jobs() {
    std::vector<tune::Task> sizes =
        tune::tunedSizes(database_, task_.problem, task_.norm, hardware_.site.device);
    if (sizes.empty()) sizes.push_back(task_);
    std::vector<Job> defaults = codegen::defaultJobs(problem_, hardware_.generators[0]);
    std::vector<Job> picked;
    for (const tune::Task& size : sizes) picked.push_back(jobFor(size));
    const auto untuned = [](const Job& job) { return !job.origin.starts_with("record "); };
    if (std::all_of(picked.begin(), picked.end(), untuned)) {
      for (Job& job : defaults) job.origin = picked.back().origin, job.selection = picked.back().selection;
      return defaults;
    }

    std::vector<Job> jobs;
    const int64_t least = sizes.front().segments * sizes.front().rows;
    for (const Job& job : defaults)  // what the target limits to fewer rows than were ever tuned
      if (job.rowsMax && *job.rowsMax < least) jobs.push_back(job);
    for (size_t i = 0; i < picked.size(); ++i) {
      const bool last = i + 1 == picked.size();
      if (!last && picked[i].schedule == picked[i + 1].schedule)
        continue;  // the next one serves these rows, too
      const double here = double(sizes[i].segments * sizes[i].rows);
      if (!last)
        picked[i].rowsMax = int64_t(std::sqrt(here * double(sizes[i + 1].segments * sizes[i + 1].rows)));
      if (last && strategyOf(picked[i].schedule) != strategyOf(defaults[0].schedule)) {
        picked[i].rowsMax = int64_t(here * std::sqrt(2.0));
        for (const Job& job : defaults)
          if (job.rowsMax && strategyOf(job.schedule) == strategyOf(picked[i].schedule))
            picked[i].rowsMax = std::max(*picked[i].rowsMax, *job.rowsMax);
      }
      jobs.push_back(picked[i]);
    }
    if (jobs.back().rowsMax) jobs.push_back(defaults[0]);
    return jobs;
  }

 private:
  const codegen::TargetPtr* generatorOf(const tune::Record& record) const {
    for (const codegen::TargetPtr& each : hardware_.generators)
      if (each->generator() == record.generator && !each->whyIllegal(problem_, record.schedule)) return &each;
    return nullptr;
  }

  Job jobFor(tune::Task size) const {
    size.problem = task_.problem, size.features = task_.features, size.threads = task_.threads;
    const tune::Pick pick =
        tune::pickFor(size, hardware_.site, database_, [&](const tune::Record& r) { return generatorOf(r); });
    Job job{.problem = problem_,
            .target = hardware_.generators[0],
            .schedule = {},
            .origin = pick.origin,
            .selection = pick.rungs};
    if (pick.record) {
      job.target = *generatorOf(*pick.record);
      job.schedule = llvm::cantFail(job.target->canonical(pick.record->schedule));
    } else {
      job.schedule = tune::defaultFor(*job.target, problem_, hardware_.loadOf(size));
    }
    return job;
  }

  const Problem& problem_;
  const tune::Database& database_;
  Hardware hardware_;
  tune::Task task_;
};

}  // namespace

std::vector<Job> selectedJobs(const Problem& problem, const std::string& target,
                              const tune::Database& database) {
  if (!problem.features) {
    std::vector<Job> jobs;
    for (Job& job : codegen::defaultJobs(problem, valueOf(codegen::findTarget(target), ExitCode::Usage)))
      jobs.push_back(std::move(job));
    return jobs;
  }
  return Selecting(problem, target, database).jobs();
}

}  // namespace normc::cli
