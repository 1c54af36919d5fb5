#include "tests/end_to_end/Mistakes.h"

#include "codegen/Compilation.h"
#include "codegen/lower/Expand.h"
#include "codegen/package/Writer.h"
#include "codegen/targets/cpu/AttachSchedule.h"
#include "codegen/targets/cpu/BlocksToLlvm.h"
#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/Entry.h"
#include "codegen/targets/cpu/Link.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "dsl/Numbers.h"
#include "dsl/Print.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Module.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace normc {

using namespace mlir;
using namespace codegen;

namespace {

/// The list that is made.
class List {
 public:
  explicit List(const Spec& spec) : numbers_(numbers(spec)) {}

  std::vector<Mistake> mistakes;

  void operation(Operation* op) {
    // Nothing depends on it: e.g. a number of the norm that this entry does not need.
    if (op->getNumRegions() == 0 && op->getNumResults() > 0 && llvm::all_of(op->getResults(), isUnused))
      return;
    llvm::TypeSwitch<Operation*>(op)
        .Case([&](arith::AddFOp a) {
          becomes<arith::SubFOp>("AddedIsSubtracted", a);
          isOperand("TermIsForgotten", a);
        })
        .Case([&](arith::SubFOp s) {
          becomes<arith::AddFOp>("SubtractedIsAdded", s);
          swapped("DifferenceIsReversed", s);
          isOperand("DifferenceIsForgotten", s, 1);
        })
        .Case([&](arith::MulFOp m) { isOperand("FactorIsForgotten", m); })
        .Case([&](arith::DivFOp d) {
          swapped("QuotientIsReversed", d);
          if (!isOne(d.getLhs())) isOperand("DivisorIsForgotten", d, 1);
        })
        .Case([&](arith::NegFOp n) { isOperand("SignIsForgotten", n); })
        .Case([&](arith::SelectOp s) {
          add("ConditionIsIgnored", s, [s]() mutable { replace(s, s.getTrueValue()); });
          add("ConditionIsNeverTrue", s, [s]() mutable { replace(s, s.getFalseValue()); });
        })
        .Case([&](arith::CmpFOp c) { limit(c); })
        .Case([&](math::RsqrtOp r) {
          add("RootIsForgotten", r, [r]() mutable {
            OpBuilder b(r);
            replace(r, arith::DivFOp::create(b, r.getLoc(), number(b, r, 1), r.getOperand()));
          });
        })
        .Case([&](math::SqrtOp r) { isOperand("RootIsForgotten", r); })
        .Case([&](CountOp c) { count(c); })
        .Case([&](WidthOp w) { isOff("WidthIsOneLess", w, -1); })
        .Case([&](ScalarOp s) { scalar(s); })
        .Case([&](StoreOp s) { oldState(s); })
        .Case([&](SweepOp s) { sweep(s); })
        .Case([&](FoldOp f) { fold(f); });
  }

 private:
  static Value number(OpBuilder& b, Operation* like, double value) {
    return arith::ConstantOp::create(b, like->getLoc(), b.getFloatAttr(like->getResult(0).getType(), value));
  }
  static void replace(Operation* op, Value by) {
    op->getResult(0).replaceAllUsesWith(by);
    op->erase();
  }
  /// True if nothing that is stored or yielded depends on the value.
  static bool isUnused(Value value) {
    return llvm::all_of(value.getUsers(), [](Operation* user) {
      return isMemoryEffectFree(user) && user->getNumRegions() == 0 &&
             !user->hasTrait<OpTrait::IsTerminator>() && llvm::all_of(user->getResults(), isUnused);
    });
  }
  static bool isOne(Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
    return number && number.getValueAsDouble() == 1;
  }

