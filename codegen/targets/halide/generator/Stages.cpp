#include "codegen/targets/halide/generator/Translation.h"

using namespace Halide;

namespace normc::halide {

Expr Translation::Stage::at(const Exprs& site, Expr lane, size_t i) const {
  Exprs args;
  if (lanes) args.push_back(std::move(lane));
  args.insert(args.end(), site.begin(), site.end());
  return values ? Expr(func(args)[static_cast<int>(i)]) : Expr(func(args));
}

Exprs Translation::Stage::tokens(const Exprs& site) const {
  if (lanes <= 1) return {at(site, 0, values)};
  return {at(site, 0, values), at(site, static_cast<int>(lanes) - 1, values)};
}

Expr Translation::Stage::across(const Exprs& site, size_t i) const {
  Exprs parts;
  for (int lane = 0; lane < lanes; ++lane) parts.push_back(at(site, lane, i));
  while (parts.size() > 1) {
    const size_t half = parts.size() / 2;
    for (size_t k = 0; k < half; ++k) parts[k] = combined(by(i), parts[k], parts[k + half]);
    parts.resize(half);
  }
  return parts[0];
}

/// Combines halves with each other as vectors, down to four lanes.
Translation::Stage Translation::folded(Nest& nest, const Stage& stage) {
  Stage last = stage;
  while (last.lanes > 4) {
    const int half = static_cast<int>(last.lanes / 2);
    Exprs sums;
    for (size_t i = 0; i < last.values; ++i)
      sums.push_back(combined(last.by(i), last.at(nest.here(), v_, i), last.at(nest.here(), v_ + half, i)));
    last = define(nest, "half", half, sums);
    last.combiners = stage.combiners;
  }
  return last;
}

Exprs Translation::before(const Nest& nest) const {
  return nest.stages.empty() ? Exprs() : nest.stages.back().tokens(nest.here());
}

/// Vectorises the lanes by the schedule's width, unrolled, inside the loops of the reduction.
void Translation::spread(Halide::Stage stage, int64_t lanes, const std::vector<RVar>& loops) {
  if (lanes <= 1) {
    stage.unscheduled();
    return;
  }
  const int width = static_cast<int>(std::min(lanes, schedule_.vector));
  std::vector<VarOrRVar> order{v_};
  if (lanes > width) {
    Var outer("vector");
    stage.split(v_, outer, v_, width).unroll(outer);
    order.push_back(outer);
  }
  order.insert(order.end(), loops.begin(), loops.end());
  if (order.size() > 1) stage.reorder(order);
  stage.vectorize(v_);
}

Translation::Stage Translation::define(Nest& nest, const std::string& name, int64_t lanes, Exprs values,
                                       const std::vector<Write>& writes) {
  Stage stage{Func(name), values.size(), lanes};
  std::vector<Var> args;
  if (lanes) args.push_back(v_);
  args.insert(args.end(), nest.site.begin(), nest.site.end());
  values.push_back(writeCall(writes, before(nest)));
  if (values.size() == 1)
    stage.func(args) = values[0];
  else
    stage.func(args) = Tuple(values);
  stage.func.store_in(MemoryType::Stack);
  spread(stage.func, lanes, {});
  nest.stages.push_back(stage);
  return stage;
}

Translation::Stage Translation::reduction(Nest& nest, const std::string& name, int64_t lanes,
                                          std::vector<Combiner> combiners) {
  Exprs identities;
  for (Combiner combiner : combiners) identities.push_back(identityOf(combiner, m_.statistics()));
  Stage stage = define(nest, name, lanes, identities);
  stage.combiners = std::move(combiners);
  return stage;
}

void Translation::update(Stage& stage, Nest& nest, Expr lane, const Exprs& values,
                         const std::vector<Write>& writes, const RDom& domain, const Exprs& after) {
  Exprs args, next = values;
  const bool all = stage.lanes && !is_const(lane);
  if (stage.lanes) args.push_back(lane);
  for (const Var& v : nest.site) args.push_back(v);
  // The token names the domain, also if nothing else depends on it.
  Exprs named = after;
  std::vector<RVar> loops;
  for (int i = 0; i < domain.dimensions(); ++i) {
    loops.push_back(domain[i]);
    named.push_back(domain[i]);
  }
  next.push_back(writeCall(writes, named));
  if (stage.values > 0) noteChain(domain);
  const int number = stage.func.num_update_definitions();
  if (next.size() == 1)
    stage.func(args) = next[0];
  else
    stage.func(args) = Tuple(next);
  if (all)
    spread(stage.func.update(number), stage.lanes, loops);
  else
    stage.func.update(number).unscheduled();
}

void Translation::noteChain(const RDom& domain) {
  int64_t steps = 1;
  for (int i = 0; i < domain.dimensions(); ++i) {
    const Expr most =
        Internal::find_constant_bound(Internal::simplify(domain[i].extent()), Internal::Direction::Upper);
    const auto known = most.defined() ? Internal::as_const_int(most) : std::nullopt;
    if (!known) return;
    steps *= *known;
  }
  longestChain_ = std::max(longestChain_, steps);
}

void Translation::drive(Nest& nest, const Exprs& counts, const std::function<Expr(const Exprs&)>& condition) {
  if (nest.stages.empty()) return;
  for (const Expr& count : counts)
    if (is_const_zero(simplify(count))) return;
  std::vector<Range> ranges;
  for (const Expr& count : counts) ranges.push_back({0, cast<int>(count)});
  RDom domain(ranges, "unit");
  Exprs site, all;
  unsettled_.clear();
  for (int i = 0; i < domain.dimensions(); ++i) site.push_back(domain[i]);
  for (const Stage& stage : nest.stages)
    for (const Expr& token : stage.tokens(site)) all.push_back(token);
  if (condition) domain.where(condition(site));
  driver_() = doneCall(all);
  for (Stage& stage : nest.stages) stage.func.compute_at(driver_, domain[0]);
}

}  // namespace normc::halide
