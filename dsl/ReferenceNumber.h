// The arithmetic of the reference: a double with the magnitude of the terms that made it.
//
// A kernel that computes in f32 with unit u makes an error of at most u * magnitude in each value. The rules
// of propagation follow from that:
//
//   a + b   the errors add:                 m = ma + mb
//   a * b   (|a| + u ma)(|b| + u mb):       m = |a| mb + |b| ma - |a b| + u ma mb
//
// So two exact factors give |a b|, and x * s - c * s is judged relative to |x| s + |c| s. The last term is of
// second order; it counts if values cancel to nothing (a constant row: x0 = 0 with magnitude 1e5). A result
// below the smallest normal f32 may be flushed to zero, and an input may be read as zero. That is an error of
// 2^-126, hence a magnitude of 2^-126 / u, which later operations scale. Kernels add in another order, so
// where all terms are below 2^-126 / u what is left of some of them may be flushed too: each addition has
// that error.
//
// The constants are those of f32. For f64 kernels they add a slack that is negligible for results of ordinary
// size.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace normc::reference {

constexpr double kUnit = 0x1p-21;      ///< about 5e-7: the relative error that Tolerance.cpp grants
constexpr double kRounding = 0x1p-24;  ///< half an ulp of f32
constexpr double kSmallestNormal = 0x1p-126;
constexpr double kFlush = kSmallestNormal / kUnit;

/// A magnitude that every value of f32 is within, finite or not, and that sums of many terms may have.
constexpr double kAnything = 0x1p980;

struct Tracked {
  double value = 0, magnitude = 0;
};

inline Tracked flushed(Tracked a) {
  if (std::abs(a.value) < kSmallestNormal && a.magnitude > 0) a.magnitude += kFlush;
  return a;
}
/// Returns a sum of two terms, whose magnitudes have been added.
inline Tracked added(Tracked a) {
  if (std::abs(a.value) >= kSmallestNormal && a.magnitude < kFlush) a.magnitude += kFlush;
  return flushed(a);
}
/// Returns a value that is an input of the kernel.
inline Tracked exact(double value) { return flushed({value, std::abs(value)}); }

inline Tracked operator+(Tracked a, Tracked b) {
  return added({a.value + b.value, a.magnitude + b.magnitude});
}
inline Tracked operator-(Tracked a, Tracked b) {
  return added({a.value - b.value, a.magnitude + b.magnitude});
}
inline Tracked operator*(Tracked a, Tracked b) {
  const double absA = std::abs(a.value), absB = std::abs(b.value);
  const double first = absA * b.magnitude + absB * std::max(0.0, a.magnitude - absA);
  return flushed({a.value * b.value, first + kUnit * a.magnitude * b.magnitude});
}
inline Tracked operator*(double a, Tracked b) { return flushed({a * b.value, std::abs(a) * b.magnitude}); }

/// Divides by an exact number.
inline Tracked operator/(Tracked a, double b) { return {a.value / b, a.magnitude / b}; }

/// Adds a rounding to half an ulp of f32 that the derivation of Tolerance.h does not count.
inline Tracked rounded(Tracked a) {
  a.magnitude += kRounding / kUnit * std::abs(a.value);
  return a;
}

/// Returns the value clipped to [low, high]; NaN stays NaN. An error changes the result only by the part that
/// reaches across the limit. `unit` is the relative error that the tolerance grants; sums may have twice
/// that.
inline Tracked clipped(Tracked a, double low, double high, double unit) {
  const auto at = [&](double limit) {
    const double across = a.magnitude - std::abs(a.value - limit) / (2 * unit);
    return Tracked{limit, std::max(std::abs(limit), across)};
  };
  return a.value < low ? at(low) : a.value > high ? at(high) : a;
}

/// A compensated sum (Neumaier), whose error does not grow with its length, so that it can judge f64 kernels
/// too.
class Sum {
 public:
  void add(Tracked term) {
    const double next = sum_ + term.value;
    const bool sumIsLarger = std::abs(sum_) >= std::abs(term.value);
    lost_ += sumIsLarger ? (sum_ - next) + term.value : (term.value - next) + sum_;
    sum_ = next;
    magnitude_ += term.magnitude + (term.magnitude > 0 && term.magnitude < kFlush ? kFlush : 0);
  }
  Tracked total() const { return {std::isfinite(sum_) ? sum_ + lost_ : sum_, magnitude_}; }
  /// Returns the sum divided by `count`; by 1 if `count` is 0.
  Tracked mean(double count) const { return flushed(total() / std::max(count, 1.0)); }

 private:
  double sum_ = 0, lost_ = 0, magnitude_ = 0;
};

}  // namespace normc::reference
