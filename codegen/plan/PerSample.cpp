// Plans statistics per row, per segment or per feature group: LN, RMS, GN, IN. Each slab holds one whole
// statistic, so the kernel is one phase; backward adds the fold of dscale and dbias.
#include "codegen/plan/Formulas.h"
#include "dsl/StateFields.h"

namespace normc::codegen {
namespace {

class PerSample {
 public:
  PerSample(KernelBuilder& k, int64_t vector) : k_(k), spec_(k.spec()), vector_(vector) {
    switch (spec_.reduce) {
      case Reduce::Features:
        per_ = {Axis::Segment, Axis::Row, Axis::Group};
        units_ = {Axis::Segment, Axis::Row};
        break;
      case Reduce::Segment:
        per_ = {Axis::Segment, Axis::Feature};
        units_ = {Axis::Segment};
        if (k.problem().layout == Layout::ChannelsFirst) units_.push_back(Axis::Feature);
        break;
      default:
        per_ = {Axis::Segment, Axis::Group};
        units_ = {Axis::Segment, Axis::Group};
    }
    central_ = spec_.moment == Moment::Central;
    centred_ = spec_.center == Center::Current;
    perFeatureSlab_ = spec_.reduce == Reduce::Segment;
    // The statistic of one row does not depend on which rows are padding.
    maskedStatistics_ = k.problem().mask && spec_.reduce != Reduce::Features;
  }

  void forward(bool save) {
    k_.phase("apply", PhaseRole::Apply, units_, [&] {
      k_.slab(per_, {.resident = true}, [&] {
        Num eps = k_.narrow(k_.number("epsilon"));
        Num n = max(elements(), k_.constant(1));
        auto [mean, v] = moments(n);
        Num s = inverseRoot(k_, v, eps);
        Num c = centred_ ? mean : Num();
        if (save) {
          if (c) k_.store(c, k_.saved("mean"));
          k_.store(s, k_.saved("rstd"));
          if (k_.hasSaved("batch_mean")) k_.store(mean, k_.saved("batch_mean"));
          if (k_.hasSaved("second_moment")) k_.store(v, k_.saved("second_moment"));
          if (k_.hasSaved("count")) k_.store(k_.count(CountScope::Slab), k_.saved("count"));
        }
        apply(c, s);
      });
    });
  }

  void backward() {
    bool affine = spec_.scale || spec_.bias;
    k_.phase("apply", PhaseRole::Apply, units_,
             [&] { k_.slab(per_, {.resident = true}, [&] { backwardSlab(); }); });
    // Each task left partial sums per feature.
    if (!affine) return;
    k_.phase("finish", PhaseRole::Finish, {Axis::Feature}, [&] {
      k_.slab({Axis::Feature}, {}, [&] {
        for (Tensor gradient : operandsOf(k_.problem())) {
          const TensorInfo& info = infoOf(gradient);
          if (!info.written() || info.shape != TensorShape::PerFeature) continue;
          Nums total = k_.total(0, {partial(info.name)});
          k_.store(total[0], k_.argument(info.name));
        }
      });
    });
  }

 private:
  llvm::StringRef partial(llvm::StringRef name) {
    return k_.workspace(name, {Axis::Chunk, Axis::Feature}, 0);
  }

  Num elements() {
    switch (spec_.reduce) {
      case Reduce::Features:
        return k_.width(WidthOf::Groups);
      case Reduce::Segment:
        return k_.count(CountScope::Slab);
      default:
        return k_.count(CountScope::Slab) * k_.width(WidthOf::Groups);
    }
  }

  void readMask(llvm::SmallVector<llvm::StringRef, 8>& reads) const {
    if (k_.problem().mask) reads.push_back("mask");
  }
  Num validOf(const Nums& e) const { return k_.problem().mask ? e.back() : Num(); }

  /// True if a row is so short that a probe of the whole row costs no more than a probe of a part.
  bool isProbedWhole() const {
    const auto& features = k_.problem().features;
    if (vector_ < 2 || spec_.reduce != Reduce::Features || !features) return false;
    const int64_t width = *features / k_.problem().groups(spec_.groups);
    return width % vector_ == 0 && width <= 8 * vector_ && llvm::isPowerOf2_64(width / vector_);
  }

  /// Returns the mean, and the moment that divides. A centred moment takes one pass about a shift estimate;
  /// in a short row it is taken about the mean itself.
  std::pair<Num, Num> moments(Num n) {
    bool needsMean = centred_ || central_;
    KernelBuilder::Sweep sweep{.reads = {k_.argument("x")}};
    if (maskedStatistics_) sweep.reads.push_back("mask");
    auto valid = [&](const Nums& e) { return maskedStatistics_ ? e[1] : Num(); };
    if (!needsMean) {
      sweep.sums = 1;
      Nums sums = k_.sweep(sweep, [&](const Nums& e) {
        Num x = masked(k_, valid(e), e[0]);
        return Nums{x * x};
      });
      return {Num(), meanOf(sums[0], n)};
    }
    if (central_ && isProbedWhole()) {
      Num mean = k_.probe("x", /*whole=*/true);
      sweep.sums = 1;
      Nums sums = k_.sweep(sweep, [&](const Nums& e) {
        Num d = e[0] - mean;
        return Nums{d * d};
      });
      return {mean, meanOf(sums[0], n)};
    }
    Num shift = finiteOr(k_.probe("x"), k_.constant(0));
    sweep.sums = central_ ? 2 : 3;
    Nums sums = k_.sweep(sweep, [&](const Nums& e) {
      Num d = masked(k_, valid(e), e[0] - shift);
      Nums terms{d, d * d};
      if (!central_) {
        Num x = masked(k_, valid(e), e[0]);
        terms.push_back(x * x);
      }
      return terms;
    });
    Num delta = meanOf(sums[0], n);
    if (!central_) return {shift + delta, meanOf(sums[2], n)};
    Num v = max(k_.constant(0), meanOf(sums[1] - sums[0] * delta, n));
    return {shift + delta, v};
  }

