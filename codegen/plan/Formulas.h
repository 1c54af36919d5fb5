// The formulas that every plan shares: one element forward, one element backward,
// inverse roots. Notation as in dsl/Spec.h.
#pragma once

#include "codegen/plan/Builder.h"

namespace normc::codegen {

/// s of a second moment v, in the spec's epsilon mode.
Num inverseRoot(KernelBuilder&, Num v, Num epsilon);
/// f of the backward: how d s / d v differs from that of mode `add`.
Num rootFactor(KernelBuilder&, Num v, Num s, Num epsilon);

/// dx = p * g + all * x0 + (valid ? own * rho + offset : 0). An absent Num is a zero.
/// In terms of x0 = (u - c) s, not of u - c: products of two small scales would underflow. rho is as far from the point
/// about which the moment was taken: in terms of x0 a constant would take back most of it, with all digits.
struct DxTerms {
  Num p;       ///< of the incoming gradient
  Num all;     ///< of x0 on every row (nu)
  Num own;     ///< of rho on rows of the statistic (second moment)
  Num offset;  ///< constant on rows of the statistic (mean)
};
/// `rho` absent: x0. `valid` absent: no mask. Under padding `exclude` a padded row gets 0.
Num elementDx(KernelBuilder&, const DxTerms&, Num g, Num x0, Num rho, Num valid);

/// Whether the exact gradient of the spec's moment has another rho than x0.
bool hasOwnRho(const Spec&);
/// Whether that is (u - mean of u) s, else it is u s.
inline bool isRhoCentred(const Spec& spec) { return spec.moment == Moment::Central; }

/// y = d * a + b, with either part absent; 0 on rows that `exclude` masks.
Num elementY(KernelBuilder&, Num d, Num a, Num b, Num valid);

/// Where the statistic is that of the slab: what its exact gradient takes back from dx, beside p. With h the gradient
/// of the normalized value: dx = s [h - mean(h) - f rho mean(h x0)]; `sumG` is sum h s / p.
DxTerms sampleTerms(KernelBuilder&, Num p, Num s, bool centred, Num sumG, Num meanHx0, Num n);

/// Mean, sum of squared distances from it and sum of squares over the chunks of a phase, in f64: Chan's merge, chunk
/// after chunk. Means are kept as distances from the first shift, so a large mean costs the variance no digits.
struct Merged {
  Num mean, squares, raw;
};
/// `parts`: of each chunk its count, shift, mean minus shift, squares and, if `raw` is wanted, sum of squares.
Merged mergeChunks(KernelBuilder&, llvm::StringRef axis, llvm::ArrayRef<llvm::StringRef> parts);

/// `value` on valid rows, else 0. `valid` absent: `value`.
Num masked(KernelBuilder&, Num valid, Num value);

inline Num add(Num a, Num b) { return !a ? b : !b ? a : a + b; }
inline Num multiply(Num a, Num b) { return !a ? b : !b ? a : a * b; }

/// A forward keeps what a backward needs, an inference does not.
template <typename Plan>
void planEntry(Plan plan, Entry entry) {
  if (entry == Entry::Backward) return plan.backward();
  plan.forward(/*save=*/entry == Entry::Forward);
}

/// The plans of the two kinds of statistic (Plan.h).
void planPerSample(KernelBuilder&, int64_t vector);
void planSplitRows(KernelBuilder&);
void planPerFeatureStreamed(KernelBuilder&);
void planPerFeatureResident(KernelBuilder&);
/// The last phase of a forward with state: the step count moves on when everything that reads it is done.
void planAdvance(KernelBuilder&);

}  // namespace normc::codegen
