#include "autotune/candidates/Remeasure.h"

#include <stdexcept>

#include "autotune/candidates/CandidateCompiler.h"
#include "autotune/candidates/Space.h"
#include "dsl/Library.h"
#include "dsl/Print.h"

namespace normc::tune {

/// No single process has a veto (search/Decide.h).
constexpr int kProcesses = 4, kRounds = 10;
constexpr double kSlower = 1.02;

Result<Problem> problemOf(const Task& task, const std::vector<std::shared_ptr<const Spec>>& norms) {
  const std::string& name = task.problem.norm;
  const std::shared_ptr<const Spec>* other = nullptr;  // same name, other hash
  const auto find = [&](std::string_view) -> Result<std::shared_ptr<const Spec>> {
    for (const auto& norm : norms)
      if (norm->name == name && norm->structuralHash() == task.norm) return norm;
    return findNorm(name);
  };
  const auto problem = parseProblem(task.problem.text(), find);
  if (problem && problem->spec->structuralHash() == task.norm) return *problem;
  for (const auto& norm : norms)
    if (norm->name == name && !other) other = &norm;
  const std::string hash = task.norm.substr(0, 8);
  if (other)
    return Diagnostic{.message = "its " + name + " (hash " + hash +
                                 ") is another than that of --norm (hash " +
                                 (*other)->structuralHash().substr(0, 8) + ")"};
  return Diagnostic{.message = "of a norm that is not built in (" + name + ", hash " + hash +
                               "): give its file by --norm"};
}

std::string whyNotMeasured(const Record& choice, const Result<Problem>& problem, const Hardware& hardware) {
  if (choice.device != hardware.site.device) return "made on another device";
  if (choice.toolchain != hardware.site.toolchain) return "made with another toolchain";
  if (!problem) return problem.errors().front().message;
  for (const codegen::TargetPtr& target : hardware.generators)
    if (target->generator() == choice.generator)
      return target->bind(*problem)->whyIllegal(choice.schedule).value_or("");
  return "by a generator that is not part of this normc";
}

/// True if the candidate itself failed, as opposed to its circumstances; its record then has a status.
static bool failed(const LiveLab& lab, const Screened& one) {
  return one.status != Status::Ok && !lab.made(one.point)->unavailable;
}

std::optional<Remeasured> measureAgain(const Record& choice, const Problem& problem, const Hardware& hardware,
                                       const Remeasuring& how) {
  const auto landscape = landscapeOf(hardware.generators, problem, hardware.workloadOf(choice.task));
  if (!landscape) throw std::runtime_error(landscape.errors().front().message);
  const size_t byDefault = landscape->byDefault();
  const Landscape two({(*landscape)[byDefault], {choice.generator, choice.schedule, 1, {1, 1}}}, 0);
  Setting setting{choice.task, print(*problem.spec), hardware.site.device, hardware.site.toolchain,
                  how.session};
  setting.stamp = how.stamp;
  setting.quietPatience = how.quietPatience;
  const CandidateCompiler compiler(two, hardware.generators, problem, how.folder, how.stop);
  LiveLab lab(
      two, setting,
      {[&](size_t point) { return compiler.compile(point); }, how.stop, Worker::besideThis(), &how.journal},
      {});
  Remeasured again;
  Outcome outcome;
  const auto end = [&](Verdict verdict, std::string reason = {}) {
    again.verdict = verdict;
    again.reason = std::move(reason);
    outcome.decision = {1, verdict == Verdict::Tie, again.ratio, 1, again.ratio};
    lab.conclude(outcome, verdict);
    return again;
  };
  const Screened byDefaultNow = lab.screen({0}).at(0);
  if (how.stop()) return std::nullopt;
  if (byDefaultNow.status != Status::Ok)
    return Remeasured{.reason = "its default is " + std::string(name(byDefaultNow.status)) + ": " +
                                byDefaultNow.reason};
  const Screened one = lab.screen({1}).at(0);
  if (how.stop()) return std::nullopt;
  if (one.status == Status::Duplicate) return end(Verdict::Tie, one.reason);
  if (failed(lab, one)) return end(verdictOf(one.status), one.reason);
  if (one.status != Status::Ok) return Remeasured{.reason = one.reason};
  Samples ratios;
  outcome.racers = {{0, {}}, {1, {}}};
  for (int process = 0; process < kProcesses; ++process) {
    lab.renew();
    const std::vector<Samples> samples = lab.race({0, 1}, kRounds);
    if (samples[0].size() < size_t(kRounds) && how.stop()) return std::nullopt;
    if (samples[0].empty())
      return Remeasured{.reason = "its default failed in the race, after it had passed the gate"};
    if (samples[1].empty()) {
      const Screened* const failure = lab.failed(1);
      if (!failure) return Remeasured{.reason = "the race has no sample of it"};
      return end(verdictOf(failure->status), "in the race, after it had passed the gate");
    }
    ratios.push_back(measure::medianRatio(samples[1], samples[0]));
    for (Racer& racer : outcome.racers) {
      const Samples& taken = samples[racer.point];
      racer.samples.insert(racer.samples.end(), taken.begin(), taken.end());
    }
  }
  again.ratio = meanRatio(ratios);
  return end(again.ratio.low > kSlower ? Verdict::Slower
             : again.ratio.high < 1    ? Verdict::Won
                                       : Verdict::Tie);
}

}  // namespace normc::tune
