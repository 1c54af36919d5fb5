#include "codegen/lower/Codes.h"

#include "codegen/lower/Floats.h"

using namespace mlir;

namespace normc::codegen {
namespace {

/// Emits the rounding of floats of one type to codes, with bits alone: a conversion to integers would be
/// slower, and depend on the mode of rounding.
class Rounding {
 public:
  Rounding(Loops& l, Value v) : l_(l), f_(l, v), wide_(getElementTypeOrSelf(v.getType()).isF64()) {}

  /// Rounds to an integer from -128 to 127, whose low byte is the code.
  Value toInt8(Value v) { return toByte(wholeBits(limited(v, -kMostInt8 - 1, kMostInt8))); }
  Value convertedToInt8(Value v) {
    Value whole = math::RoundEvenOp::create(l_.b, l_.loc, limited(v, -kMostInt8 - 1, kMostInt8));
    return toByte(arith::FPToSIOp::create(l_.b, l_.loc, l_.b.getI32Type(), whole));
  }

  Value toE4M3(Value v) {
    Value sign = f_.integer<arith::AndIOp>(f_.integer<arith::ShRUIOp>(f_.toBits(v), width() - 8), 0x80);
    Value size = limited(math::AbsFOp::create(l_.b, l_.loc, v), 0, kLargest);
    // Normal codes are the highest bits of the float, from another bias of the exponent on.
    const int64_t dropped = fraction() - kFraction, half = (int64_t(1) << (dropped - 1)) - 1;
    Value bits = f_.toBits(size);
    Value odd = f_.integer<arith::AndIOp>(f_.integer<arith::ShRUIOp>(bits, dropped), 1);
    Value nearest = add(f_.integer<arith::AddIOp>(bits, half), odd);
    Value normal = f_.integer<arith::SubIOp>(f_.integer<arith::ShRUIOp>(nearest, dropped), (bias() - kBias)
                                                                                               << kFraction);
    // Subnormal codes, and the smallest normal one, are multiples of 2^-9.
    Value few = f_.integer<arith::AndIOp>(wholeBits(f_.mul(size, f_.number(512))), 0xf);
    Value small = f_.compare(arith::CmpFPredicate::OLT, size, kSmallest);
    return toByte(arith::OrIOp::create(l_.b, l_.loc, f_.select(small, few, normal), sign));
  }

 private:
  static constexpr double kMostInt8 = infoOf(DType::I8).format.largest;
  static constexpr double kLargest = infoOf(DType::E4M3).format.largest, kSmallest = 0x1p-6;
  static constexpr int64_t kFraction = 3, kBias = 7;

  int64_t width() const { return wide_ ? 64 : 32; }
  int64_t fraction() const { return wide_ ? 52 : 23; }
  int64_t bias() const { return wide_ ? 1023 : 127; }

  Value add(Value a, Value b) { return arith::AddIOp::create(l_.b, l_.loc, a, b); }
  /// Returns bits whose lowest are those of the nearest integer: a sum with 1.5 times the largest power of
  /// two that has units has no room for a fraction.
  Value wholeBits(Value v) { return f_.toBits(f_.add(v, f_.number(wide_ ? 0x1.8p52 : 0x1.8p23))); }
  Value limited(Value v, double least, double most) {
    constexpr auto flags = arith::FastMathFlags::nnan | arith::FastMathFlags::nsz;
    v = arith::MaximumFOp::create(l_.b, l_.loc, v, f_.number(least), flags);
    return arith::MinimumFOp::create(l_.b, l_.loc, v, f_.number(most), flags);
  }
  Value toByte(Value v) {
    return arith::TruncIOp::create(l_.b, l_.loc, withElement(v.getType(), l_.b.getI8Type()), v);
  }

  Loops& l_;
  Floats f_;
  bool wide_;

  friend Value normc::codegen::quantized(Loops&, Type, Value, bool);
};

}  // namespace

bool isQuantizedType(Type type) {
  return type.isSignedInteger(8) || isa<Float8E4M3FNType, Float8E8M0FNUType>(type);
}

Value quantized(Loops& l, Type type, Value value, bool convert) {
  Rounding rounding(l, value);
  if (convert && type.isSignedInteger(8) && !isa<VectorType>(value.getType()))
    return rounding.convertedToInt8(value);
  if (isa<Float8E8M0FNUType>(type)) return rounding.toByte(value);
  return type.isSignedInteger(8) ? rounding.toInt8(value) : rounding.toE4M3(value);
}

}  // namespace normc::codegen
