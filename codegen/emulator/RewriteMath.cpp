// Intrinsics of NVVM that compute.
#include <cfloat>

#include "codegen/emulator/Rewrite.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"

namespace normc::emulator {

using namespace llvm;

namespace {
/// `fma.rn.ftz.f` is the operation `fma` with the words rn and ftz, on f.
struct Words {
  StringRef operation;
  SmallVector<StringRef> rest;

  explicit Words(StringRef name) {
    name.split(rest, '.');
    operation = rest.front();
    rest.erase(rest.begin());
  }
  bool has(StringRef word) const { return is_contained(rest, word); }
};
}  // namespace

/// Returns x with f32 denormals replaced by zeros of their sign.
static Value* flush(IRBuilder<>& b, Value* x) {
  if (!x->getType()->getScalarType()->isFloatTy()) return x;
  Value* small = b.CreateFCmpOLT(b.CreateUnaryIntrinsic(Intrinsic::fabs, x),
                                 ConstantFP::get(x->getType(), double(FLT_MIN)));
  Value* zero = b.CreateBinaryIntrinsic(Intrinsic::copysign, ConstantFP::get(x->getType(), 0.0), x);
  return b.CreateSelect(small, zero, x);
}

static Value* unary(Kernel& k, StringRef operation, const Words& words, Value* x) {
  IRBuilder<>& b = k.builder;
  auto intrinsic = [&](Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, x); };
  bool wide = x->getType()->isDoubleTy();
  if (operation == "rsqrt") return wide ? k.callMath("rsqrt.d", x) : k.callMath("rsqrt", x);
  if (operation == "ex2" && x->getType()->isFloatTy()) return k.callMath("exp2", x);
  if (operation == "lg2" && x->getType()->isFloatTy()) return k.callMath("log2", x);
  if (operation == "rcp") return b.CreateFDiv(ConstantFP::get(x->getType(), 1.0), x);
  if (operation == "sqrt") return intrinsic(Intrinsic::sqrt);
  if (operation == "fabs") return intrinsic(Intrinsic::fabs);
  if (operation == "floor") return intrinsic(Intrinsic::floor);
  if (operation == "ceil") return intrinsic(Intrinsic::ceil);
  if (operation == "trunc") return intrinsic(Intrinsic::trunc);
  if (operation == "round") return intrinsic(Intrinsic::roundeven);
  if (operation == "sin") return intrinsic(Intrinsic::sin);
  if (operation == "cos") return intrinsic(Intrinsic::cos);
  if (operation == "saturate") {
    Value* atLeast = b.CreateMaxNum(x, ConstantFP::get(x->getType(), 0.0));
    return b.CreateMinNum(atLeast, ConstantFP::get(x->getType(), 1.0));
  }
  return nullptr;
}

static Value* binary(Kernel& k, StringRef operation, const Words& words, Value* x, Value* y) {
  IRBuilder<>& b = k.builder;
  if (operation == "add") return b.CreateFAdd(x, y);
  if (operation == "mul") return b.CreateFMul(x, y);
  if (operation == "div") return b.CreateFDiv(x, y);
  bool least = operation == "fmin";
  if (!least && operation != "fmax") return nullptr;
  if (words.has("xorsign")) return nullptr;
  if (words.has("nan")) return least ? b.CreateMinimum(x, y) : b.CreateMaximum(x, y);
  return least ? b.CreateMinNum(x, y) : b.CreateMaxNum(x, y);
}

/// Rewrites conversions and operations on parts of numbers.
static Value* convert(Kernel& k, CallInst& call, StringRef name) {
  IRBuilder<>& b = k.builder;
  Value* x = call.getArgOperand(0);
  auto narrow = [&](Type* type) { return b.CreateBitCast(b.CreateFPTrunc(x, type), call.getType()); };
  auto pair = [&](Type* type) {  // the first argument becomes the upper half
    Value* both = PoisonValue::get(FixedVectorType::get(b.getFloatTy(), 2));
    both = b.CreateInsertElement(b.CreateInsertElement(both, call.getArgOperand(1), uint64_t(0)), x,
                                 uint64_t(1));
    return b.CreateBitCast(b.CreateFPTrunc(both, FixedVectorType::get(type, 2)), call.getType());
  };
  auto high = [&](Type* narrowType, Type* wideType, bool isSigned, unsigned bits) {
    auto widen = [&](Value* v) { return isSigned ? b.CreateSExt(v, wideType) : b.CreateZExt(v, wideType); };
    return b.CreateTrunc(b.CreateLShr(b.CreateMul(widen(x), widen(call.getArgOperand(1))), bits), narrowType);
  };
  if (name == "f2bf16.rn") return narrow(b.getBFloatTy());
  if (name == "f2f16.rn" || name == "f2h.rn") return narrow(b.getHalfTy());
  if (name == "ff2bf16x2.rn") return pair(b.getBFloatTy());
  if (name == "ff2f16x2.rn") return pair(b.getHalfTy());
  if (name == "d2i.lo") return b.CreateTrunc(b.CreateBitCast(x, b.getInt64Ty()), b.getInt32Ty());
  if (name == "d2i.hi")
    return b.CreateTrunc(b.CreateLShr(b.CreateBitCast(x, b.getInt64Ty()), 32), b.getInt32Ty());
  if (name == "lohi.i2d") {
    Value* top = b.CreateShl(b.CreateZExt(call.getArgOperand(1), b.getInt64Ty()), 32);
    return b.CreateBitCast(b.CreateOr(top, b.CreateZExt(x, b.getInt64Ty())), b.getDoubleTy());
  }
  if (name == "mulhi.i" || name == "mulhi.ui")
    return high(b.getInt32Ty(), b.getInt64Ty(), name == "mulhi.i", 32);
  if (name == "mulhi.ll" || name == "mulhi.ull")
    return high(b.getInt64Ty(), b.getInt128Ty(), name == "mulhi.ll", 64);
  return nullptr;
}

bool rewriteMath(Kernel& k, CallInst& call, StringRef name) {
  IRBuilder<>& b = k.builder;
  if (call.arg_size() == 0) return false;
  if (Value* value = convert(k, call, name)) return k.replace(call, value), true;
  Words words(name);
  for (StringRef word : {"rm", "rp", "rz", "relu", "abs"})
    if (words.has(word)) return false;
  bool ftz = words.has("ftz");
  SmallVector<Value*, 3> x;
  for (Value* argument : call.args()) {
    if (!argument->getType()->getScalarType()->isFloatingPointTy()) return false;
    x.push_back(ftz ? flush(b, argument) : argument);
  }
  Value* value = nullptr;
  if (x.size() == 1) value = unary(k, words.operation, words, x[0]);
  if (x.size() == 2) value = binary(k, words.operation, words, x[0], x[1]);
  if (x.size() == 3 && words.operation == "fma")
    value = b.CreateIntrinsic(Intrinsic::fma, {x[0]->getType()}, {x[0], x[1], x[2]});
  if (!value) return false;
  if (words.has("sat")) value = unary(k, "saturate", words, value);
  k.replace(call, ftz ? flush(b, value) : value);
  return true;
}

}  // namespace normc::emulator
