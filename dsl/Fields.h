// What a call of a problem takes: its tensors, and the memory a normalization
// publishes beside them: state that lives across steps, and what forward saves for backward.
//
// A spec fixes these layouts, whoever generates the kernel. Fields stand one
// after another in the order given here, each at the next multiple of 64 bytes.
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

/// One factor of a shape: a number, or a size that a call brings.
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

/// In this order, where the spec has them:
///   step          i64 []   training forwards so far
///   running_mean  [d]      center is not `none`
///   running_var   [d]      moment central            (starts at running.init)
///   running_std   [d]      renorm std, instead of running_var: a standard deviation
///   psi2          [d]      moment raw                (starts at running.init)
///   window_psi2   [K,d]    divide_by window: ring of batch moments, slot (step-1) mod K
///   nu            [d]      approximate with nu = feedback or average
///   window_nu     [K,d]    approximate with nu = window or average over a window: ring of mean(h x0)
/// Empty where the spec has no `running`.
std::vector<Field> stateFields(const Problem&);

/// What forward hands to backward. Statistic index I: [d] where reduce is rows,
/// [segments*rows, groups], [segments, d], [segments, groups] for the others.
///   mean          [I]      the c of x0, where center is not `none`
///   rstd          [I]      the s of x0
///   batch_mean    [I]      where rho needs it: moment central, exact, divide_by current, center not current
///   batch_rstd    [I]      backward scale = batch
///   second_moment [I]      q of this batch: nu by feedback (unless a mask leaves padded rows out of the
///                          statistics only), or exact, divide_by current and an epsilon mode other than add
///   renorm_scale  [I]      r, where the spec has renorm
///   renorm_shift  [I]      shift: renorm std
///   step          i64 []   t of this forward, where backward needs it (windows, renorm)
///   count         [C]      valid rows M, with a mask only: [] where reduce is rows, [segments] where it is
///                          segment or segment_features; a row's own statistic needs none
std::vector<Field> savedFields(const Problem&);

/// Offset of each field, then the total, in bytes; 64-byte aligned.
std::vector<int64_t> fieldOffsets(const std::vector<Field>&, const Extents&);

}  // namespace normc
