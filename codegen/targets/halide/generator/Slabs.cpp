// The units of a slab, and the loops that walk them.
#include "codegen/targets/halide/generator/Translation.h"

using namespace Halide;

namespace normc::halide {

/// Returns 1 if the count is positive, else 0.
static Expr some(const Expr& count) { return select(count > wide(0), wide(1), wide(0)); }

Translation::Translation(Memory& memory, const Schedule& schedule)
    : m_(memory), kernel_(memory.kernel()), schedule_(schedule), driver_("phase") {}

Func Translation::run() {
  driver_() = 0;
  zeroPartials();
  Values shared;
  const std::vector<Op>& ops = m_.phase().body;
  for (size_t i = 0; i < ops.size();) {
    if (ops[i].name == "slab") {
      slab(ops[i++], shared);
      continue;
    }
    // Scalar code of the whole task. Its values are computed again where they are used.
    Nest nest{{Var("once")}, {}};
    Replicas one(1);
    one[0].at.chunk = m_.task();
    one[0].values = shared;
    kind_ = Kind::Stream;
    std::vector<Write> writes;
    for (; i < ops.size() && ops[i].name != "slab"; ++i) {
      if (ops[i].name == "count")
        one[0].values.set(ops[i].out[0], count(ops[i], nullptr, nullptr));
      else
        scalar(ops[i], one[0], writes);
    }
    if (!writes.empty()) {
      define(nest, "scalars", 0, {}, writes);
      drive(nest, {wide(1)});
    }
    shared = one[0].values;
  }
  for (Func& f : atRoot_) f.compute_root();
  return driver_;
}

Coordinates Translation::unitCoordinates(Expr unit) {
  Coordinates at;
  at.segment = wide(0);
  at.chunk = m_.task();
  const std::vector<std::string>& axes = m_.phase().units;
  if (axes.size() == 2) {
    Expr extent = axes[1] == "row" ? m_.rows() : axes[1] == "feature" ? m_.features() : m_.groups("group");
    if (!kernel_.segmentsAreOne) at.segment = unit / extent;
    Expr second = kernel_.segmentsAreOne ? unit : unit - at.segment * extent;
    (axes[1] == "row" ? at.row : axes[1] == "feature" ? at.feature : at.group) = second;
  } else if (axes.size() == 1) {
    (axes[0] == "segment" ? at.segment : at.feature) = unit;
  }
  return at;
}

/// Clears every partial of the task, also if the task has no row.
void Translation::zeroPartials() {
  std::vector<const Tensor*> partials;
  std::function<void(const std::vector<Op>&)> collect = [&](const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      std::vector<std::string> names = op.partials;
      if (op.name == "accumulate") names.push_back(op.text);
      for (const std::string& name : names)
        if (const Tensor* t = kernel_.find(name);
            std::find(partials.begin(), partials.end(), t) == partials.end())
          partials.push_back(t);
      collect(op.body);
    }
  };
  collect(m_.phase().body);
  if (partials.empty()) return;
  const int64_t lanes = schedule_.vector;
  auto pass = [&](int64_t width, Expr first, Expr steps, Expr there = {}) {
    Nest nest{{Var("step")}, {}};
    std::vector<Write> writes;
    Coordinates at;
    at.there = std::move(there);
    at.feature = wide(first) + wide(nest.site[0]) * wide(width);
    if (width > 1) at.feature = at.feature + wide(Expr(v_));
    for (const Tensor* t : partials) writes.push_back(m_.write(*t, at, Internal::make_zero(m_.statistics())));
    define(nest, "zeros", width > 1 ? width : 0, {}, writes);
    drive(nest, {steps});
  };
  if (lanes == 1) return pass(1, wide(0), m_.features());
  Expr whole = m_.features() / wide(lanes), rest = m_.features() % wide(lanes);
  pass(lanes, wide(0), whole);
  if (schedule_.scalarTail) return pass(1, whole * wide(lanes), rest);
  pass(lanes, whole * wide(lanes), some(rest), wide(Expr(v_)) < rest);
}

void Translation::slab(const Op& s, const Values& shared) {
  slab_ = &s;
  kind_ = s.kind;
  switch (kind_) {
    case Kind::Run:
      return lines(s, shared);
    case Kind::Block:
      return blocks(s, shared);
    case Kind::Column:
      return columns(s, shared);
    case Kind::Stream:
      return stream(s, shared);
  }
}

