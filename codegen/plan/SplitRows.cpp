// Statistics of rows whose features several tasks share: LN and RMS of a few long
// rows. A task sums its features of each row, a phase over the rows merges the
// sums, and a third goes down the columns, so that dscale and dbias need no fold.
//
// The chunks follow from sizes and schedule alone, as everywhere: results do not
// depend on how many threads there are.
#include "codegen/plan/Formulas.h"

namespace normc::codegen {
namespace {

class SplitRows {
 public:
  explicit SplitRows(KernelBuilder& k)
      : k_(k), spec_(k.spec()), central_(spec_.moment == Moment::Central), centred_(spec_.center == Center::Current) {}

  void forward(bool save) {
    k_.phase("statistics", "statistics", kFeatures, [&] { sumMoments(); });
    k_.phase("combine", "combine", kRows, [&] {
      k_.slab(kRows, {}, [&] {
        auto [mean, v] = moments();
        Num s = inverseRoot(k_, v, k_.narrow(k_.number("epsilon")));
        if (save) {
          if (centred_) k_.store(mean, k_.saved("mean"));
          k_.store(s, k_.saved("rstd"));
          if (k_.hasSaved("batch_mean")) k_.store(mean, k_.saved("batch_mean"));
          if (k_.hasSaved("second_moment")) k_.store(v, k_.saved("second_moment"));
        }
        if (centred_) k_.store(mean, ofRow("c"));
        k_.store(s, ofRow("s"));
      });
    });
    k_.phase("apply", "apply", kFeatures, [&] { k_.slab(kFeatures, {}, [&] { apply(); }); });
  }

  void backward() {
    const bool exact = spec_.backward == Backward::Exact;
    if (exact) k_.phase("statistics", "statistics", kFeatures, [&] { k_.slab(kRows, {}, [&] { sumGradients(); }); });
    k_.phase("combine", "combine", kRows, [&] {
      k_.slab(kRows, {}, [&] {
        Num s = k_.load(k_.saved("rstd")), c = centred_ ? k_.load(k_.saved("mean")) : Num();
        terms_ = {.p = s, .all = {}, .own = {}, .offset = {}};
        if (exact) {
          Num n = k_.width("groups");
          Nums sums = k_.total(kChunks, {ofChunk("g"), ofChunk("gx")});
          terms_ = sampleTerms(k_, s, s, c, sums[0], sums[1] / n, n);
        }
        k_.store(s, ofRow("s"));
        if (c) k_.store(c, ofRow("c"));
        if (terms_.own) k_.store(terms_.own, ofRow("own"));
        if (terms_.offset) k_.store(terms_.offset, ofRow("offset"));
      });
    });
    k_.phase("apply", "apply", kFeatures, [&] { k_.slab(kFeatures, {}, [&] { applyBackward(); }); });
  }

 private:
  static constexpr llvm::StringRef kRowAxes[] = {"segment", "row"}, kFeatureAxes[] = {"feature"};
  static constexpr Names kRows = kRowAxes, kFeatures = kFeatureAxes;
  static constexpr llvm::StringRef kChunks = "chunk.0";

  llvm::StringRef ofRow(llvm::StringRef name) { return k_.workspace(name, kRows); }
  llvm::StringRef ofChunk(llvm::StringRef name) { return k_.workspace(name, {kChunks, "segment", "row"}); }
  llvm::StringRef counter() { return k_.workspace("features", {kChunks}); }
  bool needsMean() const { return centred_ || central_; }

  /// Of the task's features of each row: shift, mean minus shift, squares, and the raw moment where that divides.
  void sumMoments() {
    if (needsMean()) k_.store(k_.width("task"), counter());
    k_.slab(kRows, {}, [&] {
      KernelBuilder::Sweep sweep{.reads = {k_.argument("x")}};
      if (!needsMean()) {
        sweep.sums = 1;
        k_.store(k_.sweep(sweep, [](const Nums& e) { return Nums{e[0] * e[0]}; })[0], ofChunk("moment"));
        return;
      }
      Num shift = finiteOr(k_.probe("x"), k_.constant(0));
      sweep.sums = central_ ? 2 : 3;
      Nums sums = k_.sweep(sweep, [&](const Nums& e) {
        Num d = e[0] - shift;
        Nums terms{d, d * d};
        if (!central_) terms.push_back(e[0] * e[0]);
        return terms;
      });
      Num delta = sums[0] / k_.width("task");
      k_.store(shift, ofChunk("shift"));
      k_.store(delta, ofChunk("mean"));
      k_.store(max(k_.constant(0), sums[1] - sums[0] * delta), ofChunk("squares"));
      if (!central_) k_.store(sums[2], ofChunk("moment"));
    });
  }

