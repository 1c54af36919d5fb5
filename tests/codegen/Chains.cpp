#include "tests/codegen/Chains.h"

#include <gtest/gtest.h>

#include "codegen/lower/Expand.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tests/codegen/Support.h"

using namespace mlir;

namespace normc::codegen {
namespace {

bool isFloat(Value v) { return isa<FloatType>(getElementTypeOrSelf(v.getType())); }

/// Counts in one phase function, which has segments, rows, features, scalars, cuts and task as its last
/// arguments.
class Counter {
 public:
  Counter(func::FuncOp function, const Extents& extents, int64_t units) : function_(function) {
    const unsigned count = function.getNumArguments();
    auto bind = [&](unsigned fromEnd, int64_t n) { known_[function.getArgument(count - fromEnd)] = n; };
    bind(6, extents.segments), bind(5, extents.rows), bind(4, extents.features), bind(1, 0);
    cuts_ = function.getArgument(count - 2);
    units_ = units;
  }

  Chains count() {
    function_.walk([&](Operation* op) {
      if (isDead(op)) return;
      if (auto loop = dyn_cast<scf::ForOp>(op)) carried(loop);
      if (isa<vector::StoreOp, memref::StoreOp>(op)) inMemory(op);
    });
    return chains_;
  }

 private:
  //===-- Numbers -----------------------------------------------------------------===//