/// Returns the units of one step. If neighbours add to the same partial, it is one.
int64_t Translation::rowsTogether(const Op& s) const {
  if (kind_ == Kind::Stream) return s.head ? s.head : schedule_.rows;
  if (kind_ != Kind::Run) return 1;
  for (const Op& op : s.body) {
    if (op.name == "accumulate") return 1;
    if (op.name == "sweep")
      for (bool run : sweepOf(op).alongRun)
        if (run) return 1;
  }
  return schedule_.rows;
}

Translation::Units Translation::unitsOf(const Op& s) {
  Expr begin = m_.begin(), end = m_.end();
  if (!s.head) return {begin, end - begin, end, false};
  if (kernel_.hasMask()) return {begin, end - begin, searchHead(s.head), true};
  return {begin, m_.once("head_rows", min(wide(s.head), end - begin)), {}, false};
}

/// Returns one past the `head`-th valid row of the task, or its end.
Expr Translation::searchHead(int64_t head) {
  Expr begin = m_.begin(), end = m_.end();
  const Tensor& mask = kernel_.tensor("mask");
  // Position and number of valid rows so far. Neither changes once there are enough.
  Func search("head");
  RDom r(0, cast<int>(end - begin), "unit");
  search() = Tuple(begin, wide(0));
  Expr valid = m_.load(mask, unitCoordinates(headUnit(begin + wide(Expr(r)), head))),
       more = Expr(search()[1]) < wide(head);
  Exprs next{select(more, search()[0] + wide(1), search()[0]),
             select(more && valid, search()[1] + wide(1), search()[1])};
  search() = Tuple(allFromOld(next, {search()[0], search()[1]}));
  search.store_in(MemoryType::Stack);
  atRoot_.push_back(search);
  return search()[0];
}

//===-- Lines and streams -----------------------------------------------------------===//

void Translation::lines(const Op& s, const Values& shared) {
  const Units units = unitsOf(s);
  const std::string axis = s.isPer("pre_group") ? "pre_group" : "group";
  const int64_t groups = !kernel_.featuresLast ? 1 : axis == "group" ? kernel_.groups : kernel_.preGroups;
  auto pass = [&](Expr first, Expr steps, int64_t together) {
    Nest nest{{Var("group"), Var("rows")}, {}};
    Expr group = wide(Expr(nest.site[0])), unit = first + wide(Expr(nest.site[1])) * wide(together);
    runBegin_ = kernel_.featuresLast && groups > 1 ? group * m_.groupWidth(axis) : wide(0);
    Replicas replicas(together);
    for (int64_t r = 0; r < together; ++r) {
      replicas[r].at = unitCoordinates(unit + wide(r));
      replicas[r].at.group = groups > 1 ? group : wide(0);
      replicas[r].values = shared;
    }
    body(s, nest, replicas);
    if (!units.searched) return drive(nest, {wide(groups), steps});
    drive(nest, {wide(groups), steps}, [&](const Exprs& site) { return first + wide(site[1]) < units.end; });
  };
  const int64_t together = units.searched ? 1 : rowsTogether(s);
  if (together == 1) return pass(units.begin, units.count, 1);
  Expr steps = units.count / wide(together);
  pass(units.begin, steps, together);
  pass(units.begin + steps * wide(together), units.count - steps * wide(together), 1);
}

void Translation::stream(const Op& s, const Values& shared) {
  const Units units = unitsOf(s);
  for (const Op& op : s.body) {
    if (op.name != "sweep") throw Refusal("'" + op.name + "' in a slab without a statistic");
    const Sweep sweep = sweepOf(op);
    auto pass = [&](Expr first, Expr steps, int64_t together, Expr column, Expr columns, Expr width) {
      Nest nest{{Var("rows"), Var("columns")}, {}};
      Expr unit = first + wide(Expr(nest.site[0])) * wide(together);
      Replicas replicas(together);
      for (int64_t r = 0; r < together; ++r) {
        replicas[r].at = unitCoordinates(s.head ? headUnit(unit + wide(r), s.head) : unit + wide(r));
        replicas[r].values = shared;
      }
      along(sweep, nest, replicas, column + wide(Expr(nest.site[1])) * width, width,
            together == s.head && together == 8);
      if (!units.searched) return drive(nest, {steps, columns});
      drive(nest, {steps, columns}, [&](const Exprs& site) { return first + wide(site[0]) < units.end; });
    };
    auto rows = [&](Expr column, Expr columns, Expr width) {
      const int64_t together = units.searched ? 1 : rowsTogether(s);
      Expr count = conditioned(op, shared, units.count);
      if (together == 1) return pass(units.begin, count, 1, column, columns, width);
      Expr steps = count / wide(together);
      pass(units.begin, steps, together, column, columns, width);
      pass(units.begin + steps * wide(together), count - steps * wide(together), 1, column, columns, width);
    };
    // A tile of features at a time, so that their partials stay in the first-level cache.
    const int64_t tile = schedule_.columns;
    if (sweep.partials.empty() || (kernel_.features && *kernel_.features <= tile)) {
      rows(wide(0), wide(1), m_.features());
    } else {
      Expr whole = m_.features() / wide(tile), rest = m_.features() % wide(tile);
      rows(wide(0), whole, wide(tile));
      if (!is_const_zero(simplify(rest))) rows(whole * wide(tile), wide(1), rest);
    }
  }
}

