#include "codegen/plan/Element.h"

#include "codegen/plan/Activation.h"
#include "codegen/plan/Formulas.h"
#include "llvm/ADT/STLExtras.h"

namespace normc::codegen {

Parts::Parts(KernelBuilder& k) : k_(k) {
  argument(Part::X, "x");
  argument(Part::Dy, "dy");
  if (k.problem().mask) argument(Part::Mask, "mask");
  const Spec& spec = k.spec();
  if (spec.residual) argument(Part::Residual, "residual");
  if (spec.gate) argument(Part::Gate, "gate");
  if (spec.modulate && spec.modulate->scale) {
    argument(Part::ModScale, "mod_scale");
    is(Part::ModOffset, k.numberOfTask("mod_offset"));
  }
  if (spec.modulate && spec.modulate->shift) argument(Part::ModShift, "mod_shift");
  if (spec.rope) {
    argument(Part::RopeCos, "rope_cos");
    argument(Part::RopeSin, "rope_sin");
  }
  if (!spec.hasStream() || !isBackward(k.problem().entry)) return;
  argument(Part::ResidualOut, "residual_out");
  argument(Part::DresidualOut, "dresidual_out");
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
  return isMate() ? ofMate(part) : argument(part);
}

Num Element::argument(Part part) {
  const std::string& symbol = parts_.bound_[size_t(part)].symbol;
  const size_t first = isMate() ? mate_->read_.size() : 0;
  auto at = llvm::find_if(read_, [&](Part r) { return parts_.bound_[size_t(r)].symbol == symbol; });
  if (at == read_.end()) {
    at = llvm::find_if(read_, [&](Part r) { return r > part; });
    mlir::Type type = part == Part::Mask ? mlir::Type(k_.ops().getI1Type()) : k_.statisticsType();
    region_.insertArgument(unsigned(first + (at - read_.begin())), type, k_.loc());
    at = read_.insert(at, part);
  }
  return {&k_, region_.getArgument(unsigned(first + (at - read_.begin())))};
}

// Only a tensor of features has another element there. The angle of a pair is one.
Num Element::ofMate(Part part) {
  if (part == Part::RopeSin) return -(*mate_)[part];
  const Parts::Bound& bound = parts_.bound_[size_t(part)];
  const llvm::StringRef symbol = bound.declare ? (k_.*bound.declare)(bound.name) : bound.symbol;
  if (!k_.hasFeatures(symbol)) return (*mate_)[part];
  (void)(*mate_)[part];  // a tensor that has mates is read itself
  return argument(part);
}

Element& Element::mate() {
  if (!mate_) {
    ownMate_ = std::make_unique<Element>(k_, parts_, region_);
    mate_ = ownMate_.get();
    mate_->mate_ = this;
    if (k_.spec().rope->features)
      isTurned_ = mate_->isTurned_ = {&k_, region_.addArgument(k_.ops().getI1Type(), k_.loc())};
  }
  return *mate_;
}

llvm::SmallVector<llvm::StringRef, 8> Element::mates() const {
  return ownMate_ ? ownMate_->reads() : llvm::SmallVector<llvm::StringRef, 8>();
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

//===-- Forward ---------------------------------------------------------------===//

Num Element::gate(Side side) {
  const Spec& spec = k_.spec();
  if (!spec.hasGate(side)) return {};
  return once(gate_, [&] { return activated(k_, spec.gate->function, (*this)[Part::Gate]); });
}

Num Element::h() {
  return once(h_, [&] {
    if (Num stored = (*this)[Part::ResidualOut]) return stored;
    Num x = (*this)[Part::X], phi = gate(Side::Before);
    Num residual = k_.spec().hasResidual(Side::After) ? Num() : (*this)[Part::Residual];
    if (phi && !residual) return product(x, phi);
    return add(multiply(x, phi), residual);
  });
}

Num Element::u() {
  return once(u_, [&] {
    Num r = (*this)[Part::RowScale];
    return r ? product(h(), r) : h();
  });
}

Num Element::centred() {
  return once(centred_, [&] {
    Num u = this->u(), c = (*this)[Part::Center];
    return c ? u - c : u;
  });
}

Num Element::normalized() {
  return once(normalized_, [&] { return multiply(centred(), (*this)[Part::Rstd]); });
}

Num Element::factor() { return add((*this)[Part::Scale], (*this)[Part::ScaleOffset]); }
Num Element::modFactor() { return add((*this)[Part::ModScale], (*this)[Part::ModOffset]); }

// The statistic of one row does not depend on which rows are padding.
Num Element::inStatistic() { return k_.spec().perRow() ? Num() : valid(); }

Num Element::kept() { return k_.spec().padding == Padding::Exclude ? valid() : Num(); }

Num Element::affine() {
  return once(affine_, [&] {
    Num v = add(multiply(centred(), (*this)[Part::Slope]), (*this)[Part::Intercept]);
    if (k_.problem().roundsBeforeAffine()) v = k_.rounded(v, k_.problem().data);
    return add(multiply(v, factor()), (*this)[Part::Bias]);
  });
}

Num Element::modulated() {
  return once(modulated_, [&] { return add(multiply(affine(), modFactor()), (*this)[Part::ModShift]); });
}

Num Element::turned() {
  if (!k_.spec().rope) return modulated();
  return once(turned_, [&] {
    const Num across = mate().modulated() * (*this)[Part::RopeSin];
    return modulated() * (*this)[Part::RopeCos] + fromMate(across);
  });
}

Num Element::beforeActivation() {
  Num gated = multiply(turned(), gate(Side::After));
  return k_.spec().hasResidual(Side::After) ? add(gated, (*this)[Part::Residual]) : gated;
}

Num Element::output() { return where(kept(), activated(k_, k_.spec().activation, beforeActivation())); }

Num Element::residualOut() { return where(kept(), h()); }

//===-- Backward --------------------------------------------------------------===//

Num Element::arrived() {
  const Activation activation = k_.spec().activation;
  if (activation == Activation::None) return (*this)[Part::Dy];
  return once(arrived_,
              [&] { return (*this)[Part::Dy] * activationSlope(k_, activation, beforeActivation()); });
}

Num Element::turnedGradient() { return multiply(arrived(), gate(Side::After)); }

Num Element::modulatedGradient() {
  if (!k_.spec().rope) return turnedGradient();
  return once(modulatedGradient_, [&] {
    const Num across = mate().turnedGradient() * (*this)[Part::RopeSin];
    return turnedGradient() * (*this)[Part::RopeCos] - fromMate(across);
  });
}

Num Element::gradient() {
  return once(gradient_, [&] { return multiply(modulatedGradient(), modFactor()); });
}

Num Element::scaledGradient() { return multiply(gradient(), factor()); }

Nums Element::gradientTerms(GradientSums needed) {
  Num g = where(kept(), scaledGradient()), d = where(kept(), centred());
  Nums terms;
  if (needed.g) terms.push_back(g);
  if (needed.gx) terms.push_back(g * d);
  if (needed.xx) terms.push_back(d * d);
  return terms;
}

Num Element::dscale() { return where(kept(), gradient()) * where(kept(), normalized()); }
Num Element::dbias() { return where(kept(), gradient()); }

Num Element::rho() {
  if (!hasOwnRho(k_.spec())) return normalized();
  Num u = this->u(), mean = (*this)[Part::BatchMean];
  return multiply(mean ? u - mean : u, (*this)[Part::Rstd]);
}

Num Element::du() {
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

Num Element::dh() {
  return once(dh_, [&] {
    Num dh = du();
    if (Num pull = (*this)[Part::Pull]) dh = where(kept(), (*this)[Part::RowScale] * (dh - u() * pull));
    Num other = (*this)[Part::DresidualOut];
    return other ? dh + where(kept(), other) : dh;
  });
}

Num Element::dx() {
  Num phi = gate(Side::Before);
  return phi ? where(kept(), dh() * phi) : dh();
}

Num Element::dresidual() { return k_.spec().hasResidual(Side::After) ? where(kept(), arrived()) : dh(); }

// The slope of a gate is at most about 1, so it makes the first product no larger. The other order may
// overflow where dgate does not, and so may a sum that gets the slope as a factor.
Num Element::dgate() {
  const bool before = k_.spec().hasGate(Side::Before);
  Num gated = before ? (*this)[Part::X] : turned();
  Num slope = slopeOfGate(k_, (*this)[Part::Gate]);
  return where(kept(), (before ? dh() : arrived()) * multiply(gated, slope));
}

Num Element::dmodScale() { return where(kept(), modulatedGradient() * affine()); }
Num Element::dmodShift() { return where(kept(), modulatedGradient()); }

}  // namespace normc::codegen
