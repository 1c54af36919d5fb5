// The arithmetic of the values in a kernel that is being built.
//
// A Num is a scalar of the statistics type with arithmetic operators, so that
// planning code reads like the equations it implements. All operations but `product`
// carry `contract`: a multiply and the add that follows become one fused instruction.
#pragma once

#include "codegen/dialect/Norm.h"
#include "llvm/ADT/SmallVector.h"

namespace normc::codegen {

class KernelBuilder;

struct Num {
  KernelBuilder* builder = nullptr;
  mlir::Value value;
  explicit operator bool() const { return static_cast<bool>(value); }
};
using Nums = llvm::SmallVector<Num, 6>;

Num operator+(Num, Num);
Num operator-(Num, Num);
Num operator*(Num, Num);
Num operator/(Num, Num);
Num operator+(Num, double);
Num operator-(Num, double);  ///< adds the negative of the number
Num operator-(double, Num);
Num operator*(Num, double);
Num operator/(double, Num);
Num operator-(Num);
/// Comparisons yield an i1 Num.
Num operator<=(Num, Num);
Num operator>(Num, double);
Num operator&&(Num, Num);
Num operator||(Num, Num);
Num max(Num, Num);
Num min(Num, Num);
Num sqrt(Num);
Num inverseSqrt(Num);
Num log(Num);
Num exp(Num);
Num select(Num condition, Num yes, Num no);
/// The mean of what adds up to `sum`: a product, within 1 ulp, since the reciprocal is the same for many
/// sums.
Num meanOf(Num sum, Num count);
/// Returns sum / count with the digits of a division, for a count >= 1 that is the same for many sums: passes
/// replace it by products (expand-division).
Num quotient(Num sum, Num count);
/// Return e^a for a <= 0, and a / b for 1 <= b < 2^64, with an error of 3 and of 2 units in the last place on
/// a target that approximates them (approximate-functions), else like exp and the operator.
Num approximateExp(Num a);
Num approximateQuotient(Num a, Num b);
/// `x` where it is finite, else `otherwise`.
Num finiteOr(Num x, Num otherwise);
Num abs(Num);
Num fma(Num a, Num b, Num c);  ///< a b + c, rounded once on every target
/// Returns a b, rounded: no addition that follows fuses with it. So the difference from it of the same
/// product is 0.
Num product(Num a, Num b);
Num combine(Combiner, Num, Num);
/// Returns what combined with any term is that term.
double identityOf(Combiner);

}  // namespace normc::codegen
