#include "codegen/plan/Step.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen {

Step::Step(KernelBuilder& k)
    : k_(k),
      spec_(k.spec()),
      centred_(spec_.center == Center::Current),
      central_(spec_.moment == Moment::Central) {}

// Gamma = q s^2 holds if q was taken about the c of x0, over the rows that enter the sums, and was saved.
bool Step::needsSquares() const {
  if (isOverRanks(k_.problem().entry)) return k_.hasPartial("energy");
  if (spec_.backward != Backward::Approximate || spec_.approximate.nu != Nu::Feedback) return false;
  if (k_.problem().leavesRowsOut()) return true;
  return !spec_.momentIsOfX0() || !k_.hasSaved("second_moment");
}

GradientSums Step::gradientSums() const {
  const bool exact = spec_.backward != Backward::Frozen, own = hasOwnParameters();
  const bool nu = spec_.backward == Backward::Approximate;
  return {.g = (exact && centred_) || (own && (spec_.bias || k_.hasSaved("renorm_shift"))) ||
               k_.hasPartial("gradient"),
          .gx = (exact && spec_.differentiatesMoment()) || nu || (own && spec_.scale) ||
                k_.hasPartial("gradient_x"),
          .xx = needsSquares()};
}

BackwardSums Step::backwardSums(ArrayRef<Num> ofTerms, Num s) const {
  const GradientSums needed = gradientSums();
  const auto next = [&](bool isNeeded) {
    if (!isNeeded) return Num();
    const Num sum = ofTerms.front();
    ofTerms = ofTerms.drop_front();
    return sum;
  };
  BackwardSums sums{.g = next(needed.g), .gx = next(needed.gx), .xx = next(needed.xx)};
  if (sums.gx) sums.gx = sums.gx * s;
  if (sums.xx) sums.xx = sums.xx * s * s;
  return sums;
}

bool Step::hasOwnParameters() const { return !spec_.perGroup(); }

Num Step::elements() {
  if (spec_.perRow()) return k_.width(WidthOf::Groups);
  Num rows = k_.count(spec_.perFeature() ? CountScope::All : CountScope::Slab);
  return max(spec_.reduce == Reduce::SegmentFeatures ? rows * k_.width(WidthOf::Groups) : rows,
             k_.constant(1));
}

//===-- Steps and windows -----------------------------------------------------===//

Num Step::inWarmup() {
  Num t = k_.widen(k_.load(k_.stateIn("step"))) + 1.0;
  return t <= k_.number("warmup_steps");
}

static Value ringSlot(KernelBuilder& k, Num step, int64_t size) {
  auto& b = k.ops();
  Value n = arith::ConstantOp::create(b, k.loc(), b.getI64IntegerAttr(size));
  return arith::RemSIOp::create(b, k.loc(), step.value, n);
}

Step::Position Step::forwardPosition() {
  Num step = k_.load(k_.stateIn("step"));
  Position result{k_.widen(step) + 1.0, {}};
  if (spec_.divideBy == DivideBy::Window) result.slot = ringSlot(k_, step, spec_.window.size);
  return result;
}

static Num isSlot(KernelBuilder& k, Value position, Value slot) {
  Num here = k.integer(position);
  return {&k, arith::CmpIOp::create(k.ops(), k.loc(), arith::CmpIPredicate::eq, here.value, slot)};
}

/// Returns the mean over the window, with `current` in place of the slot that it will overwrite. Its sum is
/// f64: in f32 each addition behind an outlier would cost half an ulp of it.
Num Step::windowMean(StringRef ring, const Position& step, Num current, WindowMean mean) {
  bool geometric = mean == WindowMean::Geometric;
  Nums total = k_.fold(Axis::Window, spec_.window.size, {k_.stateIn(ring)}, {k_.wideConstant(0)},
                       [&](Value at, const Nums& sum, const Nums& old) {
                         Num value = select(isSlot(k_, at, step.slot), current, old[0]);
                         return Nums{sum[0] + k_.widen(geometric ? log(value) : value)};
                       });
  Num average = k_.narrow(total[0]) * (1.0 / static_cast<double>(spec_.window.size));
  return geometric ? exp(average) : average;
}

