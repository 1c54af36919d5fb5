// Inside the reference: what its sources tell each other. Include Reference.h instead.
//
// The sources follow the closed form of Spec.h from left to right:
//   ReferenceArguments.cpp   the arguments of one call, checked
//   ReferenceStatistics.cpp  u, then mean and q of this batch
//   ReferenceScale.cpp       from a second moment to s: epsilon modes, windows
//   ReferenceForward.cpp     which c and s apply; y; what is saved
//   ReferenceState.cpp       what a step leaves behind, forward and backward
//   ReferenceBackward.cpp    dx, dscale, dbias
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/Reference.h"
#include "dsl/ReferenceNumber.h"

namespace normc::reference {

using Values = std::vector<Tracked>;
using Outputs = std::map<std::string, Quantity>;

/// The numbers of a spec after the overrides of a call.
struct Settings {
  double epsilon = 0, preEpsilon = 0, decay = 0, backwardDecay = 0, warmupSteps = 0;
  double renormMax = 1, renormShiftMax = 0, renormStart = 0;
  std::optional<double> clampGamma;
};

/// One call, and where its elements belong. Rows are numbered through all segments.
class Call {
 public:
  /// Only for arguments without complaints().
  Call(const Problem&, const ReferenceCall&);

  const Problem& problem;
  const Spec& spec;
  const ReferenceCall& given;
  Settings settings;
  int64_t rows = 0, features = 0;
  int64_t groups = 1, preGroups = 1;

  bool real(int64_t row) const { return given.mask.empty() || given.mask[row] != 0; }
  /// The row enters the statistics. A row is never left out of its own statistic.
  bool counted(int64_t row) const { return spec.reduce == Reduce::Features || real(row); }
  /// The row has outputs, and its gradient enters sums.
  bool present(int64_t row) const { return spec.padding == Padding::LeaveOutOfStatistics || real(row); }

  int64_t statistics() const;                             ///< how many there are
  int64_t statistic(int64_t row, int64_t feature) const;  ///< which one an element belongs to

  bool hasState() const { return spec.running.has_value(); }
  /// No row to learn from: the step does nothing to the state.
  bool emptyBatch() const { return hasState() && realRows_ == 0; }
  int64_t realRows() const { return realRows_; }
  bool inWarmup(int64_t step) const { return spec.warmup && step <= settings.warmupSteps; }
  /// The window does not divide yet: it is not full, or warmup is not over.
  bool early(int64_t step) const {
    return step <= spec.window.size || (spec.warmup && step < settings.warmupSteps);
  }

  int64_t stateStep() const { return static_cast<int64_t>(given.state.at("step")[0]); }
  /// A field as given; no values where the call has none of that name.
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
  int64_t realRows_ = 0;
};

/// What is wrong with the arguments; empty where they can be evaluated.
std::vector<Diagnostic> complaints(const Problem&, const ReferenceCall&);

/// The input after the `pre` stage, and the factor of every row and pre-group ([rows, preGroups]).
struct Prepared {
  Values u, factor;
};
Prepared prepare(const Call&);
/// du to dx: the exact derivative of the `pre` stage.
Values prepareBackward(const Call&, const Prepared&, Values du);

/// Of this batch, per statistic. Of nothing: mean 0, moment 0.
struct BatchStatistics {
  Values mean, moment;
};
BatchStatistics batchStatistics(const Call&, const Values& u);
/// How many elements enter each statistic.
std::vector<double> counts(const Call&);

/// The inverse root of a second moment, in the spec's epsilon mode.
Tracked inverseRoot(const Call&, Tracked moment);
Values inverseRoots(const Call&, const Values& moments);
/// The `f` of the closed form: how the epsilon mode damps the derivative of s by v.
/// 0 where v does not move s, and in mode outside at v = 0, which has no derivative.
double momentFactor(const Call&, double moment);
/// The inverse root of the running moment, whichever field holds it.
Values runningScale(const Call&);

/// `ring` ([size, features]) with the slot of `step`, (step - 1) mod size, overwritten.
Values ringWith(const Call&, Values ring, const Values& current, int64_t step);
/// The mean over the slots of a ring, per feature.
Values ringMean(const Call&, const Values& ring, WindowMean);

/// What x0 = (u - c) * s and y = scale * (r * x0 + shift) + bias apply, per statistic.
struct Applied {
  Values c, s, batchScale, r, shift;
  Values dividing;  ///< the second moment whose inverse root is s; none for an empty batch
};

Outputs forward(const Call&);
Outputs infer(const Call&);
Outputs backward(const Call&);

using Changed = std::map<std::string, Values>;  ///< state fields, by name
/// After a forward that was step number `step`, of a batch that was not empty.
Changed stateAfterForward(const Call&, const BatchStatistics&, const Applied&, int64_t step);

/// What stands for mean(h x0) where backward is approximate, and what nu becomes.
struct Correction {
  Values kappa;
  Changed state;
};
/// From mean(h x0) and mean(x0 x0) over the rows that backward sums over. Empty
/// where backward is not approximate.
Correction correct(const Call&, const Values& gradient, const Values& energy);

Quantity quantity(const Values&);
/// Adds `state.<field>` for every field: the changed value, else the old.
void publishState(const Call&, const Changed&, Outputs&);

}  // namespace normc::reference
