// Sums of columns and of lines that lie over blocks of the grid, and where these blocks meet.
//
// Each block writes its part of a sum to workspace, the blocks of the task meet, and
// each adds all parts: span u those of blocks u, u + units, ..., then the spans in
// the block. The order is the schedule's, and all blocks have the same bits.
//
// A block that comes to a meeting says so in its own word of `arrivals`, and waits for
// the words of the others, a thread for each. No word is written by two, so nothing is
// atomic but loads and stores; and since words only grow, whoever needs to know that
// the others have come may wait later than it came, and whoever does not need to, never.
// The words begin at zero (Meeting.h), and all blocks are there (runtime/abi/cuda.h).
#include "codegen/targets/cuda/Meeting.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Parts whose loads are under way together.
static constexpr int64_t kPartsTogether = 8;
/// Of what a meeting orders: all blocks of the device.
static constexpr llvm::StringLiteral kScope = "device";

/// A block's word of the task's arrivals.
static Value arrivalOf(Loops& l, AccessLowering& f, int64_t grid, Value block) {
  TensorOp arrivals = f.tensor(arrivalsName());
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(l.b, l.loc, f.pointer(arrivals));
  Value address = l.add(base, l.mul(l.add(l.mul(f.task(), l.index(grid)), block), l.index(8)));
  Value integer = arith::IndexCastOp::create(l.b, l.loc, l.b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(l.b, l.loc, LLVM::LLVMPointerType::get(l.b.getContext()), integer);
}

/// How many meetings this block has come to: LLVM finds a register for it, whatever loops a meeting stands in.
void TeamLowering::beginMeetings() {
  if (!gridded()) return;
  const Type type = l_.b.getI64Type();
  Value one = LLVM::ConstantOp::create(l_.b, l_.loc, type, 1);
  Value none = LLVM::ConstantOp::create(l_.b, l_.loc, type, 0);
  meetings_ = LLVM::AllocaOp::create(l_.b, l_.loc, LLVM::LLVMPointerType::get(l_.b.getContext()), type, one);
  LLVM::StoreOp::create(l_.b, l_.loc, none, meetings_);
}

/// What the threads of the block have written and read until now comes before what follows a wait for this.
void TeamLowering::arriveAtGrid() {
  const Type type = l_.b.getI64Type();
  barrier();
  Value one = LLVM::ConstantOp::create(l_.b, l_.loc, type, 1);
  Value before = LLVM::LoadOp::create(l_.b, l_.loc, type, meetings_);
  Value now = arith::AddIOp::create(l_.b, l_.loc, before, one);
  LLVM::StoreOp::create(l_.b, l_.loc, now, meetings_);
  l_.when(isZero(thread_), {}, [&] {
    auto store = LLVM::StoreOp::create(l_.b, l_.loc, now, arrivalOf(l_, f_, launch_.grid, rank_), /*alignment=*/8);
    store.setOrdering(LLVM::AtomicOrdering::release);
    store.setSyncscope(kScope);
    return Values();
  });
}

/// Until all blocks of the task have come to the last meeting that this one came to.
void TeamLowering::waitForGrid() {
  const Type type = l_.b.getI64Type();
  Value wanted = LLVM::LoadOp::create(l_.b, l_.loc, type, meetings_);
  l_.forEach(thread_, l_.index(launch_.grid), blockThreads(), [&](Value block) {
    Value word = arrivalOf(l_, f_, launch_.grid, block);
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
  barrier();
}

/// The sums over all blocks of what each knows of its columns: all threads of a block come with the same values for
/// the same column, and leave so.
void TeamLowering::sumOverGrid(MutableArrayRef<Value> sums) {
  TensorOp parts = f_.tensor(partsName());
  const int64_t grid = launch_.grid, units = blockThreads() / place_.span, lanes = s_.vector > 1 ? s_.vector : 0;
  Value unit = units == 1 ? l_.index(0) : l_.div(thread_, l_.index(place_.span));
  Value feature = l_.add(runBegin_, columnOffset_);
  auto at = [&](size_t sum, Value block) {
    return f_.address(parts, {.feature = feature, .window = l_.add(block, l_.index((toldValues_ + int64_t(sum)) * grid))});
  };
  storeWhere(both(units > 1 ? isZero(unit) : Value(), inside_), [&] {
    for (auto [i, v] : llvm::enumerate(sums)) f_.store(parts, at(i, rank_), v, {});
  });
  arriveAtGrid();
  waitForGrid();
  const int64_t steps = llvm::divideCeil(grid, units);
  Values total(sums.size(), l_.zero(vectorType()));
  total = l_.forEach(l_.index(0), l_.index(steps), kPartsTogether, total, [&](Value first, ValueRange running) {
    SmallVector<SmallVector<Value>> terms(sums.size());
    for (int64_t k = 0; k < std::min(kPartsTogether, steps); ++k) {
      Value block = l_.add(unit, l_.mul(l_.add(first, l_.index(k)), l_.index(units)));
      const bool always = steps <= kPartsTogether && (k + 1) * units <= grid;
      Value there = both(l_.less(always ? l_.index(0) : block, l_.index(grid)), inside_);
      Values loaded = l_.when(there, Values(sums.size(), l_.zero(vectorType())), [&] {
        Values own;
        for (size_t i = 0; i < sums.size(); ++i) own.push_back(f_.load(parts, at(i, block), lanes, {}));
        return own;
      });
      for (auto [list, v] : llvm::zip(terms, loaded)) list.push_back(v);
    }
    Values next(running);
    for (auto [v, list] : llvm::zip(next, terms)) v = l_.addf(v, l_.tree(list));
    return next;
  });
  toldValues_ += int64_t(sums.size());
  // The rows of the next sweep get addresses of their own: those of this one would keep registers over the meeting.
  Value again = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI32Type(), unit);
  again = gpu::ShuffleOp::create(l_.b, l_.loc, again, 0, kWarp, gpu::ShuffleMode::XOR).getShuffleResult();
  again = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), again);
  place_.unit = l_.add(l_.mul(rank_, l_.index(units)), again);
  sumOverSpans(total);
  llvm::copy(total, sums.begin());
}

