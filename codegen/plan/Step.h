// One call of one statistic: from the statistics of a batch to the coefficients of its outputs. All plans use
// it, where a statistic is complete. State, warmup, windows, renormalization and nu are here.
#pragma once

#include "codegen/plan/Element.h"
#include "codegen/plan/Formulas.h"
#include "codegen/plan/Moments.h"

namespace normc::codegen {

/// y = (u - c) * a + b, before the parameters if these are elements of the slab.
struct ForwardTerms {
  Num c, a, b;  ///< c and b may be absent
};

/// The sums of a backward over the elements of a statistic that are not left out. A sum that it does not need
/// is absent.
struct BackwardSums {
  Num g;   ///< sum G, times the scale if that is an element
  Num gx;  ///< sum G x0, likewise
  Num xx;  ///< sum x0^2
  /// Present in sums of partials alone, whose g and gx are sums of h and h x0: the valid rows of the batch;
  /// the rows that are summed, where these are others; and the mean of x0^2, where xx is absent and no
  /// forward has saved it.
  Num count = {}, rows = {}, gamma = {};
};

/// The coefficients of Element::dx. An absent Num is a zero.
struct DxTerms {
  Num p;       ///< of the gradient
  Num all;     ///< of x0 on every row (nu)
  Num own;     ///< of rho on rows of the statistic (second moment)
  Num offset;  ///< constant on rows of the statistic (mean)

  struct Term {
    Part part;
    llvm::StringRef name;
    Num value;
  };
  std::array<Term, 4> list() const {
    return {{{Part::DxSlope, "p", p},
             {Part::DxAll, "all", all},
             {Part::DxOwn, "own", own},
             {Part::DxOffset, "offset", offset}}};
  }
};

class Step {
 public:
  explicit Step(KernelBuilder& k);

  //===-- What a plan has to provide -----------------------------------------===//
  bool needsMean() const { return centred_ || central_ || k_.hasState("running_mean"); }
  bool lagged() const { return !k_.spec().needsBatchStatistics(); }
  bool hasWarmup() const { return lagged() && k_.spec().warmup.has_value(); }
  bool inferFromInput() const { return !k_.spec().running.has_value(); }
  /// True if sums over the batch must be complete before the first dx.
  bool backwardNeedsSums() const { return spec_.gradientNeedsBatch(); }
  /// True if sum x0^2 cannot be derived from the second moment that forward saved.
  bool needsSquares() const;
  /// Returns the sums that the gradients of a statistic need.
  GradientSums gradientSums() const;
  /// Returns them from complete sums of the terms of Element::gradientTerms. `s` is that of x0.
  BackwardSums backwardSums(llvm::ArrayRef<Num> ofTerms, Num s) const;
  /// True if a statistic has one scale and one bias; else they are elements of its slab.
  bool hasOwnParameters() const;
  /// Returns the number of elements of a statistic, at least 1.
  Num elements();

  //===-- Forward -------------------------------------------------------------===//
  /// Returns an i1: this step, counted from 1, is within the warmup. A scalar of the task.
  Num inWarmup();
  /// Returns the coefficients of y, and saves what backward needs. `batch.moment` is absent for a lagged spec
  /// without warmup. Call it once for each statistic, before updateState.
  ForwardTerms forward(const Batch&, bool save);
  /// Saves the second moment and the scale of the batch, which a lagged spec knows only after its outputs.
  void saveLate(const Batch&);
  void updateState(const Batch&);
  ForwardTerms infer();
  /// Adds the last phase of a forward with state, which increments the step count after everything that reads
  /// it.
  void advance();

  //===-- Backward ------------------------------------------------------------===//
  /// True if c and s come from the state and not from what forward saved.
  bool isConstant() const { return k_.problem().hasConstantStatistics(); }
  /// True if a sum over the batch is an output, or enters nu.
  bool hasGradientSums() const {
    return spec_.scale || spec_.bias || spec_.backward == Backward::Approximate;
  }
  /// True if a gradient of constant statistics reads c: for its sums, or for the output of the affine.
  bool readsCenter() const { return hasGradientSums() || spec_.recomputesOutput(); }
  bool hasCenter() const { return spec_.center != Center::None; }
  Num center() { return !hasCenter() ? Num() : isConstant() ? runningMean() : k_.load(k_.saved("mean")); }
  Num rstd() { return isConstant() ? runningScale() : k_.load(k_.saved("rstd")); }
  /// True if the centre is a mean of this batch that may be of a single element, and no row is left out of
  /// it. The gradient of that element is 0.
  bool mayBeOfOne() const;
  /// Returns the coefficients of dx. `sums` is absent unless backwardNeedsSums().
  DxTerms backward(const std::optional<BackwardSums>&);
  Num dscale(const BackwardSums&);
  /// Returns the coefficients that the forward used, from what it saved. All are absent unless a gradient
  /// needs the output of the affine.
  ForwardTerms recomputed();
  /// Stores nu.
  void updateNu(const BackwardSums&);

  //===-- Partials ------------------------------------------------------------===//
  /// Stores the fields of the backward's partial that a feature has.
  void storePartial(const BackwardSums&);
  /// Returns the sums of all partials of the call. `batch`: their statistics; absent in a backward, where
  /// forward has saved what is needed of them.
  BackwardSums sumsOfPartials(const std::optional<Batch>& batch);
  /// Adds the last phase of a reduction, which stores the rows of the partial. `chunks`: the rows of each
  /// chunk of the phase before; empty in a backward.
  void countRows(int64_t phase, llvm::StringRef chunks);

 private:
  struct Position {
    Num t;  ///< 1-based, f64
    mlir::Value slot;
  };
  Position forwardPosition();
  Num windowMean(llvm::StringRef ring, const Position&, Num current, WindowMean);
  Num early(Num t);
  Num oldMoment();
  Num runningMean() { return k_.load(k_.stateIn("running_mean")); }
  Num runningScale();
  Num factor() { return hasOwnParameters() ? factorOfFeature(k_) : Num(); }
  Num bias() { return hasOwnParameters() ? biasOfFeature(k_) : Num(); }
  ForwardTerms outputTerms(Num c, Num s, Num r, Num shift);
  std::pair<Num, Num> renormalize(const Batch&, Num v, Num t, Num eps, Num one);  ///< r, shift
  Num accumulated(Num old, Num now, Num t);
  Num epsilon() { return k_.narrow(k_.number("epsilon")); }
  Num kappa(const BackwardSums&);
  Num gradientScale();
  Num count(const BackwardSums& sums) { return sums.count ? sums.count : k_.count(CountScope::All); }
  Num elements(const BackwardSums& sums) { return sums.count ? max(sums.count, k_.constant(1)) : elements(); }
  /// Returns the number of rows that the sums are over, at least 1.
  Num summed(const BackwardSums& sums) { return sums.rows ? max(sums.rows, k_.constant(1)) : elements(sums); }
  /// Returns a sum of G as a sum of h.
  Num weighted(const BackwardSums& sums, Num sum) {
    return sums.count ? sum : multiply(sum, gradientScale());
  }

  KernelBuilder& k_;
  const Spec& spec_;
  bool centred_, central_;
  Num kappa_;    ///< of this backward, computed once
  Num divided_;  ///< v of this forward; the window mean if there is a window
};

}  // namespace normc::codegen
