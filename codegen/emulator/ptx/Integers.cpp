// Integer arithmetic, shifts, bits, predicates.
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Intrinsics.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

namespace {
class Integers {
 public:
  explicit Integers(Kernel& kernel) : k_(kernel), b_(kernel.b), s_(kernel.now()), type_(s_.types.back()) {}
  bool operation();

 private:
  Value* in(size_t i) { return k_.read(k_.operand(i), type_); }
  Value* count(size_t i) { return k_.readBits(k_.operand(i), 32); }
  /// Writes the result. True, as all operations that are known.
  bool out(Value* value) {
    k_.write(k_.operand(0), value, type_);
    return true;
  }
  bool isSigned() const { return type_.kind == Type::Signed; }
  unsigned bits() const { return type_.bits; }
  Value* constant(uint64_t value) { return ConstantInt::get(k_.typeFor(type_), value); }

  bool product();
  Value* quotient();
  Value* shifted();
  Value* field();
  Value* permuted();
  Value* funnel();
  Value* looked();

  Kernel& k_;
  IRBuilder<>& b_;
  const Statement& s_;
  const Type type_;
};
}  // namespace

/// `mul` and `mad`, of which the lower half, the upper half, or all is kept.
bool Integers::product() {
  const bool wide = s_.has("wide"), high = s_.has("hi");
  const unsigned all = 2 * bits();
  const auto widen = [&](Value* x) {
    return isSigned() ? b_.CreateSExt(x, b_.getIntNTy(all)) : b_.CreateZExt(x, b_.getIntNTy(all));
  };
  Value* product = wide || high ? b_.CreateMul(widen(in(1)), widen(in(2))) : b_.CreateMul(in(1), in(2));
  if (high) product = b_.CreateTrunc(b_.CreateLShr(product, bits()), b_.getIntNTy(bits()));
  if (s_.words[0] == "mad") product = b_.CreateAdd(product, k_.readBits(k_.operand(3), wide ? all : bits()));
  k_.write(k_.operand(0), product, type_);
  return true;
}

/// `div` and `rem`. A device divides by zero without a trap, and so does this.
Value* Integers::quotient() {
  Value *x = in(1), *y = in(2), *zero = constant(0);
  Value* isZero = b_.CreateICmpEQ(y, zero);
  Value* minus = isSigned() ? b_.CreateICmpEQ(y, constant(~0ull)) : b_.getFalse();
  Value* safe = b_.CreateSelect(b_.CreateOr(isZero, minus), constant(1), y);
  if (s_.words[0] == "rem") {
    Value* rest = isSigned() ? b_.CreateSRem(x, safe) : b_.CreateURem(x, safe);
    return b_.CreateSelect(isZero, x, b_.CreateSelect(minus, zero, rest));
  }
  Value* quotient = isSigned() ? b_.CreateSDiv(x, safe) : b_.CreateUDiv(x, safe);
  return b_.CreateSelect(isZero, constant(~0ull), b_.CreateSelect(minus, b_.CreateNeg(x), quotient));
}

/// `shl` and `shr`, whose counts end at the width.
Value* Integers::shifted() {
  Value *x = in(1), *by = count(2), *most = k_.i32(bits() - 1);
  Value* beyond = b_.CreateICmpUGT(by, most);
  Value* within = b_.CreateZExtOrTrunc(b_.CreateSelect(beyond, most, by), x->getType());
  if (s_.words[0] == "shr" && isSigned()) return b_.CreateAShr(x, within);
  Value* shifted = s_.words[0] == "shl" ? b_.CreateShl(x, within) : b_.CreateLShr(x, within);
  return b_.CreateSelect(beyond, constant(0), shifted);
}

/// `bfe`: the bits from a place on, extended by zeros or by the last one's copies.
Value* Integers::field() {
  const auto byte = [&](size_t i) { return b_.CreateAnd(count(i), k_.i32(255)); };
  Value *x = in(1), *place = byte(2), *length = byte(3), *width = k_.i32(bits());
  const auto clamp = [&](Value* n) {
    return b_.CreateZExtOrTrunc(b_.CreateBinaryIntrinsic(Intrinsic::umin, n, k_.i32(bits() - 1)),
                                x->getType());
  };
  Value* beyond = b_.CreateICmpUGE(place, width);
  Value* whole = b_.CreateICmpUGE(length, width);
  Value* mask = b_.CreateSelect(whole, constant(~0ull),
                                b_.CreateSub(b_.CreateShl(constant(1), clamp(length)), constant(1)));
  Value* found = b_.CreateSelect(beyond, constant(0), b_.CreateAnd(b_.CreateLShr(x, clamp(place)), mask));
  if (!isSigned()) return found;
  // The highest bit of the field, or of x where the field ends above it, fills all bits that are not of the
  // field.
  Value* last = b_.CreateSub(b_.CreateAdd(place, length), k_.i32(1));
  Value* sign = b_.CreateTrunc(b_.CreateLShr(x, clamp(last)), b_.getInt1Ty());
  sign = b_.CreateAnd(sign, b_.CreateICmpNE(length, k_.i32(0)));
  Value* inside = b_.CreateSelect(beyond, constant(0), b_.CreateLShr(constant(~0ull), clamp(place)));
  return b_.CreateSelect(sign, b_.CreateOr(found, b_.CreateNot(b_.CreateAnd(mask, inside))), found);
}

