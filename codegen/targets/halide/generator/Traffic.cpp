#include "codegen/targets/halide/generator/Traffic.h"

#include <optional>
#include <set>

using namespace Halide;
using namespace Halide::Internal;

namespace normc::halide {
namespace {

/// Evaluates the integers of a statement, but not the values of elements.
class Walk : public IRVisitor {
 public:
  Walk(std::map<std::string, int64_t> known, std::set<std::string> watched)
      : values_(std::move(known)), watched_(std::move(watched)) {}
  int64_t loaded = 0, stored = 0;

 private:
  using IRVisitor::visit;
  using Number = std::optional<int64_t>;

  static int64_t floorDiv(int64_t a, int64_t b) {
    return b ? a / b - ((a % b != 0) && ((a < 0) != (b < 0))) : 0;
  }

  Number number(const Expr& e) const {
    if (auto c = as_const_int(e)) return c;
    if (auto c = as_const_uint(e)) return static_cast<int64_t>(*c);
    if (const auto* v = e.as<Variable>()) {
      auto at = values_.find(v->name);
      return at == values_.end() ? Number() : at->second;
    }
    if (const auto* c = e.as<Cast>()) return number(c->value);
    if (const auto* r = e.as<Ramp>()) return number(r->base);
    if (const auto* b = e.as<Broadcast>()) return number(b->value);
    if (const auto* op = e.as<Add>()) return both(*op, [](int64_t a, int64_t b) { return a + b; });
    if (const auto* op = e.as<Sub>()) return both(*op, [](int64_t a, int64_t b) { return a - b; });
    if (const auto* op = e.as<Mul>()) return both(*op, [](int64_t a, int64_t b) { return a * b; });
    if (const auto* op = e.as<Div>()) return both(*op, floorDiv);
    if (const auto* op = e.as<Mod>())
      return both(*op, [](int64_t a, int64_t b) { return a - b * floorDiv(a, b); });
    if (const auto* op = e.as<Min>()) return both(*op, [](int64_t a, int64_t b) { return std::min(a, b); });
    if (const auto* op = e.as<Max>()) return both(*op, [](int64_t a, int64_t b) { return std::max(a, b); });
    if (const auto* op = e.as<LT>()) return both(*op, [](int64_t a, int64_t b) -> int64_t { return a < b; });
    if (const auto* op = e.as<LE>()) return both(*op, [](int64_t a, int64_t b) -> int64_t { return a <= b; });
    if (const auto* op = e.as<And>())
      return both(*op, [](int64_t a, int64_t b) -> int64_t { return a && b; });
    if (const auto* op = e.as<Select>()) {
      const Number c = number(op->condition);
      return c ? number(*c ? op->true_value : op->false_value) : Number();
    }
    return {};
  }
  template <typename Op, typename Function>
  Number both(const Op& op, Function f) const {
    const Number a = number(op.a), b = number(op.b);
    return a && b ? Number(f(*a, *b)) : Number();
  }

  /// Returns how many of the lanes a predicate admits: ramp < bound, or all.
  int64_t lanesOf(const Expr& predicate, int64_t lanes) const {
    const Expr* e = &predicate;
    if (const auto* v = e->as<Variable>())
      if (auto at = predicates_.find(v->name); at != predicates_.end()) e = &at->second;
    const auto* less = e->as<LT>();
    if (!less || !less->a.as<Ramp>()) return lanes;
    const Number first = number(less->a), bound = number(less->b);
    return first && bound ? std::clamp<int64_t>(*bound - *first, 0, lanes) : lanes;
  }