  /// Returns nothing if it depends on memory, the caller's numbers or lanes.
  std::optional<int64_t> numberOf(Value v) {
    if (auto at = known_.find(v); at != known_.end()) return at->second;
    return known_[v] = evaluated(v);
  }
  std::optional<int64_t> evaluated(Value v) {
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && v == loop.getInductionVar())
        return numberOf(loop.getLowerBound());  // its first step is the longest
      return v.getType().isIndex() ? std::optional<int64_t>(1) : std::nullopt;  // a stride
    }
    Operation* op = v.getDefiningOp();
    if (auto c = dyn_cast<arith::ConstantOp>(op)) {
      auto n = dyn_cast<IntegerAttr>(c.getValue());
      return n ? std::optional(n.getInt()) : std::nullopt;
    }
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      auto view = load.getMemRef().getDefiningOp<memref::ReinterpretCastOp>();
      if (!view || view.getSource() != cuts_) return std::nullopt;
      return *numberOf(load.getIndices()[0]) % 3 == 2 ? 1 : units_;
    }
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      auto condition = numberOf(select.getCondition()), yes = numberOf(select.getTrueValue()),
           no = numberOf(select.getFalseValue());
      if (!yes || !no) return std::nullopt;
      return condition ? (*condition ? yes : no) : std::max(yes, no);  // either may be
    }
    SmallVector<int64_t> in;
    for (Value operand : op->getOperands()) {
      auto n = isFloat(operand) ? std::nullopt : numberOf(operand);
      if (!n) return std::nullopt;
      in.push_back(*n);
    }
    if (isa<arith::AddIOp>(op)) return in[0] + in[1];
    if (isa<arith::SubIOp>(op)) return in[0] - in[1];
    if (isa<arith::MulIOp>(op)) return in[0] * in[1];
    if (isa<arith::DivUIOp>(op)) return in[1] ? in[0] / in[1] : 0;
    if (isa<arith::RemUIOp>(op)) return in[1] ? in[0] % in[1] : 0;
    if (isa<arith::MinSIOp>(op)) return std::min(in[0], in[1]);
    if (isa<arith::MaxSIOp>(op)) return std::max(in[0], in[1]);
    if (isa<arith::AndIOp>(op)) return in[0] & in[1];
    if (isa<arith::XOrIOp>(op)) return (in[0] ^ in[1]) & 1;
    if (isa<arith::IndexCastOp>(op)) return in[0];
    if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
      if (cmp.getPredicate() == arith::CmpIPredicate::slt) return in[0] < in[1];
      if (cmp.getPredicate() == arith::CmpIPredicate::eq) return in[0] == in[1];
    }
    return std::nullopt;
  }
  /// True if the call never reaches the operation.
  bool isDead(Operation* op) {
    for (Region* region = op->getParentRegion(); region; region = region->getParentRegion()) {
      auto branch = dyn_cast<scf::IfOp>(region->getParentOp());
      auto condition = branch ? numberOf(branch.getCondition()) : std::nullopt;
      if (condition && (*condition != 0) != (region == &branch.getThenRegion())) return true;
      if (auto loop = dyn_cast<scf::ForOp>(region->getParentOp()); loop && knownStepsOf(loop) == 0)
        return true;
    }
    return false;
  }
  /// Returns nothing if it depends on memory or on what an outer loop carries. Of a loop that adds nothing
  /// nothing has to be known.
  std::optional<int64_t> knownStepsOf(scf::ForOp loop) {
    const auto first = numberOf(loop.getLowerBound()), last = numberOf(loop.getUpperBound()),
               step = numberOf(loop.getStep());
    if (!first || !last || !step) return std::nullopt;
    return *last <= *first || *step <= 0 ? 0 : (*last - *first + *step - 1) / *step;
  }
  int64_t stepsOf(scf::ForOp loop) {
    if (const auto steps = knownStepsOf(loop)) return *steps;
    ADD_FAILURE() << "the number of steps of a loop that adds up depends on memory";
    return 0;
  }

  //===-- Accumulators that a loop carries --------------------------------------------===//

  using Depths = DenseMap<Value, int64_t>;  ///< additions between a value and those that depend on it

  /// Returns how many additions a step of the loop makes on its i-th carried value; -1 if the value is not
  /// carried on.
  int64_t additionsOf(scf::ForOp loop, unsigned i) {
    auto [at, isNew] = additions_.try_emplace({loop, i}, -1);
    if (!isNew) return at->second;
    Depths depths{{loop.getRegionIterArgs()[i], 0}};
    follow(*loop.getBody(), depths);
    auto yielded = depths.find(loop.getBody()->getTerminator()->getOperand(i));
    const int64_t n = yielded == depths.end() ? -1 : yielded->second;
    additions_[{loop, i}] = n;
    return n;
  }
  void follow(Block& block, Depths& depths) {
    for (Operation& op : block) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (unsigned i = 0; i < loop.getInitArgs().size(); ++i) {
          auto at = depths.find(loop.getInitArgs()[i]);
          if (at == depths.end()) continue;
          if (const int64_t n = additionsOf(loop, i); n >= 0)
            put(depths, loop.getResult(i), at->second + stepsOf(loop) * n);
        }
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        const auto condition = numberOf(branch.getCondition());
        for (Region& region : branch->getRegions()) {
          if (region.empty() || (condition && (*condition != 0) != (&region == &branch.getThenRegion())))
            continue;
          follow(region.front(), depths);
          for (auto [result, yielded] :
               llvm::zip(branch.getResults(), region.front().getTerminator()->getOperands()))
            if (auto at = depths.find(yielded); at != depths.end()) put(depths, result, at->second);
        }
      } else {
        int64_t depth = -1;
        for (Value v : op.getOperands())
          if (auto at = depths.find(v); at != depths.end() && isFloat(v)) depth = std::max(depth, at->second);
        if (depth < 0) continue;
        for (Value result : op.getResults())
          if (isFloat(result)) put(depths, result, depth + isa<arith::AddFOp>(op));
      }
    }
  }
  static void put(Depths& depths, Value v, int64_t depth) {
    int64_t& known = depths.try_emplace(v, depth).first->second;
    known = std::max(known, depth);
  }

  /// True if a value goes into a sum that a loop around it carries, or that is in memory.
  bool isAddedFurther(Value v) {
    Operation* scope = v.getDefiningOp()->getParentOp();
    Depths depths{{v, 0}};
    while (true) {
      for (Region& region : scope->getRegions())
        for (Block& block : region) follow(block, depths);
      auto loop = dyn_cast<scf::ForOp>(scope);
      if (auto branch = dyn_cast<scf::IfOp>(scope)) {
        for (Region& region : branch->getRegions())
          if (!region.empty())
            for (auto [result, yielded] :
                 llvm::zip(branch.getResults(), region.front().getTerminator()->getOperands()))
              if (depths.contains(yielded)) put(depths, result, depths[yielded]);
      }
      if (loop)
        for (unsigned i = 0; i < loop.getInitArgs().size(); ++i) {
          auto at = depths.find(loop.getBody()->getTerminator()->getOperand(i));
          if (at != depths.end() && at->second > 0 && additionsOf(loop, i) > 0) return true;
        }
      if (isa<func::FuncOp>(scope) || !isa<scf::ForOp, scf::IfOp>(scope)) return false;
      if (loop) return false;  // a value that a loop carries on is its own level
      scope = scope->getParentOp();
    }
  }

  void carried(scf::ForOp loop) {
    for (unsigned i = 0; i < loop.getInitArgs().size(); ++i) {
      if (!isFloat(loop.getRegionIterArgs()[i]) || stepsOf(loop) < 2) continue;
      if (const int64_t n = additionsOf(loop, i); n > 0)
        add(stepsOf(loop) * n, isAddedFurther(loop.getResult(i)) ? chains_.within : chains_.last);
    }
  }

  //===-- Accumulators in memory --------------------------------------------------------===//

  static bool dependsOn(Value v, Value iv) {
    if (v == iv) return true;
    Operation* op = v.getDefiningOp();
    return op && llvm::any_of(op->getOperands(), [&](Value in) { return dependsOn(in, iv); });
  }
  /// True if the loop, around the store, sets the memory to zero first.
  static bool clears(scf::ForOp loop, Value memory) {
    bool found = false;
    loop.walk([&](Operation* op) {
      if (!isa<vector::StoreOp, memref::StoreOp>(op) || op->getOperand(1) != memory) return;
      found |= matchPattern(op->getOperand(0), m_AnyZeroFloat());
    });
    return found;
  }
  void inMemory(Operation* store) {
    Value stored = store->getOperand(0), memory = store->getOperand(1), at = store->getOperand(2);
    auto sum = stored.getDefiningOp<arith::AddFOp>();
    auto reads = [&](Value v) {
      Operation* op = v.getDefiningOp();
      return op && isa<vector::LoadOp, memref::LoadOp>(op) && op->getOperand(0) == memory &&
             op->getOperand(1) == at;
    };
    if (!sum || !(reads(sum.getLhs()) || reads(sum.getRhs()))) return;
    int64_t length = 1;
    for (auto loop = store->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>()) {
      if (dependsOn(at, loop.getInductionVar())) continue;
      if (clears(loop, memory)) return add(length, chains_.within);
      length *= stepsOf(loop);
    }
    add(length, chains_.inTask);
  }

  void add(int64_t length, int64_t& longest) {
    longest = std::max(longest, length);
    ++chains_.loops;
  }

  func::FuncOp function_;
  Value cuts_;
  int64_t units_;
  DenseMap<Value, std::optional<int64_t>> known_;
  DenseMap<std::pair<Operation*, unsigned>, int64_t> additions_;
  Chains chains_;
};

