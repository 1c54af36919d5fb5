// Arithmetic of floats. Operations are rounded as they are written: none is contracted. Approximations err.
#include <cfloat>

#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Intrinsics.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

namespace {
class Floats {
 public:
  explicit Floats(Kernel& kernel) : k_(kernel), b_(kernel.b), s_(kernel.now()), type_(s_.types.front()) {}
  bool operation();

 private:
  /// Operand i. Of `add.rn.f32.bf16` and its like the last operand is of the first type, the others of the
  /// second.
  Value* in(size_t i) {
    const Type& type = i + 1 == k_.operands() ? type_ : s_.types.back();
    Value* x = k_.read(k_.operand(i), type);
    if (s_.types.size() > 1) x = b_.CreateFPExt(x, k_.typeFor(type_));
    return s_.has("ftz") ? flush(x) : x;
  }
  Value* flush(Value*);
  Value* approximate(Value* result, Value* operand);
  Value* constant(double value) { return ConstantFP::get(k_.typeFor(type_), value); }
  Value* unary();
  Value* binary();
  Value* extreme();

  Kernel& k_;
  IRBuilder<>& b_;
  const Statement& s_;
  const Type type_;
};
}  // namespace

/// Returns x with f32 denormals replaced by zeros of their sign.
Value* Floats::flush(Value* x) {
  if (!x->getType()->getScalarType()->isFloatTy()) return x;
  Value* small = b_.CreateFCmpOLT(b_.CreateUnaryIntrinsic(Intrinsic::fabs, x), constant(double(FLT_MIN)));
  return b_.CreateSelect(small, b_.CreateBinaryIntrinsic(Intrinsic::copysign, constant(0.0), x), x);
}

/// Returns what a device may give for an approximation: the result moved by a few units in the last place, no
/// more than NVIDIA states. How far depends on the bits of the operand. Powers of two stay, and no result
/// becomes one: the units on both sides of it differ.
Value* Floats::approximate(Value* result, Value* operand) {
  const auto units =
      StringSwitch<uint32_t>(s_.words[0]).Cases({"rcp", "rsqrt", "sqrt"}, 1).Case("ex2", 2).Default(0);
  if (units == 0 || type_.bits != 32 || !s_.has("approx")) return result;
  constexpr uint32_t kSpread = 0x9e3779b1;  // 2^32 over the golden ratio: high bits depend on all bits
  constexpr uint32_t kFraction = 0x7fffff;
  llvm::Type* words = result->getType()->getWithNewType(b_.getInt32Ty());
  const auto number = [&](uint32_t value) { return ConstantInt::get(words, value); };
  Value* bits = b_.CreateBitCast(result, words);
  Value* spread = b_.CreateLShr(b_.CreateMul(b_.CreateBitCast(operand, words), number(kSpread)), number(16));
  Value* moved =
      b_.CreateAdd(bits, b_.CreateSub(b_.CreateURem(spread, number(2 * units + 1)), number(units)));
  const auto isPower = [&](Value* word) {
    return b_.CreateICmpEQ(b_.CreateAnd(word, number(kFraction)), number(0));
  };
  Value* isOther = b_.CreateICmpUGT(b_.CreateXor(bits, moved), number(kFraction));  // has another exponent
  Value* stays = b_.CreateOr(b_.CreateOr(isPower(bits), isPower(moved)), isOther);
  return b_.CreateSelect(stays, result, b_.CreateBitCast(moved, result->getType()));
}

Value* Floats::unary() {
  const StringRef name = s_.words[0];
  const bool wide = type_.bits == 64, single = type_.bits == 32;
  const auto intrinsic = [&](Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, in(1)); };
  if (name == "abs") return intrinsic(Intrinsic::fabs);
  if (name == "neg") return b_.CreateFNeg(in(1));
  if (name == "rcp") return b_.CreateFDiv(constant(1.0), in(1));
  if (name == "sqrt") return intrinsic(Intrinsic::sqrt);
  if (name == "rsqrt") return k_.callMath(wide ? "rsqrt.d" : "rsqrt", in(1));
  if (name == "sin") return intrinsic(Intrinsic::sin);
  if (name == "cos") return intrinsic(Intrinsic::cos);
  if (!single) return nullptr;
  if (name == "ex2") return k_.callMath("exp2", in(1));
  if (name == "lg2") return k_.callMath("log2", in(1));
  if (name == "tanh") return k_.callMath("tanh", in(1));
  return nullptr;
}

Value* Floats::binary() {
  const StringRef name = s_.words[0];
  if (name == "add") return b_.CreateFAdd(in(1), in(2));
  if (name == "sub") return b_.CreateFSub(in(1), in(2));
  if (name == "mul") return b_.CreateFMul(in(1), in(2));
  if (name == "div") return b_.CreateFDiv(in(1), in(2));
  if (name == "copysign") return b_.CreateBinaryIntrinsic(Intrinsic::copysign, in(2), in(1));
  return nullptr;
}

/// `min` and `max` of two numbers, or three from sm_100 on.
Value* Floats::extreme() {
  const bool least = s_.words[0] == "min", propagates = s_.has("NaN");
  const auto of = [&](Value* x, Value* y) {
    if (propagates) return least ? b_.CreateMinimum(x, y) : b_.CreateMaximum(x, y);
    return least ? b_.CreateMinNum(x, y) : b_.CreateMaxNum(x, y);
  };
  Value* both = of(in(1), in(2));
  return k_.operands() == 4 ? of(both, in(3)) : both;
}

bool Floats::operation() {
  if (!k_.knows(1, {"rn", "ftz", "sat", "full", "approx", "NaN"})) return true;
  Value* value = nullptr;
  const StringRef name = s_.words[0];
  if (name == "min" || name == "max") value = extreme();
  if (k_.operands() == 2) {
    value = unary();
    if (value) value = approximate(value, in(1));
  }
  if (k_.operands() == 3 && !value) value = binary();
  if (k_.operands() == 4 && name == "fma")
    value = b_.CreateIntrinsic(Intrinsic::fma, {k_.typeFor(type_)}, {in(1), in(2), in(3)});
  if (!value) return false;
  if (s_.has("sat")) value = b_.CreateMinNum(b_.CreateMaxNum(value, constant(0.0)), constant(1.0));
  k_.write(k_.operand(0), s_.has("ftz") ? flush(value) : value);
  return true;
}

bool floatOperation(Kernel& k) {
  const Statement& s = k.now();
  constexpr const char* kNames[] = {"add", "sub", "mul", "fma",  "div", "rcp", "sqrt", "rsqrt", "ex2",
                                    "lg2", "sin", "cos", "tanh", "abs", "neg", "min",  "max",   "copysign"};
  return is_contained(kNames, StringRef(s.words[0])) && !s.types.empty() && s.types.front().isFloat() &&
         Floats(k).operation();
}

}  // namespace normc::emulator::ptx
