#include "codegen/plan/Moments.h"

#include "codegen/plan/Formulas.h"

namespace normc::codegen {

static Nums widened(KernelBuilder& k, const Nums& narrow) {
  Nums wide;
  for (Num each : narrow) wide.push_back(k.widen(each));
  return wide;
}

llvm::ArrayRef<llvm::StringRef> Moments::sums() const {
  static constexpr llvm::StringRef all[] = {"sum", "squares", "moment"};
  llvm::ArrayRef<llvm::StringRef> names(all);
  if (!needsMean_) return names.take_back(1);
  return raw_ ? names : names.drop_back(1);
}

Nums Moments::terms(Element& e) const {
  Nums terms;
  if (needsMean_) {
    Num d = e.where(e.inStatistic(), e.u() - e[Part::Shift]);
    terms = {d, d * d};
  }
  if (!needsMean_ || raw_) {
    Num u = e.where(e.inStatistic(), e.u());
    terms.push_back(u * u);
  }
  return terms;
}

Num Moments::shift(Parts& parts) const {
  if (!needsMean_) return {};
  const Num shift = finiteOr(k_.probe(parts), k_.constant(0));
  parts.is(Part::Shift, shift);
  return shift;
}

Batch Moments::ofSlab(const Nums& sums, Num shift, Num n) const {
  if (!needsMean_) return {.count = {}, .mean = {}, .moment = rawMoment(sums[0], n)};
  // An exact division: if the shift is an outlier, the digits of delta are digits of the mean.
  Num delta = quotient(sums[0], n);
  Num moment = raw_ ? rawMoment(sums[2], n) : max(k_.constant(0), meanOf(sums[1] - sums[0] * delta, n));
  return {.count = {}, .mean = shift + delta, .moment = moment};
}

std::pair<Num, Num> Moments::ofChunk(Num sum, Num squares, Num n) const {
  Num delta = quotient(sum, n);
  return {delta, max(k_.constant(0), squares - sum * delta)};
}

Batch Moments::merged(int64_t phase, Fields field, Num n) const {
  if (!needsMean_)
    return {.count = {}, .mean = {}, .moment = rawMoment(k_.total(phase, {field("moment")})[0], n)};
  llvm::SmallVector<llvm::StringRef> reads{field("rows"), field("shift"), field("sum"), field("squares")};
  if (raw_) reads.push_back(field("moment"));
  enum { kCount, kBase, kMean, kSquares, kRaw };
  Num zero = k_.wideConstant(0), one = k_.wideConstant(1);
  Nums merged = k_.fold(
      Axis::Chunk, phase, reads, Nums(5, zero),
      [&](auto, const Nums& run, const Nums& narrow) {
        const Nums e = widened(k_, narrow);
        Num both = run[kCount] + e[0], share = e[0] / max(both, one);
        Num base = select(run[kCount] > 0.0, run[kBase], e[1]);
        Num mean = (e[1] - base) + e[2], delta = mean - run[kMean];
        // An infinite mean stays one, whatever follows.
        Nums next{both, base, run[kMean] + finiteOr(delta * share, mean),
                  run[kSquares] + e[3] + delta * delta * (run[kCount] * share), run[kRaw]};
        if (raw_) next[kRaw] = run[kRaw] + e[4];
        return next;
      },
      KernelBuilder::Folding::Merges);
  return {.count = {},
          .mean = k_.narrow(merged[kBase] + merged[kMean]),
          .moment = raw_ ? rawMoment(k_.narrow(merged[kRaw]), n) : meanOf(k_.narrow(merged[kSquares]), n)};
}

llvm::ArrayRef<llvm::StringRef> Moments::partialFields() const {
  static constexpr llvm::StringRef all[] = {"sum", "squares"};
  return llvm::ArrayRef<llvm::StringRef>(all).drop_front(needsMean_ ? 0 : 1);
}

Nums Moments::rawSums(int64_t phase, Fields field) const {
  const Num zero = k_.wideConstant(0);
  if (!needsMean_)
    return k_.fold(Axis::Chunk, phase, {field("moment")}, {zero},
                   [&](auto, const Nums& run, const Nums& e) { return Nums{run[0] + widened(k_, e)[0]}; });
  const llvm::StringRef reads[] = {field("rows"), field("shift"), field("sum"),
                                   field(raw_ ? "moment" : "squares")};
  Nums sums =
      k_.fold(Axis::Chunk, phase, reads, {zero, zero}, [&](auto, const Nums& run, const Nums& narrow) {
        const Nums e = widened(k_, narrow);
        const Num mean = e[1] + e[2], sum = e[0] * mean;
        return Nums{run[0] + sum, run[1] + (raw_ ? e[3] : e[3] + sum * mean)};
      });
  if (!raw_) sums[1] = sums[1] + (sums[0] - sums[0]);  // NaN unless the sum is finite
  return sums;
}

Batch Moments::ofPartials() const {
  llvm::SmallVector<llvm::StringRef, 3> fields{"rows"};
  llvm::append_range(fields, partialFields());
  const Nums sums = k_.totalOfPartials(fields);
  const Num n = max(sums[0], k_.wideConstant(1)), squares = sums.back();
  Batch batch{.count = k_.narrow(sums[0]), .mean = {}, .moment = {}};
  const Num mean = needsMean_ ? sums[1] / n : Num();
  if (mean) batch.mean = k_.narrow(mean);
  batch.moment = k_.narrow(raw_ ? squares / n : max(k_.wideConstant(0), (squares - sums[1] * mean) / n));
  return batch;
}

}  // namespace normc::codegen
