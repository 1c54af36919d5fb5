// Pairs of features, turned by the angles of their row.
#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

enum class Direction { Forth, Back };

Values turnedBy(const Call& call, Values values, Direction direction) {
  if (!call.spec.rope) return values;
  const bool half = call.spec.rope->pairs == Pairs::Half;
  const int64_t pairs = call.problem.pairs(call.features), run = call.features / call.runs;
  const double sign = direction == Direction::Forth ? 1 : -1;
  const auto turnPair = [&](At first, int64_t second) {
    const Tracked c = call.input(kRopeCos, first), s = sign * call.input(kRopeSin, first);
    Tracked &p = values[first.element], &q = values[second];
    const Tracked turnedP = rounded(rounded(c * p) - rounded(s * q));
    q = rounded(rounded(c * q) + rounded(s * p));
    p = turnedP;
  };
  for (int64_t row = 0; row < call.rows; ++row) {
    if (!call.present(row)) continue;  // stays 0, whatever the tables hold
    for (int64_t start = 0; start < call.features; start += run) {
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const int64_t feature = start + (half ? pair : 2 * pair), element = row * call.features + feature;
        turnPair({element, row, feature}, element + (half ? pairs : 1));
      }
    }
  }
  return values;
}

}  // namespace

Values turned(const Call& call, Values m) { return turnedBy(call, std::move(m), Direction::Forth); }
Values turnedBack(const Call& call, Values dt) { return turnedBy(call, std::move(dt), Direction::Back); }

}  // namespace normc::reference
