#include "codegen/targets/halide/generator/Finish.h"

#include "runtime/abi/Isa.h"

using namespace Halide;
using namespace Halide::Internal;

namespace normc::halide {

Target targetOf(const std::string& name) {
  const Isa* isa = findIsa(name);
  if (!isa) throw Refusal("the target '" + name + "'; known: " + isaNames());
  // No call of Halide's runtime: no checks, no allocation, no threads.
  return Target(std::string(isa->halide) + "-no_runtime-no_asserts-no_bounds_query-large_buffers");
}

namespace {

/// Turns write calls into stores, and removes the driver.
class Finish : public IRMutator {
 public:
  Finish(std::string driver, const Memory& memory) : driver_(std::move(driver)), memory_(memory) {
    for (const Binding& b : memory.bindings()) external_.insert(b.name);
    external_.insert("args");
  }

 private:
  using IRMutator::visit;

  Stmt visit(const LetStmt* op) override {
    if (op->name == driver_) return mutate(op->body);  // the address of its buffer
    return IRMutator::visit(op);
  }
  Stmt visit(const ProducerConsumer* op) override {
    return op->name == driver_ ? mutate(op->body) : IRMutator::visit(op);
  }
  Stmt visit(const Store* op) override {
    if (op->name == driver_) return Evaluate::make(0);
    std::vector<std::pair<std::string, Expr>> lets;
    Expr value = op->value;
    while (const Let* let = value.as<Let>()) {
      lets.emplace_back(let->name, mutate(let->value));
      value = let->body;
    }
    const Call* call = value.as<Call>();
    if (const Broadcast* b = value.as<Broadcast>(); b && !call) call = b->value.as<Call>();
    if (!call || call->name != kWriteCall) return IRMutator::visit(op);
    return stores(*call, op->predicate, lets);
  }

  /// Returns the scalar of a broadcast.
  static Expr scalarOf(Expr e) {
    const Broadcast* b = e.as<Broadcast>();
    return b ? b->value : e;
  }

  Stmt stores(const Call& call, const Expr& predicate, std::vector<std::pair<std::string, Expr>>& lets) {
    auto constant = [](Expr e) { return static_cast<size_t>(*as_const_int(scalarOf(std::move(e)))); };
    const size_t count = constant(call.args[0]);
    // All values, then all stores: an output may be the memory of an input.
    std::vector<Stmt> stores;
    for (size_t i = 0; i < count; ++i) {
      const std::string& buffer = memory_.buffers()[constant(call.args[1 + 4 * i])];
      Expr index = call.args[2 + 4 * i], value = call.args[3 + 4 * i];
      // A broadcast write of a scalar is one write.
      if (const Broadcast* b = index.as<Broadcast>()) {
        index = b->value;
        if (const Broadcast* v = value.as<Broadcast>())
          value = v->value;
        else if (value.type().lanes() > 1)
          value = Shuffle::make_extract_element(value, 0);
      }
      const std::string name = unique_name("written");
      lets.emplace_back(name, mutate(value));
      Expr mask = is_const_one(predicate) ? const_true(value.type().lanes()) : predicate;
      if (Expr there = call.args[4 + 4 * i]; !is_const_one(there)) mask = mutate(there);
      stores.push_back(Store::make(buffer, Variable::make(value.type(), name), index, Parameter(), mask,
                                   ModulusRemainder()));
    }
    Stmt body = stores.empty() ? Evaluate::make(0) : Block::make(stores);
    for (size_t i = lets.size(); i-- > 0;) body = LetStmt::make(lets[i].first, lets[i].second, body);
    return body;
  }

  Expr visit(const Call* op) override {
    return op->name == kKeepCall ? mutate(op->args[0]) : IRMutator::visit(op);
  }

  /// Memory of the caller is only aligned as its elements are, whatever the index says.
  Expr visit(const Load* op) override {
    if (!external_.contains(op->name)) return IRMutator::visit(op);
    return Load::make(op->type, op->name, mutate(op->index), op->image, op->param, mutate(op->predicate),
                      ModulusRemainder());
  }

  std::string driver_;
  const Memory& memory_;
  std::set<std::string> external_;
};

}  // namespace

LoweredFunc lowered(Func driver, const Memory& memory, const std::string& symbol, const Target& target) {
  std::vector<Argument> arguments = memory.arguments();
  Module module = Pipeline(driver).compile_to_module(arguments, symbol, target, LinkageType::External);
  LoweredFunc function = module.functions().at(0);
  Stmt body = Finish(driver.name(), memory).mutate(function.body);
  const std::vector<Binding>& bindings = memory.bindings();
  for (size_t i = bindings.size(); i-- > 0;) body = LetStmt::make(bindings[i].name, bindings[i].value, body);
  function.body = body;
  function.args = {LoweredArgument("args", Argument::InputScalar, Handle(), 0, ArgumentEstimates{}),
                   LoweredArgument("task", Argument::InputScalar, Int(64), 0, ArgumentEstimates{})};
  function.linkage = LinkageType::External;
  return function;
}

void compile(const std::vector<LoweredFunc>& functions, const Target& target, OutputFileType kind,
             const std::string& path) {
  Module module("normc", target);
  module.set_any_strict_float(true);
  for (const LoweredFunc& f : functions) module.append(f);
  module.compile({{kind, path}});
}

}  // namespace normc::halide
