// The formulas that all plans share: one element forward, one element backward, inverse roots. Notation as in
// dsl/Spec.h.
#pragma once

#include "codegen/plan/Builder.h"

namespace normc::codegen {

/// Returns s of a second moment v, in the spec's epsilon mode.
Num inverseRoot(KernelBuilder&, Num v, Num epsilon);
/// Returns f of the backward: the factor by which d s / d v differs from that of mode `add`.
Num rootFactor(KernelBuilder&, Num v, Num s, Num epsilon);

/// The coefficients of dx = p * g + all * x0 + (valid ? own * rho + offset : 0). An absent Num is a zero. The
/// formula uses x0 = (u - c) s, not u - c, because products of two small scales would underflow. rho is the
/// distance from the point about which the moment was taken: in terms of x0 a constant would cancel most of
/// it, with all digits.
struct DxTerms {
  Num p;       ///< of the incoming gradient
  Num all;     ///< of x0 on every row (nu)
  Num own;     ///< of rho on rows of the statistic (second moment)
  Num offset;  ///< constant on rows of the statistic (mean)
};
/// Returns dx of one element. `rho` absent: x0. `valid` absent: no mask. With padding `exclude` a padded row
/// gets 0.
Num elementDx(KernelBuilder&, const DxTerms&, Num g, Num x0, Num rho, Num valid);

/// True if the exact gradient of the spec's moment has a rho that differs from x0.
bool hasOwnRho(const Spec&);
/// True if that rho is (u - mean of u) s; else it is u s.
inline bool isRhoCentred(const Spec& spec) { return spec.moment == Moment::Central; }

/// Returns y = d * a + b of one element. a and b may be absent. Rows that `exclude` masks get 0.
Num elementY(KernelBuilder&, Num d, Num a, Num b, Num valid);

/// Returns the terms that the exact gradient of a statistic of the slab subtracts from dx, and p. With h the
/// gradient of the normalized value: dx = s [h - mean(h) - f rho mean(h x0)]; `sumG` is sum h s / p.
DxTerms sampleTerms(KernelBuilder&, Num p, Num s, bool centred, Num sumG, Num meanHx0, Num n);

/// Mean, sum of squared distances from it, and sum of squares over the chunks of a phase, merged in f64 by
/// Chan's formula, chunk after chunk. Means are kept as distances from the first shift, so a large mean costs
/// the variance no digits.
struct Merged {
  Num mean, squares, raw;
};
/// Returns the merged chunks. `parts`: count, shift, mean minus shift, squares of each chunk, and, if `raw`
/// is wanted, the sum of squares.
Merged mergeChunks(KernelBuilder&, int64_t phase, llvm::ArrayRef<llvm::StringRef> parts);

/// Returns `value` on valid rows, else 0. `valid` absent: `value`.
Num masked(KernelBuilder&, Num valid, Num value);

inline Num add(Num a, Num b) { return !a ? b : !b ? a : a + b; }
inline Num multiply(Num a, Num b) { return !a ? b : !b ? a : a * b; }

/// Plans the entry. A forward saves what a backward needs; an inference does not.
template <typename Plan>
void planEntry(Plan plan, Entry entry) {
  if (entry == Entry::Backward) return plan.backward();
  plan.forward(/*save=*/entry == Entry::Forward);
}

/// The plans (Planner.h).
void planPerSample(KernelBuilder&, int64_t vector);
void planSplitRows(KernelBuilder&);
void planPerFeatureStreamed(KernelBuilder&);
void planPerFeatureResident(KernelBuilder&);
/// Adds the last phase of a forward with state, which increments the step count after everything that reads
/// it.
void planStepCounter(KernelBuilder&);

}  // namespace normc::codegen
