// Scalar code between sweeps: one value for each replica, or for each lane of a column.
#include "codegen/targets/halide/generator/Translation.h"

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

/// True if the value depends on numbers of the task alone: it is cheaper to repeat than to keep.
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

/// Translates one operation that neither loops nor counts rows.
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
    if (again || (op.name == "fold" && !writes.empty())) {
      settle(nest, replicas, lanes, writes, ops, i);
      written.clear();
    }
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
  const int phase = chunks ? std::atoi(op.text.c_str() + 6) : 0;
  Expr extent = op.inSegment ? m_.chunksOfSegment(phase) : chunks ? m_.chunks(phase) : wide(op.integer);
  RDom r(0, cast<int>(extent), "position");
  Exprs init, next;
  for (const Replica& replica : replicas)
    for (int value : op.in) init.push_back(replica.values[value]);
  Stage stage = define(nest, "fold", lanes, init);
  std::vector<Write> writes;
  size_t slot = 0;
  for (Replica& replica : replicas) {
    Replica inner = replica;
    (chunks ? inner.at.chunk : inner.at.window) =
        op.inSegment ? replica.at.segment * extent + wide(Expr(r)) : wide(Expr(r));
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
    if (masked && replica->valid.defined())
      n = replica->valid;
    else if (masked)
      n = countValid(
          "", n,
          [&](Expr i) {
            Coordinates at;
            at.segment = replica->at.segment;
            at.row = i;
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

}  // namespace normc::halide
