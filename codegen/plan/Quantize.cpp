#include "codegen/plan/Quantize.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen {
namespace {

/// The scale D of some codes, as it is stored, and 1 / D.
struct Scale {
  Num stored, factor;
};

class Scales {
 public:
  explicit Scales(KernelBuilder& k) : k_(k), b_(k.ops()), quantize_(*k.spec().quantize) {}

  /// Returns that of codes whose largest magnitude is `most`.
  Scale of(Num most) {
    const Num size = max(most, k_.numberOfTask("quant_floor"));
    const Num quotient = size / k_.constant(quantize_.largest());
    if (quantize_.powerOfTwo) return powerOfTwo(quotient);
    // A scale is f32 whatever the type of statistics; f64 has quotients that are larger.
    const Num scale = isWide() ? wide(single(limited(quotient))) : quotient;
    return {scale, 1.0 / scale};
  }

 private:
  bool isWide() const { return k_.statisticsType().isF64(); }
  Num num(Value v) { return {&k_, v}; }
  Num single(Num v) {
    return isWide() ? num(arith::TruncFOp::create(b_, k_.loc(), b_.getF32Type(), v.value)) : v;
  }
  Num limited(Num v) { return min(k_.constant(infoOf(DType::F32).format.largest), v); }
  Num wide(Num v) { return num(arith::ExtFOp::create(b_, k_.loc(), b_.getF64Type(), v.value)); }
  Value integer(int64_t v, Type type) {
    return arith::ConstantOp::create(b_, k_.loc(), b_.getIntegerAttr(type, v));
  }

  /// Returns the smallest power of two that is not below a positive number: any bit of the fraction raises
  /// the exponent by one. It is stored as the exponent + 127.
  Scale powerOfTwo(Num least) {
    const auto loc = k_.loc();
    const Type i32 = b_.getI32Type(), whole = isWide() ? b_.getI64Type() : i32;
    const int64_t fraction = isWide() ? 52 : 23, bias = isWide() ? 1023 : 127;
    Value bits = arith::BitcastOp::create(b_, loc, whole, least.value);
    bits = arith::AddIOp::create(b_, loc, bits, integer((int64_t(1) << fraction) - 1, whole));
    Value exponent = arith::ShRUIOp::create(b_, loc, bits, integer(fraction, whole));
    if (isWide()) {
      exponent = arith::SubIOp::create(b_, loc, exponent, integer(bias - 127, whole));
      exponent = arith::MaxSIOp::create(b_, loc, exponent, integer(0, whole));
    }
    exponent = arith::MinSIOp::create(b_, loc, exponent, integer(254, whole));
    // 1 / D in the bits of the statistics type.
    Value inverse = arith::SubIOp::create(b_, loc, integer(bias + 127, whole), exponent);
    inverse = arith::ShLIOp::create(b_, loc, inverse, integer(fraction, whole));
    if (isWide()) exponent = arith::TruncIOp::create(b_, loc, i32, exponent);
    return {num(exponent), num(arith::BitcastOp::create(b_, loc, k_.statisticsType(), inverse))};
  }

  KernelBuilder& k_;
  OpBuilder& b_;
  const Spec::Quantize& quantize_;
};

}  // namespace

bool scalesRows(const Spec& spec) { return spec.quantize && spec.quantize->per != QuantizePer::Tensor; }

Nums sweepOutput(KernelBuilder& k, Parts& parts, KernelBuilder::Sweep sweep,
                 llvm::function_ref<void(Element&, Nums&)> element) {
  const auto& quantize = k.spec().quantize;
  sweep.writes.insert(sweep.writes.begin(), quantize ? "codes" : "y");
  auto last = [&] {
    return k.sweep(sweep, parts, [&](Element& e) {
      Nums out{quantize ? e.code() : e.output()};
      element(e, out);
      return out;
    });
  };
  if (!quantize) return last();
  if (quantize->per == QuantizePer::Tensor) {
    parts.is(Part::CodeFactor, k.ofTask([&] { return 1.0 / k.load(k.argument("quant_scale")); }));
    return last();
  }
  auto scaled = [&] {
    const Nums most = k.sweep({.sums = 1, .combiners = {Combiner::Max}}, parts,
                              [](Element& e) { return Nums{abs(e.output())}; });
    const Scale scale = Scales(k).of(most[0]);
    k.store(scale.stored, k.argument("quant_scale_out"));
    parts.is(Part::CodeFactor, scale.factor);
    return last();
  };
  if (quantize->per == QuantizePer::Row) return scaled();
  k.blocks([&] { scaled(); });
  return {};
}

}  // namespace normc::codegen