  void add(const char* kind, Operation* op, std::function<void()> plant) {
    std::string where;
    llvm::raw_string_ostream(where) << *op;
    if (auto phase = op->getParentOfType<PhaseOp>())
      where = "phase " + phase.getSymName().str() + ": " + where.substr(0, where.find('\n'));
    if (auto select = dyn_cast<arith::SelectOp>(op))
      if (Operation* condition = select.getCondition().getDefiningOp())
        llvm::raw_string_ostream(where) << " if " << *condition;
    mistakes.push_back({kind, where, std::move(plant)});
  }
  template <class Other, class Op>
  void becomes(const char* kind, Op op) {
    add(kind, op, [op]() mutable {
      OpBuilder b(op);
      replace(op, Other::create(b, op.getLoc(), op.getLhs(), op.getRhs(), op.getFastmath()));
    });
  }
  void swapped(const char* kind, Operation* op) {
    if (op->getOperand(0) == op->getOperand(1)) return;  // x - x, which tests for infinities
    add(kind, op, [op] {
      const Value first = op->getOperand(0);
      op->setOperand(0, op->getOperand(1)), op->setOperand(1, first);
    });
  }
  /// The result is one of the first `most` operands.
  void isOperand(const char* kind, Operation* op, unsigned most = 2) {
    for (unsigned i = 0; i < std::min(most, op->getNumOperands()); ++i)
      add(kind, op, [op, i] { replace(op, op->getOperand(i)); });
  }
  /// The result has `more` added to it.
  void isOff(const char* kind, Operation* op, double more) {
    add(kind, op, [op, more] {
      OpBuilder b(op->getBlock(), std::next(Block::iterator(op)));
      auto changed = arith::AddFOp::create(b, op->getLoc(), op->getResult(0), number(b, op, more));
      op->getResult(0).replaceAllUsesExcept(changed, changed);
    });
  }
  void limit(arith::CmpFOp c) {
    using P = arith::CmpFPredicate;
    const auto is = [&](const char* kind, P other) {
      add(kind, c, [c, other]() mutable { c.setPredicate(other); });
    };
    if (c.getPredicate() == P::OGT) is("MaximumIsMinimum", P::OLT);
    if (c.getPredicate() == P::OLT) is("MinimumIsMaximum", P::OGT);
    if (c.getPredicate() == P::OLE) is("LastStepIsLeftOut", P::OLT);
  }
  void scalar(ScalarOp s) {
    isOff("NumberIsOneMore", s, 1);
    add("NumberIsItsComplement", s, [s]() mutable {
      OpBuilder b(s->getBlock(), std::next(Block::iterator(s)));
      auto one = number(b, s, 1);
      auto other = arith::SubFOp::create(b, s.getLoc(), one, s.getValue());
      s.getValue().replaceAllUsesExcept(other, other);
    });
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i].name != s.getName()) continue;
      add("NumberIsAlwaysTheDefault", s, [s, value = numbers_[i].value]() mutable {
        OpBuilder b(s);
        replace(s, number(b, s, value));
      });
      if (numbers_.size() < 2) continue;
      const std::string& next = numbers_[(i + 1) % numbers_.size()].name;
      add("NumberIsAnother", s, [s, next]() mutable { s.setName(next); });
    }
  }
  void count(CountOp c) {
    isOff("CountIsOneLess", c, -1);
    const bool masked = c->getParentOfType<KernelOp>().hasMask();
    if (masked && c.getScope() != CountScope::Rows)
      add("PaddingIsCounted", c, [c]() mutable { c.setScope(CountScope::Rows); });
    if (c.getScope() == CountScope::Task)
      add("TaskCountsAllRows", c, [c]() mutable { c.setScope(CountScope::All), c.removeHeadAttr(); });
    if (masked && c.getScope() == CountScope::Rows)
      add("PaddingIsNotCounted", c, [c]() mutable { c.setScope(CountScope::All); });
  }
  void oldState(StoreOp s) {
    if (!s.getTensor().starts_with("state_out.") || s.getWindow()) return;
    const std::string old = "state_in." + s.getTensor().drop_front(10).str();
    auto kernel = s->getParentOfType<KernelOp>();
    if (!SymbolTable::lookupSymbolIn(kernel, old)) return;
    add("StateKeepsItsOldValue", s, [s, old]() mutable {
      OpBuilder b(s);
      s.getValueMutable().set(LoadOp::create(b, s.getLoc(), s.getValue().getType(),
                                             FlatSymbolRefAttr::get(s.getContext(), old), Value()));
    });
  }
  void sweep(SweepOp s) {
    Block& body = s.getRegion().front();
    Operation* yield = body.getTerminator();
    for (unsigned i = 0; i < yield->getNumOperands(); ++i) {
      const size_t sum = i - s.getWrites().size();
      if (i < s.getWrites().size() || (sum < s.getNumResults() && isUnused(s.getResult(sum)))) continue;
      add("SumTakesNothing", s, [yield, i] {
        OpBuilder b(yield);
        const Type type = yield->getOperand(i).getType();
        yield->setOperand(i, arith::ConstantOp::create(b, yield->getLoc(), b.getFloatAttr(type, 0)));
      });
    }
    for (unsigned i = 0; i + 1 < body.getNumArguments(); ++i) {
      BlockArgument first = body.getArgument(i), second = body.getArgument(i + 1);
      if (first.getType() != second.getType() || first.use_empty() || second.use_empty()) continue;
      add("InputsAreSwapped", s, [first, second]() mutable {
        SmallVector<OpOperand*> ofFirst(llvm::make_pointer_range(first.getUses()));
        SmallVector<OpOperand*> ofSecond(llvm::make_pointer_range(second.getUses()));
        for (OpOperand* use : ofFirst) use->set(second);
        for (OpOperand* use : ofSecond) use->set(first);
      });
    }
  }
  void fold(FoldOp f) {
    const mlir::Location loc = f.getLoc();
    Block& body = f.getRegion().front();
    Operation* yield = body.getTerminator();
    for (unsigned i = 0; i < yield->getNumOperands(); ++i) {
      if (isUnused(f.getResult(i)) && body.getArgument(1 + i) == yield->getOperand(i)) continue;
      add("FoldOmitsTheFirst", f, [loc, &body, yield, i] {
        OpBuilder b(yield);
        Value zero = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
        Value at = arith::IndexCastOp::create(b, loc, b.getI64Type(), body.getArgument(0));
        Value first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, at, zero);
        yield->setOperand(
            i, arith::SelectOp::create(b, loc, first, body.getArgument(1 + i), yield->getOperand(i)));
      });
      add("FoldForgetsTheOthers", f, [loc, &body, i] {
        OpBuilder b(&body, body.begin());
        BlockArgument run = body.getArgument(1 + i);
        run.replaceAllUsesWith(arith::ConstantOp::create(b, loc, b.getFloatAttr(run.getType(), 0)));
      });
    }
  }

  std::vector<Number> numbers_;  ///< of the norm
};

