#include "codegen/targets/cpu/lower/KeptElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "runtime/abi/MemoryUnits.h"

using namespace mlir;

namespace normc::codegen {

/// The most values of an element: each is a store and a load.
static constexpr size_t kMostValues = 3;
/// The most memory. More does not stay in the second-level cache beside the tensors.
static constexpr int64_t kMostBytes = 128 << 10;

static bool takesLong(Operation* op) {
  return isa<math::ExpOp, math::LogOp>(op) || (isa<arith::DivFOp>(op) && !op->hasAttr("normc.products"));
}

namespace {

/// The values of the last sweep that the first one could compute, and those that take long.
struct Facts {
  Facts(SweepOp first, SweepOp last) : first(first), body(last.getBody().front()) {
    for (auto [argument, name] : llvm::zip(body.getArguments(), last.getReads()))
      if (llvm::is_contained(first.getReads(), name)) ready.insert(argument);
    for (Operation& op : body.without_terminator()) {
      if (llvm::all_of(op.getOperands(), [&](Value v) { return isReady(v); }))
        ready.insert_range(op.getResults());
      if (takesLong(&op) || costlyOperands(&op)) costly.insert_range(op.getResults());
    }
  }
  bool isReady(Value v) const {
    if (v.getParentBlock() == &body) return ready.contains(v);
    return v.getParentBlock() != first->getBlock() || v.getDefiningOp()->isBeforeInBlock(first);
  }
  unsigned costlyOperands(Operation* op) const {
    return unsigned(llvm::count_if(op->getOperands(), [&](Value v) { return costly.contains(v); }));
  }
  SweepOp first;
  Block& body;
  llvm::DenseSet<Value> ready, costly;
};

}  // namespace

KeptElements::KeptElements(SlabOp slab) : slab_(slab) {
  auto sweeps = slab.sweeps();
  if (slab.getKind() != SlabKind::Run || sweeps.size() < 2) return;
  for (SweepOp sweep : {sweeps.front(), sweeps.back()})
    if (sweep->getBlock() != &slab.getBody().front() || sweep.getCondition() || sweep.getMates()) return;
  first_ = sweeps.front();
  last_ = sweeps.back();
  choose();
  for (Value v : values_) move(v);
  leave();
}

void KeptElements::choose() {
  const Facts facts(first_, last_);
  llvm::SetVector<Value> found;
  llvm::DenseSet<Operation*> seen;
  auto visit = [&](auto& self, Operation* user) -> void {
    if (!seen.insert(user).second) return;
    for (Value v : user->getOperands()) {
      if (!facts.costly.contains(v)) continue;
      if (!facts.isReady(v)) {
        self(self, v.getDefiningOp());
        continue;
      }
      // An operation on one costly value costs little itself, and several results may come from that value.
      auto only = [&] {
        return !takesLong(v.getDefiningOp()) && facts.costlyOperands(v.getDefiningOp()) == 1;
      };
      while (only())
        v = *llvm::find_if(v.getDefiningOp()->getOperands(),
                           [&](Value o) { return facts.costly.contains(o); });
      found.insert(v);
    }
  };
  visit(visit, facts.body.getTerminator());
  for (Value v : found) {
    // An operation that alone uses the value can precede the store.
    for (Operation* user; v.hasOneUse() && (user = *v.user_begin()) != facts.body.getTerminator();) {
      if (!facts.isReady(user->getResult(0)) || user->getResult(0).getType() != v.getType()) break;
      v = user->getResult(0);
    }
    values_.insert(v);
  }
}

/// Adds the operations that the first sweep needs for a value, but those that it has itself.
void KeptElements::move(Value v) {
  Block &from = last_.getBody().front(), &to = first_.getBody().front();
  if (v.getParentBlock() != &from || same_.contains(v)) return;
  auto has = [&](Value value) { return same_.contains(value) ? same_[value] : value; };
  if (auto argument = dyn_cast<BlockArgument>(v)) {
    const auto at = llvm::find(first_.getReads(), last_.getReads()[argument.getArgNumber()]);
    same_[v] = to.getArgument(unsigned(at - first_.getReads().begin()));
    return;
  }
  Operation* op = v.getDefiningOp();
  if (moved_.contains(op)) return;
  for (Value operand : op->getOperands()) move(operand);
  auto isSame = [&](Operation& other) {
    return other.getName() == op->getName() && other.getAttrs() == op->getAttrs() &&
           other.getResultTypes() == op->getResultTypes() &&
           llvm::equal(other.getOperands(), llvm::map_range(op->getOperands(), has));
  };
  for (Operation& other : to.without_terminator())
    if (isSame(other)) {
      same_[v] = other.getResult(0);
      return;
    }
  moved_.insert(op);
}

/// Finds what the last sweep still needs.
void KeptElements::leave() {
  auto visit = [&](auto& self, Operation* user) -> void {
    for (Value v : user->getOperands()) {
      if (v.getParentBlock() != &last_.getBody().front() || values_.contains(v)) continue;
      if (auto argument = dyn_cast<BlockArgument>(v))
        read_.insert(argument.getArgNumber());
      else if (executed_.insert(v.getDefiningOp()).second)
        self(self, v.getDefiningOp());
    }
  };
  visit(visit, last_.getBody().front().getTerminator());
}

bool KeptElements::serve(int64_t runs, std::optional<int64_t> width) const {
  if (values_.empty() || values_.size() > kMostValues || !width) return false;
  const Type type = values_.front().getType();
  if (!isa<FloatType>(type) || llvm::any_of(values_, [&](Value v) { return v.getType() != type; }))
    return false;
  const int64_t size = elementBytes(type);
  return runs * int64_t(values_.size()) * *width * size <= kMostBytes;
}

void KeptElements::allocate(Loops& l, Type statistics, int64_t runs, int64_t width, int64_t lanes) {
  const int64_t size = elementBytes(statistics);
  pitch_ = int64_t(llvm::alignTo(width + lanes, kCacheLine / size)) + kApart / size;
  memory_ = StackMemory(l, runs * int64_t(values_.size()) * pitch_, statistics, kCacheLine);
}

Value KeptElements::place(Loops& l, int64_t run, size_t k, Value offset) const {
  return l.add(offset, l.index((run * int64_t(values_.size()) + int64_t(k)) * pitch_));
}

void KeptElements::store(Loops& l, int64_t run, Value offset, int64_t lanes, IRMapping& values,
                         llvm::function_ref<void(Operation&)> clone) const {
  for (auto [of, is] : same_) values.map(of, values.lookup(is));
  for (Operation* op : moved_) clone(*op);
  for (auto [k, v] : llvm::enumerate(values_))
    memory_.store(l, place(l, run, k, offset), l.broadcast(values.lookup(v), lanes));
}

void KeptElements::load(Loops& l, int64_t run, Value offset, int64_t lanes, IRMapping& values) const {
  for (auto [k, v] : llvm::enumerate(values_))
    values.map(v, memory_.load(l, place(l, run, k, offset), lanes));
}

}  // namespace normc::codegen
