// Conversions from and to bf16 as integer arithmetic.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace normc::codegen {

static Value integer(Loops& l, Type like, int64_t n) { return l.splat(like, l.b.getI32IntegerAttr(n)); }

/// Returns f32 from bf16. Elements of the lower half go to even lanes and those of the upper half to odd
/// lanes; a shift and a mask make f32 of them.
static Value spread(Loops& l, Value bits) {
  OpBuilder& b = l.b;
  const int64_t half = cast<VectorType>(bits.getType()).getNumElements() / 2;
  SmallVector<int64_t> mixed, all;
  for (int64_t i = 0; i < half; ++i) mixed.append({i, half + i});
  auto i32 = VectorType::get({half}, b.getI32Type()), f32 = VectorType::get({half}, b.getF32Type());
  Value words =
      vector::BitCastOp::create(b, l.loc, i32, vector::ShuffleOp::create(b, l.loc, bits, bits, mixed));
  Value lower = arith::ShLIOp::create(b, l.loc, words, integer(l, i32, 16));
  Value upper = arith::AndIOp::create(b, l.loc, words, integer(l, i32, ~int64_t(0xffff)));
  llvm::append_range(all, llvm::seq<int64_t>(2 * half));
  return vector::ShuffleOp::create(b, l.loc, arith::BitcastOp::create(b, l.loc, f32, lower),
                                   arith::BitcastOp::create(b, l.loc, f32, upper), all);
}

static Value fromBF16(Loops& l, Value bits, bool whole) {
  if (whole) return spread(l, bits);
  OpBuilder& b = l.b;
  Type i32 = withElement(bits.getType(), b.getI32Type());
  Value wide = arith::ExtUIOp::create(b, l.loc, i32, bits);
  Value high = arith::ShLIOp::create(b, l.loc, wide, integer(l, i32, 16));
  return arith::BitcastOp::create(b, l.loc, withElement(i32, b.getF32Type()), high);
}

/// Returns the upper halves of `bits`, rounded by the lower halves, all in lanes of 16 bits, of which a
/// register holds twice as many. A half rounds up if the lower part is more than half a unit, or exactly that
/// next to an odd upper half. NaN that results from arithmetic is quiet, so only one with all bits set could
/// overflow, and it is not rounded.
static Value toBF16Lanes(Loops& l, Value bits) {
  OpBuilder& b = l.b;
  const int64_t lanes = cast<VectorType>(bits.getType()).getNumElements();
  auto type = VectorType::get({lanes}, b.getI16Type());
  Value words = vector::BitCastOp::create(b, l.loc, VectorType::get({2 * lanes}, b.getI16Type()), bits);
  auto half = [&](int64_t first) -> Value {
    SmallVector<int64_t> places;
    for (int64_t i = first; i < 2 * lanes; i += 2) places.push_back(i);
    return vector::ShuffleOp::create(b, l.loc, words, words, places);
  };
  auto all = [&](uint16_t n) -> Value {
    return arith::ConstantOp::create(b, l.loc, DenseElementsAttr::get(type, b.getI16IntegerAttr(int16_t(n))));
  };
  Value low = half(0), high = half(1);
  Value odd = arith::AndIOp::create(b, l.loc, high, all(1));
  Value more = arith::CmpIOp::create(b, l.loc, arith::CmpIPredicate::ugt, low,
                                     arith::SubIOp::create(b, l.loc, all(0x8000), odd));
  Value full = arith::OrIOp::create(b, l.loc, high, all(0x8000));
  Value safe = arith::CmpIOp::create(b, l.loc, arith::CmpIPredicate::ne, full, all(0xffff));
  Value up = arith::AndIOp::create(b, l.loc, more, safe);
  return arith::SelectOp::create(b, l.loc, up, arith::AddIOp::create(b, l.loc, high, all(1)), high);
}

/// Rounds two registers to one by the instruction. LLVM would round them one by one, and store them so.
static Value roundBoth(Loops& l, Value f32) {
  const int64_t lanes = cast<VectorType>(f32.getType()).getNumElements();
  auto half = [&](int64_t first) {
    return vector::ShuffleOp::create(l.b, l.loc, f32, f32,
                                     llvm::to_vector(llvm::seq<int64_t>(first, first + lanes / 2)));
  };
  Value both[] = {half(lanes / 2), half(0)};
  auto name = l.b.getStringAttr("llvm.x86.avx512bf16.cvtne2ps2bf16.512");
  return LLVM::CallIntrinsicOp::create(l.b, l.loc, withElement(f32.getType(), l.b.getBF16Type()), name, both)
      .getResult(0);
}

