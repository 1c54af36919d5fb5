#include "codegen/lower/PairLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace normc::codegen {

PairLowering::PairLowering(Loops& loops, AccessLowering& frame, std::optional<Side> side)
    : l_(loops),
      f_(frame),
      rope_(*frame.kernel().getRope()),
      side_(side),
      run_(l_.div(frame.features(), l_.index(rope_.getRuns()))),
      turned_(rope_.getTurned() ? l_.index(rope_.getTurned()) : run_),
      half_(l_.div(turned_, l_.index(2))) {}

static bool divides(int64_t lanes, Value n) {
  const auto known = Loops::constant(n);
  return known && *known % lanes == 0;
}

bool PairLowering::isAligned(int64_t lanes) const {
  const auto block = f_.kernel().getBlock();
  return lanes > 1 && divides(lanes, run_) && (!block || *block % lanes == 0);
}
bool PairLowering::isUniform(int64_t lanes) const {
  return isAligned(lanes) && !rope_.getInterleaved() && divides(lanes, half_);
}
bool PairLowering::isPaired(int64_t lanes) const {
  const auto block = f_.kernel().getBlock();
  return lanes > 1 && rope_.getInterleaved() && (!block || *block % 2 == 0);
}

bool PairLowering::hasWholeVectors(int64_t lanes) const {
  return isUniform(lanes) || (isPaired(lanes) && isAligned(lanes) && isTurnedAlike(lanes));
}

bool PairLowering::hasSides(Value width, int64_t step) const {
  const auto known = Loops::constant(width);
  return known && known == Loops::constant(run_) && !rope_.getTurned() && !rope_.getInterleaved() &&
         divides(step, half_);
}

Value PairLowering::inverse(Value condition) {
  Value all = l_.splat(condition.getType(), l_.b.getIntegerAttr(l_.b.getI1Type(), 1));
  return arith::XOrIOp::create(l_.b, l_.loc, condition, all);
}

Value PairLowering::distance() { return rope_.getInterleaved() ? l_.index(1) : half_; }

/// Integers of one type, scalars or vectors, by operands that are indices.
static Value likeOf(Loops& l, Value index, Type type) {
  Value v = index;
  if (Type element = getElementTypeOrSelf(type); !element.isIndex())
    v = arith::IndexCastOp::create(l.b, l.loc, element, v);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector::BroadcastOp::create(l.b, l.loc, vector, v) : v;
}

Value PairLowering::positionsOf(Value feature, int64_t lanes) {
  // Positions are 32-bit integers: more lanes of them fit in a register.
  auto type = VectorType::get({lanes}, l_.b.getI32Type());
  SmallVector<int32_t> steps(lanes);
  for (int64_t i = 0; i < lanes; ++i) steps[i] = int32_t(i);
  Value step = arith::ConstantOp::create(l_.b, l_.loc, DenseElementsAttr::get(type, ArrayRef(steps)));
  Value all = arith::AddIOp::create(l_.b, l_.loc, likeOf(l_, positionOf(feature), type), step);
  if (isAligned(lanes)) return all;
  return arith::RemUIOp::create(l_.b, l_.loc, all, likeOf(l_, run_, type));
}

PairLowering::Place PairLowering::placeOf(Value position) {
  const Type type = position.getType();
  auto below = [&](Value limit) -> Value {
    return arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::ult, position, likeOf(l_, limit, type));
  };
  Place place;
  if (rope_.getTurned()) place.turned = below(turned_);
  Value zero = likeOf(l_, l_.index(0), type), one = likeOf(l_, l_.index(1), type);
  if (rope_.getInterleaved()) {
    Value side = arith::AndIOp::create(l_.b, l_.loc, position, one);
    place.first = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, side, zero);
    place.pair = arith::ShRUIOp::create(l_.b, l_.loc, position, one);
  } else {
    place.first = below(half_);
    Value second = arith::SubIOp::create(l_.b, l_.loc, position, likeOf(l_, half_, type));
    place.pair = l_.select(place.first, position, second);
  }
  if (place.turned) place.pair = l_.select(place.turned, place.pair, zero);
  return place;
}

