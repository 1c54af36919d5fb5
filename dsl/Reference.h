// The oracle: evaluates any Problem in double precision straight from the Spec.
//
// It shares no code with code generation and is written for reading, not for
// speed. Tests, the tuner's gate and `normc check` all judge by it. Thread-safe:
// no state but its arguments.
//
// Every value comes with a magnitude: the sum of the absolute values of the
// terms that were added to make it. Rounding errors are judged against it, so a
// result that cancels is not held to an accuracy that its inputs cannot give
// (Tolerance.h; the rules of propagation stand in ReferenceNumber.h).
//
// What the closed form of Spec.h leaves open:
// - Forward counts its step first: t = state.step + 1. Running values and nu are
//   those before this step wherever they apply; windows include this batch.
// - An empty batch of a spec with state (no rows, or every row masked) is no step:
//   state and t stay, r = 1, shift = 0, and running values transform, as in
//   inference. Its backward computes as ever (padded rows may have gradients) and
//   leaves the state. What is saved of the batch itself is that of nothing: mean
//   0, moment 0; batch_rstd is the scale that was used.
// - A statistic of nothing without state (an empty segment) has mean 0, moment 0.
// - Infer with state uses running values and leaves the state; without state it
//   uses the statistics of its input. `pre` is active in every entry.
// - With padding exclude, y and dx of padded rows are exactly 0, whatever they
//   hold, NaN included. Where each row has its own statistic (reduce features), a
//   padded row still has it in `saved`.
// - Where padded rows are left out of the statistics only, they are transformed
//   and have gradients: mean(h) and mean(h x0) of the exact terms sum over all
//   rows and divide by the real ones (the true derivative); those of nu, mean(h x0)
//   and mean(x0 x0), are means over all rows.
// - Feedback: nu' = nu (1 - (1-a) Gamma) + (1-a) Lambda, with Gamma = mean(x0 x0),
//   limited by clamp_gamma, and Lambda = mean(h x0). Gamma = q s^2 only where the
//   moment is about c: raw without centring, central about the current mean.
// - dscale = sum of G (r x0 + shift), also where `forward = no` keeps r out of y.
// - Windows: while t <= K or t < warmup steps this batch stands alone. Ring slot
//   (t-1) mod K, t as counted by the forward. The ring keeps batch moments, the
//   running moment takes in what divided.
// - unbiased: the variance enters the running one times M / max(M-1, 1).
// - renorm: r = clip(s_running / s), both in the spec's epsilon mode (s_running =
//   1 / running_std for std); no correction while t <= max(start, warmup steps).
// - Epsilon mode outside has no derivative at v = 0: the second-moment term is 0 there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/Fields.h"
#include "dsl/Problem.h"

namespace normc {

struct Quantity {
  std::vector<double> value;
  std::vector<double> magnitude;  ///< same length; >= |value| up to rounding
};

/// The arguments of one call. Tensors are in logical order [segment][row][feature],
/// whatever the problem's layout; values are those that the kernel will see
/// (already rounded to the data type).
struct ReferenceCall {
  Extents extents;
  std::vector<double> x;            ///< all entries
  std::vector<double> dy;           ///< backward
  std::vector<double> scale, bias;  ///< [d], where the spec has them; backward needs no bias
  std::vector<uint8_t> mask;        ///< [segments*rows], where the problem has one; 0 = padded
  std::map<std::string, std::vector<double>> state;  ///< by field name; all of stateFields
  std::map<std::string, std::vector<double>> saved;  ///< backward: what the forward gave
  std::map<std::string, double> numbers;             ///< overrides of numbers(spec), by name
};

/// Returns the values of an input of floating type; null for outputs and the mask.
inline const std::vector<double>* valuesOf(const ReferenceCall& call, Tensor input) {
  switch (input) {
    case kX:
      return &call.x;
    case kDy:
      return &call.dy;
    case kScale:
      return &call.scale;
    case kBias:
      return &call.bias;
    default:
      return nullptr;
  }
}

struct ReferenceResult {
  /// By name: `y`; `dx`, `dscale`, `dbias` (the last two also where the spec has
  /// no affine: empty then); `state.<field>` for every state field after the
  /// call; `saved.<field>` after a forward.
  std::map<std::string, Quantity> outputs;
};

/// Errors: an argument that is missing or of the wrong length, all of them at once.
Result<ReferenceResult> evaluate(const Problem&, const ReferenceCall&);

/// A fresh state: every field at its `init`.
std::map<std::string, std::vector<double>> initialState(const Problem&, const Extents&);

}  // namespace normc