  /// Mean, where there is one, and the moment that divides.
  std::pair<Num, Num> moments() {
    Num n = k_.width("groups");
    if (!needsMean()) return {Num(), k_.total(kChunks, {ofChunk("moment")})[0] / n};
    llvm::SmallVector<llvm::StringRef> parts{counter(), ofChunk("shift"), ofChunk("mean"), ofChunk("squares")};
    if (!central_) parts.push_back(ofChunk("moment"));
    const Merged merged = mergeChunks(k_, kChunks, parts);
    return {k_.narrow(merged.mean), k_.narrow(central_ ? merged.squares : merged.raw) / n};
  }

  void sumGradients() {
    Num s = k_.load(k_.saved("rstd")), c = centred_ ? k_.load(k_.saved("mean")) : Num();
    KernelBuilder::Sweep sweep{.reads = {k_.argument("x"), k_.argument("dy")}, .sums = 2};
    if (spec_.scale) sweep.reads.push_back(k_.argument("scale"));
    if (k_.problem().mask) sweep.reads.push_back("mask");
    Nums sums = k_.sweep(sweep, [&](const Nums& e) {
      Num valid = spec_.padding == Padding::Exclude ? validOf(e) : Num();
      Num h = masked(k_, valid, spec_.scale ? e[1] * e[2] : e[1]);
      return Nums{h, h * masked(k_, valid, (c ? e[0] - c : e[0]) * s)};
    });
    k_.store(sums[0], ofChunk("g"));
    k_.store(sums[1], ofChunk("gx"));
  }

  /// A sweep down a column whose reads begin with `first` and go on with the row's own values, those named.
  KernelBuilder::Sweep downColumn(Names first, Names rows) {
    KernelBuilder::Sweep sweep;
    for (llvm::StringRef name : first) sweep.reads.push_back(k_.argument(name));
    for (llvm::StringRef name : rows) sweep.reads.push_back(ofRow(name));
    if (k_.problem().mask) sweep.reads.push_back(k_.argument("mask"));
    return sweep;
  }
  Num validOf(const Nums& e) const { return k_.problem().mask ? e.back() : Num(); }

  void apply() {
    Num scale = spec_.scale ? k_.load(k_.argument("scale")) : Num();
    Num bias = spec_.bias ? k_.load(k_.argument("bias")) : Num();
    KernelBuilder::Sweep sweep = downColumn({"x"}, centred_ ? Names{"s", "c"} : Names{"s"});
    sweep.writes.push_back(k_.argument("y"));
    k_.sweep(sweep, [&](const Nums& e) {
      Num d = centred_ ? e[0] - e[2] : e[0];
      return Nums{elementY(k_, d * e[1], scale, bias, validOf(e))};
    });
  }

  void applyBackward() {
    Num scale = spec_.scale ? k_.load(k_.argument("scale")) : Num();
    llvm::SmallVector<llvm::StringRef> rows{"s"};
    auto also = [&](bool wanted, llvm::StringRef name) {
      if (wanted) rows.push_back(name);
      return wanted ? 1 + rows.size() : 0;  // behind x and dy
    };
    const size_t c = also(centred_, "c"), own = also(bool(terms_.own), "own"), offset = also(bool(terms_.offset), "offset");
    KernelBuilder::Sweep sweep = downColumn({"x", "dy"}, rows);
    sweep.writes.push_back(k_.argument("dx"));
    sweep.sums = 2;
    Nums sums = k_.sweep(sweep, [&](const Nums& e) {
      Num valid = spec_.padding == Padding::Exclude ? validOf(e) : Num();
      Num x0 = (c ? e[0] - e[c] : e[0]) * e[2], g = masked(k_, valid, e[1]);
      const DxTerms terms{.p = e[2], .all = {}, .own = own ? e[own] : Num(), .offset = offset ? e[offset] : Num()};
      return Nums{elementDx(k_, terms, multiply(e[1], scale), x0, valid), g * masked(k_, valid, x0), g};
    });
    if (spec_.scale) k_.store(sums[0], k_.argument("dscale"));
    if (spec_.bias) k_.store(sums[1], k_.argument("dbias"));
  }

  KernelBuilder& k_;
  const Spec& spec_;
  bool central_, centred_;
  DxTerms terms_;  ///< of a backward, as the rows' phase made them: which there are
};

}  // namespace

void planSplitRows(KernelBuilder& k) {
  SplitRows plan(k);
  switch (k.problem().entry) {
    case Entry::Forward: return plan.forward(/*save=*/true);
    case Entry::Infer: return plan.forward(/*save=*/false);
    case Entry::Backward: return plan.backward();
  }
}

}  // namespace normc::codegen
