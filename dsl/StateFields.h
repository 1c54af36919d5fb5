// The memory that a normalization publishes in addition to its tensors: state that lives across steps, and
// the statistics that forward saves for backward.
//
// A spec fixes these layouts, whichever generator made the kernel. Fields follow each other in the order
// given here, each at the next multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/Problem.h"
#include "runtime/abi/Operands.h"

namespace normc {

/// Returns what decides which tensors a call takes.
Has hasOf(const Problem&);
/// Returns the tensors that a call takes, in the order of the table.
std::vector<Tensor> operandsOf(const Problem&);

/// One factor of a shape: a number, or a size that a call gives.
struct Extent {
  enum Kind { Fixed, Segments, Rows, Features } kind = Fixed;
  int64_t value = 1;  ///< Fixed only
  bool operator==(const Extent&) const = default;
};

/// The sizes of one call. `rows` counts the rows of one segment.
struct Extents {
  int64_t segments = 1, rows = 0, features = 0;
  int64_t totalRows() const { return segments * rows; }
  int64_t of(Extent e) const;
};

struct Field {
  std::string name;
  DType type = DType::F32;    ///< F32, F64 or I64
  std::vector<Extent> shape;  ///< empty: one element
  double init = 0;            ///< state only: the value of a fresh state

  int64_t elements(const Extents&) const;
  int64_t bytes(const Extents&) const;
};

/// Returns the fields of the state that the spec has, in this order; none without `running`:
///   step          i64 []   the number of training forwards so far
///   running_mean  [d]      if center is not `none`
///   running_var   [d]      moment central            (starts at running.init)
///   running_std   [d]      renorm std, instead of running_var: a standard deviation
///   psi2          [d]      moment raw                (starts at running.init)
///   window_psi2   [K,d]    divide_by window: ring of batch moments, slot (step-1) mod K
///   nu            [d]      approximate with nu = feedback or average
///   window_nu     [K,d]    approximate with nu = window or average over a window: ring of mean(h x0)
std::vector<Field> stateFields(const Problem&);

/// Returns the fields that forward saves for backward. I is the index of a statistic: [d] if reduce is rows,
/// [segments, rows, groups], [segments, d], [segments, groups] for the others; with layout channels_first
/// [segments, groups, rows] if it is features.
///   mean          [I]      the c of x0, if center is not `none`
///   rstd          [I]      the s of x0
///   batch_mean    [I]      if rho needs it: moment central, exact, divide_by current, center not current
///   batch_rstd    [I]      backward scale = batch
///   second_moment [I]      q of this batch: nu by feedback (unless a mask leaves padded rows out of the
///                          statistics only; also where q is not about c, so that backward does not use
///                          it), or exact, divide_by current and an epsilon mode other than add
///   renorm_scale  [I]      r, if the spec has renorm
///   renorm_shift  [I]      shift: renorm std
///   step          i64 []   t of this forward: divide_by window, or renorm; of the formulas, only
///                          that of window_nu reads it
///   count         [C]      valid rows M, with a mask only: [] if reduce is rows, [segments] if it is
///                          segment or segment_features; the statistic of one row needs none
/// Over ranks these are the statistics of all ranks. A forward_apply always saves count; a forward_reduce,
/// which does not know them, saves neither count nor second_moment; commit saves nothing.
std::vector<Field> savedFields(const Problem&);

/// Returns the fields of the partial that an entry over ranks writes or reads; none for other entries. They
/// are f64, follow each other without gaps, and depend on the norm alone, not on mask, layout or types.
/// Forward entries have those of the forward, backward entries those of the backward, commit has both:
///   rows           []   valid rows n
///   sum            [d]  sum u: where the mean is used, or the moment is taken about it
///   squares        [d]  sum u^2
///
///   gradient       [d]  sum h: center current, backward not frozen
///   gradient_x     [d]  sum h x0: where a term of dx or nu needs it
///   energy         [d]  sum x0^2: nu by feedback, unless it follows from the second moment of the forward
///   gradient_rows  []   rows that have a gradient: approximate, where padding leaves rows out of
///                       statistics only
std::vector<Field> partialFields(const Problem&);

}  // namespace normc
