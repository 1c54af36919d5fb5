// The shift estimate of a one-pass variance: a robust centre of elements from all of a slab, as in
// codegen/lower/Probe.cpp. It differs where rows are few, runs are long or groups are short, and the shift is
// not rounded to the type of the data.
#include "codegen/targets/halide/generator/Translation.h"
#include "runtime/abi/StratifiedOffsets.h"

using namespace Halide;

namespace normc::halide {

/// Rows or vectors that the estimate samples. A shift k standard deviations from the mean multiplies the
/// error of a sum of squares by 1 + k². Among 400 thousand columns of 33 to 129 normal values the largest k
/// is 1.7 for 8 rows, 1.3 for 16, and the largest error of the variance is 1.05 and 0.88 of what is allowed.
static constexpr int64_t kRows = 16, kVectors = 4;
/// Up to five rows have short sums, and the centre of four is near their mean.
static constexpr int64_t kFewRows = 4, kMostFew = 5;

/// Returns the sample of the i-th of equal shares of `count`, as in runtime/abi/StratifiedOffsets.h.
static Expr stratifiedOffset(const Expr& count, const Expr& i, int64_t parts) {
  const int64_t share = kOffsetDenominator / parts;
  return count * simplify(i * wide(share) + wide(share / 4) + i * i * wide(kOffsetJitter) % wide(share / 2)) /
         wide(kOffsetDenominator);
}
static Expr stratifiedOffset(const Expr& count, int64_t i, int64_t parts) {
  return stratifiedOffset(count, wide(i), parts);
}

Coordinates Translation::probedPlace(Coordinates at, int64_t i, int64_t parts) const {
  if (!slab_->isPer("segment")) at.segment = stratifiedOffset(m_.segments(), i, parts);
  at.row = stratifiedOffset(m_.rows(), i, parts);
  at.feature = probedFeature(at, i, parts);
  return at;
}

Expr Translation::probedFeature(const Coordinates& at, int64_t i, int64_t parts) const {
  if (kind_ == Kind::Column) return at.feature;
  if (kernel_.featuresLast) return at.feature + stratifiedOffset(runWidth(*slab_), i, parts);
  return slab_->isPer("group") ? at.feature + stratifiedOffset(m_.groupWidth("group"), i, parts) : at.feature;
}

Expr Translation::sampled(const Op& op, const Coordinates& at) const {
  Exprs read;
  for (const std::string& name : op.reads) read.push_back(m_.load(kernel_.tensor(name), at));
  if (op.yield.empty()) return read[0];
  Values values;
  for (size_t i = 0; i < read.size(); ++i) values.set(op.args[i], read[i]);
  for (const Op& inner : op.body)
    if (!evaluate(inner, values, /*lanes=*/true))
      throw Refusal("the operation '" + inner.name + "' in a probe");
  return values[op.yield[0]];
}

/// Powers of two of equal numbers add up exactly, so constant data give their value, and differences from it
/// are exact zeros.
void Translation::probe(const Op& op, Nest& nest, Replicas& replicas, int64_t lanes) {
  const bool column = kind_ == Kind::Column, overSegments = !slab_->isPer("segment"),
             ofRow = slab_->isPer("row");
  const Expr none = make_zero(m_.statistics());
  Replicas places = replicas;
  for (Replica& r : places) {
    if (overSegments) r.at.segment = wide(0);
    if (!r.at.row.defined()) r.at.row = wide(0);
    if (column) continue;
    if (kernel_.featuresLast)
      r.at.feature = runBegin_;
    else if (slab_->isPer("group"))
      r.at.feature = r.at.group * m_.groupWidth("group");
  }
  if (kernel_.hasMask() && !ofRow) {
    for (size_t i = 0; i < replicas.size(); ++i) {
      replicas[i].values.set(op.out[0], maskedProbe(op, nest, places[i], lanes));
      replicas[i].valid = places[i].valid;
    }
    return;
  }
  const Expr units = overSegments ? m_.segments() * m_.rows() : m_.rows();
  // 0 or 1 times, by the condition.
  auto times = [&](Expr condition) {
    if (!ofRow) condition = condition && units > wide(0);
    return RDom(0, simplify(cast<int>(condition)), "once");
  };
  auto middleOfRows = [&](const Coordinates& at, int64_t count) {
    Exprs rows;
    for (int64_t i = 0; i < count; ++i) rows.push_back(sampled(op, probedPlace(at, i, count)));
    return middle(rows);
  };
  if (column) {
    Stage stage = define(nest, "probe", lanes, {none});
    for (const int64_t count : {kFewRows, kRows})
      update(stage, nest, v_, {middleOfRows(places[0].at, count)}, {},
             times(count == kRows ? units > wide(kMostFew) : units <= wide(kMostFew)));
    replicas[0].values.set(op.out[0], stage.at(nest.here(), v_, 0));
    return;
  }
  // Four vectors, which overlap in a short run. A run shorter than one vector gives elements, a single row
  // its first.
  const int64_t width = schedule_.vector;
  const Expr length = runWidth(*slab_);
  Stage stage = define(nest, "probe", width, Exprs(replicas.size(), none));
  auto vectorAt = [&](const Coordinates& at, int64_t k) {
    Coordinates c = ofRow ? at : probedPlace(at, k, kVectors);
    Expr& along = kernel_.featuresLast ? c.feature : c.row;
    const Expr begin = kernel_.featuresLast ? at.feature : wide(0);
    along = (ofRow ? begin + stratifiedOffset(length / wide(width), k, kVectors) * wide(width)
                   : min(along, begin + length - wide(width))) +
            wide(Expr(v_));
    return sampled(op, c);
  };
  Exprs means, few;
  for (const Replica& r : places) {
    Exprs parts;
    for (int64_t k = 0; k < kVectors; ++k) parts.push_back(vectorAt(r.at, k));
    means.push_back(
        ofRow ? product(pairwise(parts), make_const(m_.statistics(), 1.0 / double(kVectors * width)))
              : product(middle(parts), make_const(m_.statistics(), 1.0 / double(width))));
    few.push_back(ofRow ? sampled(op, r.at) : middleOfRows(r.at, kRows));
  }
  if (width > 1) update(stage, nest, v_, means, {}, times(length >= wide(width)));
  update(stage, nest, 0, few, {}, times(width > 1 ? length < wide(width) : const_true()));
  stage = folded(nest, stage);
  for (size_t i = 0; i < replicas.size(); ++i)
    replicas[i].values.set(op.out[0], stage.across(nest.here(), i));
}

/// Returns the estimate from valid rows, one of each share of them.
Expr Translation::maskedProbe(const Op& op, Nest& nest, Replica& r, int64_t lanes) {
  const bool overSegments = !slab_->isPer("segment");
  const Expr units = overSegments ? m_.segments() * m_.rows() : m_.rows();
  const Stage after = rowsFrom(nest, r, units);
  Exprs samples;
  for (int64_t k = 0; k < kRows; ++k) {
    const Expr from = after.at(overSegments ? Exprs() : nest.here(), static_cast<int>(k), 0);
    Coordinates at = maskedUnit(r.at, units - wide(max(from, 1)));
    at.feature = probedFeature(r.at, k, kRows);
    samples.push_back(sampled(op, at));
  }
  const Expr none = make_zero(m_.statistics());
  Stage stage = define(nest, "probe", lanes, {none});
  RDom once(0, simplify(cast<int>(units > wide(0))), "once");
  update(stage, nest, v_, {select(r.valid > 0, middle(samples), none)}, {}, once);
  return stage.at(nest.here(), v_, 0);
}

Coordinates Translation::maskedUnit(Coordinates at, const Expr& unit) const {
  const bool several = !slab_->isPer("segment") && !kernel_.segmentsAreOne;
  at.row = several ? unit % m_.rows() : unit;
  if (several) at.segment = unit / m_.rows();
  return at;
}

Translation::Stage Translation::rowsFrom(Nest& nest, Replica& r, const Expr& units) {
  const bool overSegments = !slab_->isPer("segment");
  auto place = [&](const Expr& unit) { return maskedUnit(r.at, unit); };
  RDom unit(0, cast<int>(units), "unit");
  const Expr valid = select(m_.load(kernel_.tensor("mask"), place(wide(Expr(unit)))), 1, 0);
  Expr count;  // in the lanes of the samples, which is no slower than one number
  if (overSegments) {
    count = r.valid = countValid("all", units, place, nullptr);
    if (rowsFrom_) return *rowsFrom_;
  } else {
    Stage counts = define(nest, "count", kRows, {0});
    count = counts.at(nest.here(), v_, 0);
    update(counts, nest, v_, {count + valid}, {}, unit);
    r.valid = counts.at(nest.here(), 0, 0);
  }
  Nest task;
  Nest& in = overSegments ? task : nest;
  // The second value is how many valid rows are still to pass. It is negative from the sample on.
  const Expr rank = stratifiedOffset(wide(count), wide(Expr(v_)), kRows);
  Stage stage = define(in, "search", kRows, {0, cast<int>(rank)});
  const Exprs old{stage.at(in.here(), v_, 0), stage.at(in.here(), v_, 1)};
  const Expr left = old[1] - valid, passed = reinterpret<int32_t>(reinterpret<uint32_t>(left) >> 31);
  update(stage, in, v_, allFromOld({old[0] + passed, left}, old), {}, unit);
  if (!overSegments) return stage;
  atRoot_.push_back(stage.func);
  return *(rowsFrom_ = stage);
}

//===-- Pilot rows of a stream ---------------------------------------------------------===//

Expr Translation::headUnit(Expr n, int64_t head) {
  const Expr begin = m_.begin(), rows = m_.end() - begin;
  int64_t size = 0;
  for (const Tensor& t : kernel_.tensors)
    if (t.xSized() && !size) size = bytes(t);
  const Expr most = wide(kHeadBytes) / max(m_.features() * wide(size), wide(1));
  // Long rows are two apart at least, so that the head of a small batch that drifts is all over it.
  const Expr apart =
      m_.once("apart", max(max(min(rows, most), min(rows, wide(2 * head))) / wide(head), wide(1)));
  const Expr i = n - begin;
  if (!kernel_.hasMask()) return begin + stratifiedOffset(apart * wide(head), i, head);
  const Expr part = i % wide(head), first = part * apart;
  const Expr within = (stratifiedOffset(apart * wide(head), part, head) - first + i / wide(head)) % apart;
  return begin + select(i < apart * wide(head), first + within, i);
}

}  // namespace normc::halide
