// Schedules as text: a strategy, then knobs, e.g. `streamed,rows=4,grain=32`. Each target defines its knobs;
// the syntax is common to all.
#pragma once

#include <string>
#include <vector>

#include "codegen/plan/Planner.h"

namespace normc::codegen {

/// A number, `name=8`, or if `flag` a word that is present or not.
struct Knob {
  llvm::StringRef name;
  int64_t* number = nullptr;
  bool* flag = nullptr;
};

std::string scheduleText(Strategy, llvm::ArrayRef<Knob>);
/// Sets the strategy, one of those that the target has, and the knobs in the text. An error has the fault and
/// the legal values.
llvm::Error parseScheduleText(llvm::StringRef text, Strategy&, llvm::ArrayRef<Strategy>,
                              llvm::ArrayRef<Knob>);
/// Returns the values of a knob in ascending order, each once.
std::vector<int64_t> eachOnce(std::vector<int64_t> values);
/// Sets one of the knobs, a flag to 0 or 1.
void setKnob(llvm::ArrayRef<Knob>, llvm::StringRef name, int64_t value);

}  // namespace normc::codegen
