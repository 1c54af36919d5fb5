// Internal interface of the sources of the reference. Other code includes Reference.h.
//
// The sources follow the closed form of Spec.h from left to right:
//   ReferenceArguments.cpp   the arguments of one call, checked
//   ReferenceCall.cpp        the coordinates and inputs of an element
//   ReferenceFunction.cpp    the functions of gates and activations
//   ReferenceInput.cpp       from x to h, and from the gradient of h to those of its terms
//   ReferenceStatistics.cpp  u, then mean and q of this batch
//   ReferenceScale.cpp       from a second moment to s: epsilon modes, windows
//   ReferenceOutput.cpp      from x0 to y, and from dy to the gradient of the affine and of what is behind it
//   ReferenceRope.cpp        pairs of features turned, in either direction
//   ReferenceQuantize.cpp    from y to codes and their scales
//   ReferenceForward.cpp     which c and s apply; y; what is saved
//   ReferenceState.cpp       what a step leaves behind, forward and backward
//   ReferenceBackward.cpp    dx, dscale, dbias
//   ReferencePartials.cpp    sums over ranks
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/Reference.h"
#include "dsl/ReferenceNumber.h"
#include "dsl/Tolerance.h"

namespace normc::reference {

using Values = std::vector<Tracked>;
using Outputs = std::map<std::string, Quantity>;

/// The numbers of a spec after the overrides of a call.
struct Settings {
  double epsilon = 0, preEpsilon = 0, decay = 0, backwardDecay = 0, warmupSteps = 0;
  double renormMax = 1, renormShiftMax = 0, renormStart = 0;
  double scaleOffset = 0, modOffset = 0, quantFloor = 0;
  std::optional<double> clampGamma;
};

/// An element and its coordinates.
struct At {
  int64_t element, row, feature;
};

/// One call, and the statistic of each element. Rows are numbered through all segments.
class Call {
 public:
  /// The arguments have no errors (errorsOf()).
  Call(const Problem&, const ReferenceCall&);

  const Problem& problem;
  const Spec& spec;
  const ReferenceCall& given;
  const Has has;
  const ElementTypes types;
  Settings settings;
  int64_t rows = 0, features = 0;
  int64_t groups = 1, preGroups = 1;
  int64_t runs = 1;  ///< the groups of `rope`

  bool real(int64_t row) const { return given.mask.empty() || given.mask[row] != 0; }
  /// True if the row enters the statistics. A row is never left out of its own statistic.
  bool counted(int64_t row) const { return spec.perRow() || real(row); }
  /// True if the row has outputs and its gradient enters sums.
  bool present(int64_t row) const { return spec.padding == Padding::LeaveOutOfStatistics || real(row); }

  int64_t statistics() const;                             ///< the number of statistics
  int64_t statistic(int64_t row, int64_t feature) const;  ///< the statistic that an element belongs to

  int64_t elements() const { return rows * features; }
  int64_t elements(Tensor) const;  ///< the number of elements of a tensor
  /// Returns the element of a tensor that belongs to an element of x. That of a tensor of pairs exists only
  /// for a feature that is turned.
  int64_t index(Tensor tensor, At) const;
  /// Returns the value of an input at an element of x, in the type of the statistics.
  Tracked input(Tensor tensor, At at) const {
    return converted((*valuesOf(given, tensor))[index(tensor, at)], typeOf(tensor, types));
  }
  /// Returns the relative error that the tolerance grants.
  double unit() const { return wide_ ? kUnit * 0x1p-28 : kUnit; }
  /// Returns the largest finite value of the type of the statistics.
  double largestValue() const { return largest(wide_ ? DType::F64 : DType::F32); }

  bool hasState() const { return spec.running.has_value(); }
  /// True if the batch has no valid row: the step does not change the state.
  bool emptyBatch() const { return hasState() && realRows_ == 0; }
  /// Returns the valid rows of the batch; over ranks those of all ranks, as far as the call is told.
  int64_t realRows() const { return realRows_; }
  bool inWarmup(int64_t step) const { return spec.warmup && step <= settings.warmupSteps; }
  /// True if the window does not divide yet: it is not full, or warmup is not over.
  bool early(int64_t step) const {
    return step <= spec.window.size || (spec.warmup && step < settings.warmupSteps);
  }

  int64_t stateStep() const { return static_cast<int64_t>(given.state.at("step")[0]); }
  /// Returns a field as given; no values if the call has none of that name.
  Values state(const std::string& field) const;
  Values saved(const std::string& field) const;

  /// Calls `visit(element, row, feature, statistic)` for every element of every row.
  template <typename Visit>
  void forEach(Visit&& visit) const {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t feature = 0; feature < features; ++feature) {
        visit(row * features + feature, row, feature, statistic(row, feature));
      }
    }
  }

 private:
  Tracked converted(double value, DType type) const;

  int64_t realRows_ = 0;
  const bool wide_;  ///< statistics are f64
};

/// Returns the number of elements of a tensor of this shape.
int64_t elementsOf(TensorShape, const Problem&, const Extents&);

/// Returns the errors of the arguments; empty if they can be evaluated.
std::vector<Diagnostic> errorsOf(const Problem&, const ReferenceCall&);

/// A function at one point. The terms are the sum of the absolute terms of its formula: its rounding.
struct Point {
  double value, terms;
};

