// The tolerance: how far a kernel's output may be from the reference.
//
// One function for tests, the tuner's gate and `normc check`. An output element passes if
//
//   |got - want| <= relative * magnitude + ulps * ulp(want) + floor
//
// where the magnitude comes with the reference value. NaN must meet NaN, an infinity the same infinity. A
// finite value may meet an infinity only if the bound, around it, reaches beyond the largest value of the
// type on the infinity's side of zero, and NaN only if its magnitude is beyond the largest value of the
// arithmetic: parts of such a sum may be infinite on both sides of zero.
//
// How `relative` is derived, for statistics in f32 and u = 2^-24, half an ulp of 1:
//
//   5.3 u  One level of a sum. A chain of n additions of equal terms is the worst: within
//          a binade all of them round the same way, by up to half an ulp of the running
//          sum, which adds up to n / 3 u of the total. Kernels promise chains of at most
//          kLongestChain = 16 (runtime/abi/Sums.h); tests/codegen/ChainsTest.cpp counts
//          them in every schedule. Terms that differ round at random, by about u in all.
//          So do the levels above, whose terms are sums. Differences of 16-bit data from a shift
//          have a common fraction, so beside an outlier they would all round the same way:
//          kernels add those of several rows first.
//   2.7 u  Half of that: the root halves relative errors, d rstd / rstd = -1/2 d moment / moment.
//   1.5 u  The computation of rstd: division by the count, epsilon, the root.
//   4   u  The computation of the element: the distance from the mean, the products with
//          rstd and with scale, the sum with bias.
//
// 8.2 u in all; 5e-7 is 8.4 u. Statistics over rows are combined from partial sums of tasks, which is one
// more level: 6e-7. The bound of outputs that are sums themselves depends on the number of their terms
// (Tolerance.cpp).
//
// An activation y = psi(o) leaves these factors alone; its errors are in the magnitudes
// (ReferenceOutput.cpp). By the mean value theorem an error e of o moves psi by at most max|psi'| e and psi'
// by at most max|psi''| e. The functions are rounded themselves, by less than 8 u of T, the sum of the
// absolute terms of their formulas in dsl/SPEC.md, where (1 - sigma(t)) is the one term sigma(-t). So
//
//   magnitude of y      max|psi'| magnitude(o) + T(psi)
//   magnitude of psi'   |psi'| + T(psi') + max|psi''| magnitude(o)      and that of G its product with |dy|
//
//               relu   silu   gelu, gelu_tanh   sigmoid   tanh
//   max|psi'|   1      1.1    1.129             0.25      1
//   max|psi''|  0      0.5    0.798             0.0963    0.77
//
// |psi'| in the second line is what 5e-7 is derived for where G is given; the rest is the error of psi'.
// Terms of dx, dscale, dbias and nu inherit it by the rules of ReferenceNumber.h. In backward, o is computed
// from the saved statistics, which are exact there, and from x as it is stored: its error is that of the
// element alone, 4 u.
//
// What stands around the norm has inputs that are exact, so its functions and products are errors of one
// element. The roundings that 4 u does not count, an operation of gate, residual or modulation each, are u of
// their result: an eighth of its value is added to the magnitude. A function phi of a gate is rounded by less
// than 8 u of T(phi), so phi and phi' have the magnitudes |phi| + T(phi) and |phi'| + T(phi'). For h that is
//
//   magnitude of h      9/8 |h| + |x| T(phi) + |x phi| / 8      the last two with a gate before
//
// in which x phi and r may cancel: their sum is rounded relative to itself. A stream is stored in a type of
// its own, and a kernel may take h from it for y, though not for the statistics: where that type is narrower,
// an h of y has half an ulp of it in addition. Behind `pre` the factor r = (mean h^2 + eps)^-1/2 may be made
// of such values too, so h r has what its derivative makes of half an ulp of each h of the group. Where that
// moves y into the next binade, its own store rounds by half an ulp of that one. In backward h is
// residual_out as it was stored: exact. Inputs of a wider type are rounded when they are loaded, an eighth of
// their value as above.
//
// With `round=normalized` x0 is rounded to the type of the data. What its error may reach is rounded too:
// where that is another neighbour, the difference, a unit of the type, is in the magnitude of x0. It moves y
// into the next binade as a stream does.
//
// A pair that `rope` turns is two sums of two products, with c and s exact. The roundings of products and sum
// count as those of a gate do:
//
//   magnitude of p c - q s    |c| (m(p) + |p| / 8) + |s| (m(q) + |q| / 8) + |p c - q s| / 8
//
// Codes are y / D, D = A / qmax, A the largest |y| of a row or block, at least the floor. As a quotient a
// code has the errors of y and of A; D, 1 / D and the product are four roundings more. The error of A is that
// of the element that may be the largest. What an error moves into the next binade of e4m3 is rounded by half
// an ulp of that one. With a given D there is no A. Otherwise
//
//   magnitude of A      max(m(y_max), (max(|y| + u m(y)) - A) / u)
//   magnitude of codes  (m(y) / D + |y / D| m(A) / A) / (1 - u m(A) / A) + |y / D| / 2
//   magnitude of D      m(A) / qmax + |D| / 8
//
// Beyond the largest code, and the largest D, the distance to it is taken from the error, and no code differs
// by more than the range of its type. A power of two has no rounding; but where A / qmax, which may be taken
// in f32, is within its error of one, another power is right, and codes differ as much: the magnitudes of
// both grow by 1 / unit of the largest difference. The roundings of codes and scales at the store are the
// ulps, of codes in their own type.
//
// relu has a corner instead of psi''. Where |o| is within the error of o either slope is right, so the error
// of psi' is up to 1: its magnitude grows by 1 / unit, unit the relative error granted. An o that is 0
// without any term has the slope 0. An infinite o has no error, nor has one that is NaN.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Problem.h"
#include "dsl/Reference.h"
#include "dsl/StateFields.h"

namespace normc {

struct Tolerance {
  double relative = 0;        ///< of the magnitude: arithmetic in f32 (f64 for f64 data)
  double ulps = 0;            ///< of the output's own type: the rounding at the store
  double floor = 0;           ///< absolute: the largest error of flushing a denormal result
  DType stored = DType::F32;  ///< the type whose ulp counts
  double largest = std::numeric_limits<double>::infinity();  ///< of the arithmetic
};

/// Returns the tolerance of `output`, a name of ReferenceResult::outputs. Steps and counts are exact.
Tolerance toleranceOf(const Problem&, std::string_view output, const Extents&);

/// Returns the distance between `value` and its neighbours in `type`: that of its binade [2^k, 2^(k+1)), or
/// of subnormals below the smallest one. NaN if `value` is not finite.
double ulp(double value, DType type);
/// Returns `value` rounded to `type` (to nearest, ties to even) and back. Subnormals are kept, a value that
/// is too large becomes infinite, but a code the largest of its sign; NaN stays NaN.
double round(double value, DType type);
/// Returns the largest finite value of `type`, and the one that is farthest below 0.
double largest(DType type);
double lowest(DType type);

/// The result of comparing one output.
struct Agreement {
  bool ok = true;
  int64_t worst = -1;  ///< index of the worst element; -1 if there is none
  /// its error divided by its bound; > 1 fails; infinite for a misplaced NaN or infinity
  double worstRatio = 0;
  double relativeError = 0;  ///< largest |got - want| / magnitude (0/0 counts as 0)
  std::string text;          ///< the worst element: its value, the expected value and the bound
};

Agreement compare(const Quantity& want, const std::vector<double>& got, const Tolerance&);

}  // namespace normc
