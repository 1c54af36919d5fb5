#include "codegen/lower/Walk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

void Walk::scalarOp(Operation& op, Replica& replica) {
  IRMapping& values = replica.values;
  auto widthOf = [&](TensorOp t) { return t.hasAxis("feature") ? lanes_ : 0; };
  auto place = [&](Value window) {
    Coordinates at = replica.at;
    if (window) at.window = mapped(window, values);
    return at;
  };
  if (auto load = dyn_cast<LoadOp>(op)) {
    TensorOp t = f_.tensor(load.getTensor());
    beforeRead(t);
    int64_t lanes = widthOf(t);
    values.map(load.getValue(), f_.load(t, f_.address(t, place(load.getWindow())), lanes, lanes ? laneMask_ : Value()));
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    TensorOp t = f_.tensor(store.getTensor());
    int64_t lanes = widthOf(t);
    Value v = l_.broadcast(mapped(store.getValue(), values), lanes);
    if (kept(replica, t, v)) return;
    Coordinates at = place(store.getWindow());
    Value mask = lanes ? laneMask_ : Value();
    once(replica, t, [=, this] { f_.store(t, f_.address(t, at), v, mask); });
  } else if (auto add = dyn_cast<AccumulateOp>(op)) {
    TensorOp t = f_.tensor(add.getTensor());
    int64_t lanes = widthOf(t);
    Value v = l_.broadcast(mapped(add.getValue(), values), lanes);
    Value mask = lanes ? laneMask_ : Value();
    once(replica, t, [=, this, at = replica.at] {
      Value address = f_.address(t, at);
      f_.store(t, address, l_.addf(f_.load(t, address, lanes, mask), v), mask);
    });
  } else if (auto probeOp = dyn_cast<ProbeOp>(op)) {
    values.map(probeOp.getValue(), probe(probeOp, replica));
  } else if (auto countOp = dyn_cast<CountOp>(op)) {
    values.map(countOp.getValue(), count(countOp, &replica));
  } else if (auto width = dyn_cast<WidthOp>(op)) {
    Value features = width.getGroups() == "task"     ? l_.sub(end_, begin_)
                     : width.getGroups() == "groups" ? f_.groupWidth("group")
                                                     : f_.groupWidth("pre_group");
    Value n = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), features);
    values.map(width.getValue(), arith::SIToFPOp::create(l_.b, l_.loc, f_.statistics(), n));
  } else if (auto scalar = dyn_cast<ScalarOp>(op)) {
    values.map(scalar.getValue(), f_.scalar(scalar.getName()));
  } else if (auto foldOp = dyn_cast<FoldOp>(op)) {
    fold(foldOp, replica);
  } else if (!isa<YieldOp>(op)) {
    clone(op, values);
  }
}

