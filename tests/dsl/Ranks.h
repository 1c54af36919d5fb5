// A step of training whose batch is divided between ranks, by the reference or by kernels: `RunEntry`
// computes one entry. The sums are exchanged as an all-reduce or an all-gather does.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/Reference.h"

namespace normc {

using Outputs = std::map<std::string, std::vector<double>>;
using RunEntry = std::function<Outputs(Entry, const ReferenceCall&)>;

enum class Exchange { Sum, Gather };

/// Returns the outputs of forward and backward of all rows.
inline Outputs stepOfOne(const ReferenceCall& whole, const RunEntry& run);
/// Returns the same of ranks with so many rows each, or segments if there are several: tensors of rows one
/// behind another, the sums of gradients that ranks share, and the state of the first rank.
inline Outputs stepOverRanks(const Problem&, const ReferenceCall& whole, const std::vector<int64_t>& counts,
                             Exchange, const RunEntry&);

namespace ranks {

inline Outputs fieldsOf(const Outputs& outputs, const std::string& prefix) {
  Outputs fields;
  for (const auto& [name, values] : outputs)
    if (name.starts_with(prefix + ".") && name != "partial.moment")
      fields[name.substr(prefix.size() + 1)] = values;
  return fields;
}

/// True if each rank has elements of its own, in the order of the rows.
inline bool isDivided(const Problem& problem, Tensor tensor, const Extents& whole) {
  const TensorShape shape = shapeOf(tensor, hasOf(problem));
  return shape == TensorShape::Elements || shape == TensorShape::PerPair ||
         (shape == TensorShape::PerSegment && whole.segments > 1);
}

/// The inputs that the entry takes.
inline ReferenceCall taken(const Problem& problem, Entry entry, ReferenceCall call) {
  const auto takes = [&](const TensorInfo& each) {
    return isTaken(each, entry, hasOf(problem)) && !each.written(entry);
  };
  for (const TensorInfo& each : kTensorTable)
    if (std::vector<double>* values = valuesOf(call, each.tensor); values && !takes(each)) values->clear();
  if (!takes(infoOf(kMask))) call.mask.clear();
  return call;
}

inline std::vector<ReferenceCall> divided(const Problem& problem, const ReferenceCall& whole,
                                          const std::vector<int64_t>& counts) {
  std::vector<ReferenceCall> parts;
  const bool segments = whole.extents.segments > 1;
  int64_t row = 0;
  for (const int64_t count : counts) {
    ReferenceCall& part = parts.emplace_back(whole);
    (segments ? part.extents.segments : part.extents.rows) = count;
    const int64_t end = row + part.extents.totalRows(), all = whole.extents.totalRows();
    for (const TensorInfo& each : kTensorTable) {
      const std::vector<double>* values = valuesOf(whole, each.tensor);
      if (!values || values->empty() || !isDivided(problem, each.tensor, whole.extents)) continue;
      const int64_t size = static_cast<int64_t>(values->size());
      valuesOf(part, each.tensor)
          ->assign(values->begin() + size * row / all, values->begin() + size * end / all);
    }
    if (!whole.mask.empty()) part.mask.assign(whole.mask.begin() + row, whole.mask.begin() + end);
    row = end;
  }
  return parts;
}

inline std::vector<Outputs> exchanged(std::vector<Outputs> partials, Exchange exchange) {
  if (exchange == Exchange::Gather) return partials;
  Outputs sum = partials[0];
  for (size_t rank = 1; rank < partials.size(); ++rank)
    for (auto& [field, values] : sum)
      for (size_t i = 0; i < values.size(); ++i) values[i] += partials[rank].at(field)[i];
  return {sum};
}

}  // namespace ranks

inline Outputs stepOfOne(const ReferenceCall& whole, const RunEntry& run) {
  ReferenceCall call = whole;
  call.dy.clear(), call.dresidualOut.clear();
  Outputs result = run(Entry::Forward, call);
  call.saved = ranks::fieldsOf(result, "saved");
  call.dy = whole.dy, call.dresidualOut = whole.dresidualOut;
  if (result.contains("residual_out")) call.residualOut = result.at("residual_out");
  if (!call.state.empty()) call.state = ranks::fieldsOf(result, "state");
  for (const auto& [name, values] : run(Entry::Backward, call)) result[name] = values;
  return result;
}

inline Outputs stepOverRanks(const Problem& problem, const ReferenceCall& whole,
                             const std::vector<int64_t>& counts, Exchange exchange, const RunEntry& run) {
  std::vector<ReferenceCall> parts = ranks::divided(problem, whole, counts);
  std::vector<Outputs> partials(parts.size()), ofRanks(parts.size());
  const auto all = [&](Entry entry, const std::vector<Outputs>& added) {
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      ReferenceCall call = ranks::taken(problem, entry, parts[rank]);
      call.partials = added;
      const Outputs outputs = run(entry, call);
      if (writesPartial(entry)) partials[rank].merge(ranks::fieldsOf(outputs, "partial"));
      if (writesSaved(entry)) parts[rank].saved = ranks::fieldsOf(outputs, "saved");
      if (writesState(entry) && !parts[rank].state.empty())
        parts[rank].state = ranks::fieldsOf(outputs, "state");
      if (outputs.contains("residual_out")) parts[rank].residualOut = outputs.at("residual_out");
      for (const auto& [name, values] : outputs) ofRanks[rank][name] = values;
    }
  };
  /// The fields of one entry, exchanged.
  const auto sums = [&](Entry entry) {
    Problem adding = problem;
    adding.entry = entry;
    std::vector<Outputs> own(partials.size());
    for (size_t rank = 0; rank < own.size(); ++rank)
      for (const Field& field : partialFields(adding)) own[rank][field.name] = partials[rank].at(field.name);
    return ranks::exchanged(own, exchange);
  };
  all(Entry::ForwardReduce, {});
  if (problem.spec->needsBatchStatistics()) all(Entry::ForwardApply, sums(Entry::ForwardApply));
  all(Entry::BackwardReduce, {});
  if (problem.spec->needsBatchStatistics())
    all(Entry::BackwardApply, sums(Entry::BackwardApply));
  else
    all(Entry::Commit, sums(Entry::Commit));

  Outputs result = ofRanks[0];
  for (auto& [name, values] : result) {
    const std::optional<Tensor> tensor = tensorNamed(name);
    for (size_t rank = 1; tensor && rank < ofRanks.size(); ++rank) {
      const std::vector<double>& more = ofRanks[rank].at(name);
      if (ranks::isDivided(problem, *tensor, whole.extents)) {
        values.insert(values.end(), more.begin(), more.end());
      } else {
        for (size_t i = 0; i < values.size(); ++i) values[i] += more[i];
      }
    }
  }
  return result;
}

}  // namespace normc