/// Returns the bits of `f32`, of which the upper half is rounded by the lower half.
static Value roundedBits(Loops& l, Value f32) {
  OpBuilder& b = l.b;
  Type i32 = withElement(f32.getType(), b.getI32Type());
  Value bits = arith::BitcastOp::create(b, l.loc, i32, f32);
  // Adds just less than half a unit, or exactly that if the upper half is odd; makes NaN quiet.
  Value odd = arith::AndIOp::create(b, l.loc, arith::ShRUIOp::create(b, l.loc, bits, integer(l, i32, 16)),
                                    integer(l, i32, 1));
  Value up =
      arith::AddIOp::create(b, l.loc, arith::AddIOp::create(b, l.loc, bits, integer(l, i32, 0x7fff)), odd);
  Value nan = arith::CmpFOp::create(b, l.loc, arith::CmpFPredicate::UNO, f32, f32);
  Value quiet = arith::OrIOp::create(b, l.loc, bits, integer(l, i32, 0x400000));
  return arith::SelectOp::create(b, l.loc, nan, quiet, up);
}

/// Returns the nearest bf16 as f32.
static Value rounded(Loops& l, Value f32) {
  Value bits = roundedBits(l, f32);
  Value upper = arith::AndIOp::create(l.b, l.loc, bits, integer(l, bits.getType(), ~int64_t(0xffff)));
  return arith::BitcastOp::create(l.b, l.loc, f32.getType(), upper);
}

static Value toBF16(Loops& l, Value f32) {
  OpBuilder& b = l.b;
  Type i32 = withElement(f32.getType(), b.getI32Type());
  if (isa<VectorType>(i32)) return toBF16Lanes(l, arith::BitcastOp::create(b, l.loc, i32, f32));
  Value high = arith::ShRUIOp::create(b, l.loc, roundedBits(l, f32), integer(l, i32, 16));
  return arith::TruncIOp::create(b, l.loc, withElement(i32, b.getI16Type()), high);
}

PassPtr expandBF16(bool instruction, int64_t whole) {
  return modulePass("expand-bf16", [=](ModuleOp module) {
    auto lanesOf = [](Value v) {
      auto vector = dyn_cast<VectorType>(v.getType());
      return vector ? vector.getNumElements() : 0;
    };
    // A value that stays f32 is rounded in its lanes.
    module.walk([](arith::ExtFOp wide) {
      auto narrow = wide.getIn().getDefiningOp<arith::TruncFOp>();
      if (!narrow || !getElementTypeOrSelf(narrow.getType()).isBF16()) return;
      OpBuilder b(wide);
      Loops l(b, wide.getLoc());
      wide.replaceAllUsesWith(rounded(l, narrow.getIn()));
      wide.erase();
      if (narrow.use_empty()) narrow.erase();
    });
    SmallVector<arith::BitcastOp> all;
    module.walk([&](arith::BitcastOp bits) { all.push_back(bits); });
    for (arith::BitcastOp bits : all) {
      OpBuilder b(bits);
      Loops l(b, bits.getLoc());
      if (auto rounded = bits.getIn().getDefiningOp<arith::TruncFOp>();
          rounded && getElementTypeOrSelf(rounded.getType()).isBF16()) {
        const int64_t lanes = lanesOf(rounded);
        if (instruction && lanes >= 4) {
          if (lanes == whole) rounded.replaceAllUsesWith(roundBoth(l, rounded.getIn()));
          if (rounded.use_empty()) rounded.erase();
          continue;
        }
        bits.replaceAllUsesWith(toBF16(l, rounded.getIn()));
        bits.erase();
        rounded.erase();
      } else if (getElementTypeOrSelf(bits.getType()).isBF16()) {
        auto widened = cast<arith::ExtFOp>(*bits->user_begin());
        Value f32 = fromBF16(l, bits.getIn(), whole && lanesOf(bits) == whole);
        widened.replaceAllUsesWith(l.convert(f32, getElementTypeOrSelf(widened.getType())));
        widened.erase();
        bits.erase();
      }
    }
  });
}

}  // namespace normc::codegen