/// Returns an i1: the window is not full yet, or the warmup has not ended, so the batch's own statistic is
/// used.
Num Step::early(Num t) {
  Num full = t <= k_.wideConstant(double(spec_.window.size));
  if (!spec_.warmup) return full;
  return full || t + 1.0 <= k_.number("warmup_steps");
}

/// Writes the whole ring, with `current` in its slot: state_out may be other memory than state_in. Without
/// valid rows the slot keeps its value.
static void storeRing(KernelBuilder& k, StringRef ring, Value slot, Num current, Num valid, int64_t size) {
  k.fold(Axis::Window, size, {k.stateIn(ring)}, {}, [&](Value at, const Nums&, const Nums& old) {
    k.store(select(isSlot(k, at, slot) && valid, current, old[0]), k.stateOut(ring), at);
    return Nums{};
  });
}

static StringRef momentField(KernelBuilder& k) {
  return k.hasState("running_std") ? "running_std" : k.hasState("running_var") ? "running_var" : "psi2";
}

Num Step::oldMoment() { return k_.load(k_.stateIn(momentField(k_))); }

//===-- Forward ---------------------------------------------------------------===//

std::pair<Num, Num> Step::renormalize(const Batch& batch, Num v, Num t, Num eps, Num one) {
  if (spec_.renorm.kind == Renorm::None) return {};
  Num rmax = k_.narrow(k_.number("renorm_rmax"));
  auto clip = [&](Num x, Num low, Num high) { return min(high, max(low, x)); };
  Num start = k_.number("renorm_start");
  Num quiet = t <= start;
  if (spec_.warmup) quiet = quiet || t <= k_.number("warmup_steps");
  // r = s_running / s: the ratio of the scale that inference will use to that of this batch.
  bool deviation = spec_.renorm.kind == Renorm::Std;
  Num running = deviation ? 1.0 / oldMoment() : inverseRoot(k_, oldMoment(), eps);
  Num r = clip(running / inverseRoot(k_, v, eps), 1.0 / rmax, rmax), shift;
  if (deviation) {
    Num dmax = k_.narrow(k_.number("renorm_dmax"));
    shift = clip((batch.mean - k_.load(k_.stateIn("running_mean"))) * running, -dmax, dmax);
    shift = select(quiet, k_.constant(0), shift);
  }
  return {select(quiet, one, r), shift};
}

ForwardTerms Step::forward(const Batch& batch, bool save) {
  const Num eps = epsilon(), one = k_.constant(1);
  bool state = spec_.running.has_value();
  // A batch without valid rows is no step.
  Num any = state && batch.count ? batch.count > 0.0 : Num();
  const Position step = state ? forwardPosition() : Position();

  // The moment that divides. A batch without valid rows is transformed with running values.
  Num v;
  switch (spec_.divideBy) {
    case DivideBy::Current:
      v = batch.moment;
      break;
    case DivideBy::Running:
      v = oldMoment();
      if (spec_.warmup && batch.moment) v = select(inWarmup() && any, batch.moment, v);
      break;
    case DivideBy::Window:
      v = select(early(step.t), batch.moment,
                 windowMean("window_psi2", step, batch.moment, spec_.window.mean));
      break;
  }
  divided_ = v;
  Num s;
  if (k_.hasState("running_std")) {
    s = select(any, inverseRoot(k_, v, eps), 1.0 / oldMoment());
  } else {
    if (state && spec_.divideBy != DivideBy::Running) v = select(any, v, oldMoment());
    s = inverseRoot(k_, v, eps);
  }

  Num c;
  if (centred_) c = state ? select(any, batch.mean, k_.load(k_.stateIn("running_mean"))) : batch.mean;
  if (spec_.center == Center::Running) c = k_.load(k_.stateIn("running_mean"));
  auto [r, shift] = renormalize(batch, divided_, step.t, eps, one);
  if (r) r = select(any, r, one);
  if (shift) shift = select(any, shift, k_.constant(0));

  if (save) {
    if (c) k_.store(c, k_.saved("mean"));
    k_.store(s, k_.saved("rstd"));
    if (k_.hasSaved("batch_mean")) k_.store(batch.mean, k_.saved("batch_mean"));
    if (k_.hasSaved("renorm_scale")) k_.store(r, k_.saved("renorm_scale"));
    if (k_.hasSaved("renorm_shift")) k_.store(shift ? shift : k_.constant(0), k_.saved("renorm_shift"));
  }
  return outputTerms(c, s, r, shift);
}

