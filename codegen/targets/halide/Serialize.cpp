#include "codegen/targets/halide/Serialize.h"

#include <cmath>

#include "codegen/targets/halide/generator/Protocol.h"
#include "llvm/Support/JSON.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen::halide {
namespace {

std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

class Writer {
 public:
  explicit Writer(llvm::json::OStream& json) : j_(json) {}

  void kernel(KernelOp k) {
    j_.attribute("symbol", k.getSymName());
    j_.attribute("problem", k.getProblem());
    j_.attribute("layout", StringRef(name(k.getLayout())));
    j_.attribute("statistics", textOf(k.getStatistics()));
    j_.attribute("segments_are_one", k.getSegmentsAreOne());
    j_.attribute("groups", k.getGroups());
    j_.attribute("pre_groups", k.getPreGroups());
    if (auto features = k.getFeatures()) j_.attribute("features", *features);
    j_.attributeArray("numbers", [&] {
      for (StringRef s : k.getNumbers().getAsValueRange<StringAttr>()) j_.value(s);
    });
    j_.attributeArray("tensors", [&] {
      for (auto t : k.getOps<TensorOp>()) j_.object([&] { tensor(t); });
    });
    j_.attributeArray("phases", [&] {
      for (auto phase : k.getOps<PhaseOp>())
        j_.object([&] {
          values_.clear();
          j_.attribute("name", phase.getSymName());
          axes("units", phase.getUnits());
          if (phase.getBySegment()) j_.attribute("by_segment", true);
          body(phase.getBody().front());
        });
    });
  }

 private:
  void tensor(TensorOp t) {
    j_.attribute("name", t.getSymName());
    j_.attribute("type", textOf(t.getType()));
    axes("axes", t.getAxes(), t.chunkPhase());
    j_.attribute("role", StringRef(name(t.getRole())));
    j_.attribute("access", StringRef(name(t.getAccess())));
    j_.attribute("window", int64_t(t.getWindow()));
  }

  /// Returns the word of an axis; of chunks `chunk.N`, with the number of their phase.
  static std::string word(Axis axis, std::optional<int64_t> chunkOf) {
    return stringifyAxis(axis).str() + (axis == Axis::Chunk ? "." + std::to_string(*chunkOf) : "");
  }
  void axes(StringRef key, ArrayRef<Axis> list, std::optional<int64_t> chunkOf = {}) {
    j_.attributeArray(key, [&] {
      for (Axis axis : list) j_.value(word(axis, chunkOf));
    });
  }
  void symbols(StringRef key, ArrayAttr list) {
    j_.attributeArray(key, [&] {
      for (auto s : list.getAsRange<FlatSymbolRefAttr>()) j_.value(s.getValue());
    });
  }
  int64_t number(Value v) { return values_.try_emplace(v, values_.size()).first->second; }
  void values(StringRef key, ValueRange list) {
    if (list.empty()) return;
    j_.attributeArray(key, [&] {
      for (Value v : list) j_.value(number(v));
    });
  }

  void body(Block& block) {
    j_.attributeArray("body", [&] {
      for (Operation& op : block)
        if (!isa<YieldOp>(op)) j_.object([&] { operation(op); });
    });
    if (block.mightHaveTerminator())
      if (auto yield = dyn_cast<YieldOp>(block.getTerminator())) values("yield", yield.getValues());
  }

  void region(Operation& op) {
    Block& block = op.getRegion(0).front();
    values("args", block.getArguments());
    body(block);
  }

