#include "codegen/plan/Element.h"

#include "codegen/plan/Activation.h"
#include "codegen/plan/Formulas.h"
#include "llvm/ADT/STLExtras.h"

namespace normc::codegen {

Parts::Parts(KernelBuilder& k) : k_(k) {
  argument(Part::X, "x");
  argument(Part::Dy, "dy");
  if (k.problem().mask) argument(Part::Mask, "mask");
}

void Parts::argument(Part part, llvm::StringRef name) {
  bound_[size_t(part)] = {{}, name.str(), &KernelBuilder::argument, name};
}
void Parts::saved(Part part, llvm::StringRef field) {
  bound_[size_t(part)] = {{}, ("saved." + field).str(), &KernelBuilder::saved, field};
}
void Parts::workspace(Part part, llvm::StringRef symbol) {
  bound_[size_t(part)] = {.value = {}, .symbol = symbol.str()};
}

void Parts::parameters() {
  if (k_.spec().scale) argument(Part::Scale, "scale");
  if (k_.spec().bias) argument(Part::Bias, "bias");
  is(Part::ScaleOffset, scaleOffset(k_));
}

Num Element::operator[](Part part) {
  const Parts::Bound& bound = parts_.bound_[size_t(part)];
  if (bound.symbol.empty()) return bound.value;
  auto at = llvm::find_if(read_, [&](Part r) { return parts_.bound_[size_t(r)].symbol == bound.symbol; });
  if (at == read_.end()) {
    at = llvm::find_if(read_, [&](Part r) { return r > part; });
    mlir::Type type = part == Part::Mask ? mlir::Type(k_.ops().getI1Type()) : k_.statisticsType();
    region_.insertArgument(unsigned(at - read_.begin()), type, k_.loc());
    at = read_.insert(at, part);
  }
  return {&k_, region_.getArgument(unsigned(at - read_.begin()))};
}

llvm::SmallVector<llvm::StringRef, 8> Element::reads() const {
  return llvm::map_to_vector<8>(read_, [&](Part part) -> llvm::StringRef {
    const Parts::Bound& bound = parts_.bound_[size_t(part)];
    return bound.declare ? (k_.*bound.declare)(bound.name) : bound.symbol;
  });
}

Num Element::where(Num condition, Num value) {
  return condition ? select(condition, value, k_.constant(0)) : value;
}

Num Element::input() {
  return once(input_, [&] {
    return multiply(add((*this)[Part::X], (*this)[Part::Residual]), (*this)[Part::RowScale]);
  });
}

Num Element::centred() {
  return once(centred_, [&] {
    Num u = input(), c = (*this)[Part::Center];
    return c ? u - c : u;
  });
}

Num Element::normalized() {
  return once(normalized_, [&] { return multiply(centred(), (*this)[Part::Rstd]); });
}

Num Element::factor() { return add((*this)[Part::Scale], (*this)[Part::ScaleOffset]); }

// The statistic of one row does not depend on which rows are padding.
Num Element::inStatistic() { return k_.spec().reduce == Reduce::Features ? Num() : valid(); }

Num Element::kept() { return k_.spec().padding == Padding::Exclude ? valid() : Num(); }

Num Element::beforeActivation() {
  Num v = add(multiply(centred(), (*this)[Part::Slope]), (*this)[Part::Intercept]);
  return add(multiply(v, factor()), (*this)[Part::Bias]);
}

Num Element::output() { return where(kept(), activated(k_, k_.spec().activation, beforeActivation())); }

Num Element::gradient() {
  const Activation activation = k_.spec().activation;
  if (activation == Activation::None) return (*this)[Part::Dy];
  return once(gradient_,
              [&] { return (*this)[Part::Dy] * activationSlope(k_, activation, beforeActivation()); });
}

Num Element::scaledGradient() { return multiply(gradient(), factor()); }

Nums Element::gradientTerms(bool squares) {
  Num g = where(kept(), scaledGradient()), d = where(kept(), centred());
  Nums terms{g, g * d};
  if (squares) terms.push_back(d * d);
  return terms;
}

Num Element::dscale() { return where(kept(), gradient()) * where(kept(), normalized()); }
Num Element::dbias() { return where(kept(), gradient()); }

Num Element::rho() {
  if (!hasOwnRho(k_.spec())) return normalized();
  Num u = input(), mean = (*this)[Part::BatchMean];
  return multiply(mean ? u - mean : u, (*this)[Part::Rstd]);
}

Num Element::dx() {
  Num all = (*this)[Part::DxAll], own = (*this)[Part::DxOwn], offset = (*this)[Part::DxOffset];
  Num dx = multiply(scaledGradient(), (*this)[Part::DxSlope]);
  if (all) all = normalized() * all;
  if (own) own = rho() * own;
  if (valid() && k_.spec().padding == Padding::LeaveOutOfStatistics) {
    own = add(own, offset);
    return add(add(dx, all), own ? where(valid(), own) : Num());
  }
  // The terms without g are added first, so that each addition belongs to a product and becomes an fma.
  return where(valid(), add(dx, add(add(all, own), offset)));
}

}  // namespace normc::codegen
