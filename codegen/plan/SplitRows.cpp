// Plans statistics of rows whose features several tasks share: LN and RMS of a few long rows. A task sums its
// features of each row, a phase over the rows merges the sums, and a third goes down the columns, so that
// dscale and dbias need no fold.
//
// The chunks depend on sizes and schedule alone, so results do not depend on the number of threads.
#include "codegen/plan/Formulas.h"
#include "codegen/plan/Operands.h"

namespace normc::codegen {
namespace {

class SplitRows {
 public:
  explicit SplitRows(KernelBuilder& k)
      : k_(k),
        spec_(k.spec()),
        central_(spec_.moment == Moment::Central),
        centred_(spec_.center == Center::Current) {}

  void forward(bool save) {
    k_.phase("statistics", PhaseRole::Statistics, kFeatures, [&] { sumMoments(); });
    k_.phase("combine", PhaseRole::Combine, kRows, [&] {
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
    k_.phase("apply", PhaseRole::Apply, kFeatures, [&] { k_.slab(kFeatures, {}, [&] { apply(); }); });
  }

  void backward() {
    const bool exact = spec_.backward == Backward::Exact;
    if (exact)
      k_.phase("statistics", PhaseRole::Statistics, kFeatures,
               [&] { k_.slab(kRows, {}, [&] { sumGradients(); }); });
    k_.phase("combine", PhaseRole::Combine, kRows, [&] {
      k_.slab(kRows, {}, [&] {
        Num s = k_.load(k_.saved("rstd")), c = centred_ ? k_.load(k_.saved("mean")) : Num();
        terms_ = {.p = s, .all = {}, .own = {}, .offset = {}};
        if (exact) {
          Num n = k_.width(WidthOf::Groups);
          Nums sums = k_.total(kChunks, {ofChunk("g"), ofChunk("gx")});
          terms_ = sampleTerms(k_, s, s, centred_, sums[0], meanOf(sums[1], n), n);
        }
        k_.store(s, ofRow("s"));
        if (c) k_.store(c, ofRow("c"));
        if (hasMeanOfRho()) k_.store(k_.load(k_.saved("batch_mean")), ofRow("mean"));
        if (terms_.own) k_.store(terms_.own, ofRow("own"));
        if (terms_.offset) k_.store(terms_.offset, ofRow("offset"));
      });
    });
    k_.phase("apply", PhaseRole::Apply, kFeatures, [&] { k_.slab(kFeatures, {}, [&] { applyBackward(); }); });
  }

 private:
  static constexpr Axis kRowAxes[] = {Axis::Segment, Axis::Row}, kFeatureAxes[] = {Axis::Feature};
  static constexpr Axes kRows = kRowAxes, kFeatures = kFeatureAxes;
  static constexpr int64_t kChunks = 0;  ///< the phase whose chunks are folded

  llvm::StringRef ofRow(llvm::StringRef name) { return k_.workspace(name, kRows); }
  llvm::StringRef ofChunk(llvm::StringRef name) {
    return k_.workspace(name, {Axis::Chunk, Axis::Segment, Axis::Row}, kChunks);
  }
  llvm::StringRef counter() { return k_.workspace("features", {Axis::Chunk}, kChunks); }
  bool needsMean() const { return centred_ || central_; }
  bool hasMeanOfRho() const { return hasOwnRho(spec_) && isRhoCentred(spec_); }

  /// Stores for the task's features of each row: shift, mean minus shift, squares, and the raw moment if that
  /// divides.
  void sumMoments() {
    if (needsMean()) k_.store(k_.width(WidthOf::Task), counter());
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
      Num delta = meanOf(sums[0], k_.width(WidthOf::Task));
      k_.store(shift, ofChunk("shift"));
      k_.store(delta, ofChunk("mean"));
      k_.store(max(k_.constant(0), sums[1] - sums[0] * delta), ofChunk("squares"));
      if (!central_) k_.store(sums[2], ofChunk("moment"));
    });
  }