/// The sums of runs, known to all threads of their teams in all blocks: of the team in each block, then of the blocks in
/// their order. A step has its own of two places for parts: who writes in step i + 2 has met all others in step i + 1,
/// and they had read those of step i.
void TeamLowering::sumRunOverGrid(MutableArrayRef<Value> sums) {
  sumOverTeam(sums, s_.team);
  TensorOp parts = f_.tensor(partsName());
  const int64_t grid = launch_.grid, teams = blockThreads() / s_.team;
  Value team = teams == 1 ? l_.index(0) : l_.div(thread_, l_.index(s_.team));
  Value step = l_.mul(clusterStep_, l_.index(parts.getWindow() / 2));
  auto at = [&](size_t sum, Value block) {
    Value told = l_.add(step, l_.index((toldValues_ + int64_t(sum)) * teams * grid));
    Value place = l_.add(told, l_.add(l_.mul(team, l_.index(grid)), block));
    return f_.address(parts, {.window = place, .chunk = f_.task()});
  };
  storeWhere(isZero(teams == 1 ? thread_ : l_.rem(thread_, l_.index(s_.team))), [&] {
    for (auto [i, v] : llvm::enumerate(sums)) f_.store(parts, at(i, rank_), v, {});
  });
  arriveAtGrid();
  waitForGrid();
  Value lane = l_.rem(thread_, l_.index(kWarp));
  for (auto [i, v] : llvm::enumerate(sums)) {
    SmallVector<Value> terms;
    for (int64_t first = 0; first < grid; first += kWarp) {
      Value block = l_.add(lane, l_.index(first)), there = l_.less(block, l_.index(grid));
      terms.push_back(l_.when(there, l_.zero(v.getType()), [&, i = i] { return Values{f_.load(parts, at(i, block), 0, {})}; })[0]);
    }
    v = sumOverLanes(l_.tree(terms), kWarp);
  }
  toldValues_ += int64_t(sums.size());
}

/// Before stores of scalar code: whether other blocks may still read what they overwrite, their own state.
bool TeamLowering::othersRead() const {
  return llvm::any_of(waiting_, [](const Waiting& w) { return !isUnshared(w.tensor); });
}

/// Where the last sweep of the slab begins, and nothing after it reads state: blocks come to the meeting that their
/// stores of state wait for now, so that only the one that stores will wait.
void TeamLowering::arriveBefore(SweepOp sweep) {
  if (!gridded() || !sweep.getSums().empty() || !othersRead()) return;
  for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>())
    if (!isUnshared(f_.tensor(name.getValue())) && !f_.tensor(name.getValue()).isXSized()) return;
  for (Operation* op = sweep->getNextNode(); op; op = op->getNextNode())
    if (isa<SweepOp, LoadOp, FoldOp, ProbeOp, AccumulateOp>(op)) return;
  arriveAtGrid();
  arrived_ = true;
}

}  // namespace normc::codegen::cuda