  void operation(Operation& op) {
    j_.attribute("op", op.getName().stripDialect());
    if (auto slab = dyn_cast<SlabOp>(op)) {
      j_.attribute("kind", stringifySlabKind(slab.getKind()));
      axes("per", slab.getPer());
      if (auto head = slab.getHead()) j_.attribute("head", *head);
      body(slab.getBody().front());
      return;
    }
    if (auto sweep = dyn_cast<SweepOp>(op)) {
      if (sweep.getCondition()) j_.attribute("condition", number(sweep.getCondition()));
      symbols("reads", sweep.getReads());
      symbols("writes", sweep.getWrites());
      symbols("partials", sweep.getPartials());
      if (auto combiners = sweep.getCombiners())
        j_.attributeArray("combiners", [&] {
          for (Combiner combiner : *combiners) j_.value(stringifyCombiner(combiner));
        });
      region(op);
    } else if (auto fold = dyn_cast<FoldOp>(op)) {
      j_.attribute("text", word(fold.getAxis(), fold.getChunkOf()));
      if (fold.getOfSegment()) j_.attribute("in_segment", true);
      j_.attribute("integer", int64_t(fold.getExtent().value_or(0)));
      symbols("reads", fold.getReads());
      values("in", fold.getInit());
      region(op);
    } else if (auto probe = dyn_cast<ProbeOp>(op)) {
      symbols("reads", probe.getReads());
      if (!probe.getBody().empty()) region(op);
    } else if (auto load = dyn_cast<LoadOp>(op)) {
      j_.attribute("text", load.getTensor());
      if (load.getWindow()) j_.attribute("window", number(load.getWindow()));
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      j_.attribute("text", store.getTensor());
      if (store.getWindow()) j_.attribute("window", number(store.getWindow()));
      values("in", ValueRange(store.getValue()));
    } else {
      values("in", op.getOperands());
      scalar(op);
    }
    if (op.getNumResults()) j_.attribute("type", textOf(op.getResult(0).getType()));
    values("out", op.getResults());
  }

  void scalar(Operation& op) {
    if (auto add = dyn_cast<AccumulateOp>(op))
      j_.attribute("text", add.getTensor());
    else if (auto width = dyn_cast<WidthOp>(op))
      j_.attribute("text", stringifyWidthOf(width.getGroups()));
    else if (auto number = dyn_cast<ScalarOp>(op))
      j_.attribute("text", number.getName());
    else if (auto compare = dyn_cast<arith::CmpFOp>(op))
      j_.attribute("text", arith::stringifyCmpFPredicate(compare.getPredicate()));
    else if (auto compare = dyn_cast<arith::CmpIOp>(op))
      j_.attribute("text", arith::stringifyCmpIPredicate(compare.getPredicate()));
    else if (auto count = dyn_cast<CountOp>(op)) {
      j_.attribute("text", stringifyCountScope(count.getScope()));
      if (auto head = count.getHead()) j_.attribute("head", *head);
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto f = dyn_cast<FloatAttr>(constant.getValue()))
        floating(f.getValueAsDouble());
      else
        j_.attribute("integer", cast<IntegerAttr>(constant.getValue()).getInt());
    }
    if (auto fast = op.getAttrOfType<arith::FastMathFlagsAttr>("fastmath"))
      if (arith::bitEnumContainsAll(fast.getValue(), arith::FastMathFlags::contract))
        j_.attribute("contract", true);
  }

  /// JSON has no infinities.
  void floating(double v) {
    if (std::isfinite(v))
      j_.attribute("number", v);
    else
      j_.attribute("number", std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
  }

  llvm::json::OStream& j_;
  llvm::DenseMap<Value, int64_t> values_;
};

}  // namespace

std::string requestOf(KernelOp kernel, const Schedule& s, const cpu::Isa& isa, llvm::StringRef emit,
                      llvm::ArrayRef<int64_t> count) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out);
  json.object([&] {
    json.attribute("schema", normc::halide::kSchema);
    json.attribute("target", isa.name);
    json.attribute("emit", emit);
    json.attributeObject("schedule", [&] {
      json.attribute("vector", s.vector);
      json.attribute("rows", s.rows);
      json.attribute("unroll", s.unroll);
      json.attribute("tile", s.tile);
      json.attribute("columns", s.columns);
      json.attribute("scalar_tail", s.scalarTail);
    });
    if (!count.empty())
      json.attributeArray("count", [&] {
        for (int64_t n : count) json.value(n);
      });
    json.attributeObject("kernel", [&] { Writer(json).kernel(kernel); });
  });
  return text;
}

}  // namespace normc::codegen::halide
