// A sweep as a reduction: one read serves its writes, its sums and its partials.
#include "codegen/targets/halide/generator/Translation.h"

using namespace Halide;

namespace normc::halide {

Translation::Sweep Translation::sweepOf(const Op& op) const {
  Sweep s{.op = &op, .reads = {}, .writes = {}, .partials = {}, .alongRun = {}};
  for (const std::string& name : op.reads) s.reads.push_back(kernel_.find(name));
  for (const std::string& name : op.writes) s.writes.push_back(kernel_.find(name));
  s.combiners.assign(op.combiners.begin(), op.combiners.begin() + op.out.size());
  for (const std::string& name : op.partials) {
    s.partials.push_back(kernel_.find(name));
    s.alongRun.push_back(!s.partials.back()->has(kernel_.featuresLast ? "feature" : "row"));
    if (s.alongRun.back()) s.combiners.push_back(Combiner::Add);
  }
  s.slots = s.combiners.size();
  return s;
}

Expr Translation::conditioned(const Op& op, const Values& values, Expr count) {
  if (op.condition < 0) return count;
  Expr condition = values[op.condition];
  if (!isTaskConstant(condition)) throw Refusal("a sweep whose condition is not the same for the whole task");
  return count * m_.once("condition_" + std::to_string(op.condition), cast<int64_t>(condition));
}

Translation::Terms Translation::element(const Sweep& s, const Replicas& replicas,
                                        const std::function<Coordinates(const Replica&)>& place,
                                        bool robust) {
  Terms terms;
  std::vector<Exprs> contributions(s.partials.size());
  for (const Replica& replica : replicas) {
    Values values = replica.values;
    const Coordinates at = place(replica);
    for (size_t i = 0; i < s.reads.size(); ++i) values.set(s.op->args[i], m_.load(*s.reads[i], at));
    for (const Op& op : s.op->body)
      if (!evaluate(op, values, /*lanes=*/true)) throw Refusal("the operation '" + op.name + "' in a sweep");
    size_t next = 0;
    for (const Tensor* t : s.writes) terms.writes.push_back(m_.write(*t, at, values[s.op->yield[next++]]));
    std::vector<std::pair<Values, int>>& slots = terms.slots.emplace_back();
    for (size_t k = 0; k < s.op->out.size(); ++k) slots.emplace_back(values, s.op->yield[next++]);
    for (size_t k = 0; k < s.partials.size(); ++k) {
      const int value = s.op->yield[next++];
      if (s.alongRun[k])
        slots.emplace_back(values, value);
      else
        contributions[k].push_back(values[value]);
    }
  }
  for (size_t k = 0; k < s.partials.size(); ++k) {
    if (s.alongRun[k]) continue;
    const Coordinates at = place(replicas[0]);
    Expr total = robust ? product(middle(contributions[k]), Internal::make_const(m_.statistics(), 8))
                        : pairwise(contributions[k]);
    terms.writes.push_back(m_.write(*s.partials[k], at, sum(m_.load(*s.partials[k], at), total)));
  }
  return terms;
}

Exprs Translation::added(const Stage& stage, const Nest& nest, Expr lane, const Terms& terms, bool shared) {
  Exprs sums;
  auto before = [&](size_t i) { return stage.at(nest.here(), lane, i); };
  auto joined = [&](size_t i, Expr to, const std::pair<Values, int>& term) {
    const auto& [values, value] = term;
    return stage.by(i) == Combiner::Add ? values.addedTo(to, value) : maximum(to, values[value]);
  };
  if (!shared) {
    for (const auto& replica : terms.slots)
      for (const auto& term : replica) sums.push_back(joined(sums.size(), before(sums.size()), term));
    return sums;
  }
  for (size_t k = 0; k < terms.slots[0].size(); ++k) {
    Exprs parts;
    for (size_t r = 0; r < terms.slots.size(); r += 2) {
      const auto& [values, value] = terms.slots[r][k];
      if (r + 1 == terms.slots.size())
        parts.push_back(values[value]);
      else
        parts.push_back(joined(k, values[value], terms.slots[r + 1][k]));
    }
    sums.push_back(parts.size() == 1 && terms.slots.size() == 1
                       ? joined(k, before(k), terms.slots[0][k])
                       : combined(stage.by(k), before(k), pairwise(parts, stage.by(k))));
  }
  return sums;
}

static std::vector<Combiner> repeated(const std::vector<Combiner>& combiners, size_t times) {
  std::vector<Combiner> all;
  while (times--) all.insert(all.end(), combiners.begin(), combiners.end());
  return all;
}

/// Walks a run of the contiguous axis for all replicas. Sums are kept by lanes, replica after replica.
Translation::Stage Translation::along(const Sweep& s, Nest& nest, const Replicas& replicas, Expr runBegin,
                                      Expr width, bool robust) {
  const size_t slots = s.slots * replicas.size();
  int64_t lanes = schedule_.vector * schedule_.unroll;
  // With masks the rest is one step of any number of vectors. Element by element it should be short.
  if (auto known = Internal::as_const_int(Internal::simplify(width)))
    while (lanes > schedule_.vector && (schedule_.scalarTail ? *known % lanes != 0 : *known < 2 * lanes))
      lanes /= 2;
  const std::vector<Combiner> combiners = repeated(s.combiners, replicas.size());
  Stage stage = reduction(nest, s.op->writes.empty() ? "sums" : "sweep", lanes, combiners);
  auto terms = [&](Expr offset, const Expr& there) {
    return element(
        s, replicas,
        [&](const Replica& r) {
          Coordinates at = r.at;
          (kernel_.featuresLast ? at.feature : at.row) = runBegin + offset;
          at.there = there;
          return at;
        },
        robust);
  };
  auto pass = [&](Stage& to, Nest& in, Expr first, Expr count, Expr lane, int64_t step) {
    RDom r(0, Internal::simplify(cast<int>(count)), "step");
    Terms t = terms(first + wide(Expr(r)) * wide(step) + wide(lane), {});
    update(to, in, lane, added(to, in, lane, t, false), t.writes, r);
  };
  auto some = [](Expr count) { return !Internal::is_const_zero(Internal::simplify(count)); };

  // `count` blocks of `size` steps each, which begin at zero and are blocks of the next smaller size
  // themselves.
  std::function<void(Stage&, Nest&, Expr, Expr, int64_t)> blocks = [&](Stage& to, Nest& in, Expr first,
                                                                       Expr count, int64_t size) {
    if (!some(count)) return;
    if (size == 1) return pass(to, in, first, count, v_, lanes);
    const RDom block(0, Internal::simplify(cast<int>(count)), "block");
    const Var number("block" + std::to_string(size));
    Nest inner{in.site, {}};
    inner.site.insert(inner.site.begin(), number);
    Stage part = reduction(inner, "part", lanes, combiners);
    blocks(part, inner, first + wide(Expr(number)) * wide(size * lanes), wide(kLongestChain),
           size / kLongestChain);
    Exprs site = in.here(), next;
    site.insert(site.begin(), Expr(block));
    for (size_t i = 0; i < slots; ++i)
      next.push_back(combined(combiners[i], to.at(in.here(), v_, i), part.at(site, v_, i)));
    update(to, in, v_, next, {}, block, part.tokens(site));
    part.func.compute_at(to.func, block);
  };
  const Expr steps = width / wide(lanes);
  const auto known = Internal::as_const_int(Internal::simplify(steps));
  const int64_t most = slots == 0 ? 1 : known ? *known : kLongestChain * kLongestChain + 1;
  Expr done = wide(0);
  // The smallest blocks go first, so that no term is small against the sum that it is added to.
  for (int64_t size = 1;; size *= kLongestChain) {
    const bool last = size * kLongestChain >= most;
    const Expr count = last ? steps / wide(size) : steps / wide(size) % wide(kLongestChain);
    blocks(stage, nest, done, count, size);
    if (last) break;
    done = done + count * wide(size * lanes);
  }
  Expr rest = width % wide(lanes);
  if (!some(rest)) return stage;
  if (schedule_.scalarTail) {
    pass(stage, nest, width - rest, rest, 0, 1);
    return stage;
  }
  // One masked step: the other lanes keep their sums.
  RDom once(0, Internal::simplify(cast<int>(rest > wide(0))), "rest");
  Expr there = wide(Expr(v_)) < rest;
  Terms t = terms(width - rest + wide(Expr(v_)), there);
  Exprs next = added(stage, nest, v_, t, false);
  for (size_t i = 0; i < next.size(); ++i) next[i] = select(there, next[i], stage.at(nest.here(), v_, i));
  update(stage, nest, v_, next, t.writes, once);
  return stage;
}

Expr Translation::runWidth(const Op& slab) const {
  if (!kernel_.featuresLast) return m_.rows();
  if (slab.isPer("pre_group")) return m_.groupWidth("pre_group");
  return slab.isPer("group") ? m_.groupWidth("group") : m_.features();
}

void Translation::lineSweep(const Op& op, Nest& nest, Replicas& replicas) {
  const Sweep s = sweepOf(op);
  Expr width = conditioned(op, replicas[0].values, runWidth(*slab_));
  Stage stage = along(s, nest, replicas, runBegin_, width);
  if (s.slots) stage = folded(nest, stage);
  std::vector<Write> partials;
  for (size_t r = 0; r < replicas.size(); ++r) {
    size_t slot = r * s.slots;
    for (int value : op.out) replicas[r].values.set(value, stage.across(nest.here(), slot++));
    for (size_t k = 0; k < s.partials.size(); ++k) {
      if (!s.alongRun[k]) continue;
      Expr total = stage.across(nest.here(), slot++);
      partials.push_back(
          m_.write(*s.partials[k], replicas[r].at, sum(m_.load(*s.partials[k], replicas[r].at), total)));
    }
  }
  unsettled_.insert(unsettled_.end(), op.out.begin(), op.out.end());
  if (!partials.empty()) define(nest, "partials", 0, {}, partials);
}

/// Walks the runs of a block, some at a time. If a partial belongs to a run, its sum is complete after the
/// run; else all sums stay in their lanes until the last one.
void Translation::blockSweep(const Op& op, const Op& slab, Nest& nest, Replicas& replicas) {
  const Sweep s = sweepOf(op);
  Replica& whole = replicas[0];
  const bool overSegments = !slab.isPer("segment");
  const bool perRun = s.slots > op.out.size();
  Expr count = overSegments ? m_.segments() : kernel_.featuresLast ? m_.rows() : m_.groupWidth("group");
  count = conditioned(op, whole.values, count);
  const int64_t lanes = perRun ? 0 : schedule_.vector;
  const std::vector<Combiner> results(s.combiners.begin(), s.combiners.begin() + op.out.size());
  Stage stage = reduction(nest, "block", lanes, repeated(results, 2));
  auto pass = [&](Expr first, Expr runs, int64_t together) {
    if (Internal::is_const_zero(Internal::simplify(runs))) return;
    Nest inner{nest.site, {}};
    inner.site.insert(inner.site.begin(), Var("run"));
    auto placed = [&](Expr run) {
      Replicas rows(together, whole);
      for (int64_t i = 0; i < together; ++i) {
        Expr at = first + wide(run) * wide(together) + wide(i);
        if (overSegments)
          rows[i].at.segment = at;
        else if (kernel_.featuresLast)
          rows[i].at.row = at;
        else
          rows[i].at.feature = whole.at.group * m_.groupWidth("group") + at;
      }
      return rows;
    };
    Stage run = along(s, inner, placed(inner.site[0]), runBegin_, runWidth(slab));
    RDom r(0, cast<int>(runs), "run");
    Exprs site = nest.here(), next;
    site.insert(site.begin(), r);
    std::vector<Write> partials;
    for (size_t k = 0; k < op.out.size(); ++k) {
      Exprs parts;
      for (int64_t i = 0; i < together; ++i)
        parts.push_back(perRun ? run.across(site, i * s.slots + k) : laneSum(run, site, i * s.slots + k));
      next.push_back(combined(results[k], stage.at(nest.here(), v_, k), pairwise(parts, results[k])));
    }
    next = raised(stage, nest, next, together > 1 || schedule_.rows == 1 ? isLastOfChain(r) : Expr(r) == 0);
    const Replicas rows = placed(Expr(r));
    for (int64_t i = 0; i < together; ++i) {
      size_t slot = i * s.slots + op.out.size();
      for (size_t k = 0; k < s.partials.size(); ++k)
        if (s.alongRun[k])
          partials.push_back(m_.write(*s.partials[k], rows[i].at,
                                      sum(m_.load(*s.partials[k], rows[i].at), run.across(site, slot++))));
    }
    update(stage, nest, v_, next, partials, r, run.tokens(site));
    for (Stage& part : inner.stages) part.func.compute_at(stage.func, r);
  };
  // Rows of a task are neighbours in memory, and so are the partials of features.
  const int64_t together = schedule_.rows;
  Expr steps = count / wide(together);
  if (together > 1) pass(wide(0), steps, together);
  pass(together > 1 ? steps * wide(together) : wide(0), together > 1 ? count % wide(together) : count, 1);
  if (lanes && !op.out.empty()) stage = folded(nest, stage);
  auto level = [&](size_t i) { return lanes ? stage.across(nest.here(), i) : stage.at(nest.here(), v_, i); };
  for (size_t k = 0; k < op.out.size(); ++k)
    whole.values.set(op.out[k], combined(results[k], level(op.out.size() + k), level(k)));
  unsettled_.insert(unsettled_.end(), op.out.begin(), op.out.end());
}

/// Returns a value in the lanes of a block: a stage along runs may have more lanes than the block.
Expr Translation::laneSum(const Stage& run, const Exprs& site, size_t i) const {
  Exprs parts;
  for (int64_t first = 0; first < run.lanes; first += schedule_.vector)
    parts.push_back(run.at(site, v_ + static_cast<int>(first), i));
  return pairwise(parts, run.by(i));
}

/// True if the sweep adds up 16-bit elements about a shift: all terms have the same fraction of a step, which
/// additions to a sum with an outlier would all round the same way. A sum of several has fewer bits.
bool Translation::addsNarrowDifferences(const Sweep& s) {
  const auto isNarrow = [](const Tensor* t) {
    return t->xSized() && (t->type == "f16" || t->type == "bf16");
  };
  const auto isDifference = [&](const Op& each) {
    return each.name == "subf" &&
           std::find(s.op->yield.begin(), s.op->yield.end(), each.out.at(0)) != s.op->yield.end();
  };
  return s.slots && std::any_of(s.reads.begin(), s.reads.end(), isNarrow) &&
         std::any_of(s.op->body.begin(), s.op->body.end(), isDifference);
}

void Translation::columnSweep(const Op& op, const Op& slab, Nest& nest, Replicas& replicas, int64_t lanes) {
  const Sweep s = sweepOf(op);
  Replica& column = replicas[0];
  const bool segments = !slab.isPer("segment");
  int64_t together = std::min<int64_t>(schedule_.rows, lanes > schedule_.vector ? 2 : schedule_.rows);
  if (together < 4 && addsNarrowDifferences(s)) together *= 2;
  Stage stage = reduction(nest, s.writes.empty() ? "sums" : "sweep", lanes, repeated(s.combiners, 2));
  const Expr rows = conditioned(op, column.values, m_.rows()), repeats = segments ? m_.segments() : wide(1);
  // `n` rows at a time from `first` on, of one segment, or of the segment that the outer of two loops is at.
  auto pass = [&](Stage& to, Nest& in, Expr first, Expr segment, const RDom& r, int64_t n) {
    Replicas elements(n, column);
    for (int64_t i = 0; i < n; ++i) {
      elements[i].at.row = first + wide(Expr(r[0])) * wide(n) + wide(i);
      if (segments) elements[i].at.segment = segment;
    }
    Terms t = element(s, elements, [](const Replica& e) { return e.at; }, false);
    Exprs next = added(to, in, v_, t, true);
    for (size_t i = next.size(); i < to.values; ++i) next.push_back(to.at(in.here(), v_, i));
    update(to, in, v_, next, t.writes, r);
  };
  // Blocks of `steps` steps of every segment, each with sums of its own.
  auto blocks = [&](Expr first, Expr count, Expr steps, int64_t n) {
    RDom block({{0, cast<int>(count)}, {0, cast<int>(repeats)}}, "block");
    Nest inner{nest.site, {}};
    const Var b("block"), segment("segment");
    inner.site.insert(inner.site.begin(), {b, segment});
    Stage part = reduction(inner, "part", lanes, s.combiners);
    pass(part, inner, first + wide(Expr(b)) * steps * wide(n), wide(Expr(segment)),
         RDom(0, Internal::simplify(cast<int>(steps)), "row"), n);
    Exprs site = nest.here(), next;
    site.insert(site.begin(), {block[0], block[1]});
    for (size_t i = 0; i < s.slots; ++i)
      next.push_back(combined(s.combiners[i], stage.at(nest.here(), v_, i), part.at(site, v_, i)));
    update(stage, nest, v_,
           raised(stage, nest, next, isLastOfChain(Expr(block[0]) + Expr(block[1]) * cast<int>(count))), {},
           block, part.tokens(site));
    part.func.compute_at(stage.func, block[0]);
  };
  // Steps that fill no block go first: their sum is small.
  auto rest = [&](Expr first, Expr steps, int64_t n) {
    if (Internal::is_const_zero(Internal::simplify(steps))) return;
    if (s.slots && segments) return blocks(first, cast<int64_t>(steps > wide(0)), steps, n);
    RDom some({{0, cast<int>(steps)}, {0, cast<int>(repeats)}}, "row");
    pass(stage, nest, first, wide(Expr(some[1])), some, n);
  };
  const Expr single = together > 1 ? rows % wide(together) : wide(0), steps = rows / wide(together);
  rest(wide(0), single, 1);
  if (!s.slots) {
    rest(single, steps, together);
  } else {
    const Expr few = steps % wide(kLongestChain);
    rest(single, few, together);
    blocks(single + few * wide(together), steps / wide(kLongestChain), wide(kLongestChain), together);
  }
  for (size_t i = 0; i < op.out.size(); ++i)
    column.values.set(op.out[i], combined(s.combiners[i], stage.at(nest.here(), v_, s.slots + i),
                                          stage.at(nest.here(), v_, i)));
  unsettled_.insert(unsettled_.end(), op.out.begin(), op.out.end());
}

Exprs Translation::raised(const Stage& stage, const Nest& nest, Exprs next, const Expr& last) const {
  const size_t count = next.size();
  Exprs old;
  for (size_t i = 0; i < 2 * count; ++i) old.push_back(stage.at(nest.here(), v_, i));
  for (size_t i = 0; i < count; ++i)
    next.push_back(select(last, combined(stage.by(i), old[count + i], next[i]), old[count + i]));
  for (size_t i = 0; i < count; ++i)
    next[i] = select(last, identityOf(stage.by(i), m_.statistics()), next[i]);
  return allFromOld(next, old);
}

Expr Translation::isLastOfChain(const Expr& number) {
  return number % int(kLongestChain) == int(kLongestChain) - 1;
}

}  // namespace normc::halide
