// Shift estimates: a value near the mean of a slab, which its one-pass variance subtracts.
//
// If the shift is k standard deviations from the mean, the variance loses about k^2 of its precision. So
// samples come from the whole slab: if data drift, as the rows of a text do, the first rows are like no
// others, and if an image is padded its ends are. The centre of single elements is a middle, not a mean, so
// that one outlier counts for nothing; the same holds for vectors of a long run.
#include "codegen/lower/SlabLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen {

/// The vectors that are sampled.
static constexpr int64_t kVectors = 4;
/// Up to 16 rows, or features, have short sums, and the centre of eight is near their mean.
static constexpr int64_t kFewProbed = 8, kMostFew = 16;
/// The elements of a run from which on one outlier among the sampled vectors would be noticeable.
static constexpr int64_t kLongRun = 1 << 14;

Value SlabLowering::probe(ProbeOp op, Replica& replica) {
  Coordinates at = replica.at;
  if (!at.segment || !slab_.isPer(Axis::Segment)) at.segment = l_.index(0);
  if (!at.row) at.row = l_.index(0);
  if (kind_ != Kind::Column) {
    if (f_.featuresLast())
      at.feature = runBegin_;
    else if (slab_.isPer(Axis::Group))
      at.feature = l_.mul(at.group, f_.groupWidth(Axis::Group));
  }
  if (f_.kernel().hasMask() && !slab_.isPer(Axis::Row)) return asStored(op, probeValid(op, at));
  if (isAcrossChannels()) return asStored(op, probeFeatures(op, at));
  return kind_ == Kind::Run ? probeRun(op, at) : asStored(op, probeRows(op, at));
}

Value SlabLowering::asStored(ProbeOp op, Value shift) {
  if (!op.getBody().empty()) return shift;
  TensorOp x = f_.tensor(op.tensors()[0]);
  return f_.widened(x, f_.narrowed(x, shift));
}

Value SlabLowering::sampled(ProbeOp op, llvm::function_ref<Value(TensorOp)> load) {
  Values read;
  for (StringRef name : op.tensors()) read.push_back(load(f_.tensor(name)));
  if (op.getBody().empty()) return read[0];
  IRMapping values;
  values.map(op.getBody().getArguments(), read);
  return regionCode(op.getBody().front(), values)[0];
}

Value SlabLowering::sampledAt(ProbeOp op, const Coordinates& at, int64_t lanes, Value mask) {
  return sampled(op, [&](TensorOp t) {
    const int64_t own = lanesBeside(t, lanes);
    return f_.load(t, f_.address(t, at), own, own ? mask : Value());
  });
}

Value SlabLowering::probed(ProbeOp op, const Coordinates& at) {
  const int64_t lanes = kind_ == Kind::Column ? lanes_ : 0;
  return sampledAt(op, at, lanes, lanes ? laneMask_ : Value());
}

/// Returns the feature of sample i in a slab of several features.
Value SlabLowering::probedFeature(const Coordinates& at, Value i, int64_t parts) {
  if (kind_ == Kind::Column) return at.feature;
  if (f_.featuresLast()) return l_.add(at.feature, l_.stratifiedOffset(runWidth(), i, parts));
  return slab_.isPer(Axis::Group)
             ? l_.add(at.feature, l_.stratifiedOffset(f_.groupWidth(Axis::Group), i, parts))
             : at.feature;
}

Coordinates SlabLowering::probedPlace(Coordinates at, Value i, int64_t parts) {
  at.feature = probedFeature(at, i, parts);
  if (slab_.isOfRows()) {
    Value unit = l_.add(begin_, l_.stratifiedOffset(l_.sub(end_, begin_), i, parts));
    std::tie(at.segment, at.row) = segmentAndRow(unit);
    return at;
  }
  if (!slab_.isPer(Axis::Segment)) at.segment = l_.stratifiedOffset(f_.segments(), i, parts);
  at.row = l_.stratifiedOffset(f_.rows(), i, parts);
  return at;
}

