// How far a kernel's output may be from the reference.
//
// One function for tests, the tuner's gate and `normc check`. An output element
// passes when
//
//   |got - want| <= relative * magnitude + ulps * ulp(want) + floor
//
// where the magnitude comes with the reference value. NaN must meet NaN, an
// infinity the same infinity; a finite value may meet an infinity only where the bound
// reaches beyond the largest value of the type.
//
// Where `relative` comes from, for statistics in f32 and u = 2^-24, half an ulp of 1:
//
//   5.3 u  One level of a sum. A chain of n additions of equal terms is the worst: within
//          a binade all of them round the same way, by up to half an ulp of the running
//          sum, which adds up to n / 3 u of the total. Kernels promise chains of at most
//          kLongestChain = 16 (runtime/abi/Sums.h); tests/codegen/ChainsTest.cpp counts
//          them in every schedule. Terms that differ round at random, by about u in all,
//          and so do the levels above, whose terms are sums.
//   2.7 u  What is left of that after the root: d rstd / rstd = -1/2 d moment / moment.
//   1.5 u  Of rstd: division by the count, epsilon, the root.
//   4   u  Of the element: the distance from the mean, the products with rstd and with
//          scale, the sum with bias.
//
// 8.2 u in all; 5e-7 is 8.4 u. Statistics over rows are combined from partial sums of
// tasks, one more level: 6e-7. Outputs that are sums themselves have their bound by the
// number of their terms (Tolerance.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/StateFields.h"
#include "dsl/Problem.h"
#include "dsl/Reference.h"

namespace normc {

struct Tolerance {
  double relative = 0;        ///< of the magnitude: arithmetic in f32 (f64 for f64 data)
  double ulps = 0;            ///< of the output's own type: the rounding at the store
  double floor = 0;           ///< absolute: what flushing a denormal result may lose
  DType stored = DType::F32;  ///< the type whose ulp counts
};

/// `output` is a name of ReferenceResult::outputs. Steps and counts are exact.
Tolerance toleranceOf(const Problem&, std::string_view output, const Extents&);

/// The distance between `value` and its neighbours in `type`: that of the binade
/// [2^k, 2^(k+1)) it lies in, of subnormals below. NaN for what is not finite.
double ulp(double value, DType type);
/// `value` rounded to `type` (to nearest, ties to even) and back: subnormals are
/// kept, what is too large becomes infinite, NaN stays NaN.
double round(double value, DType type);
/// The largest finite value of `type`.
double largest(DType type);

/// The result of comparing one output.
struct Agreement {
  bool ok = true;
  int64_t worst = -1;     ///< index of the worst element, -1 where there is none
  double worstRatio = 0;  ///< its error over its bound; > 1 fails, infinite for a misplaced NaN or infinity
  double relativeError = 0;  ///< largest |got - want| / magnitude (0/0 counts as 0)
  std::string text;          ///< names the worst element, what was got, wanted and allowed
};

Agreement compare(const Quantity& want, const std::vector<double>& got, const Tolerance&);

}  // namespace normc