  /// The parameters of a feature: values of the slab if each feature has its own slab, else elements of the
  /// sweep.
  struct Affine {
    Num scale, bias;
  };
  Affine slabAffine(bool backward = false) {
    if (!perFeatureSlab_) return {};
    bool bias = spec_.bias && !backward;
    return {spec_.scale ? k_.load(k_.argument("scale")) : Num(), bias ? k_.load(k_.argument("bias")) : Num()};
  }

  void apply(Num c, Num s) {
    Affine affine = slabAffine();
    KernelBuilder::Sweep sweep{.reads = {k_.argument("x")}, .writes = {k_.argument("y")}};
    if (!perFeatureSlab_) {
      if (spec_.scale) sweep.reads.push_back(k_.argument("scale"));
      if (spec_.bias) sweep.reads.push_back(k_.argument("bias"));
    } else {
      s = multiply(s, affine.scale);
    }
    readMask(sweep.reads);
    k_.sweep(sweep, [&](const Nums& e) {
      Num d = c ? e[0] - c : e[0];
      if (perFeatureSlab_) return Nums{elementY(k_, d, s, affine.bias, validOf(e))};
      Num scale = spec_.scale ? e[1] : Num();
      Num bias = spec_.bias ? e[spec_.scale ? 2 : 1] : Num();
      return Nums{elementY(k_, d * s, scale, bias, validOf(e))};
    });
  }

  void backwardSlab() {
    Num s = k_.load(k_.saved("rstd"));
    Num c = centred_ ? k_.load(k_.saved("mean")) : Num();
    Num n = max(elements(), k_.constant(1));
    bool exact = spec_.backward == Backward::Exact;
    Affine affine = slabAffine(/*backward=*/true);
    bool scaled = spec_.scale && !perFeatureSlab_;

    // g is the gradient of the normalized value, up to a factor that is constant in the slab. The scale s of
    // x0 = (x - c) s is applied once, to the complete sums.
    KernelBuilder::Sweep sums{.reads = {k_.argument("x"), k_.argument("dy")}, .sums = 2};
    if (scaled) sums.reads.push_back(k_.argument("scale"));
    readMask(sums.reads);
    auto centred = [&](const Nums& e) { return c ? e[0] - c : e[0]; };
    Num mean = hasOwnRho(spec_) && isRhoCentred(spec_) ? k_.load(k_.saved("batch_mean")) : Num();
    auto rho = [&](const Nums& e) { return !hasOwnRho(spec_) ? Num() : (mean ? e[0] - mean : e[0]) * s; };
    auto gradient = [&](const Nums& e) { return scaled ? e[1] * e[2] : e[1]; };
    auto excluded = [&](const Nums& e) { return spec_.padding == Padding::Exclude ? validOf(e) : Num(); };
    bool gradients = (spec_.scale || spec_.bias) && perFeatureSlab_;
    Num sumG, sumGx0;
    if (exact || gradients) {
      Nums totals = k_.sweep(sums, [&](const Nums& e) {
        Num g = masked(k_, excluded(e), gradient(e));
        return Nums{g, g * masked(k_, excluded(e), centred(e))};
      });
      sumG = totals[0], sumGx0 = totals[1] * s;
    }
    // The slab has all rows of one feature in a segment, so its sums are terms of dscale and dbias.
    if (perFeatureSlab_ && spec_.scale) k_.accumulate(sumGx0, partial("dscale"));
    if (perFeatureSlab_ && spec_.bias) k_.accumulate(sumG, partial("dbias"));

    DxTerms terms{.p = multiply(s, affine.scale), .all = {}, .own = {}, .offset = {}};
    if (exact)
      terms = sampleTerms(k_, terms.p, s, centred_, sumG, meanOf(multiply(sumGx0, affine.scale), n), n);

    KernelBuilder::Sweep apply{.reads = sums.reads, .writes = {k_.argument("dx")}};
    bool dscale = spec_.scale && !perFeatureSlab_, dbias = spec_.bias && !perFeatureSlab_;
    if (dscale) apply.partials.push_back(partial("dscale"));
    if (dbias) apply.partials.push_back(partial("dbias"));
    k_.sweep(apply, [&](const Nums& e) {
      Num x0 = centred(e) * s;
      // The mask removes the exact terms from padded rows only if it enters the statistic.
      Num valid = maskedStatistics_ || spec_.padding == Padding::Exclude ? validOf(e) : Num();
      Nums out{elementDx(k_, terms, gradient(e), x0, rho(e), valid)};
      Num g = masked(k_, excluded(e), e[1]);
      if (dscale) out.push_back(g * masked(k_, excluded(e), x0));
      if (dbias) out.push_back(g);
      return out;
    });
  }

  KernelBuilder& k_;
  const Spec& spec_;
  llvm::SmallVector<Axis, 3> per_;
  llvm::SmallVector<Axis, 2> units_;
  int64_t vector_;
  bool central_, centred_, perFeatureSlab_, maskedStatistics_;
};

}  // namespace

void planPerSample(KernelBuilder& k, int64_t vector) { planEntry(PerSample(k, vector), k.problem().entry); }

}  // namespace normc::codegen
