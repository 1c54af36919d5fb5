#include "codegen/targets/Knobs.h"

#include <algorithm>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace normc::codegen {

std::string scheduleText(Strategy strategy, llvm::ArrayRef<Knob> knobs) {
  std::string text = name(strategy).str();
  for (const Knob& knob : knobs) {
    if (knob.number)
      text += "," + knob.name.str() + "=" + std::to_string(*knob.number);
    else if (*knob.flag)
      text += "," + knob.name.str();
  }
  return text;
}

llvm::Error parseScheduleText(llvm::StringRef text, Strategy& strategy, llvm::ArrayRef<Strategy> strategies,
                              llvm::ArrayRef<Knob> knobs) {
  // A list is enough for a few words, and a tuner parses thousands of schedules.
  llvm::SmallVector<llvm::StringRef, 16> parts, legal, given;
  text.split(parts, ',');
  auto wrong = [&](const std::string& why) {
    return llvm::createStringError("schedule '" + text.str() + "': " + why);
  };
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto [key, value] = part.split('=');
    if (i == 0) {
      const auto* known = llvm::find_if(strategies, [&, key = key](Strategy s) { return name(s) == key; });
      if (known == strategies.end()) {
        for (Strategy s : strategies) legal.push_back(name(s));
        return wrong("starts with '" + key.str() + "'; legal: " + llvm::join(legal, ", "));
      }
      strategy = *known;
      continue;
    }
    if (llvm::is_contained(given, key)) return wrong("'" + key.str() + "' is given twice");
    given.push_back(key);
    const auto* knob = llvm::find_if(
        knobs, [&, key = key](const Knob& k) { return k.name == key && (k.number || key == part); });
    if (knob == knobs.end()) {
      for (const Knob& k : knobs) legal.push_back(k.name);
      return wrong("no knob '" + key.str() + "'; legal: " + llvm::join(legal, ", "));
    }
    if (knob->flag)
      *knob->flag = true;
    else if (value.getAsInteger(10, *knob->number))
      return wrong("'" + value.str() + "' is not a number for " + key.str());
  }
  return llvm::Error::success();
}

std::vector<int64_t> eachOnce(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void setKnob(llvm::ArrayRef<Knob> knobs, llvm::StringRef name, int64_t value) {
  for (const Knob& knob : knobs)
    if (knob.name == name) {
      if (knob.number)
        *knob.number = value;
      else
        *knob.flag = value != 0;
    }
}

}  // namespace normc::codegen
