// Texts of schedules: each target reads or refuses one, and prints what it read. Records and bundles hold
// such texts.
#include "codegen/targets/cpu/CpuSchedule.h"
#include "codegen/targets/cuda/Schedule.h"
#include "codegen/targets/halide/Schedule.h"
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

}  // namespace

void schedules(std::string_view text) {
  check(codegen::cpu::parseSchedule, text);
  check(codegen::cuda::parseSchedule, text);
  check(codegen::halide::parseSchedule, text);
}

std::vector<std::string> seedsOfSchedules() {
  return {codegen::cpu::Schedule().text(),
          codegen::cuda::Schedule().text(),
          codegen::halide::Schedule().text(),
          "resident,vector=16,rows=2,scalar_tail,ahead,fetch,in_turn,stream=4",
          "split,unroll=8",
          "streamed,rows=-1",
          "streamed,threads=128,prefetch=7,hints=1,grid=4,shared=2"};
}

}  // namespace normc::fuzz