  void visit(const LetStmt* op) override {
    op->value.accept(this);
    if (op->value.type().is_bool()) predicates_[op->name] = op->value;
    if (const Number n = number(op->value); n && !values_.contains(op->name)) {
      values_[op->name] = *n;
      op->body.accept(this);
      values_.erase(op->name);
    } else {
      op->body.accept(this);
    }
  }
  void visit(const ProducerConsumer* op) override {
    if (!op->is_producer) return IRVisitor::visit(op);
    std::set<std::pair<std::string, int64_t>> outer;  // a stage loads for itself
    seen_.swap(outer);
    op->body.accept(this);
    seen_.swap(outer);
  }
  void visit(const For* op) override {
    const Number first = number(op->min), count = number(op->extent);
    if (!first || !count)
      throw Refusal("a loop whose number of steps does not follow from the shape: " + op->name);
    std::set<std::pair<std::string, int64_t>> outer;
    seen_.swap(outer);
    for (int64_t i = *first; i < *first + *count; ++i) {
      seen_.clear();
      values_[op->name] = i;
      op->body.accept(this);
    }
    values_.erase(op->name);
    seen_.swap(outer);
  }
  void visit(const IfThenElse* op) override {
    const Number c = number(op->condition);
    if (!c || *c)
      op->then_case.accept(this);
    else if (op->else_case.defined())
      op->else_case.accept(this);
  }
  void visit(const Load* op) override {
    IRVisitor::visit(op);
    if (!watched_.contains(op->name)) return;
    const Number at = number(op->index);
    if (!at || seen_.insert({op->name, *at}).second) loaded += lanesOf(op->predicate, op->type.lanes());
  }
  void visit(const Store* op) override {
    IRVisitor::visit(op);
    if (watched_.contains(op->name)) stored += lanesOf(op->predicate, op->value.type().lanes());
  }

  std::map<std::string, int64_t> values_;
  std::set<std::string> watched_;
  std::map<std::string, Expr> predicates_;          ///< by name
  std::set<std::pair<std::string, int64_t>> seen_;  ///< loads of this step
};

}  // namespace

Traffic trafficOf(const LoweredFunc& function, const Memory& memory, const Shape& shape) {
  const Kernel& kernel = memory.kernel();
  int64_t units = 1;
  for (const std::string& axis : memory.phase().units)
    units *= axis == "segment"   ? shape.segments
             : axis == "row"     ? shape.rows
             : axis == "feature" ? shape.features
                                 : kernel.groups;
  const int64_t pitch = kernel.featuresLast ? shape.features : shape.rows;
  std::map<std::string, int64_t> known{{"segments", shape.segments},
                                       {"rows", shape.rows},
                                       {"features", shape.features},
                                       {"task", 0},
                                       {"begin", 0},
                                       {"end", units},
                                       {"units", units},
                                       {"chunk_units", units}};
  std::set<std::string> watched;
  int64_t at = int64_t(1) << 40;  // an address of its own for every tensor
  for (const Binding& b : memory.bindings()) {
    auto ends = [&](std::string_view suffix) { return b.name.ends_with(suffix); };
    auto before = [&](std::string_view suffix) { return b.name.substr(0, b.name.size() - suffix.size()); };
    if (ends("_row_stride"))
      known[b.name] = pitch;
    else if (ends("_segment_stride"))
      known[b.name] = shape.rows * (kernel.tensor(before("_segment_stride")).xSized() ? shape.features : 1);
    else if (ends("_task_offset") || ends("_task_stride"))
      known[b.name] = 0;
    else if (ends("_distance"))
      known[b.name] = at += int64_t(1) << 40;
    else if (b.name.starts_with("chunks_") || b.name.starts_with("condition_"))
      known[b.name] = 1;
    else if (ends("_width"))
      known[b.name] = shape.features / (b.name.starts_with("pre_group") ? kernel.preGroups : kernel.groups);
    else if (b.name == "head_rows")
      known[b.name] = std::min<int64_t>(8, units);
  }
  for (const Tensor& t : kernel.tensors)
    if (t.xSized()) watched.insert(t.name);
  Walk walk(std::move(known), std::move(watched));
  function.body.accept(&walk);
  const double elements = static_cast<double>(shape.segments * shape.rows * shape.features);
  return {double(walk.loaded) / elements, double(walk.stored) / elements};
}

}  // namespace normc::halide
