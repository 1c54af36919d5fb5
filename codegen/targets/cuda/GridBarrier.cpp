#include "codegen/targets/cuda/GridBarrier.h"

#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/Launch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr llvm::StringLiteral kCounts = "arrivals.", kParts = "parts.";

std::string barrierCountsName(PhaseOp phase) { return (kCounts + phase.getSymName()).str(); }
std::string partsName(PhaseOp phase) { return (kParts + phase.getSymName()).str(); }

bool belongsToGridBarrier(TensorOp t) {
  return t.getSymName().starts_with(kCounts) || t.getSymName().starts_with(kParts);
}

static void addWorkspace(PhaseOp phase, const Schedule& s) {
  auto kernel = phase->getParentOfType<KernelOp>();
  int64_t values = 0, probes = 0;
  bool lines = false;
  phase.walk([&](SweepOp sweep) { values += int64_t(sweep.getSums().size()); });
  phase.walk([&](ProbeOp) { ++probes; });
  phase.walk([&](SlabOp slab) { lines |= slab.hasSweeps() && slab.isPer(Axis::Row); });
  OpBuilder b(kernel.getContext());
  Operation* last = nullptr;
  for (auto t : kernel.getOps<TensorOp>()) last = t;
  b.setInsertionPointAfter(last);
  auto add = [&](StringRef name, Type type, ArrayRef<Axis> axes, package::Access access, int64_t window) {
    const bool ofTasks = llvm::is_contained(axes, Axis::Chunk);
    TensorOp::create(b, kernel.getLoc(), name, type, axes,
                     ofTasks ? b.getI64IntegerAttr(phase.number()) : IntegerAttr(), package::Role::Workspace,
                     access, window);
  };
  add(barrierCountsName(phase), b.getI64Type(), {Axis::Chunk, Axis::Window}, package::Access::Zeroed, s.grid);
  if (lines)
    add(partsName(phase), kernel.getStatistics(), {Axis::Chunk, Axis::Window}, package::Access::Both,
        2 * std::max<int64_t>(values + probes, 1) * s.rows * (s.threads / s.team) * s.grid);
  else
    add(partsName(phase), kernel.getStatistics(), {Axis::Window, Axis::Feature}, package::Access::Both,
        std::max<int64_t>(values, 1) * s.grid);
}

PassPtr addGridBarrier(const Schedule& schedule) {
  return modulePass("norm-grid-barrier", [schedule](ModuleOp module) {
    for (auto kernel : module.getOps<KernelOp>())
      for (auto phase : kernel.getOps<PhaseOp>())
        if (launchOf(phase, schedule).grid > 1) addWorkspace(phase, schedule);
  });
}

//===-- Code of a thread --------------------------------------------------------------===//

/// The scope of its order: all blocks of the device.
static constexpr llvm::StringLiteral kScope = "device";

GridBarrier::GridBarrier(Loops& l, AccessLowering& f, int64_t blocks, int64_t threads, Value rank,
                         Value thread)
    : l_(l), f_(f), blocks_(blocks), threads_(threads), rank_(rank), thread_(thread) {
  const Type type = l.b.getI64Type();
  Value one = LLVM::ConstantOp::create(l.b, l.loc, type, 1);
  Value none = LLVM::ConstantOp::create(l.b, l.loc, type, 0);
  count_ = LLVM::AllocaOp::create(l.b, l.loc, LLVM::LLVMPointerType::get(l.b.getContext()), type, one);
  LLVM::StoreOp::create(l.b, l.loc, none, count_);
  if (!f.phase()->hasAttr(leastBlocksAttrName())) return;
  const auto [begin, end] = f.range();
  hasUnits_ = l.less(begin, end);
}

/// Returns the address of a block's word.
Value GridBarrier::wordOf(Value block) {
  TensorOp arrivals = f_.tensor(barrierCountsName(f_.phase()));
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, f_.pointer(arrivals));
  Value address = l_.add(base, l_.mul(l_.add(l_.mul(f_.task(), l_.index(blocks_)), block), l_.index(8)));
  Value integer = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(l_.b, l_.loc, LLVM::LLVMPointerType::get(l_.b.getContext()), integer);
}

void GridBarrier::arrive() {
  const Type type = l_.b.getI64Type();
  Value one = LLVM::ConstantOp::create(l_.b, l_.loc, type, 1);
  Value before = LLVM::LoadOp::create(l_.b, l_.loc, type, count_);
  Value now = arith::AddIOp::create(l_.b, l_.loc, before, one);
  LLVM::StoreOp::create(l_.b, l_.loc, now, count_);
  Value first = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, thread_, l_.index(0));
  l_.when(l_.both(hasUnits_, first), {}, [&] {
    auto store = LLVM::StoreOp::create(l_.b, l_.loc, now, wordOf(rank_), /*alignment=*/8);
    store.setOrdering(LLVM::AtomicOrdering::release);
    store.setSyncscope(kScope);
    return Values();
  });
}

void GridBarrier::wait() {
  const Type type = l_.b.getI64Type();
  Value wanted = LLVM::LoadOp::create(l_.b, l_.loc, type, count_);
  const Value blocks = l_.index(blocks_),
              others = hasUnits_ ? l_.select(hasUnits_, blocks, l_.index(0)) : blocks;
  l_.forEach(thread_, others, threads_, [&](Value block) {
    Value word = wordOf(block);
    scf::WhileOp::create(
        l_.b, l_.loc, TypeRange(), ValueRange(),
        [&](OpBuilder& b, mlir::Location loc, ValueRange) {
          auto seen = LLVM::LoadOp::create(b, loc, type, word, /*alignment=*/8);
          seen.setOrdering(LLVM::AtomicOrdering::acquire);
          seen.setSyncscope(kScope);
          Value missing = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, seen, wanted);
          scf::ConditionOp::create(b, loc, missing, ValueRange());
        },
        [](OpBuilder& b, mlir::Location loc, ValueRange) { scf::YieldOp::create(b, loc); });
  });
}

}  // namespace normc::codegen::cuda