//===-- Blocks ------------------------------------------------------------------------===//

void Translation::blocks(const Op& s, const Values& shared) {
  const Units units = unitsOf(s);
  Nest nest{{Var("unit")}, {}};
  Replicas one(1);
  one[0].at = unitCoordinates(units.begin + wide(Expr(nest.site[0])));
  one[0].values = shared;
  const bool grouped = s.isPer("group") && kernel_.featuresLast;
  runBegin_ = grouped ? one[0].at.group * m_.groupWidth("group") : wide(0);
  body(s, nest, one);
  drive(nest, {units.count});
}

//===-- Columns -----------------------------------------------------------------------===//

void Translation::columns(const Op& s, const Values& shared) {
  Expr begin = m_.begin(), end = m_.end();
  bool sweeps = false;
  for (const Op& op : s.body) sweeps |= op.name == "sweep";
  const bool perSegment = s.isPer("segment"), own = m_.phase().units == std::vector<std::string>{"feature"};
  Expr first = own ? begin : wide(0), last = own ? end : m_.features();
  auto pass = [&](Expr from, Expr steps, int64_t lanes, Expr there = {}) {
    Nest nest{{Var("tile"), Var("unit")}, {}};
    Replicas one(1);
    one[0].at.chunk = m_.task();
    if (perSegment) one[0].at.segment = begin + wide(Expr(nest.site[1]));
    one[0].at.feature =
        from + wide(Expr(nest.site[0])) * wide(lanes) + (lanes > 1 ? wide(Expr(v_)) : wide(0));
    one[0].at.there = std::move(there);
    one[0].values = shared;
    columnLanes_ = lanes > 1 ? lanes : 0;
    body(s, nest, one);
    drive(nest, {steps, perSegment ? end - begin : wide(1)});
  };
  const int64_t vector = schedule_.vector, tile = sweeps ? vector * schedule_.tile : vector;
  Expr size = last - first, tiles = size / wide(tile);
  if (tile > 1)
    pass(first, tiles, tile);
  else
    tiles = wide(0);
  Expr done = first + tiles * wide(tile);
  // Only the last task has a rest, and none has one if the tiles divide a known number of features.
  if (tile > 1 && kernel_.features && *kernel_.features % tile == 0) return;
  const int64_t rest = kernel_.features ? *kernel_.features % tile : 0;
  if (!schedule_.scalarTail && vector > 1) {
    if (tile > vector && (!kernel_.features || rest >= vector)) {
      Expr vectors = (last - done) / wide(vector);
      pass(done, vectors, vector);
      done = done + vectors * wide(vector);
    }
    if (kernel_.features && rest % vector == 0) return;
    // A masked vector.
    Expr left = last - done;
    return pass(done, some(left), vector, wide(Expr(v_)) < left);
  }
  // A known number of features has a known rest: a vector of each power of two in it.
  for (int64_t lanes = vector; lanes > 1; lanes /= 2) {
    if (lanes == tile || (lanes < vector && !(rest & lanes))) continue;
    Expr vectors = (last - done) / wide(lanes);
    pass(done, vectors, lanes);
    done = done + vectors * wide(lanes);
    if (kernel_.features && rest % lanes == 0) return;
  }
  pass(done, last - done, 1);
}

void Translation::body(const Op& slab, Nest& nest, Replicas& replicas) {
  const int64_t lanes = kind_ == Kind::Column ? columnLanes_ : 0;
  for (size_t i = 0; i < slab.body.size();) {
    const Op& op = slab.body[i];
    if (op.name != "sweep") {
      i = scalars(slab.body, i, nest, replicas, lanes);
      continue;
    }
    if (kind_ == Kind::Run)
      lineSweep(op, nest, replicas);
    else if (kind_ == Kind::Block)
      blockSweep(op, slab, nest, replicas);
    else
      columnSweep(op, slab, nest, replicas, lanes);
    ++i;
  }
}

}  // namespace normc::halide
