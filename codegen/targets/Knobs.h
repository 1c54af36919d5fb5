// Schedules as text: a strategy, then knobs, e.g. `streamed,rows=4,grain=32`. What
// the knobs are is a target's affair; how they are written is the same for all.
#pragma once

#include <string>

#include "codegen/plan/Planner.h"

namespace normc::codegen {

/// A number, `name=8`, or with `flag` a word that stands there or not.
struct Knob {
  llvm::StringRef name;
  int64_t* number = nullptr;
  bool* flag = nullptr;
};

std::string scheduleText(Strategy, llvm::ArrayRef<Knob>);
/// Sets what the text gives, with one of the strategies that the target has. An error says what is wrong and
/// what would be legal.
llvm::Error parseScheduleText(llvm::StringRef text, Strategy&, llvm::ArrayRef<Strategy>,
                              llvm::ArrayRef<Knob>);

}  // namespace normc::codegen
