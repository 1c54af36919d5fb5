// From y to codes and their scales. Tolerance.h derives the magnitudes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dsl/ReferenceParts.h"
#include "dsl/Tolerance.h"

namespace normc::reference {
namespace {

constexpr Tracked kUndefined = {std::numeric_limits<double>::quiet_NaN(), Quantity::kUndefined};

// The elements that share a scale.
struct Block {
  int64_t first, size;
};

// Returns max(max |y|, floor) of a block: the error of the maximum is that of the element that is the largest
// after its own error.
Tracked largestOf(const Call& call, const Values& y, const Block& block) {
  Tracked largest = exact(call.settings.quantFloor);
  double reached = 0;
  for (int64_t i = block.first; i < block.first + block.size; ++i) {
    const double value = std::abs(y[i].value);
    reached = std::max(reached, value + call.unit() * y[i].magnitude);
    if (value > largest.value) largest = {value, y[i].magnitude};
  }
  largest.magnitude = std::max(largest.magnitude, (reached - largest.value) / call.unit());
  return largest;
}

// Returns the smallest power of two that is not below `value`, among those that one byte holds.
double powerAbove(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
  return std::ldexp(1.0, std::clamp(fraction == 0.5 ? exponent - 1 : exponent, -127, 127));
}

// D of a block: as it is compared, and as codes are divided by it.
struct Scale {
  Tracked published;
  double divisor;
  Tracked largest;     // A
  double least, most;  // the powers of two that errors may have made of it
};

Scale scaleOf(const Call& call, const Tracked& largest) {
  const Spec::Quantize& quantize = *call.spec.quantize;
  Tracked quotient = {largest.value / quantize.largest(), largest.magnitude / quantize.largest()};
  if (!quantize.powerOfTwo) {
    quotient = rounded(clipped(flushed(quotient), 0, normc::largest(DType::F32), call.unit()));
    const double divisor = round(quotient.value, DType::F32);
    return {quotient, divisor, largest, divisor, divisor};
  }
  const double power = powerAbove(quotient.value);
  // The error of A, and two roundings of the quotient.
  const double rounding = kRounding / kUnit * call.unit();
  const double relative = call.unit() * quotient.magnitude / quotient.value + 2 * rounding;
  const double below =
      std::max(quotient.value * (1 - relative), call.settings.quantFloor / quantize.largest());
  const double least = powerAbove(below * (1 - 2 * rounding)),
               most = powerAbove(quotient.value * (1 + relative));
  const double error = std::max(most - power, power - least);
  return {{power, power + error / call.unit()}, power, largest, least, most};
}

// Returns the code of an element before it is rounded, saturated.
Tracked codeOf(const Call& call, const Tracked& y, const Scale& scale) {
  const DType type = call.spec.quantize->type();
  const double unit = call.unit();
  Tracked code = {y.value / scale.divisor, y.magnitude / scale.least};
  const double size = std::abs(code.value);
  // The errors of A, of D and of 1 / D; the product with it.
  if (scale.largest.value > 0) {
    const double relative = scale.largest.magnitude / scale.largest.value, left = 1 - unit * relative;
    code.magnitude += size * relative;
    code.magnitude = left > 0 ? code.magnitude / left : std::numeric_limits<double>::max();
  }
  code.magnitude += 4 * kRounding / kUnit * size;
  const double divisor = scale.divisor;
  code.magnitude += size * std::max(divisor / scale.least - 1, 1 - divisor / scale.most) / unit;
  // Errors smaller than the distance to the largest code change nothing.
  const double limit = code.value < 0 ? -lowest(type) : largest(type);
  if (size > limit) {
    code.value = std::copysign(limit, code.value);
    code.magnitude = std::max(limit, code.magnitude - (size - limit) / unit);
  }
  code.magnitude = std::min(code.magnitude, (largest(type) - lowest(type)) / unit);
  code.magnitude += beyondTheBinade(call, code, type);
  return code;
}

}  // namespace

void publishCodes(const Call& call, const Values& y, Outputs& outputs) {
  const bool given = call.has.quantScale;
  const double one = given ? call.given.quantScale[0] : 0;
  const int64_t blocks = call.spec.quantize->blocks(call.features), size = call.features / blocks;
  Values codes(y.size()), scales(given ? 0 : call.elements(kQuantScaleOut));
  for (int64_t row = 0; row < call.rows; ++row) {
    const auto ofRow = y.begin() + row * call.features;
    const bool defined = std::all_of(ofRow, ofRow + call.features, [&call](const Tracked& each) {
      return std::abs(each.value) <= call.largestValue();
    });
    for (int64_t block = 0; block < blocks; ++block) {
      const Block at{row * call.features + block * size, size};
      const Scale scale = given ? Scale{{}, one, {}, one, one} : scaleOf(call, largestOf(call, y, at));
      if (!given) scales[row * blocks + block] = defined ? scale.published : kUndefined;
      for (int64_t i = at.first; i < at.first + size; ++i)
        codes[i] = defined ? codeOf(call, y[i], scale) : kUndefined;
    }
  }
  outputs["codes"] = quantity(codes);
  if (!given) outputs["quant_scale_out"] = quantity(scales);
}

}  // namespace normc::reference
