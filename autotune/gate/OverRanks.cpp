#include "autotune/gate/OverRanks.h"

#include "dsl/Tolerance.h"

namespace normc::gate {
namespace {

using Fields = std::map<std::string, std::vector<double>>;

/// Returns the values of the outputs "PREFIX.name", by name.
Fields fieldsOf(const ReferenceResult& result, const std::string& prefix) {
  Fields fields;
  for (const auto& [output, quantity] : result.outputs)
    if (output.rfind(prefix + ".", 0) == 0) fields[output.substr(prefix.size() + 1)] = quantity.value;
  return fields;
}

Fields rounded(Fields fields, DType type) {
  for (auto& [name, values] : fields)
    for (double& value : values) value = round(value, type);
  return fields;
}

/// A step of all ranks, as far as an entry of it needs.
class Step {
 public:
  Step(const Problem& problem, std::vector<ReferenceCall> ranks)
      : problem_(problem), ranks_(std::move(ranks)) {}

  /// Runs the entries before this one. False after an error.
  bool before(Entry entry) {
    const bool waits = problem_.spec->needsBatchStatistics();
    if (entry == Entry::ForwardReduce) return true;
    if (!reduce(Entry::ForwardReduce)) return false;
    if (entry == Entry::ForwardApply) return true;
    if (waits && !apply()) return false;
    if (entry == Entry::BackwardReduce) return true;
    return reduce(Entry::BackwardReduce);
  }

  /// Returns what the entry takes of the first rank's arguments and of all partials.
  ReferenceCall argumentsOf(Entry entry) const {
    ReferenceCall call = taken(entry, ranks_.front());
    if (!addsPartials(entry)) return call;
    Problem adding = problem_;
    adding.entry = entry;
    for (const Fields& all : partials_) {
      Fields& partial = call.partials.emplace_back();
      for (const Field& field : partialFields(adding)) partial[field.name] = all.at(field.name);
    }
    return call;
  }

  std::vector<Diagnostic> errors;

 private:
  ReferenceCall taken(Entry entry, ReferenceCall call) const {
    const auto takes = [&](Tensor tensor) { return isTaken(infoOf(tensor), entry, hasOf(problem_)); };
    if (!takes(kX)) call.x.clear();
    if (!takes(kDy)) call.dy.clear();
    if (!takes(kScale)) call.scale.clear();
    if (!takes(kBias)) call.bias.clear();
    if (!takes(kMask)) call.mask.clear();
    return call;
  }

  std::optional<ReferenceResult> run(Entry entry, const ReferenceCall& call) {
    Problem problem = problem_;
    problem.entry = entry;
    auto result = evaluate(problem, call);
    if (result) return *std::move(result);
    errors = result.errors();
    return std::nullopt;
  }

  bool reduce(Entry entry) {
    partials_.resize(ranks_.size());
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const auto result = run(entry, taken(entry, ranks_[i]));
      if (!result) return false;
      partials_[i].merge(fieldsOf(*result, "partial"));
      if (Fields saved = fieldsOf(*result, "saved"); !saved.empty())
        ranks_[i].saved = rounded(std::move(saved), problem_.statistics());
    }
    return true;
  }

  /// Runs forward_apply: its statistics are the same on all ranks.
  bool apply() {
    const auto result = run(Entry::ForwardApply, argumentsOf(Entry::ForwardApply));
    if (!result) return false;
    for (ReferenceCall& rank : ranks_) {
      rank.saved = rounded(fieldsOf(*result, "saved"), problem_.statistics());
      rank.state = rounded(fieldsOf(*result, "state"), problem_.statistics());
    }
    return true;
  }

  const Problem& problem_;
  std::vector<ReferenceCall> ranks_;
  std::vector<Fields> partials_;  ///< of each rank, of both directions
};

}  // namespace

Result<ReferenceCall> argumentsOverRanks(const Problem& problem, std::vector<ReferenceCall> ranks) {
  Step step(problem, std::move(ranks));
  if (!step.before(problem.entry)) return step.errors;
  return step.argumentsOf(problem.entry);
}

}  // namespace normc::gate
