// normc-emit STAGE PROBLEM [TARGET [SCHEDULE]]: one stage of one kernel as text,
// for the FileCheck tests in lit/. SCHEDULE is a strategy, whose default schedule
// is taken, or a whole schedule; without it the default strategy's.
#include <iostream>

#include "codegen/Pipelines.h"
#include "dsl/Library.h"

using namespace normc;

static llvm::Expected<codegen::cpu::Schedule> scheduleOf(const Problem& problem, const codegen::cpu::Isa& isa,
                                                         llvm::StringRef text) {
  if (text.contains('=')) return codegen::cpu::parseSchedule(text);
  auto legal = codegen::legalStrategies(problem);
  if (legal.empty()) return llvm::createStringError("no strategy serves " + problem.text());
  codegen::Strategy strategy = legal.front();
  if (!text.empty()) {
    auto parsed = codegen::cpu::parseSchedule(text);
    if (!parsed) return parsed.takeError();
    strategy = parsed->strategy;
  }
  return codegen::cpu::defaultSchedule(problem, isa, strategy);
}

static llvm::Expected<std::string> emitCuda(const Problem& problem, codegen::Stage stage, llvm::StringRef name, llvm::StringRef text) {
  auto arch = codegen::cuda::findArch(name);
  if (!arch) return arch.takeError();
  llvm::Expected<codegen::cuda::Schedule> schedule = codegen::cuda::Schedule();
  if (text.contains('=')) schedule = codegen::cuda::parseSchedule(text);
  else schedule = codegen::cuda::defaultSchedule(problem, *arch, text.empty() ? codegen::legalStrategies(problem).front() : text == "streamed" ? codegen::Strategy::Streamed : codegen::Strategy::Resident);
  if (!schedule) return schedule.takeError();
  llvm::errs() << schedule->text() << "\n";
  return codegen::emitStage(problem, *schedule, *arch, stage);
}

static llvm::Expected<std::string> emit(int count, char** arguments) {
  if (count < 3 || count > 5)
    return llvm::createStringError("usage: normc-emit sweeps|loops|llvm|asm PROBLEM [TARGET [SCHEDULE]]");
  auto stage = codegen::findStage(arguments[1]);
  if (!stage) return stage.takeError();
  auto problem = parseProblem(arguments[2], findNorm);
  if (!problem) return llvm::createStringError(text(problem.errors()));
  if (count > 3 && codegen::cuda::isArchName(arguments[3])) return emitCuda(*problem, *stage, arguments[3], count > 4 ? arguments[4] : "");
  auto isa = codegen::cpu::findIsa(count > 3 ? arguments[3] : "x86-64-v3");
  if (!isa) return isa.takeError();
  auto schedule = scheduleOf(*problem, *isa, count > 4 ? arguments[4] : "");
  if (!schedule) return schedule.takeError();
  return codegen::emitStage(*problem, *schedule, *isa, *stage);
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
