#include "codegen/targets/halide/generator/Arithmetic.h"

using namespace Halide;
using namespace Halide::Internal;

namespace normc::halide {

Type typeOf(const std::string& name) {
  if (name == "f32") return Float(32);
  if (name == "f64") return Float(64);
  if (name == "i1") return Bool();
  if (name == "i32") return Int(32);
  if (name == "i64" || name == "index") return Int(64);
  throw Refusal("scalar code in the type '" + name + "'");
}

static Expr strict(Type type, Call::IntrinsicOp op, Expr a, Expr b) {
  return Call::make(type, op, {std::move(a), std::move(b)}, Call::PureIntrinsic);
}
Expr sum(Expr a, Expr b) { return strict(a.type(), Call::strict_add, a, b); }
Expr difference(Expr a, Expr b) { return strict(a.type(), Call::strict_sub, a, b); }
Expr product(Expr a, Expr b) { return strict(a.type(), Call::strict_mul, a, b); }
Expr quotient(Expr a, Expr b) { return strict(a.type(), Call::strict_div, a, b); }
Expr negative(Expr a) { return difference(make_const(a.type(), -0.0), a); }
static Expr less(Expr a, Expr b) { return strict(Bool(), Call::strict_lt, a, b); }
static Expr equal(Expr a, Expr b) { return strict(Bool(), Call::strict_eq, a, b); }
/// Halide 21's strict_le is true for a NaN.
static Expr atMost(Expr a, Expr b) { return less(a, b) || equal(a, b); }

/// LLVM's intrinsic, lane by lane: for the few products that need a single rounding.
static Expr exactlyFused(Expr a, Expr b, Expr c) {
  const Type type = a.type();
  return Call::make(type, type.bits() == 64 ? "llvm.fma.f64" : "llvm.fma.f32", {a, b, c}, Call::PureExtern);
}
/// Halide 21 has no fused multiply-add of vectors. LLVM makes one of operations that are not strict.
Expr fused(Expr a, Expr b, Expr c) { return Add::make(Mul::make(std::move(a), std::move(b)), std::move(c)); }

static Expr bitsOf(Expr x) { return reinterpret(Int(x.type().bits(), x.type().lanes()), x); }

Expr maximum(Expr a, Expr b) {
  return select(!equal(a, a) || less(b, a) || (equal(a, b) && bitsOf(a) >= make_zero(bitsOf(a).type())), a,
                b);
}
Expr combined(Combiner combiner, Expr a, Expr b) {
  return combiner == Combiner::Add ? sum(a, b) : maximum(a, b);
}
Expr identityOf(Combiner combiner, Type type) {
  return combiner == Combiner::Add ? make_zero(type) : make_const(type, -INFINITY);
}

Expr pairwise(Exprs terms, Combiner combiner) {
  while (terms.size() > 1) {
    Exprs next;
    for (size_t i = 0; i + 1 < terms.size(); i += 2)
      next.push_back(combined(combiner, terms[i], terms[i + 1]));
    if (terms.size() % 2) next.push_back(terms.back());
    terms = std::move(next);
  }
  return terms[0];
}

Expr middle(const Exprs& v) {
  auto half = [](Expr a, Expr b) { return product(sum(a, b), make_const(a.type(), 0.5)); };
  if (v.size() > 4) {
    Exprs halves;
    for (size_t i = 0; i < v.size(); i += 2) halves.push_back(half(v[i], v[i + 1]));
    return middle(halves);
  }
  // A NaN of either operand is passed on, as arith.minimumf does.
  auto low = [](Expr a, Expr b) { return select(!equal(a, a) || less(a, b), a, b); };
  auto high = [](Expr a, Expr b) { return select(!equal(a, a) || less(b, a), a, b); };
  return half(high(low(v[0], v[1]), low(v[2], v[3])), low(high(v[0], v[1]), high(v[2], v[3])));
}

//===-- Values --------------------------------------------------------------------===//

Expr Values::operator[](int value) const { return values_.at(value); }

void Values::setProduct(int value, Expr a, Expr b) {
  values_[value] = product(a, b);
  products_[value] = {a, b};
}

Expr Values::addedTo(Expr sum, int value) const {
  auto at = products_.find(value);
  return at == products_.end() ? normc::halide::sum(sum, values_.at(value))
                               : fused(at->second.first, at->second.second, sum);
}

//===-- Operations ------------------------------------------------------------------===//

namespace {

/// Returns a comparison of floats. With a NaN predicates that begin with `o` are false, those with `u` true.
Expr compared(const std::string& predicate, Expr a, Expr b) {
  if (predicate == "eq") return a == b;
  if (predicate == "ne") return a != b;
  if (predicate == "oeq") return equal(a, b);
  if (predicate == "ogt") return less(b, a);
  if (predicate == "oge") return atMost(b, a);
  if (predicate == "olt") return less(a, b);
  if (predicate == "ole") return atMost(a, b);
  if (predicate == "one") return less(a, b) || less(b, a);
  if (predicate == "ugt") return !atMost(a, b);
  if (predicate == "uge") return !less(a, b);
  if (predicate == "ult") return !atMost(b, a);
  if (predicate == "ule") return !less(b, a);
  if (predicate == "une") return !equal(a, b);
  if (predicate == "ord") return equal(a, a) && equal(b, b);
  if (predicate == "uno") return !equal(a, a) || !equal(b, b);
  throw Refusal("a comparison '" + predicate + "'");
}

Expr rootOf(Expr x) {
  return Call::make(x.type(), x.type().bits() == 64 ? "sqrt_f64" : "sqrt_f32", {x}, Call::PureExtern);
}

}  // namespace

bool evaluate(const Op& op, Values& values, bool lanes) {
  auto fused = [&](Expr a, Expr b, Expr c) { return lanes ? halide::fused(a, b, c) : exactlyFused(a, b, c); };
  auto in = [&](size_t i) { return values[op.in.at(i)]; };
  auto factors = [&](size_t i) -> const std::pair<Expr, Expr>* {
    auto at = values.products_.find(op.in.at(i));
    return op.contract && at != values.products_.end() ? &at->second : nullptr;
  };
  auto set = [&](Expr e) {
    values.set(op.out.at(0), std::move(e));
    return true;
  };
  const std::string& n = op.name;
  if (n == "constant") {
    const Type type = typeOf(op.type);
    return set(type.is_float() ? make_const(type, op.number) : make_const(type, op.integer));
  }
  if (n == "addf") {
    if (auto* p = factors(0)) return set(fused(p->first, p->second, in(1)));
    if (auto* p = factors(1)) return set(fused(p->first, p->second, in(0)));
    return set(sum(in(0), in(1)));
  }
  if (n == "subf") {
    if (op.in[0] == op.in[1]) return set(difference(in(0), in(0)));  // NaN unless it is finite
    if (auto* p = factors(0)) return set(fused(p->first, p->second, negative(in(1))));
    if (auto* p = factors(1)) return set(fused(negative(p->first), p->second, in(0)));
    return set(difference(in(0), in(1)));
  }
  if (n == "mulf") {
    if (op.contract)
      values.setProduct(op.out.at(0), in(0), in(1));
    else
      set(product(in(0), in(1)));
    return true;
  }
  if (n == "maximumf") return set(maximum(in(0), in(1)));
  if (n == "absf") {
    const Expr bits = bitsOf(in(0));
    return set(reinterpret(in(0).type(), bits & ~(make_one(bits.type()) << (bits.type().bits() - 1))));
  }
  if (n == "divf") return set(quotient(in(0), in(1)));
  if (n == "negf") return set(negative(in(0)));
  if (n == "fma") return set(exactlyFused(in(0), in(1), in(2)));
  if (n == "sqrt") return set(rootOf(in(0)));
  if (n == "cmpf" || n == "cmpi") return set(compared(op.text, in(0), in(1)));
  if (n == "select") return set(select(in(0), in(1), in(2)));
  if (n == "addi") return set(in(0) + in(1));
  if (n == "subi") return set(in(0) - in(1));
  if (n == "muli") return set(in(0) * in(1));
  if (n == "andi") return set(typeOf(op.type).is_bool() ? in(0) && in(1) : in(0) & in(1));
  if (n == "ori") return set(typeOf(op.type).is_bool() ? in(0) || in(1) : in(0) | in(1));
  if (n == "shli") return set(in(0) << in(1));
  if (n == "shrui") return set(cast<int64_t>(cast<uint64_t>(in(0)) >> in(1)));
  // The operands are never negative, so the sign rule of Halide's remainder does not matter.
  if (n == "remsi") return set(in(0) % in(1));
  if (n == "bitcast") return set(reinterpret(typeOf(op.type), in(0)));
  if (n == "extf" || n == "truncf" || n == "sitofp" || n == "fptosi" || n == "index_cast")
    return set(cast(typeOf(op.type), in(0)));
  return false;
}

}  // namespace normc::halide
