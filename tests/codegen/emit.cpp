// normc-emit STAGE PROBLEM [TARGET [SCHEDULE]]: one stage of one kernel as text,
// for the FileCheck tests in lit/. STAGE is that of `normc compile --emit`, or after=PASS. SCHEDULE is a
// strategy, whose default schedule is taken, or a whole schedule; without it the target's first. normc-emit
// loops FILE.test: the loops of kernels that the file writes in the norm dialect.
#include <iostream>

#include "codegen/Target.h"
#include "dsl/Library.h"

using namespace normc;

static llvm::Expected<std::string> scheduleOf(const Problem& problem, const codegen::Target& target,
                                              llvm::StringRef text) {
  if (text.contains('=')) return text.str();
  if (auto reason = target.bind(problem)->whyIllegal())
    return llvm::createStringError(problem.text() + ": " + *reason);
  for (const codegen::Candidate& candidate : target.bind(problem)->defaults())
    if (llvm::StringRef(candidate.schedule).starts_with(text)) return candidate.schedule;
  return llvm::createStringError("no default schedule of " + problem.text() + " begins with '" + text.str() +
                                 "'");
}

static llvm::Expected<std::string> emit(int count, char** arguments) {
  if (count < 3 || count > 5)
    return llvm::createStringError("usage: normc-emit STAGE PROBLEM [TARGET [SCHEDULE]]");
  auto problem = parseProblem(arguments[2], findNorm);
  if (!problem) return llvm::createStringError(text(problem.errors()));
  auto target = codegen::findTarget(count > 3 ? arguments[3] : "x86-64-v3");
  if (!target) return target.takeError();
  auto schedule = scheduleOf(*problem, **target, count > 4 ? arguments[4] : "");
  if (!schedule) return schedule.takeError();
  auto bound = (*target)->bind(*problem, *schedule);
  if (!bound) return bound.takeError();
  llvm::StringRef stage = arguments[1];
  if (!stage.consume_front("after=")) return (*bound)->emit(stage);
  auto passes = (*bound)->passes(stage.str());
  if (!passes) return passes.takeError();
  for (const codegen::PassText& pass : *passes)
    if (pass.pass == stage) return pass.text;
  return llvm::createStringError("no pass '" + stage.str() + "'");
}

int main(int count, char** arguments) {
  auto result = emit(count, arguments);
  if (result) {
    std::cout << *result;
    return 0;
  }
  std::cerr << llvm::toString(result.takeError()) << "\n";
  return 1;
}