  /// Returns the mean, if there is one, and the moment that divides.
  std::pair<Num, Num> moments() {
    Num n = k_.width(WidthOf::Groups);
    if (!needsMean()) return {Num(), meanOf(k_.total(kChunks, {ofChunk("moment")})[0], n)};
    llvm::SmallVector<llvm::StringRef> parts{counter(), ofChunk("shift"), ofChunk("mean"),
                                             ofChunk("squares")};
    if (!central_) parts.push_back(ofChunk("moment"));
    const Merged merged = mergeChunks(k_, kChunks, parts);
    return {k_.narrow(merged.mean), meanOf(k_.narrow(central_ ? merged.squares : merged.raw), n)};
  }

  void sumGradients() {
    Num s = k_.load(k_.saved("rstd")), c = centred_ ? k_.load(k_.saved("mean")) : Num();
    Operands o = gradientOperands();
    if (spec_.scale) o.read("scale");
    o.sweep.sums = 2;
    Nums sums = k_.sweep(o.sweep, [&](const Nums& e) {
      Num valid = excluded(o, e), x = o.get("x", e);
      Num h = masked(k_, valid, multiply(o.get("dy", e), o.get("scale", e)));
      return Nums{h, h * masked(k_, valid, c ? x - c : x)};
    });
    k_.store(sums[0], ofChunk("g"));
    k_.store(sums[1] * s, ofChunk("gx"));
  }

  Operands gradientOperands() {
    Operands o(k_);
    o.read("dy");
    return o;
  }
  /// Returns the mask of rows that padding leaves out of all sums; absent if there are none.
  Num excluded(const Operands& o, const Nums& e) const {
    return spec_.padding == Padding::Exclude ? o.get("mask", e) : Num();
  }
  /// Reads a result of the phase over rows, which differs from row to row in a column.
  void readOfRow(Operands& o, llvm::StringRef name) { o.add(name, ofRow(name)); }
  Num centred(const Operands& o, const Nums& e) const {
    return centred_ ? o.get("x", e) - o.get("c", e) : o.get("x", e);
  }

  Num rho(const Operands& o, const Nums& e) const {
    if (!hasOwnRho(spec_)) return {};
    Num x = o.get("x", e), mean = o.get("mean", e);
    return (mean ? x - mean : x) * o.get("s", e);
  }

  void apply() {
    Num scale = spec_.scale ? k_.load(k_.argument("scale")) : Num();
    Num bias = spec_.bias ? k_.load(k_.argument("bias")) : Num();
    Operands o(k_);
    readOfRow(o, "s");
    if (centred_) readOfRow(o, "c");
    o.sweep.writes.push_back(k_.argument("y"));
    k_.sweep(o.sweep, [&](const Nums& e) {
      return Nums{elementY(k_, centred(o, e) * o.get("s", e), scale, bias, o.get("mask", e))};
    });
  }

  void applyBackward() {
    Num scale = spec_.scale ? k_.load(k_.argument("scale")) : Num();
    Operands o = gradientOperands();
    readOfRow(o, "s");
    if (centred_) readOfRow(o, "c");
    if (hasMeanOfRho()) readOfRow(o, "mean");
    if (terms_.own) readOfRow(o, "own");
    if (terms_.offset) readOfRow(o, "offset");
    o.sweep.writes.push_back(k_.argument("dx"));
    o.sweep.sums = 2;
    Nums sums = k_.sweep(o.sweep, [&](const Nums& e) {
      Num valid = excluded(o, e), s = o.get("s", e), dy = o.get("dy", e);
      Num x0 = centred(o, e) * s, g = masked(k_, valid, dy);
      const DxTerms terms{.p = s, .all = {}, .own = o.get("own", e), .offset = o.get("offset", e)};
      return Nums{elementDx(k_, terms, multiply(dy, scale), x0, rho(o, e), valid), g * masked(k_, valid, x0),
                  g};
    });
    if (spec_.scale) k_.store(sums[0], k_.argument("dscale"));
    if (spec_.bias) k_.store(sums[1], k_.argument("dbias"));
  }

  KernelBuilder& k_;
  const Spec& spec_;
  bool central_, centred_;
  DxTerms terms_;  ///< the terms of a backward that the phase over rows stored; tells which exist
};

}  // namespace

void planSplitRows(KernelBuilder& k) { planEntry(SplitRows(k), k.problem().entry); }

}  // namespace normc::codegen