/// The compiler of a CPU's kernels (codegen/targets/cpu/Compile.cpp) with a step between plan and schedule.
class Mistaken : public Compilation {
 public:
  Mistaken(const Problem& problem, cpu::Schedule schedule)
      : Compilation(problem, nullptr), schedule_(std::move(schedule)), isa_(hostIsa()) {}

  llvm::Error planned() {
    return plan(schedule_.strategy, "k0", problem_.layout == Layout::FeaturesLast ? schedule_.vector : 0);
  }
  llvm::Expected<std::string> package() {
    if (auto error = run("planning", cpu::attachSchedule(schedule_))) return error;
    package::Kernel manifest = cpu::kernelManifest(problem_, schedule_, isa_, kernel());
    if (auto error =
            run("lowering", normToLoops(), expandDivision(), expandRsqrt(), expandLog(), expandExp(),
                expandAbs(), expandBF16(isa_.roundsBF16, isa_.masks16 ? isa_.vectorBytes / 2 : 0),
                nontemporalWords(), cpu::loopsToBlocksPipeline(), cpu::blocksToLlvm(), cpu::addEntryPoints()))
      return error;
    auto ir = cpu::optimizedLlvm(*module_, isa_, llvm_);
    if (!ir) return ir.takeError();
    auto object = cpu::machineCode(**ir, isa_, cpu::Emit::Object);
    if (!object) return object.takeError();
    auto shared = cpu::linkShared({*object}, isa_);
    if (!shared) return shared.takeError();
    package::Writer writer({});
    const Spec& spec = *problem_.spec;
    manifest.blob = writer.addBlob(std::move(*shared), "elf", isa_.name.str());
    manifest.norm = writer.addNorm(spec.name, spec.structuralHash(), print(spec));
    writer.addKernel(std::move(manifest));
    return writer.bytes();
  }

 private:
  cpu::Schedule schedule_;
  cpu::Isa isa_;
};

}  // namespace

std::vector<Mistake> mistakesOf(KernelOp kernel, const Spec& spec) {
  List list(spec);
  kernel.walk<WalkOrder::PreOrder>([&](Operation* op) { list.operation(op); });
  return std::move(list.mistakes);
}

std::vector<std::string> kindsOfMistakes(const Problem& problem, Strategy strategy) {
  std::vector<std::string> kinds;
  Mistaken plan(problem, cpu::defaultSchedule(problem, hostIsa(), strategy));
  llvm::cantFail(plan.planned());
  for (const Mistake& each : mistakesOf(plan.kernel(), *problem.spec)) kinds.push_back(each.kind);
  return kinds;
}

std::unique_ptr<Compiled> compiledWithMistake(const Problem& problem, Strategy strategy, size_t number,
                                              std::string& where) {
  Mistaken kernel(problem, cpu::defaultSchedule(problem, hostIsa(), strategy));
  llvm::cantFail(kernel.planned());
  std::vector<Mistake> mistakes = mistakesOf(kernel.kernel(), *problem.spec);
  where = mistakes.at(number).where;
  mistakes[number].plant();
  auto bytes = kernel.package();
  if (bytes) return opened(problem, *bytes);
  auto failed = std::make_unique<Compiled>();
  failed->error = llvm::toString(bytes.takeError());
  return failed;
}

}  // namespace normc
