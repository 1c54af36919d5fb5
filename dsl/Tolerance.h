// How far a kernel's output may be from the reference.
//
// One function for tests, the tuner's gate and `normc check`. An output element
// passes when
//
//   |got - want| <= relative * magnitude + ulps * ulp(want) + floor
//
// where the magnitude comes with the reference value. NaN must meet NaN, an
// infinity the same infinity; a finite value may meet an infinity only where the bound
// reaches beyond the largest value of the type. The source of each number is
// given in Tolerance.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Fields.h"
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