/// Returns the coefficients of y = factor (r x0 + shift) + bias.
ForwardTerms Step::outputTerms(Num c, Num s, Num r, Num shift) {
  const Num f = factor();
  if (!spec_.renorm.forward) r = shift = {};
  return {c, multiply(multiply(s, f), r), add(shift ? multiply(shift, f) : Num(), bias())};
}

ForwardTerms Step::recomputed() {
  if (!spec_.recomputesOutput()) return {};
  auto saved = [&](StringRef field) { return k_.hasSaved(field) ? k_.load(k_.saved(field)) : Num(); };
  return outputTerms(center(), rstd(), saved("renorm_scale"), saved("renorm_shift"));
}

void Step::saveLate(const Batch& batch) {
  Num eps = epsilon();
  if (k_.hasSaved("second_moment")) k_.store(batch.moment, k_.saved("second_moment"));
  if (k_.hasSaved("count") && !spec_.perFeature()) k_.store(k_.count(CountScope::Slab), k_.saved("count"));
  if (k_.hasSaved("batch_rstd")) {
    // A batch without valid rows has no scale of its own; the one that was used is saved.
    Num own = select(batch.count > 0.0, batch.moment, oldMoment());
    k_.store(inverseRoot(k_, own, eps), k_.saved("batch_rstd"));
  }
}

/// Returns the running value after this step, from the one before and the batch's.
Num Step::accumulated(Num old, Num now, Num t) {
  Num a = k_.number("decay");
  Num keep = k_.narrow(a), take = k_.narrow(1.0 - a);
  auto decayed = [&](Num from) { return from * keep + now * take; };
  Accumulate how = spec_.warmup ? spec_.warmup->accumulate : Accumulate::Decay;
  if (how == Accumulate::Decay) return decayed(old);
  Num inverse = k_.narrow(1.0 / t), before = k_.narrow((t - 1.0) / t);
  Num warming = t + 1.0 <= k_.number("warmup_steps");
  Num mean = old * before + now * inverse;
  if (how == Accumulate::Cumulative) return select(warming, mean, decayed(old));
  return decayed(select(warming, mean, old));
}

void Step::updateState(const Batch& batch) {
  if (!spec_.running) return;
  Num any = batch.count > 0.0;
  const Position step = forwardPosition();
  Num q = batch.moment;
  if (spec_.divideBy == DivideBy::Window) {
    storeRing(k_, "window_psi2", step.slot, q, any, spec_.window.size);
    q = divided_;
  }
  Num old = oldMoment();
  if (k_.hasState("running_std")) q = 1.0 / inverseRoot(k_, q, epsilon());
  // M / (M - 1); a batch of one row keeps its variance, which is 0.
  if (spec_.running->unbiased) q = q * (batch.count / max(batch.count - 1.0, k_.constant(1)));
  k_.store(select(any, accumulated(old, q, step.t), old), k_.stateOut(momentField(k_)));
  if (k_.hasState("running_mean")) {
    Num mean = k_.load(k_.stateIn("running_mean"));
    k_.store(select(any, accumulated(mean, batch.mean, step.t), mean), k_.stateOut("running_mean"));
  }
}

