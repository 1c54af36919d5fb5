// Sums over ranks: what a partial holds, and the batch that all partials together describe.
#include <cmath>
#include <limits>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

// A difference of raw sums is computed in f64, whatever the type of the statistics: its error is a few units
// of f64 of these sums, in the unit that magnitudes have.
double cancellation(const Call& call) { return call.problem.statistics() == DType::F64 ? 4 : 0x1p-26; }

Tracked centralMoment(const Call& call, Tracked sum, Tracked squares, double rows) {
  const double mean = sum.value / rows, raw = squares.value / rows;
  const double moment = raw - mean * mean;
  const double value = moment < 0 ? 0 : moment;  // NaN stays NaN
  return flushed({value, value + cancellation(call) * (raw + mean * mean)});
}

}  // namespace

Values totalOfPartials(const Call& call, const std::string& field) {
  std::vector<Sum> sums;
  for (const auto& partial : call.given.partials) {
    const auto found = partial.find(field);
    if (found == partial.end()) return {};
    sums.resize(found->second.size());
    for (size_t i = 0; i < sums.size(); ++i) sums[i].add(exact(found->second[i]));
  }
  Values out;
  for (const Sum& sum : sums) out.push_back(sum.total());
  return out;
}

BatchStatistics statisticsOfPartials(const Call& call) {
  const double rows = std::max(static_cast<double>(call.realRows()), 1.0);
  const Values sum = totalOfPartials(call, "sum"), squares = totalOfPartials(call, "squares");
  BatchStatistics out;
  for (size_t i = 0; i < squares.size(); ++i) {
    const Tracked total = sum.empty() ? Tracked{} : sum[i];
    out.mean.push_back({total.value / rows, std::abs(total.value / rows)});
    out.moment.push_back(call.spec.moment == Moment::Central ? centralMoment(call, total, squares[i], rows)
                                                             : flushed(squares[i] / rows));
  }
  return out;
}

void publishPartial(const Call& call, const std::map<std::string, Values>& fields, Outputs& outputs) {
  for (const Field& field : partialFields(call.problem))
    outputs["partial." + field.name] = quantity(fields.at(field.name));
}

Outputs forwardReduce(const Call& call) {
  const Prepared prepared = prepare(call);
  const BatchStatistics batch = batchStatistics(call, prepared.u);
  const bool central = call.spec.moment == Moment::Central;
  const double rows = static_cast<double>(call.realRows());
  std::vector<Sum> sums(call.features), squares(call.features);
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t) {
    if (!call.counted(row)) return;
    sums[feature].add(prepared.u[i]);
    squares[feature].add(prepared.u[i] * prepared.u[i]);
  });
  std::map<std::string, Values> fields = {{"rows", {exact(rows)}}};
  Outputs result;
  Values moments;
  for (int64_t i = 0; i < call.features; ++i) {
    const Tracked sum = flushed(sums[i].total());
    Tracked square = flushed(squares[i].total());
    if (central && !std::isfinite(sum.value)) square.value = std::numeric_limits<double>::quiet_NaN();
    fields["sum"].push_back(sum);
    fields["squares"].push_back(square);
    const double mean = batch.mean[i].value, moment = batch.moment[i].value;
    moments.push_back({moment, batch.moment[i].magnitude + cancellation(call) * (moment + mean * mean)});
  }
  publishPartial(call, fields, result);
  if (central) result["partial.moment"] = quantity(moments);
  if (call.spec.needsBatchStatistics()) return result;
  const Applied applied = constantStatistics(call);
  publishOutputs(call, prepared, applied, result);
  publishSaved(call, batch, applied, 0, result);
  return result;
}

Outputs commit(const Call& call) {
  const BatchStatistics batch = statisticsOfPartials(call);
  const Applied applied = constantStatistics(call);
  Changed changed;
  if (!call.emptyBatch()) changed = stateAfterForward(call, batch, applied, call.stateStep() + 1);
  if (call.spec.backward == Backward::Approximate) {
    const double rows = static_cast<double>(call.realRows());
    const Values gradient = totalOfPartials(call, "gradient_x"), energy = totalOfPartials(call, "energy");
    const Values gradientRows = totalOfPartials(call, "gradient_rows");
    const double summed = std::max(gradientRows.empty() ? rows : gradientRows[0].value, 1.0);
    Values lambda, gamma;
    for (size_t i = 0; i < gradient.size(); ++i) {
      lambda.push_back(flushed(gradient[i] / summed));
      gamma.push_back(energy.empty() ? applied.s[i] * applied.s[i] * batch.moment[i]
                                     : flushed(energy[i] / summed));
    }
    changed.merge(correct(call, lambda, gamma).state);
  }
  Outputs result;
  publishState(call, changed, result);
  return result;
}

}  // namespace normc::reference
