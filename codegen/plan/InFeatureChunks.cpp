// Plans statistics of rows whose features several tasks share: LN and RMS of a few long rows. A task sums its
// features of each row, a phase over the rows merges the sums, and a third goes down the columns, so that
// dscale and dbias need no fold.
//
// The chunks depend on sizes and schedule alone, so results do not depend on the number of threads.
#include "codegen/plan/Around.h"
#include "codegen/plan/Plans.h"
#include "codegen/plan/Quantize.h"
#include "codegen/plan/Step.h"

namespace normc::codegen {
namespace {

class InFeatureChunks {
 public:
  explicit InFeatureChunks(KernelBuilder& k)
      : k_(k), spec_(k.spec()), step_(k), moments_(k, step_.needsMean()), around_(k) {}

  void forward() { plan(/*save=*/true); }
  void infer() { plan(/*save=*/false); }

  void backward() {
    const bool sums = step_.backwardNeedsSums();
    if (sums)
      k_.phase("statistics", PhaseRole::Statistics, kFeatures,
               [&] { k_.slab(kRows, {}, [&] { sumGradients(); }); });
    k_.phase("combine", PhaseRole::Combine, kRows, [&] {
      k_.slab(kRows, {}, [&] {
        const Num s = step_.rstd();
        std::optional<BackwardSums> total;
        if (sums) {
          const GradientSums needed = step_.gradientSums();
          llvm::SmallVector<llvm::StringRef, 2> names;
          if (needed.g) names.push_back(ofChunk("g"));
          if (needed.gx) names.push_back(ofChunk("gx"));
          total = step_.backwardSums(k_.total(kChunks, names), s);
        }
        const DxTerms terms = step_.backward(total);
        keep(Part::Rstd, "s", s);
        keep(Part::Center, "c", step_.center());
        if (k_.hasSaved("batch_mean")) keep(Part::BatchMean, "mean", k_.load(k_.saved("batch_mean")));
        if (step_.mayBeOfOne()) keep(Part::DxSlope, "p", terms.p);
        keep(Part::DxOwn, "own", terms.own);
        keep(Part::DxOffset, "offset", terms.offset);
      });
    });
    columns([&](Parts& parts) {
      if (!step_.mayBeOfOne()) parts.workspace(Part::DxSlope, ofRow("s"));
      parts.workspace(Part::Slope, ofRow("s"));
      const auto rowSums = around_.sums(Around::By::All);
      KernelBuilder::Sweep sweep{.writes = {"dx"},
                                 .sums = unsigned(spec_.scale + spec_.bias + rowSums.size())};
      around_.addOutputs(Around::By::All, sweep);
      Nums sums = k_.sweep(sweep, parts, [&](Element& e) {
        Nums out{e.dx()};
        around_.appendOutputs(Around::By::All, e, out);
        if (spec_.scale) out.push_back(e.dscale());
        if (spec_.bias) out.push_back(e.dbias());
        for (const RowSum& sum : rowSums) out.push_back((e.*sum.term)());
        return out;
      });
      if (spec_.scale) k_.store(sums[0], k_.argument("dscale"));
      if (spec_.bias) k_.store(sums[spec_.scale], k_.argument("dbias"));
      for (auto [sum, value] : llvm::zip(rowSums, llvm::ArrayRef(sums).take_back(rowSums.size())))
        around_.store(sum, value);
    });
  }

 private:
  static constexpr Axis kRowAxes[] = {Axis::Segment, Axis::Row}, kFeatureAxes[] = {Axis::Feature};
  static constexpr Axes kRows = kRowAxes, kFeatures = kFeatureAxes;
  static constexpr int64_t kChunks = 0;  ///< those of the first phase

  llvm::StringRef ofRow(llvm::StringRef name) { return k_.workspace(name, kRows); }
  llvm::StringRef ofChunk(llvm::StringRef name) {
    return name == "rows" ? k_.workspace("features", {Axis::Chunk}, kChunks)
                          : k_.workspace(name, {Axis::Chunk, Axis::Segment, Axis::Row}, kChunks);
  }