void Walk::fold(FoldOp op, Replica& replica) {
  StringRef axis = op.getAxis();
  int64_t phase = -1;
  if (axis.consume_front("chunk.")) (void)axis.getAsInteger(10, phase);
  Value extent = phase >= 0 ? f_.chunks(phase) : l_.index(op.getExtent());
  for (auto name : op.getReads().getAsRange<FlatSymbolRefAttr>()) beforeRead(f_.tensor(name.getValue()));
  bool stores = !op.getBody().front().getOps<StoreOp>().empty();
  if (stores) beginFold();
  Block& body = op.getBody().front();
  Values init;
  for (Value v : op.getInit()) init.push_back(l_.broadcast(mapped(v, replica.values), lanes_));

  auto loads = [&](Value position) {
    Coordinates at = replica.at;
    (phase >= 0 ? at.chunk : at.window) = position;
    Values loaded;
    for (auto name : op.getReads().getAsRange<FlatSymbolRefAttr>()) {
      TensorOp t = f_.tensor(name.getValue());
      int64_t lanes = t.hasAxis("feature") ? lanes_ : 0;
      loaded.push_back(f_.load(t, f_.address(t, at), lanes, lanes ? laneMask_ : Value()));
    }
    return loaded;
  };
  auto combine = [&](Value position, ValueRange running, ValueRange loaded) {
    replica.values.map(body.getArgument(0), position);
    for (auto [i, v] : llvm::enumerate(running)) replica.values.map(body.getArgument(1 + i), v);
    for (auto [i, v] : llvm::enumerate(loaded)) replica.values.map(body.getArgument(1 + running.size() + i), v);
    for (Operation& inner : body.without_terminator()) scalarOp(inner, replica);
    if (stores) endFoldStep();
    Values next;
    for (Value v : cast<YieldOp>(body.getTerminator()).getValues())
      next.push_back(l_.broadcast(mapped(v, replica.values), lanes_));
    return next;
  };
  auto positions = [&](Value begin, Value end, int64_t batch, ValueRange from) {
    return l_.forEach(begin, end, batch, from, [&](Value position, ValueRange running) {
      SmallVector<Values> loaded;  // all of a batch before the first is used: they wait together
      for (int64_t i = 0; i < batch; ++i) loaded.push_back(loads(l_.add(position, l_.index(i))));
      Values next(running);
      for (int64_t i = 0; i < batch; ++i) next = combine(l_.add(position, l_.index(i)), next, loaded[i]);
      return next;
    });
  };
  int64_t batch = phase >= 0 ? foldBatch_ : 1;
  Value whole = l_.roundDown(extent, batch);
  Values last = positions(l_.index(0), whole, batch, init);
  if (batch > 1) last = positions(whole, extent, 1, last);
  for (auto [result, v] : llvm::zip(op.getValues(), last)) replica.values.map(result, v);
}

//===-- Counting rows -------------------------------------------------------------===//

Value Walk::countValid(Value begin, Value end, llvm::function_ref<Coordinates(Value)> place) {
  TensorOp mask = f_.tensor("mask");
  return l_.forEach(begin, end, 1, ValueRange{l_.index(0)}, [&](Value i, ValueRange sum) {
    Value valid = f_.load(mask, f_.address(mask, place(i)), 0, {});
    return Values{l_.add(sum[0], l_.select(valid, l_.index(1), l_.index(0)))};
  })[0];
}

Value Walk::count(CountOp op, Replica* replica) {
  if (Value known = counts_.lookup(countKey(op))) return known;
  bool masked = f_.kernel().hasMask() && op.getScope() != "rows";
  Value zero = l_.index(0), n;
  if (op.getScope() == "all" || op.getScope() == "rows") {
    n = l_.mul(f_.segments(), f_.rows());
    if (masked)
      n = countValid(zero, n, [&](Value i) {
        return f_.kernel().getSegmentsAreOne() ? Coordinates{.segment = zero, .row = i}
                                               : Coordinates{.segment = l_.div(i, f_.rows()), .row = l_.rem(i, f_.rows())};
      });
  } else if (op.getScope() == "slab") {
    n = f_.rows();
    if (masked) n = countValid(zero, n, [&](Value i) { return Coordinates{.segment = replica->at.segment, .row = i}; });
  } else {
    n = masked ? countValid(begin_, end_, [&](Value i) { return unitCoordinates(i); }) : l_.sub(end_, begin_);
  }
  if (op.getHead()) n = l_.min(n, l_.index(*op.getHead()));
  Value wide = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), n);
  return arith::SIToFPOp::create(l_.b, l_.loc, f_.statistics(), wide);
}

void Walk::countRows() {
  f_.phase()->walk([&](CountOp op) {
    if (op.getScope() != "slab" && !counts_.contains(countKey(op))) counts_[countKey(op)] = count(op, nullptr);
  });
}

std::string Walk::countKey(CountOp op) {
  return (op.getScope() + "/" + llvm::Twine(op.getHead().value_or(0))).str();
}

Value Walk::horizontal(Value v) {
  return vector::ReductionOp::create(l_.b, l_.loc, vector::CombiningKind::ADD, v, arith::FastMathFlags::reassoc);
}

//===-- Probing ---------------------------------------------------------------------===//

/// Where the i-th of some vectors of a run begins. Of a row half of them at each end, so that the shift of data with a
/// trend lies in its middle, and their variance is not what two large sums leave. At equal distances, in memory, they lead
/// the processor to fetch what would lie at the next one. Not of a channel: a row that is an outlier would be among the few
/// that are asked.
Value Walk::spot(Value length, int64_t i, int64_t parts, int64_t width) {
  if (!slab_.isPer("row") || 2 * i < parts) return l_.index(i * width);
  return l_.roundDown(l_.sub(length, l_.index((parts - i) * width)), width);
}

