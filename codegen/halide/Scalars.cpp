// Scalar code between sweeps: one value for each replica, or for each lane of a column.
#include "codegen/halide/Translation.h"

using namespace Halide;
using namespace Halide::Internal;

namespace normc::halide {

static bool uses(const Op& op, int value) {
  auto in = [&](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  if (in(op.in) || in(op.yield) || op.condition == value || op.window == value) return true;
  return std::any_of(op.body.begin(), op.body.end(), [&](const Op& inner) { return uses(inner, value); });
}

/// Computed from numbers of the task alone: cheaper to write down again than to keep.
bool Translation::isTaskConstant(const Expr& e) const {
  class Search : public IRVisitor {
   public:
    explicit Search(const Kernel& kernel) : kernel_(kernel) {}
    bool varies = false;

   private:
    using IRVisitor::visit;
    void visit(const Load* op) override {
      bool scalar = false;
      for (const Tensor& t : kernel_.tensors)
        if (t.axes.empty() && op->name == t.role + "_" + t.name.substr(t.name.find('.') + 1)) scalar = true;
      varies |= !scalar;
      IRVisitor::visit(op);
    }
    void visit(const Call* op) override {
      varies |= op->call_type == Call::Halide;
      IRVisitor::visit(op);
    }
    const Kernel& kernel_;
  } search(kernel_);
  e.accept(&search);
  return !search.varies;
}

/// One operation that is neither a loop nor counts rows.
void Translation::scalar(const Op& op, Replica& r, std::vector<Write>& writes) {
  Coordinates at = r.at;
  if (op.window >= 0) at.window = r.values[op.window];
  if (op.name == "load")
    r.values.set(op.out[0], m_.load(kernel_.tensor(op.text), at));
  else if (op.name == "store")
    writes.push_back(m_.write(kernel_.tensor(op.text), at, r.values[op.in[0]]));
  else if (op.name == "accumulate")
    writes.push_back(
        m_.write(kernel_.tensor(op.text), at, sum(m_.load(kernel_.tensor(op.text), at), r.values[op.in[0]])));
  else if (op.name == "width")
    r.values.set(op.out[0],
                 cast(m_.statistics(), m_.groupWidth(op.text == "groups" ? "group" : "pre_group")));
  else if (op.name == "scalar")
    r.values.set(op.out[0], m_.scalar(op.text));
  else if (!evaluate(op, r.values, kind_ == Kind::Column && columnLanes_ > 0))
    throw Refusal("the operation '" + op.name + "'");
}

void Translation::settle(Nest& nest, Replicas& replicas, int64_t lanes, std::vector<Write>& writes,
                         const std::vector<Op>& ops, size_t rest) {
  std::vector<int> live;
  for (int value : unsettled_) {
    if (isTaskConstant(replicas[0].values[value])) continue;
    if (std::any_of(ops.begin() + rest, ops.end(), [&](const Op& op) { return uses(op, value); }))
      live.push_back(value);
  }
  unsettled_.clear();
  if (live.empty() && writes.empty()) return;
  Exprs values;
  for (const Replica& r : replicas)
    for (int value : live) values.push_back(r.values[value]);
  Stage stage = define(nest, "scalars", lanes, values, writes);
  for (size_t r = 0, i = 0; r < replicas.size(); ++r)
    for (int value : live) replicas[r].values.set(value, stage.at(nest.here(), v_, i++));
  writes.clear();
}

size_t Translation::scalars(const std::vector<Op>& ops, size_t first, Nest& nest, Replicas& replicas,
                            int64_t lanes) {
  std::vector<Write> writes;
  std::vector<std::string> written;
  size_t i = first;
  for (; i < ops.size() && ops[i].name != "sweep"; ++i) {
    const Op& op = ops[i];
    // All loads of a stage come before its writes.
    const bool reads = op.name == "load" || op.name == "accumulate" || op.name == "fold";
    std::vector<std::string> touched = op.reads;
    if (reads && op.name != "fold") touched.push_back(op.text);
    const bool again = std::any_of(touched.begin(), touched.end(), [&](const std::string& t) {
      return std::find(written.begin(), written.end(), m_.aliasKey(kernel_.tensor(t))) != written.end();
    });
    if (again || (op.name == "fold" && !writes.empty()))
      settle(nest, replicas, lanes, writes, ops, i), written.clear();
    if (op.name == "fold")
      fold(op, nest, replicas, lanes);
    else if (op.name == "probe")
      probe(op, nest, replicas, lanes);
    else if (op.name == "count") {
      for (Replica& r : replicas) r.values.set(op.out[0], count(op, &nest, &r));
    } else {
      for (Replica& r : replicas) scalar(op, r, writes);
      if (op.name == "store" || op.name == "accumulate")
        written.push_back(m_.aliasKey(kernel_.tensor(op.text)));
    }
    unsettled_.insert(unsettled_.end(), op.out.begin(), op.out.end());
  }
  settle(nest, replicas, lanes, writes, ops, i);
  return i;
}

void Translation::fold(const Op& op, Nest& nest, Replicas& replicas, int64_t lanes) {
  const bool chunks = op.text.starts_with("chunk.");
  Expr extent = chunks ? m_.chunks(std::atoi(op.text.c_str() + 6)) : wide(op.integer);
  RDom r(0, cast<int>(extent), "position");
  Exprs init, next;
  for (const Replica& replica : replicas)
    for (int value : op.in) init.push_back(replica.values[value]);
  Stage stage = define(nest, "fold", lanes, init);
  std::vector<Write> writes;
  size_t slot = 0;
  for (Replica& replica : replicas) {
    Replica inner = replica;
    (chunks ? inner.at.chunk : inner.at.window) = wide(Expr(r));
    inner.values.set(op.args[0], wide(Expr(r)));
    for (size_t k = 0; k < op.in.size(); ++k)
      inner.values.set(op.args[1 + k], stage.at(nest.here(), v_, slot + k));
    for (size_t k = 0; k < op.reads.size(); ++k)
      inner.values.set(op.args[1 + op.in.size() + k], m_.load(kernel_.tensor(op.reads[k]), inner.at));
    for (const Op& o : op.body) scalar(o, inner, writes);
    for (int value : op.yield) next.push_back(inner.values[value]);
    slot += op.in.size();
  }
  Exprs old;
  for (size_t i = 0; i < next.size(); ++i) old.push_back(stage.at(nest.here(), v_, i));
  update(stage, nest, v_, allFromOld(next, old), writes, r);
  slot = 0;
  for (Replica& replica : replicas)
    for (int value : op.out) replica.values.set(value, stage.at(nest.here(), v_, slot++));
}

//===-- Counting rows ---------------------------------------------------------------===//

Expr Translation::countValid(const std::string& key, Expr units,
                             const std::function<Coordinates(Expr)>& place, Nest* nest) {
  const Tensor& mask = kernel_.tensor("mask");
  RDom r(0, cast<int>(units), "unit");
  Expr one = cast<int>(m_.load(mask, place(wide(Expr(r)))));
  if (nest) {
    Stage stage = define(*nest, "count", 0, {0});
    update(stage, *nest, 0, {stage.at(nest->here(), 0, 0) + one}, {}, r);
    return stage.at(nest->here(), 0, 0);
  }
  Expr& known = counts_[key];
  if (!known.defined()) {
    Func count("count");
    count() = 0;
    count() += one;
    count.store_in(MemoryType::Stack);
    atRoot_.push_back(count);
    known = count();
  }
  return known;
}

Expr Translation::count(const Op& op, Nest* nest, const Replica* replica) {
  const bool masked = kernel_.hasMask() && op.text != "rows";
  Expr n;
  if (op.text == "all" || op.text == "rows") {
    n = m_.segments() * m_.rows();
    if (masked)
      n = countValid(
          "all", n,
          [&](Expr i) {
            Coordinates at;
            at.segment = kernel_.segmentsAreOne ? wide(0) : i / m_.rows();
            at.row = kernel_.segmentsAreOne ? i : i % m_.rows();
            return at;
          },
          nullptr);
  } else if (op.text == "slab") {
    n = m_.rows();
    if (masked)
      n = countValid(
          "", n,
          [&](Expr i) {
            Coordinates at;
            at.segment = replica->at.segment, at.row = i;
            return at;
          },
          nest);
  } else {
    n = m_.end() - m_.begin();
    if (masked) n = countValid("task", n, [&](Expr i) { return unitCoordinates(m_.begin() + i); }, nullptr);
  }
  n = wide(n);
  if (op.head) n = min(n, wide(op.head));
  return cast(m_.statistics(), n);
}

//===-- Probing -----------------------------------------------------------------------===//

/// A value near the mean. Powers of two of equal numbers add up exactly, so constant
/// data give their value, and differences from it are exact zeros.
void Translation::probe(const Op& op, Nest& nest, Replicas& replicas, int64_t lanes) {
  const Tensor& x = kernel_.tensor(op.text);
  const bool column = kind_ == Kind::Column, overSegments = !slab_->isPer("segment");
  const Expr none = make_zero(m_.statistics());
  Replicas places = replicas;
  for (Replica& r : places) {
    if (overSegments) r.at.segment = wide(0);
    if (!r.at.row.defined()) r.at.row = wide(0);
    if (column) continue;
    if (kernel_.featuresLast)
      r.at.feature = runBegin_;
    else if (slab_->isPer("group"))
      r.at.feature = r.at.group * m_.groupWidth("group");
  }
  if (kernel_.hasMask() && !slab_->isPer("row")) {
    for (size_t i = 0; i < replicas.size(); ++i)
      replicas[i].values.set(op.out[0], maskedProbe(op, nest, places[i], lanes));
    return;
  }
  Expr units = overSegments ? m_.segments() * m_.rows() : m_.rows();
  Expr length = column || !kernel_.featuresLast ? m_.rows()
                : slab_->isPer("group")         ? m_.groupWidth("group")
                                                : m_.features();
  // As often as the condition says: 0 or 1 times.
  auto times = [&](Expr condition) {
    if (!slab_->isPer("row")) condition = condition && units > wide(0);
    return RDom(0, simplify(cast<int>(condition)), "once");
  };
  if (column) {
    Stage stage = define(nest, "probe", lanes, {none});
    auto rowAt = [&](int64_t row) {
      Coordinates at = places[0].at;
      at.row = wide(row);
      return m_.load(x, at);
    };
    update(stage, nest, v_, {rowAt(0)}, {}, times(const_true()));
    Exprs rows;
    for (int64_t i = 0; i < 8; ++i) rows.push_back(rowAt(i));
    update(stage, nest, v_, {middle(rows)}, {}, times(m_.rows() >= wide(8)));
    replicas[0].values.set(op.out[0], stage.at(nest.here(), v_, 0));
    return;
  }
  // Four vectors, which overlap where the run is shorter; of a run shorter than one, its first element.
  const int64_t width = schedule_.vector;
  Stage stage = define(nest, "probe", width, Exprs(replicas.size(), none));
  auto elementAt = [&](const Replica& r, Expr offset) {
    Coordinates at = r.at;
    (kernel_.featuresLast ? at.feature : at.row) = (kernel_.featuresLast ? r.at.feature : wide(0)) + offset;
    return m_.load(x, at);
  };
  Exprs means, first;
  for (size_t i = 0; i < replicas.size(); ++i) {
    Exprs parts;
    for (int64_t k = 0; k < 4; ++k)
      parts.push_back(
          elementAt(places[i], simplify(min(wide(k * width), length - wide(width))) + wide(Expr(v_))));
    means.push_back(product(pairwiseSum(parts), make_const(m_.statistics(), 1.0 / double(4 * width))));
    first.push_back(elementAt(places[i], wide(0)));
  }
  if (width > 1) update(stage, nest, v_, means, {}, times(length >= wide(width)));
  update(stage, nest, 0, first, {}, times(width > 1 ? length < wide(width) : const_true()));
  stage = folded(nest, stage);
  for (size_t i = 0; i < replicas.size(); ++i)
    replicas[i].values.set(op.out[0], stage.across(nest.here(), i));
}

/// The first four valid rows, wherever they are.
Expr Translation::maskedProbe(const Op& op, Nest& nest, const Replica& r, int64_t lanes) {
  const Tensor &x = kernel_.tensor(op.text), &mask = kernel_.tensor("mask");
  const bool overSegments = !slab_->isPer("segment");
  Expr total = overSegments ? m_.segments() * m_.rows() : m_.rows();
  auto place = [&](Expr unit) {
    Coordinates at = r.at;
    at.row = overSegments ? unit % m_.rows() : unit;
    if (overSegments) at.segment = unit / m_.rows();
    return at;
  };
  // How many valid rows were found, and the first four of them.
  Stage search = define(nest, "search", 0, {wide(0), wide(0), wide(0), wide(0), wide(0)});
  RDom unit(0, cast<int>(total), "unit");
  auto found = [&](size_t i) { return search.at(nest.here(), 0, i); };
  Expr valid = m_.load(mask, place(wide(Expr(unit))));
  Exprs next{found(0) + cast<int64_t>(valid)};
  for (int64_t k = 0; k < 4; ++k)
    next.push_back(select(valid && found(0) == wide(k), wide(Expr(unit)), found(1 + k)));
  update(search, nest, 0, allFromOld(next, {found(0), found(1), found(2), found(3), found(4)}), {}, unit);
  Stage stage = define(nest, "probe", lanes, {make_zero(m_.statistics())});
  RDom once(0, simplify(cast<int>(total > wide(0))), "once");
  auto v = [&](size_t i) { return m_.load(x, place(found(i))); };
  Expr best = select(found(0) > wide(3), middle({v(1), v(2), v(3), v(4)}),
                     select(found(0) > wide(0), v(1), make_zero(m_.statistics())));
  update(stage, nest, v_, {best}, {}, once);
  return stage.at(nest.here(), v_, 0);
}

}  // namespace normc::halide
