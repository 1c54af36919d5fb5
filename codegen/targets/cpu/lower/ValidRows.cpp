// Finds the valid rows that shift estimates sample, with a mask.
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace normc::codegen {

bool PhaseLowering::searchesRows(SlabOp s) {
  return f_.kernel().hasMask() && !s.isPer(Axis::Row) && !s.getBody().getOps<ProbeOp>().empty();
}

void PhaseLowering::allocatePlaces() {
  if (llvm::none_of(f_.phase().getOps<SlabOp>(), [&](SlabOp s) { return searchesRows(s); })) return;
  places_ = StackMemory(l_, probedRows_, l_.b.getIndexType());
}

/// Goes through the mask once. Sample i is the valid row whose rank is the offset of i among `count`.
Values PhaseLowering::searchValid(Value segment, Value count) {
  OpBuilder& b = l_.b;
  TensorOp mask = f_.tensor("mask");
  const Value none = l_.index(0), one = l_.index(1);
  auto rankOf = [&](Value sample) { return l_.stratifiedOffset(count, sample, probedRows_); };
  // Running: the valid rows so far, the next sample, its rank. The rank behind the last sample is `count`.
  auto pass = [&](Value unit, const Coordinates& at, ValueRange running) {
    // A number, not a choice of two, which would become a branch.
    Value valid =
        arith::IndexCastUIOp::create(b, l_.loc, b.getIndexType(), f_.load(mask, f_.address(mask, at), 0, {}));
    Value passed = l_.add(running[0], valid);
    auto samples = scf::WhileOp::create(
        b, l_.loc, TypeRange{b.getIndexType(), b.getIndexType()}, running.drop_front(),
        [&](OpBuilder& inner, Location loc, ValueRange v) {
          Value found = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, v[1], passed);
          scf::ConditionOp::create(inner, loc, found, v);
        },
        [&](OpBuilder& inner, Location loc, ValueRange v) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(inner.getInsertionBlock());
          places_.store(l_, v[0], unit);
          Value next = l_.add(v[0], one);
          scf::YieldOp::create(b, loc, ValueRange{next, rankOf(next)});
        });
    return Values{passed, samples.getResult(0), samples.getResult(1)};
  };
  auto segmentRows = [&](Value in, ValueRange from) {
    const Value first = segment ? none : l_.mul(in, f_.rows());
    return l_.forEach(none, f_.rows(), 1, from, [&](Value row, ValueRange running) {
      return pass(l_.add(first, row), {.segment = in, .row = row}, running);
    });
  };
  const Values start{none, none, rankOf(none)};
  if (slab_.isOfRows())
    (void)l_.forEach(begin_, end_, 1, start, [&](Value unit, ValueRange running) {
      auto [in, row] = segmentAndRow(unit);
      return pass(unit, {.segment = in, .row = row}, running);
    });
  else if (segment)
    (void)segmentRows(segment, start);
  else
    (void)l_.forEach(none, f_.segments(), 1, start, segmentRows);
  Values places;
  for (int64_t i = 0; i < probedRows_; ++i) {
    Value unit = places_.load(l_, l_.index(i));
    auto [in, row] = segment                           ? std::pair(segment, unit)
                     : f_.kernel().getSegmentsAreOne() ? std::pair(none, unit)
                                                       : segmentAndRow(unit);
    places.append({in, row});
  }
  return places;
}

}  // namespace normc::codegen
