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

/// The bytes of a region: runs at far * i + near * j behind the first, i < farCount, j < nearCount.
struct Runs {
  uintptr_t begin;
  int64_t bytes;  ///< of a run
  int64_t near = 0, nearCount = 1, far = 0, farCount = 1;

  explicit Runs(const Region& region)
      : begin(region.begin), bytes(static_cast<int64_t>(region.end - region.begin)) {
    if (!region.view) return;
    const View& view = *region.view;
    bytes = view.inner * view.width;
    // The stride of an axis of one element may be any number, and means nothing.
    if (view.middle > 1) {
      near = std::abs(view.middleStride) * view.width;
      nearCount = view.middle;
    }
    if (view.outer > 1) {
      far = std::abs(view.outerStride) * view.width;
      farCount = view.outer;
    }
  }

  /// True if a run shares bytes with [at, at + length). Only for memory that is written: there runs do not
  /// share memory, and those of one axis are inside a step of the other.
  bool meet(uintptr_t at, int64_t length) const {
    const bool swapped = nearCount > 1 && farCount > 1 && near > far;
    const int64_t step = swapped ? far : near, steps = swapped ? farCount : nearCount;
    const int64_t jump = swapped ? near : far, jumps = swapped ? nearCount : farCount;
    // The first run that ends behind `at`.
    const int64_t behind = static_cast<int64_t>(at - begin) - bytes + 1;
    int64_t i = 0, j = 0;
    if (behind > 0) {
      i = jump ? std::min(behind / jump, jumps - 1) : 0;
      const int64_t rest = behind - i * jump;
      if (rest > 0) j = step ? rest / step + (rest % step != 0) : steps;
      if (j >= steps) {
        ++i;
        j = 0;
      }
      if (i >= jumps) return false;
    }
    return i * jump + j * step < static_cast<int64_t>(at - begin) + length;
  }
};

/// True if each of two regions of one pitch stays inside its own window of the pitch, like columns of one
/// matrix, or its even and its odd rows: they share no byte although their ranges overlap.
bool interleave(const Runs& a, const Runs& b, bool byFar) {
  const int64_t pitch = byFar ? a.far : a.near;
  const auto window = [&](const Runs& runs, int64_t& bytes) {
    if ((byFar ? runs.far : runs.near) != pitch) return false;
    bytes = runs.bytes;
    if (byFar) {  // the near axis is inside the window
      bytes += (runs.nearCount - 1) * runs.near;
    } else if (runs.far % pitch != 0) {
      return false;
    }
    return bytes <= pitch;
  };
  int64_t first, second;
  if (pitch == 0 || !window(a, first) || !window(b, second)) return false;
  // The distance from the first window to the second, modulo the pitch.
  const int64_t ahead = static_cast<int64_t>(b.begin - a.begin) % pitch;
  const int64_t distance = ahead < 0 ? ahead + pitch : ahead;
  return distance >= first && distance + second <= pitch;
}

/// True if the regions share a byte. Regions that interleave with different pitches are compared run by run,
/// which costs less than the call.
bool overlap(const Region& a, const Region& b) {
  if (a.begin >= a.end || b.begin >= b.end || a.end <= b.begin || b.end <= a.begin) return false;
  const Runs written(a.written ? a : b), other(a.written ? b : a);
  if (interleave(written, other, false) || interleave(written, other, true)) return false;
  for (int64_t i = 0; i < other.farCount; ++i)
    for (int64_t j = 0; j < other.nearCount; ++j)
      if (written.meet(other.begin + i * other.far + j * other.near, other.bytes)) return true;
  return false;
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
