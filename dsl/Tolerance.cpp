#include "dsl/Tolerance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "runtime/abi/Operands.h"
#include "runtime/abi/Sums.h"

namespace normc {
namespace {

// Returns 2^exponent, for exponents of normal doubles.
double power(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

// Returns the exponent of the binade of `f` that a finite value belongs to. All values below the smallest
// normal one share a binade.
int binade(double value, const FloatFormat& f) {
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(value) >> 52 & 0x7ff) - 1023;
  return std::clamp(exponent, f.smallest, f.exponent);
}

// Bounds of values computed in f32, relative to the magnitude. The header derives them.
constexpr double kOwnRow = 5e-7, kOverRows = 6e-7;
constexpr double kUnit = 0x1p-24, kRoot = 1.5, kElement = 4;
static_assert((kLongestChain / 3.0 / 2 + kRoot + kElement) * kUnit <= kOwnRow,
              "kernels may make longer chains than the bound allows");
// The bound of sums that are outputs. A task adds up its rows in few levels, and the last is as long as
// necessary: chains of about sqrt(n) additions, each of which rounds by at most u of a partial sum, half of
// the total on average. Longer sums have more levels.
constexpr double kLongestSum = 5e-6;

double sumTolerance(double term, double terms) {
  return std::min(kLongestSum, term + kUnit * std::sqrt(terms) / 2);
}

bool isInteger(std::string_view output) {
  return output == "state.step" || output == "saved.step" || output == "saved.count" ||
         output == "partial.rows" || output == "partial.gradient_rows";
}

bool combinesRows(const Problem& problem) {
  const Spec& spec = *problem.spec;
  if (problem.hasConstantStatistics()) return false;
  if (spec.perRow()) return false;
  return !spec.perFeature() || spec.needsBatchStatistics() || spec.warmup.has_value();
}

// Returns the number of terms of a sum: a gradient of this shape, or a statistic.
double termsOf(const Problem& problem, std::optional<TensorShape> shape, const Extents& extents) {
  const Spec& spec = *problem.spec;
  const double rows = static_cast<double>(extents.rows), all = static_cast<double>(extents.totalRows());
  const double width =
      static_cast<double>(extents.features) / static_cast<double>(problem.groups(spec.groups));
  if (shape) return shape == TensorShape::PerFeature ? all : rows;
  switch (spec.reduce) {
    case Reduce::Rows:
      return all;
    case Reduce::Features:
      return width;
    case Reduce::Segment:
      return rows;
    case Reduce::SegmentFeatures:
      return rows * width;
  }
  return 0;
}

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Returns the error of one element divided by its bound: 0 is exact, above 1 fails.
double ratio(double want, double got, double bound, DType stored) {
  constexpr double misplaced = std::numeric_limits<double>::infinity();
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : misplaced;
  if (want == got) return 0;
  if (std::isinf(want)) return misplaced;
  if (std::isinf(got)) {
    // The store overflows from half an ulp above the largest value on. A bound that is larger than the value
    // may reach that on the other side of zero.
    const double overflow = largest(stored) + ulp(largest(stored), stored) / 2;
    return (got > 0 ? want : -want) + bound >= overflow ? 0 : misplaced;
  }
  const double error = std::abs(got - want);
  return bound > 0 ? error / bound : misplaced;
}

}  // namespace

Tolerance toleranceOf(const Problem& problem, std::string_view output, const Extents& extents) {
  Tolerance tolerance;
  const std::optional<Tensor> tensor = tensorNamed(output);
  tolerance.stored = tensor ? typeOf(*tensor, problem.types()) : problem.statistics();
  tolerance.largest = largest(problem.statistics());
  if (isInteger(output)) return tolerance;

  const Has has = hasOf(problem);
  const auto shape = tensor ? std::optional(shapeOf(*tensor, has)) : std::nullopt;
  const double element = combinesRows(problem) ? kOverRows : kOwnRow;
  if (shape == TensorShape::Elements || shape == TensorShape::PerBlock) {
    tolerance.relative = element;
  } else {
    // The terms of a gate before the norm contain dx, whose statistics have a level of their own.
    const bool ofDx = tensor == kDgate && has.gateBefore;
    tolerance.relative = sumTolerance(ofDx ? element : kOwnRow, termsOf(problem, shape, extents));
  }
  const bool wide = problem.statistics() == DType::F64;
  // In f64 the reference rounds as much as the kernel.
  if (wide) tolerance.relative *= 2 * 0x1p-29;
  // A narrower type rounds once more, at the store. The rest covers a value that the f32 error moves across a
  // tie or into the next binade.
  const bool power = infoOf(tolerance.stored).kind == TypeKind::Power;  // exact
  if (bytes(tolerance.stored) < bytes(problem.statistics()) && !power) tolerance.ulps = 0.5 + 0x1p-8;
  // The magnitude covers flushed inputs and intermediate results.
  const bool narrows = tolerance.stored == DType::F32;  // a result that is subnormal there may be flushed
  if (!power) tolerance.floor = wide && !narrows ? std::numeric_limits<double>::min() : 0x1p-126;
  return tolerance;
}

double ulp(double value, DType type) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  const FloatFormat& f = infoOf(type).format;
  const int exponent = binade(value, f) - f.precision + 1;
  return type == DType::F64 ? std::ldexp(1.0, exponent) : power(exponent);
}

