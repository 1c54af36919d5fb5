// Plans one statistic per feature with whole columns in one task: every statistic is complete inside its
// slab, so nothing has to be combined, and memory is read once if the columns stay on chip.
#include "codegen/plan/FeatureStep.h"

namespace normc::codegen {
namespace {

class Resident {
 public:
  explicit Resident(KernelBuilder& k) : k_(k), spec_(k.spec()), step_(k) {}

  void forward(bool infer) {
    bool running = infer && !step_.inferFromInput();
    phase([&] {
      bool lagged = step_.lagged();
      ForwardTerms terms;
      if (running) {
        terms = step_.infer();
      } else {
        Batch batch;
        // A lagged spec reads batch statistics only in warmup. Afterwards the sweep has a false condition and
        // reads nothing.
        if (!lagged || step_.hasWarmup()) batch = moments(lagged ? step_.inWarmup() : Num());
        terms = step_.forward(batch, /*save=*/!infer);
        if (!lagged && !infer) {
          step_.saveLate(batch);
          step_.updateState(batch);
        }
      }
      if (!lagged || infer) {
        apply(terms, {});
        return;
      }
      // A lagged spec transforms with old values, so the sweep that writes y also sums what the state takes
      // in.
      Num shift = step_.needsMean() ? finiteOr(k_.probe("x"), k_.constant(0)) : Num();
      Batch batch = finish(
          apply(terms, [&](Num x, Num valid) { return momentTerms(x, shift, valid); }, termCount()), shift);
      step_.saveLate(batch);
      step_.updateState(batch);
    });
  }

  void backward() {
    phase([&] {
      Num c = step_.center(), s = step_.rstd();
      auto centred = [&](Num x) { return c ? x - c : x; };
      Num mean = hasOwnRho(spec_) && isRhoCentred(spec_) ? k_.load(k_.saved("batch_mean")) : Num();
      auto rho = [&](Num x) { return !hasOwnRho(spec_) ? Num() : (mean ? x - mean : x) * s; };
      // The sums are over d = x - c. The factor s of x0 = d s is applied once, to the complete sums.
      auto sumTerms = [&](const Nums& e) {
        Num valid = spec_.padding == Padding::Exclude ? validOf(e) : Num();
        Num d = masked(k_, valid, centred(e[0])), g = masked(k_, valid, e[1]);
        Nums terms{g, g * d};
        if (step_.needsSquares()) terms.push_back(d * d);
        return terms;
      };
      KernelBuilder::Sweep sweep{.reads = {k_.argument("x"), k_.argument("dy")}};
      if (k_.problem().mask) sweep.reads.push_back("mask");
      auto collect = [&](const Nums& sums, size_t at) {
        return BackwardSums{sums[at], sums[at + 1] * s, step_.needsSquares() ? sums[at + 2] * s * s : Num()};
      };
      unsigned count = step_.needsSquares() ? 3 : 2;
      std::optional<BackwardSums> sums;
      if (step_.backwardNeedsSums()) {
        KernelBuilder::Sweep first = sweep;
        first.sums = count;
        sums = collect(k_.sweep(first, sumTerms), 0);
      }
      DxTerms terms = step_.backward(sums);
      // If dx needs no sums, the sweep that writes dx collects them for the parameters and nu.
      sweep.writes = {k_.argument("dx")};
      if (!sums) sweep.sums = count;
      Nums late = k_.sweep(sweep, [&](const Nums& e) {
        Nums out{elementDx(k_, terms, e[1], centred(e[0]) * s, rho(e[0]), validOf(e))};
        if (!sums) out.append(sumTerms(e));
        return out;
      });
      step_.finishBackward(sums ? *sums : collect(late, 0));
    });
  }

 private:
  void phase(llvm::function_ref<void()> body) {
    k_.phase("apply", PhaseRole::Apply, {Axis::Feature},
             [&] { k_.slab({Axis::Feature}, {.resident = true}, body); });
  }
  Num validOf(const Nums& e) const { return k_.problem().mask ? e.back() : Num(); }

  unsigned termCount() const { return !step_.needsMean() ? 1 : raw() ? 3 : 2; }
  bool raw() const { return spec_.moment == Moment::Raw; }

  Nums momentTerms(Num x, Num shift, Num valid) {
    if (!shift) {
      x = masked(k_, valid, x);
      return {x * x};
    }
    Num d = masked(k_, valid, x - shift);
    Nums terms{d, d * d};
    if (raw()) {
      x = masked(k_, valid, x);
      terms.push_back(x * x);
    }
    return terms;
  }
  Batch finish(const Nums& sums, Num shift) {
    Batch batch{.count = k_.count(CountScope::All), .mean = {}, .moment = {}};
    Num n = max(batch.count, k_.constant(1));
    if (!shift) {
      batch.moment = meanOf(sums[0], n);
      return batch;
    }
    // exact division: if the shift is an outlier, the digits of delta are digits of the mean
    Num delta = sums[0] / n;
    batch.mean = shift + delta;
    batch.moment = raw() ? meanOf(sums[2], n) : max(k_.constant(0), meanOf(sums[1] - sums[0] * delta, n));
    return batch;
  }
  Batch moments(Num condition) {
    Num shift = step_.needsMean() ? finiteOr(k_.probe("x"), k_.constant(0)) : Num();
    KernelBuilder::Sweep sweep{.reads = {k_.argument("x")}, .sums = termCount(), .condition = condition};
    if (k_.problem().mask) sweep.reads.push_back("mask");
    return finish(k_.sweep(sweep, [&](const Nums& e) { return momentTerms(e[0], shift, validOf(e)); }),
                  shift);
  }

  Nums apply(const ForwardTerms& terms, llvm::function_ref<Nums(Num, Num)> also, unsigned sums = 0) {
    KernelBuilder::Sweep sweep{.reads = {k_.argument("x")}, .writes = {k_.argument("y")}, .sums = sums};
    if (k_.problem().mask) sweep.reads.push_back("mask");
    return k_.sweep(sweep, [&](const Nums& e) {
      Nums out{elementY(k_, terms.c ? e[0] - terms.c : e[0], terms.a, terms.b, validOf(e))};
      if (sums) out.append(also(e[0], validOf(e)));
      return out;
    });
  }

  KernelBuilder& k_;
  const Spec& spec_;
  FeatureStep step_;
};

}  // namespace

void planPerFeatureResident(KernelBuilder& k) {
  Resident plan(k);
  if (k.problem().entry == Entry::Backward) return plan.backward();
  plan.forward(k.problem().entry == Entry::Infer);
  if (k.problem().entry == Entry::Forward) planStepCounter(k);
}

}  // namespace normc::codegen