int64_t unitsOf(PhaseOp phase, const Extents& extents) {
  int64_t units = 1;
  for (Axis axis : phase.getUnits())
    units *= axis == Axis::Segment   ? extents.segments
             : axis == Axis::Row     ? extents.rows
             : axis == Axis::Feature ? extents.features
                                     : 1;
  return units;
}

}  // namespace

std::vector<Chains> chainsOf(const Problem& problem, const cpu::Schedule& schedule, const cpu::Isa& isa,
                             const std::vector<Extents>& calls) {
  DialectRegistry registry;
  registry.insert<NormDialect, arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  auto kernel = planKernel(*module, problem, schedule.strategy, "kernel", schedule.vector);
  if (!kernel) {
    ADD_FAILURE() << llvm::toString(kernel.takeError());
    return {};
  }
  kernel->setScheduleAttr(schedule.attribute(&context));
  if (schedule.stream) {
    SmallVector<Attribute> numbers(kernel->getNumbers().begin(), kernel->getNumbers().end());
    for (std::string_view number : kThresholds) numbers.push_back(StringAttr::get(&context, number));
    kernel->setNumbersAttr(ArrayAttr::get(&context, numbers));
  }
  std::vector<std::vector<int64_t>> units(calls.size());  // for each call, those of its phases
  for (auto phase : kernel->getOps<PhaseOp>())
    for (auto [call, n] : llvm::zip(calls, units)) n.push_back(unitsOf(phase, call));
  PassManager passes(&context);
  passes.addPass(normToLoops());
  passes.addPass(expandDivision());
  passes.addPass(expandRsqrt());
  passes.addPass(expandBF16(isa.roundsBF16, 0));
  passes.addPass(createCSEPass());  // the address that is read is the one that is written
  EXPECT_TRUE(succeeded(passes.run(*module)));
  std::vector<Chains> result;
  for (auto [call, unitsOfCall] : llvm::zip(calls, units)) {
    Chains& all = result.emplace_back();
    for (auto [function, n] : llvm::zip(module->getOps<func::FuncOp>(), unitsOfCall)) {
      const Chains chains = Counter(function, call, n).count();
      all.within = std::max(all.within, chains.within), all.last = std::max(all.last, chains.last);
      all.inTask = std::max(all.inTask, chains.inTask), all.loops += chains.loops;
    }
  }
  return result;
}

}  // namespace normc::codegen