// Judging kernels spends most of its time here, so this function calls no other.
double round(double value, DType type) {
  if (!std::isfinite(value) || type == DType::F64) return value;
  if (type == DType::F32) return static_cast<float>(value);
  const FloatFormat& f = infoOf(type).format;
  const int exponent = binade(value, f) - f.precision + 1;
  // Products with powers of two are exact; a sum with 1.5 * 2^52 has no room for a fraction and rounds ties
  // to even.
  constexpr double whole = 0x1.8p52;
  const double rounded = (value * power(-exponent) + whole - whole) * power(exponent);
  if (infoOf(type).kind == TypeKind::Code) return std::clamp(rounded, lowest(type), f.largest);
  if (std::abs(rounded) > f.largest) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return std::copysign(rounded, value);
}

double lowest(DType type) { return type == DType::I8 ? -128 : -largest(type); }

double largest(DType type) { return infoOf(type).format.largest; }

Agreement compare(const Quantity& want, const std::vector<double>& got, const Tolerance& tolerance) {
  Agreement agreement;
  if (want.value.size() != got.size()) {
    agreement.ok = false;
    agreement.worstRatio = std::numeric_limits<double>::infinity();
    agreement.text =
        "got " + std::to_string(got.size()) + " elements, want " + std::to_string(want.value.size());
    return agreement;
  }
  double worstBound = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double value = want.value[i];
    if (want.magnitude[i] == Quantity::kUndefined) continue;
    // If an infinity contributed to a finite value, its magnitude is infinite and no guide.
    const double magnitude = std::isfinite(want.magnitude[i]) ? want.magnitude[i] : std::abs(value);
    double bound = tolerance.relative * magnitude + tolerance.floor;
    if (tolerance.ulps > 0 && std::isfinite(value)) bound += tolerance.ulps * ulp(value, tolerance.stored);
    const bool overflows = std::isnan(got[i]) && std::isfinite(value) && magnitude > tolerance.largest;
    const double here = overflows ? 0 : ratio(value, got[i], bound, tolerance.stored);
    const double error = std::abs(got[i] - value);
    if (std::isfinite(error) && error > 0) {
      agreement.relativeError = std::max(agreement.relativeError, error / magnitude);
    }
    if (agreement.worst < 0 || here > agreement.worstRatio) {
      agreement.worst = static_cast<int64_t>(i);
      agreement.worstRatio = here;
      worstBound = bound;
    }
  }
  agreement.ok = !(agreement.worstRatio > 1);
  if (agreement.worst < 0) {
    agreement.text = "nothing to compare";
    return agreement;
  }
  const double value = want.value[agreement.worst], given = got[agreement.worst];
  agreement.text = "element " + std::to_string(agreement.worst) + " of " + std::to_string(got.size()) +
                   ": got " + digits(given) + ", want " + digits(value);
  if (std::isfinite(value) && std::isfinite(given)) {
    agreement.text += ", error " + digits(std::abs(given - value)) + ", allowed " + digits(worstBound);
  }
  return agreement;
}

}  // namespace normc