void Step::advance() {
  bool step = spec_.running.has_value(), count = k_.hasSaved("count");
  if (!step && !count) return;
  k_.phase("advance", PhaseRole::Finish, {}, [&] {
    Num rows = addsPartials(k_.problem().entry) ? k_.narrow(k_.totalOfPartials({"rows"})[0])
                                                : k_.count(CountScope::All);
    if (count) k_.store(rows, k_.saved("count"));
    if (!step) return;
    Num before = k_.load(k_.stateIn("step"));
    Num one = k_.integer(arith::ConstantIndexOp::create(k_.ops(), k_.loc(), 1));
    Num next{&k_, arith::AddIOp::create(k_.ops(), k_.loc(), before.value, one.value)};
    // A batch without valid rows is no step.
    Num after = select(rows > 0.0, next, before);
    k_.store(after, k_.stateOut("step"));
    if (k_.hasSaved("step")) k_.store(after, k_.saved("step"));
  });
}

Num Step::runningScale() {
  const Num eps = epsilon();
  return k_.hasState("running_std") ? 1.0 / oldMoment() : inverseRoot(k_, oldMoment(), eps);
}

ForwardTerms Step::infer() {
  Num s = runningScale();
  Num c = hasCenter() ? runningMean() : Num();
  return {c, multiply(s, factor()), bias()};
}

//===-- Backward --------------------------------------------------------------===//

/// Returns the factor of G in h = factor * G; absent if it is 1.
Num Step::gradientScale() {
  Num r = k_.hasSaved("renorm_scale") ? k_.load(k_.saved("renorm_scale")) : Num();
  return multiply(r, factor());
}

/// Returns the estimate of mean(h x0) in the nu term, and stores the window or the average.
Num Step::kappa(const BackwardSums& sums) {
  // backward() and updateNu() both use it, and its state may be stored only once.
  if (kappa_) return kappa_;
  Num any = count(sums) > 0.0;
  Num rows = k_.problem().leavesRowsOut() && !sums.rows ? k_.count(CountScope::Rows) : summed(sums);
  Num now = meanOf(weighted(sums, sums.gx), rows);
  if (k_.hasState("window_nu")) {
    Num t = k_.load(k_.saved("step"));
    Value one = arith::ConstantOp::create(k_.ops(), k_.loc(), k_.ops().getI64IntegerAttr(1));
    // The forward of this step used the slot of t - 1.
    Num before{&k_, arith::SubIOp::create(k_.ops(), k_.loc(), t.value, one)};
    const Position step{k_.widen(t), ringSlot(k_, before, spec_.window.size)};
    Num mean = windowMean("window_nu", step, now, WindowMean::Arithmetic);
    storeRing(k_, "window_nu", step.slot, now, any, spec_.window.size);
    now = select(early(step.t), now, mean);
  }
  if (spec_.approximate.nu == Nu::Average) {
    Num a = k_.number("backward_decay"), old = k_.load(k_.stateIn("nu"));
    now = old * k_.narrow(a) + now * k_.narrow(1.0 - a);
    k_.store(select(any, now, old), k_.stateOut("nu"));
  }
  return kappa_ = now;
}

bool Step::mayBeOfOne() const {
  const Problem& problem = k_.problem();
  if (!centred_ || problem.leavesRowsOut()) return false;
  return !spec_.perRow() || !problem.features || *problem.features == problem.groups(spec_.groups);
}

DxTerms Step::backward(const std::optional<BackwardSums>& sums) {
  Num s = rstd();
  Num sb = k_.hasSaved("batch_rstd") ? k_.load(k_.saved("batch_rstd")) : s;
  Num h = gradientScale();
  DxTerms terms;
  terms.p = multiply(sb, h);
  if (spec_.backward == Backward::Frozen) return terms;
  Num offset;
  if (centred_) offset = meanOf((sums->count ? sb : terms.p) * sums->g, elements(*sums));
  if (spec_.differentiatesMoment()) {
    Num meanHx0 = sums->count ? sums->gx : multiply(sums->gx, h);
    if (spec_.moment != Moment::Sum) meanHx0 = meanOf(meanHx0, elements(*sums));
    Num eps = epsilon();
    Num f = k_.hasSaved("second_moment") ? rootFactor(k_, k_.load(k_.saved("second_moment")), s, eps) : Num();
    terms.own = -multiply(sb * meanHx0, f);
  }
  if (offset) terms.offset = -offset;
  if (mayBeOfOne()) {
    // The gradient of one element is 0: p g less its own mean would leave the rounding of p g.
    const Num several = elements(*sums) > 1.0;
    for (Num* term : {&terms.p, &terms.offset}) *term = select(several, *term, k_.constant(0));
  }
  if (spec_.backward == Backward::Approximate) {
    Num nu = spec_.approximate.nu == Nu::Feedback ? k_.load(k_.stateIn("nu")) : kappa(*sums);
    terms.all = -(sb * nu);
  }
  return terms;
}

