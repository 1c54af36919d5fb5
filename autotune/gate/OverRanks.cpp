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

  /// Returns what the entry takes of the arguments of a rank and of all partials.
  ReferenceCall argumentsOf(Entry entry, const ReferenceCall& rank) const {
    ReferenceCall call = taken(entry, rank);
    if (!addsPartials(entry)) return call;
    Problem adding = problem_;
    adding.entry = entry;
    for (const Fields& all : partials_) {
      Fields& partial = call.partials.emplace_back();
      for (const Field& field : partialFields(adding)) partial[field.name] = all.at(field.name);
    }
    return call;
  }

  const ReferenceCall& first() const { return ranks_.front(); }

  std::vector<Diagnostic> errors;

 private:
  ReferenceCall taken(Entry entry, ReferenceCall call) const {
    const Has has = hasOf(problem_);
    for (const TensorInfo& each : kTensorTable) {
      if (isTaken(each, entry, has) && !each.written(entry)) continue;
      if (std::vector<double>* values = valuesOf(call, each.tensor)) values->clear();
      if (each.tensor == kMask) call.mask.clear();
    }
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
      takeStream(*result, ranks_[i]);
    }
    return true;
  }

  /// Runs forward_apply of all ranks.
  bool apply() {
    for (ReferenceCall& rank : ranks_) {
      const auto result = run(Entry::ForwardApply, argumentsOf(Entry::ForwardApply, rank));
      if (!result) return false;
      rank.saved = rounded(fieldsOf(*result, "saved"), problem_.statistics());
      rank.state = rounded(fieldsOf(*result, "state"), problem_.statistics());
      takeStream(*result, rank);
    }
    return true;
  }

  /// Passes residual_out on to the backward, as it was stored.
  void takeStream(const ReferenceResult& forward, ReferenceCall& rank) const {
    const auto stream = forward.outputs.find(std::string(name(kResidualOut)));
    if (stream == forward.outputs.end()) return;
    rank.residualOut = stream->second.value;
    for (double& value : rank.residualOut) value = round(value, problem_.types().stream);
  }

  const Problem& problem_;
  std::vector<ReferenceCall> ranks_;
  std::vector<Fields> partials_;  ///< of each rank, of both directions
};

}  // namespace

Result<ReferenceCall> argumentsOverRanks(const Problem& problem, std::vector<ReferenceCall> ranks) {
  Step step(problem, std::move(ranks));
  if (!step.before(problem.entry)) return step.errors;
  return step.argumentsOf(problem.entry, step.first());
}

}  // namespace normc::gate
