// Texts of schedules: each target reads or refuses one, and prints what it read; it says why a problem cannot
// have it, or estimates the time of a call. Records, bundles and packages hold such texts.
#include <cmath>

#include "codegen/Target.h"
#include "codegen/targets/cpu/CpuSchedule.h"
#include "codegen/targets/cuda/Schedule.h"
#include "codegen/targets/halide/Schedule.h"
#include "dsl/Library.h"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {
namespace {

/// Checks one reader. `T`: a schedule with text() and ==.
template <typename T>
void check(llvm::Expected<T> (*parse)(llvm::StringRef), std::string_view text) {
  llvm::Expected<T> read = parse(text);
  if (!read) {
    require(!llvm::toString(read.takeError()).empty(), "a refusal has a reason");
    return;
  }
  const std::string printed = read->text();
  llvm::Expected<T> again = parse(printed);
  if (!again) throw Fault("a printed schedule is one: " + llvm::toString(again.takeError()));
  require(*again == *read, "a printed schedule is the same: " + printed);
  require(again->text() == printed, "a printed schedule prints the same: " + printed);
}

/// The generators, each with problems whose sweeps differ: rows, columns, groups scaled first.
std::vector<std::shared_ptr<codegen::BoundTarget>> boundTargets() {
  std::vector<std::shared_ptr<codegen::BoundTarget>> bound;
  for (const char* name : {"x86-64-v3", "x86-64-v4", "sm_80", "sm_90"})
    for (const auto& generator : llvm::cantFail(codegen::findGenerators(name)))
      for (const char* problem : {"layer_norm:backward@f32[*x1024]", "batch_norm:forward@f32[*x1024]",
                                  "power_norm_released:backward@bf16[*x768]{heads=8}"})
        bound.push_back(generator->bind(*parseProblem(problem, findNorm)));
  return bound;
}

/// Checks what generators make of a text for their problems.
void checkUse(std::string_view text) {
  static const auto all = boundTargets();
  for (const auto& target : all) {
    auto schedule = target->parse(text);
    if (!schedule) {
      llvm::consumeError(schedule.takeError());
      continue;
    }
    if (const auto reason = (*schedule)->whyIllegal()) {
      require(!reason->empty(), "an illegal schedule has a reason");
      continue;
    }
    const double seconds = (*schedule)->predict({.segments = 1, .rows = 64, .features = 1024, .threads = 2});
    require(std::isfinite(seconds) && seconds > 0, "a legal schedule has an estimate: " + std::string(text));
  }
}

}  // namespace

void schedules(std::string_view text) {
  check(codegen::cpu::parseSchedule, text);
  check(codegen::cuda::parseSchedule, text);
  check(codegen::halide::parseSchedule, text);
  checkUse(text);
}

std::vector<std::string> seedsOfSchedules() {
  return {codegen::cpu::Schedule().text(),
          codegen::cuda::Schedule().text(),
          codegen::halide::Schedule().text(),
          "resident,vector=16,rows=2,scalar_tail,ahead,fetch,nta,in_turn,wide,stream=4",
          "split,unroll=8",
          "streamed,rows=-1",
          "streamed,threads=128,prefetch=7,hints=1,grid=4,shared=2",
          "streamed,threads=1024,blocks=18014398509481984",
          "streamed,rows=8,hold=2305843009213693952",
          "streamed,shared=144115188075855872",
          "streamed,prefetch=4611686018427387904",
          "streamed,cluster=16,grid=9223372036854775807",
          "resident,vector=0,scalar_tail",
          "resident,grain=9223372036854775807,rows=4611686018427387904,unroll=4"};
}

}  // namespace normc::fuzz