/// Returns the estimate from rows: the middle of elements, or the mean over the lanes of the middle of four
/// vectors if runs are long.
Value SlabLowering::probeRows(ProbeOp op, const Coordinates& at) {
  const bool column = kind_ == Kind::Column;
  const Value segments = slab_.isPer(Axis::Segment) ? l_.index(1) : f_.segments(), none = l_.index(0);
  const Value units = slab_.isOfRows() ? l_.sub(end_, begin_) : l_.mul(segments, f_.rows());
  const Value some = l_.less(none, units);
  auto middleOf = [&](int64_t rows) {
    Values values;
    for (int64_t i = 0; i < rows; ++i) values.push_back(probed(op, probedPlace(at, l_.index(i), rows)));
    return Values{l_.middle(values)};
  };
  auto middleOfRows = [&](Value condition, Value otherwise) -> Value {
    // The code of a segment is inside a loop and would outgrow its share of the instruction cache.
    const int64_t few = std::min(kFewProbed, probedRows_);
    const bool onlyFew = few == probedRows_ || slab_.isPer(Axis::Segment);
    const Value many = l_.less(l_.index(kMostFew), units);
    Value best = l_.when(onlyFew ? condition : l_.both(condition, l_.isFalse(many)), otherwise,
                         [&] { return middleOf(few); })[0];
    if (onlyFew) return best;
    return l_.when(l_.both(condition, many), best, [&] { return middleOf(probedRows_); })[0];
  };
  Value zero = l_.zero(column && lanes_ ? Type(VectorType::get({lanes_}, f_.statistics())) : f_.statistics());
  const int64_t width = probeWidth_;
  if (column || width == 1) return middleOfRows(some, zero);

  Value isLong = l_.less(l_.index(width - 1), runWidth());
  Value best = middleOfRows(l_.both(some, l_.isFalse(isLong)), zero);
  return l_.when(l_.both(some, isLong), best, [&] {
    Values values;
    for (int64_t i = 0; i < kVectors; ++i) {
      Coordinates c = probedPlace(at, l_.index(i), kVectors);
      Value& along = f_.featuresLast() ? c.feature : c.row;
      Value end = f_.featuresLast() ? l_.add(at.feature, runWidth()) : f_.rows();
      along = l_.min(along, l_.sub(end, l_.index(width)));
      values.push_back(sampledAt(op, c, width));
    }
    return Values{shareOf(horizontal(l_.middle(values)), 1.0 / double(width))};
  })[0];
}

/// Returns the estimate from features of the rows in the lanes: the middle of elements.
Value SlabLowering::probeFeatures(ProbeOp op, const Coordinates& at) {
  const Value width = f_.groupWidth(Axis::Group);
  const auto known = Loops::constant(width);
  const int64_t parts = known && *known <= kMostFew ? std::min(kFewProbed, probedRows_) : probedRows_;
  Values values;
  for (int64_t i = 0; i < parts; ++i) {
    Coordinates c = at;
    c.feature = l_.add(at.feature, l_.stratifiedOffset(width, l_.index(i), parts));
    values.push_back(probed(op, c));
  }
  return l_.middle(values);
}

CountScope SlabLowering::probedScope() {
  return slab_.isOfRows()             ? CountScope::Task
         : slab_.isPer(Axis::Segment) ? CountScope::Slab
                                      : CountScope::All;
}

/// Returns the estimate from rows with a mask: the middle of valid rows.
Value SlabLowering::probeValid(ProbeOp op, const Coordinates& at) {
  const int64_t lanes = kind_ == Kind::Column ? lanes_ : 0;
  const Value count = rowsOf(probedScope(), at.segment);
  const ArrayRef<Coordinates> places = validPlaces(at.segment);
  Value zero = l_.zero(lanes ? Type(VectorType::get({lanes}, f_.statistics())) : f_.statistics());
  return l_.when(l_.less(l_.index(0), count), zero, [&] {
    Values values;
    for (auto [i, place] : llvm::enumerate(places)) {
      Coordinates c = at;
      c.segment = place.segment;
      c.row = place.row;
      c.feature = probedFeature(at, l_.index(i), probedRows_);
      values.push_back(probed(op, c));
    }
    return Values{l_.middle(values)};
  })[0];
}

ArrayRef<Coordinates> SlabLowering::validPlaces(Value segment) {
  const CountScope scope = probedScope();
  const Value key = scope == CountScope::Slab ? segment : Value();
  for (ValidPlaces& known : validPlaces_)
    if (known.scope == scope && known.segment == key &&
        known.anchor.getParentRegion()->isAncestor(l_.b.getInsertionBlock()->getParent()))
      return known.places;
  const Value count = rowsOf(scope, segment), none = l_.index(0);
  const Values found =
      l_.when(l_.less(none, count), Values(2 * probedRows_, none), [&] { return searchValid(key, count); });
  SmallVector<Coordinates> places;
  for (int64_t i = 0; i < probedRows_; ++i)
    places.push_back({.segment = key ? key : found[2 * i], .row = found[2 * i + 1]});
  validPlaces_.push_back({scope, key, found[1], places});
  return validPlaces_.back().places;
}