Num Step::dscale(const BackwardSums& sums) {
  if (!k_.hasSaved("renorm_scale")) return sums.gx;
  Num dscale = sums.gx * k_.load(k_.saved("renorm_scale"));
  return k_.hasSaved("renorm_shift") ? dscale + sums.g * k_.load(k_.saved("renorm_shift")) : dscale;
}

void Step::updateNu(const BackwardSums& sums) {
  if (spec_.backward != Backward::Approximate) return;
  if (spec_.approximate.nu != Nu::Feedback) {
    kappa(sums);
    return;
  }
  // nu' = nu (1 - (1-a) Gamma) + (1-a) Lambda. If the same rows enter both directions, both means come from
  // O(d) terms.
  Num any = count(sums) > 0.0;
  Num rows = needsSquares() && k_.problem().leavesRowsOut() && !sums.count
                 ? max(k_.count(CountScope::Rows), k_.constant(1))
                 : summed(sums);
  Num lambda = meanOf(weighted(sums, sums.gx), rows), gamma = sums.gamma;
  if (sums.xx) gamma = meanOf(sums.xx, rows);
  if (!gamma) {
    Num s = rstd();
    gamma = s * s * k_.load(k_.saved("second_moment"));
  }
  if (spec_.approximate.clampGamma) gamma = min(k_.narrow(k_.number("clamp_gamma")), gamma);
  Num take = k_.narrow(1.0 - k_.number("backward_decay"));
  Num nu = k_.load(k_.stateIn("nu"));
  k_.store(select(any, nu * (1.0 - take * gamma) + take * lambda, nu), k_.stateOut("nu"));
}

//===-- Partials --------------------------------------------------------------===//

void Step::storePartial(const BackwardSums& sums) {
  const Num h = gradientScale();
  const auto store = [&](StringRef field, Num value) {
    if (k_.hasPartial(field)) k_.store(k_.widen(value), k_.partial(field));
  };
  store("gradient", multiply(sums.g, h));
  store("gradient_x", multiply(sums.gx, h));
  store("energy", sums.xx);
}

BackwardSums Step::sumsOfPartials(const std::optional<Batch>& batch) {
  SmallVector<StringRef> names;
  for (StringRef name : {"gradient", "gradient_x", "energy", "gradient_rows"})
    if (k_.hasPartial(name)) names.push_back(name);
  const Nums totals = k_.totalOfPartials(names);
  const auto total = [&](StringRef name) {
    const auto at = llvm::find(names, name);
    return at == names.end() ? Num() : k_.narrow(totals[at - names.begin()]);
  };
  BackwardSums sums{total("gradient"), total("gradient_x"), total("energy")};
  sums.rows = total("gradient_rows");
  sums.count = batch ? batch->count : k_.load(k_.saved("count"));
  if (!batch || sums.xx) return sums;
  const Num s = inverseRoot(k_, oldMoment(), epsilon());
  sums.gamma = s * s * batch->moment;
  return sums;
}

void Step::countRows(int64_t phase, StringRef chunks) {
  const StringRef field = chunks.empty() ? "gradient_rows" : "rows";
  if (!k_.hasPartial(field)) return;
  k_.phase("count", PhaseRole::Finish, {}, [&] {
    Num rows = chunks.empty() ? k_.widen(k_.count(CountScope::Rows))
                              : k_.fold(Axis::Chunk, phase, {chunks}, {k_.wideConstant(0)},
                                        [&](Value, const Nums& run, const Nums& e) {
                                          return Nums{run[0] + k_.widen(e[0])};
                                        })[0];
    k_.store(rows, k_.partial(field));
  });
}

}  // namespace normc::codegen