/// Returns the place of the lanes of a vector that have the same.
PairLowering::Place PairLowering::placeOfVector(Value feature) {
  if (!side_) return placeOf(positionOf(feature));
  const Value first =
      arith::ConstantOp::create(l_.b, l_.loc, l_.b.getIntegerAttr(l_.b.getI1Type(), side_->first));
  return {.turned = {}, .first = first, .pair = side_->pair};
}

Value PairLowering::turn(TensorOp t, Value value, Place place) {
  if (t.info()->tensor == kRopeSin)
    return l_.select(place.first, arith::NegFOp::create(l_.b, l_.loc, value), value);
  return place.turned ? l_.select(place.turned, value, l_.one(value.getType())) : value;
}

Value PairLowering::isTurned(Value feature, int64_t lanes) {
  if (!lanes || isUniform(lanes) || (isAligned(lanes) && isTurnedAlike(lanes)))
    return placeOf(positionOf(feature)).turned;
  return placeOf(positionsOf(feature, lanes)).turned;
}

Value PairLowering::mates(TensorOp t, const Coordinates& at, int64_t lanes, Value mask) {
  auto loadAt = [&](Value feature, Value where) {
    Coordinates there = at;
    there.feature = feature;
    return f_.load(t, f_.address(t, there), lanes, where);
  };
  if (isPaired(lanes)) {
    SmallVector<int64_t> order(lanes);
    for (int64_t i = 0; i < lanes; ++i) order[i] = i ^ 1;
    const Value own = loadAt(at.feature, mask);
    return vector::ShuffleOp::create(l_.b, l_.loc, own, own, order);
  }
  if (!lanes || isUniform(lanes)) {
    const Place place = placeOfVector(at.feature);
    Value there = l_.select(place.first, l_.add(at.feature, distance()), l_.sub(at.feature, distance()));
    if (place.turned) there = l_.select(place.turned, there, at.feature);
    return loadAt(there, mask);
  }
  const Place place = placeOf(positionsOf(at.feature, lanes));
  const Value turned = l_.both(mask, place.turned);
  const Value behind = loadAt(l_.add(at.feature, distance()), l_.both(turned, place.first));
  const Value before = loadAt(l_.sub(at.feature, distance()), l_.both(turned, inverse(place.first)));
  return l_.select(place.first, behind, before);
}

Value PairLowering::ofPairs(TensorOp t, const Coordinates& at, int64_t lanes, Value mask) {
  auto addressOf = [&](Value pair) {
    Coordinates there = at;
    there.pair = pair;
    return f_.address(t, there);
  };
  if (!lanes || isUniform(lanes)) {
    const Place place = placeOfVector(at.feature);
    return turn(t, f_.load(t, addressOf(place.pair), lanes, mask), place);
  }
  if (rope_.getInterleaved() && isAligned(lanes) && isTurnedAlike(lanes) && lanes % 2 == 0) {
    // Half as many pairs, each of them for two lanes; a vector lies among those that are turned or not.
    const Place place = placeOfVector(at.feature);
    const Value pairs = f_.load(t, addressOf(place.pair), lanes / 2, {});
    SmallVector<int64_t> order(lanes);
    SmallVector<bool> firsts(lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      order[i] = i / 2;
      firsts[i] = i % 2 == 0;
    }
    const Value value = vector::ShuffleOp::create(l_.b, l_.loc, pairs, pairs, order);
    auto type = VectorType::get({lanes}, l_.b.getI1Type());
    const Value first = arith::ConstantOp::create(l_.b, l_.loc, DenseElementsAttr::get(type, firsts));
    return turn(t, value, {.turned = place.turned, .first = first, .pair = {}});
  }
  const Place place = placeOf(positionsOf(at.feature, lanes));
  return turn(t, f_.gather(t, addressOf(l_.index(0)), place.pair, mask), place);
}

}  // namespace normc::codegen