/// Rows of a column that are few enough to look at all of them for its mean.
static constexpr int64_t kFarApart = 4096;

/// A value near the mean. Powers of two of equal numbers add up exactly, so
/// constant data give their value, and differences from it are exact zeros.
Value Walk::probe(ProbeOp op, Replica& replica) {
  TensorOp x = f_.tensor(op.getTensor());
  bool column = kind_ == Kind::Column, masked = f_.kernel().hasMask();
  bool overSegments = !slab_.isPer("segment");
  int64_t lanes = column ? lanes_ : 0;
  Type type = lanes ? Type(VectorType::get({lanes}, f_.statistics())) : f_.statistics();
  Value zero = l_.index(0), one = l_.index(1), none = l_.zero(type);
  const bool ofRows = isOfRows(slab_);  // then it begins with the task
  Coordinates at = replica.at;
  if (ofRows) std::tie(at.segment, at.row) = segmentAndRow(begin_);
  if (!at.segment || (overSegments && !ofRows)) at.segment = zero;
  if (!at.row) at.row = zero;
  if (!column) {
    if (f_.featuresLast()) at.feature = runBegin_;
    else if (slab_.isPer("group")) at.feature = l_.mul(at.group, f_.groupWidth("group"));
  }
  auto valueAt = [&](const Coordinates& c) { return f_.load(x, f_.address(x, c), lanes, lanes ? laneMask_ : Value()); };

  if (masked && !slab_.isPer("row")) {  // the first valid row, wherever it is
    Value segments = overSegments ? f_.segments() : one;
    Value first = ofRows ? begin_ : zero, total = ofRows ? end_ : l_.mul(segments, f_.rows());
    auto place = [&](Value unit) {
      Coordinates c = at;
      c.row = overSegments ? l_.rem(unit, f_.rows()) : unit;
      if (overSegments) c.segment = l_.div(unit, f_.rows());
      return c;
    };
    TensorOp mask = f_.tensor("mask");
    // How many valid rows were found, the first four of them, and where the search stands.
    OpBuilder& b = l_.b;
    auto search = scf::WhileOp::create(
        b, l_.loc, TypeRange(SmallVector<Type>(6, b.getIndexType())), ValueRange{zero, zero, zero, zero, zero, first},
        [&](OpBuilder& inner, Location loc, ValueRange v) {
          Value more = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, v[5], total);
          Value few = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, v[0], l_.index(4));
          scf::ConditionOp::create(inner, loc, arith::AndIOp::create(inner, loc, more, few), v);
        },
        [&](OpBuilder& inner, Location loc, ValueRange run) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(inner.getInsertionBlock());
          Value valid = f_.load(mask, f_.address(mask, place(run[5])), 0, {});
          Values next{l_.add(run[0], l_.select(valid, one, zero))};
          for (int64_t i = 0; i < 4; ++i) {
            Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, run[0], l_.index(i));
            next.push_back(l_.select(arith::AndIOp::create(b, loc, valid, here), run[5], run[1 + i]));
          }
          next.push_back(l_.add(run[5], one));
          scf::YieldOp::create(b, loc, next);
        });
    Values found(search.getResults());
    Values best = l_.when(l_.less(zero, found[0]), none, [&] { return Values{valueAt(place(found[1]))}; });
    return l_.when(l_.less(l_.index(3), found[0]), best, [&] {
      auto v = [&](int i) { return valueAt(place(found[i])); };
      return Values{l_.middle({v(1), v(2), v(3), v(4)})};
    })[0];
  }

  if (double share = 0; Value sum = probedSum(op, replica, share)) return shareOf(horizontal(sum), share);
  // Long enough: a mean over several. Else, if there is anything at all: the first.
  Value rows = ofRows ? l_.sub(end_, begin_) : overSegments ? l_.mul(f_.segments(), f_.rows()) : f_.rows();
  Value length = column ? f_.rows() : ofRows ? l_.min(l_.sub(f_.rows(), at.row), rows) : runWidth();
  if (!slab_.isPer("row")) length = l_.select(l_.less(zero, rows), length, zero);
  auto atLeast = [&](int64_t n) { return l_.less(l_.index(n - 1), length); };
  auto shifted = [&](Value i) {
    Coordinates c = at;
    if (column) c.row = i;
    else (f_.featuresLast() ? c.feature : c.row) = l_.add(f_.featuresLast() ? at.feature : at.row, i);
    return f_.address(x, c);
  };
  /// The mean of `parts` loads of `width` lanes.
  auto meanOf = [&](int64_t parts, int64_t width) {
    Values values;
    for (int64_t i = 0; i < parts; ++i)
      values.push_back(f_.load(x, shifted(spot(length, i, parts, std::max<int64_t>(width, 1))), width, {}));
    Value sum = l_.tree(values);
    if (width) sum = horizontal(sum);
    return Values{shareOf(sum, 1.0 / double(parts * std::max<int64_t>(width, 1)))};
  };
  auto middleOfRows = [&] {
    // Of all rows, not the first: a column may drift. (Long ones were judged with the first.)
    Value eighth = arith::DivUIOp::create(l_.b, l_.loc, length, l_.index(8));
    Value apart = l_.select(l_.less(length, l_.index(kFarApart)), eighth, one);
    Values rows;
    for (int64_t i = 0; i < 8; ++i) rows.push_back(f_.load(x, shifted(l_.mul(l_.index(i), apart)), lanes, laneMask_));
    return Values{l_.middle(rows)};
  };
  Values best = l_.when(l_.less(zero, length), none, [&] { return Values{valueAt(at)}; });
  if (column) return l_.when(atLeast(8), best, middleOfRows)[0];
  int64_t width = probeWidth_;
  // Runs may be short; a task, or a channel, has more than one of them.
  auto middleOfUnits = [&] {
    Values values;
    for (int64_t i = 0; i < 8; ++i) {
      Coordinates c = at;
      std::tie(c.segment, c.row) = segmentAndRow(l_.add(ofRows ? begin_ : zero, l_.index(i)));
      values.push_back(valueAt(c));
    }
    return Values{l_.middle(values)};
  };
  Value several = l_.less(l_.index(7), rows);
  if (overSegments && !ofRows) several = arith::AndIOp::create(l_.b, l_.loc, several, l_.isFalse(atLeast(std::max<int64_t>(width, 4))));
  if (ofRows || overSegments) best = l_.when(several, best, middleOfUnits);
  if (!ofRows) best = l_.when(atLeast(4), best, [&] { return meanOf(4, 0); });
  if (width == 1) return best[0];
  best = l_.when(atLeast(width), best, [&] { return meanOf(1, width); });
  return l_.when(atLeast(4 * width), best, [&] { return meanOf(4, width); })[0];
}

