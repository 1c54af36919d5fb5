#include "autotune/gate/JudgeKernel.h"

#include <algorithm>
#include <numeric>

#include "autotune/gate/Plans.h"

namespace normc::gate {
namespace {

constexpr size_t kFailuresShown = 3;
/// Rows so long that each level of a sum runs more than once (docs/codegen.md), and how many of them are
/// tried with a kernel of any number of features.
constexpr int64_t kLongRows[] = {1100, 17000}, kFewRows = 5;

class KernelTrials {
 public:
  KernelTrials(const PackageFile& file, size_t kernel, const Problem& problem, const Judging& how)
      : file_(file), manifest_(file.kernels().at(kernel)), problem_(problem), how_(how) {
    verdict_.kernel = kernel;
    try {
      plans_.emplace([&](const std::vector<normc_number>& numbers) { return planWith(numbers); });
    } catch (const host::Error& error) {  // e.g. it needs more shared memory than the device has
      if (!how_.device) throw;
      verdict_.skipped = error.what();
    }
  }

  /// Whether there is any use in another trial.
  bool open() const { return verdict_.skipped.empty() && !verdict_.deviceLost; }

  void run(Trial trial) {
    const bool shortened = shorten(trial.extents);
    if (!plans_ || plans_->plan().kernel() != verdict_.kernel) return;  // the runtime would choose another
    for (const normc_plan* plan : plans_->of(trial)) judge(plan, trial, shortened);
  }

  KernelVerdict take() { return std::move(verdict_); }

 private:
  void judge(const normc_plan* plan, const Trial& trial, bool shortened) {
    Verdict verdict = gate::judge(plan, problem_, trial, how_.device);
    if (const std::string text = how_.observed(); !text.empty()) {
      verdict.text =
          (verdict.ok ? problem_.text() + " on " + trial.text(problem_) + ":" : verdict.text) + "\n" + text;
      verdict.ok = false;
    }
    ++verdict_.trials;
    verdict_.shortened += shortened;
    if (!verdict.ok) {
      ++verdict_.failed;
      verdict_.deviceLost = how_.device && !how_.device->alive();
      if (verdict_.failures.size() < kFailuresShown) verdict_.failures.push_back(verdict.text);
    }
    if (verdict.worstRatio > verdict_.worstRatio) {
      verdict_.worstRatio = verdict.worstRatio;
      verdict_.worstOutput = verdict.worstOutput;
    }
  }

  host::Plan planWith(const std::vector<normc_number>& numbers) const {
    normc_request options{.isa_cap = manifest_.isa.c_str(), .one_kernel = 1};
    options.numbers = numbers.data();
    options.number_count = numbers.size();
    if (how_.device) {
      options.device_type = kDLCUDA;
      options.device_id = how_.device->index();
    }
    return host::Plan(file_.package(), problem_.text(), options);
  }
  bool shorten(Extents& e) const {
    const int64_t row = std::max<int64_t>(e.segments * e.features, 1);
    const int64_t rows = std::max<int64_t>(how_.maxElements / row, 1);
    if (e.rows <= rows) return false;
    e.rows = rows;
    return true;
  }
  const PackageFile& file_;
  const package::Kernel& manifest_;
  const Problem& problem_;
  const Judging& how_;
  std::optional<Plans> plans_;  ///< absent where they cannot be made
  KernelVerdict verdict_;
};

std::vector<int64_t> featureCounts(const Problem& problem) {
  const int64_t multiple = problem.featuresMultiple();
  std::vector<int64_t> counts;
  for (const int64_t base : {1, 7, 8, 64, 100, 768}) {
    const int64_t count = base % multiple == 0 ? base : base < 64 ? package::multiply(base, multiple) : 0;
    if (count && std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

KernelVerdict tried(const PackageFile& file, size_t kernel, const Problem& problem, const Judging& how) {
  KernelTrials trials(file, kernel, problem, how);
  const std::vector<int64_t> counts = problem.features ? std::vector<int64_t>{*problem.features}
                                      : how.features   ? std::vector<int64_t>{*how.features}
                                                       : featureCounts(problem);
  for (const int64_t count : counts) {
    std::vector<Trial> list = standardTrials(problem, count);
    if (const auto many = trialOfManyTasks(count)) list.push_back(*many);
    for (Trial& trial : trialsOfNumbers(problem, count)) list.push_back(std::move(trial));
    for (const Trial& trial : list) {
      if (!trials.open() || how.stop()) return trials.take();
      trials.run(trial);
    }
  }
  if (problem.features || how.features) return trials.take();
  const int64_t groups = problem.featuresMultiple();
  for (const int64_t base : kLongRows) {
    if (base < groups) continue;
    for (const Trial& trial : standardTrials(problem, base / groups * groups)) {
      if (!trials.open() || how.stop()) return trials.take();
      if (trial.extents.rows <= kFewRows) trials.run(trial);
    }
  }
  return trials.take();
}

}  // namespace

Result<KernelVerdict> judgeKernel(const PackageFile& file, size_t kernel, const Judging& how) {
  const Result<Problem> problem = file.problem(file.kernels().at(kernel).problem);
  if (!problem) return problem.errors();
  KernelVerdict verdict;
  if (file.kernels().at(kernel).limits == package::Limits()) {
    verdict = tried(file, kernel, *problem, how);
    if (verdict.trials || !verdict.skipped.empty() || how.stop()) return verdict;
  }
  // Beyond its limits a kernel is slower, and as right. One of another generator, or a fallback, is judged
  // all the same.
  verdict = tried(file.alone(kernel), 0, *problem, how);
  if (!verdict.trials && verdict.skipped.empty())
    verdict.skipped = "the runtime always chooses another kernel of this package";
  verdict.kernel = kernel;
  return verdict;
}

}  // namespace normc::gate