//===-- Of one run ------------------------------------------------------------------===//

/// Returns where vector i of `parts` begins in a run, in whole vectors. In a short run the first and the last
/// vector are samples and the others are spread evenly, so that a frame of other values around the data never
/// covers all of them.
static Value spot(Loops& l, Value length, int64_t i, int64_t parts, int64_t width) {
  constexpr int64_t shortRun = 8;
  Value vectors = l.div(length, l.index(width));
  auto known = Loops::constant(vectors);
  Value at = !known || *known > shortRun ? l.stratifiedOffset(vectors, l.index(i), parts)
                                         : l.index(i * (*known - 1) / std::max<int64_t>(parts - 1, 1));
  return l.mul(at, l.index(width));
}

/// Returns the mean of a power of two of elements, so that equal elements give their value.
Value SlabLowering::probeRun(ProbeOp op, const Coordinates& at) {
  if (double share = 0; Value sum = probedSum(op, at, share)) return shareOf(horizontal(sum), share);
  Value length = runWidth();
  auto atLeast = [&](int64_t n) { return l_.less(l_.index(n - 1), length); };
  auto along = [&](Value i) {
    Coordinates c = at;
    Value& run = f_.featuresLast() ? c.feature : c.row;
    run = l_.add(run, i);
    return c;
  };
  auto asked = [&](int64_t parts, int64_t width) {
    Values values;
    for (int64_t i = 0; i < parts; ++i)
      values.push_back(sampledAt(op, along(spot(l_, length, i, parts, std::max<int64_t>(width, 1))), width));
    return values;
  };
  auto meanOf = [&](int64_t parts, int64_t width) {
    Value sum = l_.tree(asked(parts, width));
    if (width) sum = horizontal(sum);
    return Values{shareOf(sum, 1.0 / double(parts * std::max<int64_t>(width, 1)))};
  };
  Values best =
      l_.when(l_.less(l_.index(0), length), l_.zero(f_.statistics()), [&] { return Values{probed(op, at)}; });
  best = l_.when(atLeast(4), best, [&] { return meanOf(4, 0); });
  const int64_t width = probeWidth_;
  if (width == 1) return best[0];
  for (const int64_t parts : {1, 2, 4})
    best = l_.when(atLeast(parts * width), best, [&] { return meanOf(parts, width); });
  return l_.when(atLeast(kLongRun), best, [&] {
    return Values{shareOf(horizontal(l_.middle(asked(4, width))), 1.0 / double(width))};
  })[0];
}

/// The product must not be contracted into an fma: the mean has to be the same wherever it is used.
Value SlabLowering::shareOf(Value sum, double share) {
  Value factor = arith::ConstantOp::create(l_.b, l_.loc, l_.b.getFloatAttr(f_.statistics(), share));
  if (auto vector = dyn_cast<VectorType>(sum.getType())) factor = l_.broadcast(factor, vector.getDimSize(0));
  return arith::MulFOp::create(l_.b, l_.loc, sum, factor);
}

Value SlabLowering::probedSum(ProbeOp op, Coordinates at, double& share) {
  if (!f_.featuresLast() || !slab_.isPer(Axis::Row) || probeWidth_ == 1) return {};
  auto length = Loops::constant(runWidth());
  if (!length || *length < probeWidth_) return {};
  const int64_t vectors = *length / probeWidth_;
  const int64_t parts = op.getWhole() ? vectors : vectors < 2 ? 1 : vectors < 4 ? 2 : 4;
  Values values;
  for (int64_t i = 0; i < parts; ++i) {
    at.feature = l_.add(runBegin_, spot(l_, l_.index(*length), i, parts, probeWidth_));
    values.push_back(sampledAt(op, at, probeWidth_));
  }
  const bool isLong = *length >= kLongRun && parts == 4 && !op.getWhole();
  share = 1.0 / double(isLong ? probeWidth_ : parts * probeWidth_);
  return isLong ? l_.middle(values) : l_.tree(values);
}

}  // namespace normc::codegen
