#include "tests/end_to_end/Defaults.h"

#include <set>

#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Questions.h"

namespace normc {

void judgeDefaults(const Problem& problem, const std::vector<codegen::TargetPtr>& targets, Judged& judged) {
  std::set<std::string> seen;  // cores of one set often share a schedule
  for (const codegen::TargetPtr& target : targets) {
    for (const codegen::Candidate& candidate : target->bind(problem)->defaults()) {
      const std::string& schedule = candidate.schedule;
      if (!seen.insert(target->name().str() + schedule).second) continue;
      const std::string what =
          problem.text() + " for " + target->spelling() + ", " + target->generator().str() + ": " + schedule;
      const auto kernel = compiled(problem, target, schedule);
      if (!kernel->plan) {
        judged.wrong.push_back(what + ": " + kernel->error);
        continue;
      }
      ++judged.kernels;
      for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
        for (const normc_plan* plan : kernel->plans->of(question.trial)) {
          const gate::Verdict verdict = gate::judge(plan, problem, question);
          ++judged.trials;
          if (!verdict.ok) judged.wrong.push_back(what + ": " + verdict.text);
          if (verdict.worstRatio > judged.worstRatio)
            judged.worstRatio = verdict.worstRatio, judged.worst = what + ", " + question.trial.text(problem);
        }
      }
    }
  }
}

std::vector<codegen::TargetPtr> runnableTargets(const std::string& generator) {
  const codegen::cpu::Isa host = hostIsa();
  std::vector<codegen::TargetPtr> targets;
  std::set<std::string> spellings;
  for (const codegen::cpu::Isa& isa : codegen::cpu::instructionSets()) {
    if (isa.triple != host.triple) continue;
    for (const char* core : {"", ":host"}) {
      auto generators = llvm::cantFail(codegen::findGenerators(isa.name.str() + core));
      for (const codegen::TargetPtr& target : generators)
        if (target->generator() == generator && spellings.insert(target->spelling()).second)
          targets.push_back(target);
    }
    if (isa.name == host.name) break;
  }
  return targets;
}

std::vector<int64_t> manyFeatures() {
  std::set<int64_t> features{768, 1000, 1536, 3072};
  for (int64_t n = 32; n <= 16384; n *= 2) features.insert({n - 1, n, n + 1});
  return {features.begin(), features.end()};
}

}  // namespace normc