/// Not to be contracted: the mean is the same wherever it is used.
Value Walk::shareOf(Value sum, double share) {
  Value factor = arith::ConstantOp::create(l_.b, l_.loc, l_.b.getFloatAttr(f_.statistics(), share));
  if (auto vector = dyn_cast<VectorType>(sum.getType())) factor = l_.broadcast(factor, vector.getDimSize(0));
  return arith::MulFOp::create(l_.b, l_.loc, sum, factor);
}

Value Walk::probedSum(ProbeOp op, Replica& replica, double& share) {
  if (!f_.featuresLast() || !slab_.isPer("row") || probeWidth_ == 1) return {};
  TensorOp x = f_.tensor(op.getTensor());
  auto length = Loops::constant(runWidth());
  if (!length || *length < probeWidth_) return {};
  int64_t parts = *length < 4 * probeWidth_ ? 1 : 4;
  Coordinates at = replica.at;
  Values values;
  for (int64_t i = 0; i < parts; ++i) {
    at.feature = l_.add(runBegin_, spot(l_.index(*length), i, parts, probeWidth_));
    values.push_back(f_.load(x, f_.address(x, at), probeWidth_, {}));
  }
  share = 1.0 / double(parts * probeWidth_);
  return l_.tree(values);
}

}  // namespace normc::codegen