/// `prmt`: each byte of the result is one of eight, or copies of its sign.
Value* Integers::permuted() {
  llvm::Type* wide = b_.getInt64Ty();
  Value* all = b_.CreateOr(b_.CreateZExt(in(1), wide), b_.CreateShl(b_.CreateZExt(in(2), wide), 32));
  Value* chosen = b_.CreateZExt(in(3), wide);
  Value* result = b_.getInt32(0);
  for (unsigned i = 0; i < 4; ++i) {
    Value* nibble = b_.CreateLShr(chosen, 4 * i);
    Value* byte =
        b_.CreateTrunc(b_.CreateLShr(all, b_.CreateMul(b_.CreateAnd(nibble, b_.getInt64(7)), b_.getInt64(8))),
                       b_.getInt8Ty());
    Value* copies = b_.CreateTrunc(b_.CreateLShr(nibble, 3), b_.getInt1Ty());
    byte = b_.CreateSelect(copies, b_.CreateAShr(byte, 7), byte);
    result = b_.CreateOr(result, b_.CreateShl(b_.CreateZExt(byte, b_.getInt32Ty()), 8 * i));
  }
  return result;
}

/// `shf`: a shift of two registers side by side.
Value* Integers::funnel() {
  Value *low = in(1), *high = in(2), *by = count(3);
  const bool left = s_.has("l");
  Value* shifted =
      b_.CreateIntrinsic(left ? Intrinsic::fshl : Intrinsic::fshr, {low->getType()}, {high, low, by});
  if (s_.has("wrap")) return shifted;
  return b_.CreateSelect(b_.CreateICmpUGE(by, k_.i32(32)), left ? low : high, shifted);
}

/// `lop3`: any function of three bits, by its table.
Value* Integers::looked() {
  Value *x = in(1), *y = in(2), *z = in(3), *result = constant(0);
  const auto table = uint64_t(k_.operand(4).number);
  for (unsigned i = 0; i < 8; ++i) {
    if (!(table >> i & 1)) continue;
    const auto bit = [&](Value* v, unsigned n) { return i >> n & 1 ? v : b_.CreateNot(v); };
    result = b_.CreateOr(result, b_.CreateAnd(b_.CreateAnd(bit(x, 2), bit(y, 1)), bit(z, 0)));
  }
  return result;
}

bool Integers::operation() {
  const StringRef name = s_.words[0];
  if (type_.isFloat()) return false;
  if (!k_.knows(1, {"lo", "hi", "wide", "l", "r", "wrap", "clamp", "shiftamt"})) return true;
  if (name == "add") return out(b_.CreateAdd(in(1), in(2)));
  if (name == "sub") return out(b_.CreateSub(in(1), in(2)));
  if (name == "min" || name == "max") {
    const Intrinsic::ID least = isSigned() ? Intrinsic::smin : Intrinsic::umin;
    const Intrinsic::ID most = isSigned() ? Intrinsic::smax : Intrinsic::umax;
    return out(b_.CreateBinaryIntrinsic(name == "min" ? least : most, in(1), in(2)));
  }
  if (type_.lanes > 1) return false;
  if (name == "mul" || name == "mad") return product();
  if (name == "div" || name == "rem") return out(quotient());
  if (name == "neg") return out(b_.CreateNeg(in(1)));
  if (name == "abs") return out(b_.CreateBinaryIntrinsic(Intrinsic::abs, in(1), b_.getFalse()));
  if (name == "and") return out(b_.CreateAnd(in(1), in(2)));
  if (name == "or") return out(b_.CreateOr(in(1), in(2)));
  if (name == "xor") return out(b_.CreateXor(in(1), in(2)));
  if (name == "not") return out(b_.CreateNot(in(1)));
  if (name == "shl" || name == "shr") return out(shifted());
  if (name == "bfe") return out(field());
  if (name == "prmt") return out(permuted());
  if (name == "shf") return out(funnel());
  if (name == "lop3") return out(looked());
  const auto counted = [&](Value* n) {
    k_.write(k_.operand(0), b_.CreateZExtOrTrunc(n, b_.getInt32Ty()));
    return true;
  };
  if (name == "popc") return counted(b_.CreateUnaryIntrinsic(Intrinsic::ctpop, in(1)));
  if (name == "clz") return counted(b_.CreateBinaryIntrinsic(Intrinsic::ctlz, in(1), b_.getFalse()));
  if (name == "brev") return out(b_.CreateUnaryIntrinsic(Intrinsic::bitreverse, in(1)));
  return false;
}

bool integerOperation(Kernel& k) {
  constexpr const char* kNames[] = {"add", "sub",  "mul", "mad",  "div",  "rem", "neg", "abs",
                                    "min", "max",  "and", "or",   "xor",  "not", "shl", "shr",
                                    "bfe", "prmt", "shf", "lop3", "popc", "clz", "brev"};
  return is_contained(kNames, StringRef(k.now().words[0])) && !k.now().types.empty() &&
         Integers(k).operation();
}

}  // namespace normc::emulator::ptx
