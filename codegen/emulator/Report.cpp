#include "codegen/emulator/Report.h"

namespace normc::emulator {

std::string Dim3::text() const {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

const char* nameOf(Fault fault) {
  switch (fault) {
    case Fault::OutOfBounds:
      return "out of bounds";
    case Fault::Misaligned:
      return "misaligned";
    case Fault::ReadOnly:
      return "read-only memory";
    case Fault::Uninitialised:
      return "uninitialised";
    case Fault::Race:
      return "data race";
    case Fault::Divergence:
      return "divergence";
    case Fault::Deadlock:
      return "deadlock";
    case Fault::Runaway:
      return "runaway";
    case Fault::Misuse:
      return "misuse";
  }
  return "";
}

std::string Finding::text() const {
  std::string text = std::string(nameOf(fault)) + ": @" + kernel + ", block " + block.text() + " thread " +
                     thread.text() + ": " + what + "\n  at " + where;
  if (!earlier.empty()) text += "\n  beside " + earlier;
  return text;
}

Traffic Report::of(const std::string& region) const {
  for (const Traffic& one : traffic)
    if (one.region == region) return one;
  Traffic none;
  none.region = region;
  return none;
}

}  // namespace normc::emulator
