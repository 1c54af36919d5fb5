// The oracle: evaluates any Problem in double precision straight from the Spec.
//
// It shares no code with code generation and is written for reading, not for
// speed. Tests, the tuner's gate and `normc check` all judge by it. Thread-safe:
// no state but its arguments.
//
// Every value comes with a magnitude: the sum of the absolute values of the
// terms that were added to make it. Rounding errors are judged against it, so a
// result that cancels is not held to an accuracy that its inputs cannot give
// (Tolerance.h).
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
  std::vector<double> scale, bias;  ///< [d], where the spec has them
  std::vector<uint8_t> mask;        ///< [segments*rows], where the problem has one
  std::map<std::string, std::vector<double>> state;  ///< by field name; all of stateFields
  std::map<std::string, std::vector<double>> saved;  ///< backward: what the forward gave
  std::map<std::string, double> numbers;             ///< overrides of numbers(spec), by name
};

struct ReferenceResult {
  /// By name: `y`; `dx`, `dscale`, `dbias` (the last two also where the spec has
  /// no affine: empty then); `state.<field>` for every state field after the
  /// call; `saved.<field>` after a forward.
  std::map<std::string, Quantity> outputs;
};

/// Errors: an argument that is missing or of the wrong length.
Result<ReferenceResult> evaluate(const Problem&, const ReferenceCall&);

/// A fresh state: every field at its `init`.
std::map<std::string, std::vector<double>> initialState(const Problem&, const Extents&);

}  // namespace normc
