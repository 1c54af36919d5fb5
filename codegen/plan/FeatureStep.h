// One training step of one feature: from the statistics of a batch to the coefficients of its outputs. Both
// strategies use it inside a `per [feature]` slab. State, warmup, windows, renormalization and nu are here.
#pragma once

#include "codegen/plan/Formulas.h"

namespace normc::codegen {

/// Statistics of this batch. What the spec does not need is absent.
struct Batch {
  Num count;   ///< valid rows M
  Num mean;    ///< of u
  Num moment;  ///< q: mean(u^2) or mean((u - mean)^2), as the spec's moment says
};

/// y = (u - c) * a + b.
struct ForwardTerms {
  Num c, a, b;  ///< c and b may be absent
};

/// The sums of a backward sweep over the rows that are not left out.
struct BackwardSums {
  Num g;   ///< sum G
  Num gx;  ///< sum G x0
  Num xx;  ///< sum x0^2, only where needsSquares()
};

class FeatureStep {
 public:
  explicit FeatureStep(KernelBuilder& k);

  //===-- What a plan has to provide -----------------------------------------===//
  bool needsMean() const { return centred_ || central_ || k_.hasState("running_mean"); }
  bool lagged() const { return !k_.spec().needsBatchStatistics(); }
  bool hasWarmup() const { return lagged() && k_.spec().warmup.has_value(); }
  bool inferFromInput() const { return !k_.spec().running.has_value(); }
  /// True if sums over the batch must be complete before the first dx.
  bool backwardNeedsSums() const;
  /// True if sum x0^2 cannot be derived from the second moment that forward saved.
  bool needsSquares() const;

  //===-- Forward -------------------------------------------------------------===//
  /// Returns an i1: this step, counted from 1, is within the warmup. A scalar of the task.
  Num inWarmup();
  /// Returns the coefficients of y, and saves what backward needs. `batch.moment` is absent for a lagged spec
  /// without warmup. Call it once per feature, before updateState.
  ForwardTerms forward(const Batch&, bool save);
  /// Saves the second moment and the scale of the batch, which a lagged spec knows only after its outputs.
  void saveLate(const Batch&);
  void updateState(const Batch&);
  ForwardTerms infer();

  //===-- Backward ------------------------------------------------------------===//
  Num center();  ///< c of the forward; absent if it is 0
  Num rstd() { return k_.load(k_.saved("rstd")); }
  /// Returns the coefficients of dx. `sums` is absent unless backwardNeedsSums().
  DxTerms backward(const std::optional<BackwardSums>&);
  /// Stores dscale, dbias and nu.
  void finishBackward(const BackwardSums&);

 private:
  struct Step {
    Num t;  ///< 1-based, f64
    mlir::Value slot;
  };
  Step forwardStep();
  Num windowMean(llvm::StringRef ring, const Step&, Num current, WindowMean);
  Num early(Num t);
  Num oldMoment();
  std::pair<Num, Num> renormalize(const Batch&, Num v, Num t);  ///< r, shift
  Num accumulated(Num old, Num now, Num t);
  Num kappa(const BackwardSums&);
  Num backwardCount();
  Num gradientScale();

  KernelBuilder& k_;
  const Spec& spec_;
  bool centred_, central_;
  Num eps_;
  Num one_;
  Num kappa_;    ///< of this backward, computed once
  Num divided_;  ///< v of this forward; the window mean if there is a window
};

}  // namespace normc::codegen
