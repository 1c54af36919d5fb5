// Scalar code of the norm dialect as Halide expressions.
#pragma once

#include <unordered_map>

#include "codegen/targets/halide/generator/Memory.h"

namespace normc::halide {

/// The values of one replica of scalar code, by number.
class Values {
 public:
  Expr operator[](int value) const;
  bool has(int value) const { return values_.contains(value); }
  void set(int value, Expr e) { values_[value] = std::move(e); }
  /// A product that may be fused with a sum it goes into.
  void setProduct(int value, Expr a, Expr b);
  /// Returns `sum + value`, rounded once if the value is such a product.
  Expr addedTo(Expr sum, int value) const;

 private:
  friend bool evaluate(const Op&, Values&, bool);
  std::unordered_map<int, Expr> values_;
  std::unordered_map<int, std::pair<Expr, Expr>> products_;
};

/// Evaluates elementwise operations with the meaning of arith and math in MLIR. A product may go into a sum
/// without a rounding of its own; `lanes` is false if that is code for one value at a time. Returns
/// false if the operation is none of them.
bool evaluate(const Op&, Values&, bool lanes);

/// Returns the Halide type of "f32", "i64", "index", "i1".
Halide::Type typeOf(const std::string&);

//===-- IEEE arithmetic, which no pass may rearrange --------------------------------===//
Expr sum(Expr, Expr);
Expr difference(Expr, Expr);
Expr product(Expr, Expr);
Expr quotient(Expr, Expr);
Expr negative(Expr);
Expr fused(Expr a, Expr b, Expr c);  ///< a b + c, usually rounded once
/// Returns the maximum of IEEE 754-2019: a NaN if an operand is one, and +0 is larger than -0.
Expr maximum(Expr, Expr);
Expr combined(Combiner, Expr, Expr);
Expr identityOf(Combiner, Halide::Type);
Expr pairwise(Exprs, Combiner = Combiner::Add);
/// Returns a robust centre of 4, 8 or 16 values (codegen/lower/Loops.h).
Expr middle(const Exprs&);

}  // namespace normc::halide