  void plan(bool save) {
    k_.phase("statistics", PhaseRole::Statistics, kFeatures, [&] { sumMoments(); });
    k_.phase("combine", PhaseRole::Combine, kRows, [&] {
      k_.slab(kRows, {}, [&] {
        const Batch batch =
            moments_.merged(kChunks, [&](llvm::StringRef name) { return ofChunk(name); }, step_.elements());
        const ForwardTerms terms = step_.forward(batch, save);
        if (save) step_.saveLate(batch);
        keep(Part::Center, "c", terms.c);
        keep(Part::Slope, "s", terms.a);
      });
    });
    columns([&](Parts& parts) {
      if (spec_.hasStream()) parts.argument(Part::ResidualOut, "residual_out");
      sweepOutput(k_, parts, {}, [](Element&, Nums&) {});
    });
  }

  /// Stores the sums of the task's features of each row.
  void sumMoments() {
    if (moments_.needsMean()) k_.store(k_.width(WidthOf::Task), ofChunk("rows"));
    k_.slab(kRows, {}, [&] {
      Parts parts(k_);
      const Num shift = moments_.shift(parts);
      KernelBuilder::Sweep sweep{.sums = unsigned(moments_.sums().size())};
      if (spec_.hasStream()) sweep.writes.push_back("residual_out");
      Nums sums = k_.sweep(sweep, parts, [&](Element& e) {
        Nums out;
        if (spec_.hasStream()) out.push_back(e.residualOut());
        out.append(moments_.terms(e));
        return out;
      });
      if (moments_.needsMean()) {
        k_.store(shift, ofChunk("shift"));
        std::tie(sums[0], sums[1]) = moments_.ofChunk(sums[0], sums[1], k_.width(WidthOf::Task));
      }
      for (auto [sum, name] : llvm::zip(sums, moments_.sums())) k_.store(sum, ofChunk(name));
    });
  }

  void sumGradients() {
    Parts parts(k_);
    parts.parameters();
    const Num s = step_.rstd();
    parts.is(Part::Center, step_.center());
    parts.is(Part::Slope, s);
    const GradientSums needed = step_.gradientSums();
    const Nums sums =
        k_.sweep({.sums = needed.count()}, parts, [&](Element& e) { return e.gradientTerms(needed); });
    if (needed.g) k_.store(sums.front(), ofChunk("g"));
    if (needed.gx) k_.store(sums.back(), ofChunk("gx"));
  }

  /// Stores a result of the phase over rows, which differs from row to row in a column.
  void keep(Part part, llvm::StringRef name, Num value) {
    if (!value) return;
    k_.store(value, ofRow(name));
    kept_.push_back({part, ofRow(name)});
  }

  /// Adds the phase that goes down the columns: a slab has one scale and one bias.
  void columns(llvm::function_ref<void(Parts&)> body) {
    k_.phase("apply", PhaseRole::Apply, kFeatures, [&] {
      k_.slab(kFeatures, {}, [&] {
        Parts parts(k_);
        for (auto [part, tensor] : kept_) parts.workspace(part, tensor);
        parts.is(Part::Scale, factorOfFeature(k_));
        if (!isBackward(k_.problem().entry) || spec_.recomputesOutput())
          parts.is(Part::Bias, biasOfFeature(k_));
        body(parts);
      });
    });
  }

  KernelBuilder& k_;
  const Spec& spec_;
  Step step_;
  Moments moments_;
  Around around_;
  llvm::SmallVector<std::pair<Part, llvm::StringRef>> kept_;
};

}  // namespace

void planInFeatureChunks(KernelBuilder& k) { planEntry(InFeatureChunks(k), k.problem().entry); }

}  // namespace normc::codegen
