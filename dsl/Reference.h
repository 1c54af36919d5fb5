// The oracle: evaluates any Problem in double precision directly from the Spec.
//
// It shares no code with code generation and is written for reading, not for speed. Tests, the tuner's gate
// and `normc check` judge by it. Thread-safe: it has no state but its arguments.
//
// Every value has a magnitude: the sum of the absolute values of the terms that were added to make it.
// Rounding errors are judged relative to it, so a result with cancellation is not held to an accuracy that
// its inputs cannot give (Tolerance.h; ReferenceNumber.h has the rules of propagation).
//
// Decisions that the closed form of Spec.h leaves open:
// - Forward counts its step first: t = state.step + 1. Running values and nu are those from before this step.
//   Windows include this batch.
// - An empty batch of a spec with state (no rows, or every row masked) is no step: state and t stay, r = 1,
//   shift = 0, and running values transform, as in inference. Its backward computes as usual (padded rows may
//   have gradients) and does not change the state. The saved statistics of the batch are mean 0 and moment 0;
//   batch_rstd is the scale that was used.
// - Without state the statistic of an empty segment has mean 0 and moment 0.
// - Infer with state uses running values and does not change the state; without state it uses the statistics
//   of its input. `pre` is active in every entry.
// - Statistics are of h in full precision. Backward takes h from `residual_out` as it was stored; without a
//   stream it computes h again. Inputs that a backward does not need may be left out: x with a stream and no
//   gate before, `residual` where h is given or no activation stands behind it, `mod_shift` where nothing
//   behind it needs the output.
// - With padding exclude, y, residual_out and the gradients of padded rows are exactly 0, even if the rows
//   hold NaN. If each row has its own statistic (reduce features), a padded row still has it in `saved`.
// - If padded rows are left out of the statistics only, they are transformed and have gradients. mean(h) and
//   mean(h x0) of the exact terms sum over all rows and divide by the number of real ones (the true
//   derivative); those of nu, mean(h x0) and mean(x0 x0), are means over all rows.
// - Feedback: nu' = nu (1 - (1-a) Gamma) + (1-a) Lambda, with Gamma = mean(x0 x0), limited by clamp_gamma,
//   and Lambda = mean(h x0). Gamma = q s^2 only if the moment is about c: raw without centring, or central
//   about the current mean.
// - Infer_backward is the gradient of that infer with state: c and s of the state are constants, r = 1 and
//   shift = 0. It does not change the state.
// - dscale = sum of G (r x0 + shift), also if `forward = no` keeps r out of y. dmod_scale and dgate are made
//   of the output of the affine as the forward has it.
// - Over ranks, gradients of a segment or a feature are sums over the rows of the call.
// - Windows: while t <= K or t < warmup steps only this batch counts. The ring slot is (t-1) mod K, with t as
//   counted by the forward. The ring holds batch moments; the moment that divided enters the running one.
// - unbiased: the variance enters the running one times M / max(M-1, 1).
// - renorm: r = clip(s_running / s), both in the spec's epsilon mode (s_running = 1 / running_std for std);
//   no correction while t <= max(start, warmup steps).
// - The slope of an activation is taken at o as backward computes it again: from x, the parameters and the
//   saved c, s, r and shift. Of an infinite o, value and slope are what the formulas of dsl/SPEC.md give in
//   IEEE arithmetic. relu of NaN is NaN, and its slope there 0.
// - `rope` takes c and s as they are given: they need not be of one angle. Those of excluded rows are not
//   read.
// - Codes are y / D before they are rounded, but saturated, with D as it is stored. A scale that is no power
//   of two is A / qmax before it is rounded. The store of a kernel rounds both, as it does y. A row in which
//   a y is not finite, in the type of the statistics, has undefined codes and scales. Padded rows have the
//   codes and scales of zeros.
// - Over ranks: a partial is a plain sum over the rows of a call, and the batch is that of the sum of all
//   partials. Without state it has at least one row. `squares` of a central moment are NaN where `sum` is not
//   finite. h of a backward's partial contains scale and r, so that commit needs no parameter.
// - Epsilon mode outside has no derivative at v = 0: the second-moment term is 0 there.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "dsl/Problem.h"
#include "dsl/StateFields.h"

namespace normc {

struct Quantity {
  std::vector<double> value;
  std::vector<double> magnitude;  ///< same length; >= |value| up to rounding

  /// The magnitude of a value that is not defined: a kernel may give any.
  static constexpr double kUndefined = -std::numeric_limits<double>::infinity();
};

/// The arguments of one call. Tensors are in logical order [segment][row][feature], whatever the problem's
/// layout. Values are those that the kernel sees, already rounded to the data type.
struct ReferenceCall {
  Extents extents;
  std::vector<double> x;                             ///< all entries
  std::vector<double> dy;                            ///< backward
  std::vector<double> scale, bias;                   ///< [d], if the spec has them; in backward bias only
                                                     ///< counts where the output is computed again
  std::vector<double> residual;                      ///< if the spec has it
  std::vector<double> residualOut;                   ///< backward with a stream: h, as it was stored
  std::vector<double> gate, modScale, modShift;      ///< of the shape that `per` says
  std::vector<double> quantScale;                    ///< [1], `quantize` with one scale of all codes
  std::vector<double> ropeCos, ropeSin;              ///< [segments, rows, pairs], of `rope`
  std::vector<double> dresidualOut;                  ///< backward with a stream; empty: 0
  std::vector<uint8_t> mask;                         ///< [segments*rows], if the problem has one; 0 = padded
  std::map<std::string, std::vector<double>> state;  ///< by field name; all of stateFields
  std::map<std::string, std::vector<double>> saved;  ///< backward: what the forward saved
  /// Entries that add up partials: by field name; all of partialFields. At least one.
  std::vector<std::map<std::string, std::vector<double>>> partials;
  std::map<std::string, double> numbers;  ///< overrides of numbers(spec), by name
};

/// Returns the values of an input of floating type; null for outputs and the mask. residual_out is an input
/// of backward.
const std::vector<double>* valuesOf(const ReferenceCall&, Tensor input);
std::vector<double>* valuesOf(ReferenceCall&, Tensor input);

struct ReferenceResult {
  /// By name: `y`, or in its place `codes` and `quant_scale_out`; `dx`, `dscale`, `dbias` (the last two are
  /// empty if the spec has no affine); the other outputs of Operands.h where the entry has them:
  /// `residual_out`, `dresidual`, `dgate`, `dmod_scale`, ...; `state.<field>` for every state field after the
  /// call; `saved.<field>` after a forward; `partial.<field>`, and for a central moment `partial.moment`, the
  /// moment that follows from the partial alone.
  std::map<std::string, Quantity> outputs;
};

/// Returns the outputs of the call, or an error for every argument that is missing or has the wrong length.
Result<ReferenceResult> evaluate(const Problem&, const ReferenceCall&);

/// Returns a fresh state: every field at its `init`.
std::map<std::string, std::vector<double>> initialState(const Problem&, const Extents&);

}  // namespace normc