/// psi or phi, and its derivative, at one point, with bounds of the absolute values of the first two
/// derivatives over all points, rounded up. relu has its corner in place of a bound of the second.
struct Function {
  Point value, slope;
  double largestSlope, largestCurvature;
};
Function functionAt(Activation, double t);
struct Gated {
  Tracked value, slope;
};
/// Returns phi and phi' of the gate at an element.
Gated gateAt(const Call&, At);

/// Sums of gradients, one for each element of the output tensors around the norm that the entry writes.
class Gradients {
 public:
  explicit Gradients(const Call&);
  /// Adds a term to the element of the tensor that `at` belongs to, if the entry writes the tensor.
  void add(Tensor, At at, Tracked term);
  void publish(Outputs&) const;

 private:
  const Call& call_;
  std::map<Tensor, std::vector<Sum>> sums_;
};

/// Returns h of every element.
Values hOf(const Call&);
/// Returns dx from the gradient of h that the norm gives; adds the gradients of what stands before the norm.
Values inputBackward(const Call&, Values dh, Gradients&);

/// h, the input after the `pre` stage, and the factor of every row and pre-group ([rows, preGroups]).
struct Prepared {
  Values h, u, factor;
};
Prepared prepare(const Call&);
/// Returns dh from du: the exact derivative of the `pre` stage.
Values prepareBackward(const Call&, const Prepared&, Values du);

/// Mean and second moment of this batch for each statistic; 0 and 0 if no element enters it.
struct BatchStatistics {
  Values mean, moment;
};
BatchStatistics batchStatistics(const Call&, const Values& u);
/// Returns the number of elements that enter each statistic.
std::vector<double> counts(const Call&);

/// Returns the inverse root of a second moment, in the spec's epsilon mode.
Tracked inverseRoot(const Call&, Tracked moment);
Values inverseRoots(const Call&, const Values& moments);
/// Returns the `f` of the closed form: the factor by which the epsilon mode changes the derivative of s by v.
/// It is 0 if v does not affect s, and in mode outside at v = 0, which has no derivative.
Tracked momentFactor(const Call&, double moment);
/// Returns the inverse root of the running moment, from the field that holds it.
Values runningScale(const Call&);

/// Returns `ring` ([size, features]) with the slot of `step`, (step - 1) mod size, overwritten.
Values ringWith(const Call&, Values ring, const Values& current, int64_t step);
/// Returns the mean over the slots of a ring for each feature.
Values ringMean(const Call&, const Values& ring, WindowMean);

/// The values that x0 = (u - c) * s and y = scale * (r * x0 + shift) + bias use, for each statistic.
struct Applied {
  Values c, s, batchScale, r, shift;
  Values dividing;  ///< the second moment whose inverse root is s; empty for an empty batch
};

/// Returns the values that the state alone gives: for inference, and for a batch without a row.
Applied constantStatistics(const Call&);
/// Returns the factor of the affine, for a spec that has `scale`.
Tracked factorOf(const Call&, int64_t feature);
/// Returns y of every element of a row that is present. `r` and `shift`, one for each statistic, count only
/// if the forward corrects by them.
Values outputValues(const Call&, Values x0, const Values& r, const Values& shift);
/// Returns G of the same elements: the gradient of the output of the affine. Adds the gradients of what
/// stands behind it. The others are those that outputValues() took.
Values gradientsOfAffine(const Call&, const Values& x0, const Values& r, const Values& shift, Gradients&);

/// Returns R m (`rope`), or m without it.
Values turned(const Call&, Values m);
/// Returns R^T dt (`rope`), or dt without it.
Values turnedBack(const Call&, Values dt);

Outputs forward(const Call&);
Outputs infer(const Call&);
Outputs backward(const Call&);
Outputs forwardReduce(const Call&);
Outputs commit(const Call&);

/// Returns the sum of a field over all partials of the call.
Values totalOfPartials(const Call&, const std::string& field);
/// Returns the statistics of the rows of all partials.
BatchStatistics statisticsOfPartials(const Call&);
/// Adds `partial.<field>` for each field, and what follows from them.
void publishPartial(const Call&, const std::map<std::string, Values>& fields, Outputs&);

/// Publish what a forward saves, and its tensors.
void publishSaved(const Call&, const BatchStatistics&, const Applied&, int64_t step, Outputs&);
void publishOutputs(const Call&, const Prepared&, const Applied&, Outputs&);
/// Publishes what `quantize` makes of y.
void publishCodes(const Call&, const Values& y, Outputs&);
/// Returns the magnitude of what a store rounds more where an error moves the value into the next binade.
double beyondTheBinade(const Call&, Tracked value, DType stored);

using Changed = std::map<std::string, Values>;  ///< state fields, by name
/// Returns the state after a forward with step number `step` and a batch that was not empty.
Changed stateAfterForward(const Call&, const BatchStatistics&, const Applied&, int64_t step);

/// The estimate of mean(h x0) in an approximate backward, and the new nu.
struct Correction {
  Values kappa;
  Changed state;
};
/// Returns the correction of an approximate backward from mean(h x0) and mean(x0 x0) over the rows that it
/// sums.
Correction correct(const Call&, const Values& gradient, const Values& energy);

Quantity quantity(const Values&);
/// Adds `state.<field>` for every field: the changed value, else the old.
void publishState(const Call&, const Changed&, Outputs&);

}  // namespace normc::reference
