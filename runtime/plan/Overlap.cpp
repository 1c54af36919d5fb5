#include "runtime/plan/Overlap.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/core/Error.h"

namespace normc::runtime {
namespace {

bool sameView(const View& a, const View& b) {
  return a.data == b.data && (a.middle == 1 || a.middleStride == b.middleStride) &&
         (a.outer == 1 || a.outerStride == b.outerStride);
}

bool exactlyTheSame(const Region& a, const Region& b) {
  return a.view && b.view ? sameView(*a.view, *b.view) : a.begin == b.begin && a.end == b.end;
}

/// True if two views of one pitch are disjoint although their ranges overlap: each stays inside its own
/// window of the pitch, like columns of one matrix, or its even and its odd rows.
bool interleave(const View& a, const View& b, bool byOuter) {
  const int64_t pitch = std::abs(byOuter ? a.outerStride : a.middleStride) * a.width;
  struct Window {
    uintptr_t begin;
    int64_t bytes;
  };
  const auto window = [&](const View& view, Window& window) {
    const int64_t outer = view.outerStride * view.width, middle = view.middleStride * view.width;
    const int64_t step = byOuter ? outer : middle;
    if (std::abs(step) != pitch) return false;
    window = {reinterpret_cast<uintptr_t>(view.data), view.inner * view.width};
    if (byOuter) {  // the middle axis is inside the window
      window.begin += std::min<int64_t>(0, (view.middle - 1) * middle);
      window.bytes += (view.middle - 1) * std::abs(middle);
    } else if (view.outer > 1 && outer % pitch != 0) {
      return false;
    }
    return window.bytes <= pitch;
  };
  Window first, second;
  if (pitch == 0 || !window(a, first) || !window(b, second)) return false;
  // The distance from the first window to the second, modulo the pitch.
  const int64_t ahead = static_cast<int64_t>(second.begin - first.begin) % pitch;
  const int64_t distance = ahead < 0 ? ahead + pitch : ahead;
  return distance >= first.bytes && distance + second.bytes <= pitch;
}

bool overlap(const Region& a, const Region& b) {
  if (a.begin >= a.end || b.begin >= b.end || a.end <= b.begin || b.end <= a.begin) return false;
  return !(a.view && b.view && (interleave(*a.view, *b.view, false) || interleave(*a.view, *b.view, true)));
}

normc_status refuse(const Region& written, const Region& other, bool couldBeSame) {
  if (couldBeSame)
    return fail(NORMC_INVALID_ARGUMENT, written.name, " and ", other.name,
                " overlap but are not the same memory", written.view ? " with the same strides" : "",
                "; make them the same or apart");
  return fail(NORMC_INVALID_ARGUMENT, written.name, " is written and overlaps ", other.name,
              "; they must lie in different memory");
}

}  // namespace

normc_status Regions::check() const {
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < i; ++j) {
      const Region &a = items[i], &b = items[j];
      if ((!a.written && !b.written) || !overlap(a, b)) continue;
      const bool couldBeSame = a.mayBe == j || b.mayBe == i;
      if (couldBeSame && exactlyTheSame(a, b)) continue;
      return a.written ? refuse(a, b, couldBeSame) : refuse(b, a, couldBeSame);
    }
  }
  return NORMC_OK;
}

}  // namespace normc::runtime
