// Plans statistics that are complete in their slab: of rows, groups and segments, and of features whose whole
// column is in one task. Nothing has to be combined, and memory is read once if the slab stays on chip. The
// kernel is one phase; where each task has a part of the rows, backward adds the fold of dscale and dbias,
// and of other sums over rows.
#include "codegen/plan/Around.h"
#include "codegen/plan/Plans.h"
#include "codegen/plan/Quantize.h"
#include "codegen/plan/Step.h"

namespace normc::codegen {
namespace {

class InSlab {
 public:
  InSlab(KernelBuilder& k, int64_t vector)
      : k_(k), spec_(k.spec()), step_(k), moments_(k, step_.needsMean()), around_(k), vector_(vector) {
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
      case Reduce::SegmentFeatures:
        per_ = units_ = {Axis::Segment, Axis::Group};
        break;
      case Reduce::Rows:
        per_ = units_ = {Axis::Feature};
    }
  }

  void forward() {
    slab([&](Parts& parts) {
      const bool lagged = step_.lagged();
      Batch batch;
      // A lagged spec reads batch statistics only in warmup. Afterwards the sweep has a false condition and
      // reads nothing.
      if (!lagged || step_.hasWarmup()) batch = moments(parts, lagged ? step_.inWarmup() : Num());
      const ForwardTerms terms = step_.forward(batch, /*save=*/true);
      if (!lagged) {
        step_.saveLate(batch);
        step_.updateState(batch);
        apply(parts, terms, nullptr);
        return;
      }
      // A lagged spec transforms with old values, so the sweep that writes y also sums what the state takes
      // in.
      const Num shift = moments_.shift(parts);
      batch = complete(apply(parts, terms, &moments_), shift);
      step_.saveLate(batch);
      step_.updateState(batch);
    });
    if (spec_.perFeature()) step_.advance();
  }

  void infer() {
    slab([&](Parts& parts) {
      const ForwardTerms terms =
          step_.inferFromInput() ? step_.forward(moments(parts, {}), /*save=*/false) : step_.infer();
      apply(parts, terms, nullptr);
    });
  }

  void backward() {
    if (spec_.perFeature() && around_.hasSegmentSums(Around::By::All)) return backwardBySegment();
    slab([&](Parts& parts) { backwardSlab(parts); },
         !step_.hasOwnParameters() && around_.hasSegmentSums(Around::By::All));
    if (spec_.perFeature()) return;
    if (affine() || llvm::any_of(parted_, [](const auto& each) { return !each.sum.ofSegment; })) fold();
    around_.foldSegments(parted_);
  }

 private:
  void slab(llvm::function_ref<void(Parts&)> body, bool bySegment = false) {
    k_.phase("apply", PhaseRole::Apply, units_,
             [&] {
               k_.slab(per_, {.resident = true}, [&] {
                 Parts parts(k_);
                 if (!step_.hasOwnParameters()) parts.parameters();
                 body(parts);
               });
             },
             {.bySegment = bySegment});
  }

  //===-- Forward -------------------------------------------------------------===//

  /// True if a row is so short that a probe of the whole row costs no more than a probe of a part. Its moment
  /// is taken about the mean itself.
  bool isProbedWhole() const {
    const auto& features = k_.problem().features;
    if (vector_ < 2 || !spec_.perRow() || spec_.moment != Moment::Central || !features) return false;
    const int64_t width = *features / k_.problem().groups(spec_.groups);
    return width % vector_ == 0 && width <= 8 * vector_ && llvm::isPowerOf2_64(width / vector_);
  }

  Batch moments(Parts& parts, Num condition) {
    if (isProbedWhole()) {
      const Num mean = k_.probe(parts, /*whole=*/true);
      parts.is(Part::Shift, mean);
      Nums sums = k_.sweep({.sums = 1}, parts, [&](Element& e) {
        const Num d = e.u() - e[Part::Shift];
        return Nums{d * d};
      });
      return {.count = {}, .mean = mean, .moment = meanOf(sums[0], step_.elements())};
    }
    const Num shift = moments_.shift(parts);
    return complete(k_.sweep({.sums = unsigned(moments_.sums().size()), .condition = condition}, parts,
                             [&](Element& e) { return moments_.terms(e); }),
                    shift);
  }

  Batch complete(const Nums& sums, Num shift) {
    Batch batch = moments_.ofSlab(sums, shift, step_.elements());
    if (spec_.perFeature()) batch.count = k_.count(CountScope::All);
    return batch;
  }

  /// Writes y and h, and returns the sums of `also`. Nothing reads the residual after that, whose memory h
  /// may take.
  Nums apply(Parts& parts, const ForwardTerms& terms, const Moments* also) {
    parts.is(Part::Center, terms.c);
    parts.is(Part::Slope, terms.a);
    parts.is(Part::Intercept, terms.b);
    KernelBuilder::Sweep sweep{.sums = also ? unsigned(also->sums().size()) : 0};
    if (spec_.hasStream()) sweep.writes.push_back("residual_out");
    return sweepOutput(k_, parts, sweep, [&](Element& e, Nums& out) {
      if (spec_.hasStream()) out.push_back(e.residualOut());
      if (also) out.append(also->terms(e));
    });
  }

  //===-- Backward ------------------------------------------------------------===//

  /// Binds what forward has saved.
  void bindSaved(Parts& parts) {
    const Num s = step_.rstd();
    const ForwardTerms output = step_.recomputed();
    parts.is(Part::Slope, output.a);
    parts.is(Part::Intercept, output.b);
    parts.is(Part::Center, step_.center());
    parts.is(Part::Rstd, s);
    if (k_.hasSaved("batch_mean")) parts.is(Part::BatchMean, k_.load(k_.saved("batch_mean")));
    rstd_ = s;
  }

  BackwardSums sumGradients(Parts& parts) {
    const GradientSums needed = step_.gradientSums();
    const Nums sums =
        k_.sweep({.sums = needed.count()}, parts, [&](Element& e) { return e.gradientTerms(needed); });
    return step_.backwardSums(sums, rstd_);
  }

  void backwardSlab(Parts& parts) {
    bindSaved(parts);
    std::optional<BackwardSums> sums;
    if (step_.backwardNeedsSums()) sums = sumGradients(parts);
    for (const auto& term : step_.backward(sums).list()) parts.is(term.part, term.value);

    // The sweep that writes dx collects the sums that dx does not need.
    const bool own = step_.hasOwnParameters();
    const bool late = !sums && own && step_.hasGradientSums();
    const GradientSums needed = step_.gradientSums();
    const auto rowSums = around_.sums(Around::By::All);
    KernelBuilder::Sweep sweep{.writes = {"dx"}, .sums = late ? needed.count() : 0};
    around_.addOutputs(Around::By::All, sweep);
    if (own) sweep.sums += rowSums.size();
    if (!own && spec_.scale) sweep.partials.push_back(partial("dscale"));
    if (!own && spec_.bias) sweep.partials.push_back(partial("dbias"));
    for (const RowSum& sum : rowSums)
      if (!own) sweep.partials.push_back(parted(sum));
    const Nums collected = k_.sweep(sweep, parts, [&](Element& e) {
      Nums out{e.dx()};
      around_.appendOutputs(Around::By::All, e, out);
      if (late) out.append(e.gradientTerms(needed));
      if (!own && spec_.scale) out.push_back(e.dscale());
      if (!own && spec_.bias) out.push_back(e.dbias());
      for (const RowSum& sum : rowSums) out.push_back((e.*sum.term)());
      return out;
    });
    if (late) sums = step_.backwardSums(llvm::ArrayRef(collected).take_front(needed.count()), rstd_);
    if (!own) return;
    storeRowSums(rowSums, collected);
    if (sums) finish(*sums);
  }

  /// Stores sums that are complete in the slab, and adds the others to those of the task.
  void storeRowSums(llvm::ArrayRef<RowSum> rowSums, const Nums& collected) {
    for (auto [sum, value] : llvm::zip(rowSums, llvm::ArrayRef(collected).take_back(rowSums.size()))) {
      if (sum.ofSegment || units_ == llvm::ArrayRef(Axis::Feature))
        around_.store(sum, value);
      else
        k_.accumulate(value, parted(sum));
    }
  }
  void finish(const BackwardSums& sums) {
    if (spec_.scale) gradient("dscale", step_.dscale(sums));
    if (spec_.bias) gradient("dbias", sums.g);
    step_.updateNu(sums);
  }

  /// Plans gradients that are sums over the rows of a segment beside statistics per feature. A slab of a
  /// feature has all segments, so it takes the other sums alone, and slabs of a segment write dx.
  void backwardBySegment() {
    llvm::SmallVector<std::pair<Part, llvm::StringRef>> kept;
    k_.phase("statistics", PhaseRole::Statistics, units_, [&] {
      k_.slab(per_, {.resident = true}, [&] {
        Parts parts(k_);
        bindSaved(parts);
        std::optional<BackwardSums> sums;
        const bool needed = step_.backwardNeedsSums();
        if (needed || step_.hasGradientSums()) sums = sumGradients(parts);
        for (const auto& term : step_.backward(needed ? sums : std::nullopt).list()) {
          if (!term.value) continue;
          kept.push_back({term.part, k_.workspace(term.name, {Axis::Feature})});
          k_.store(term.value, kept.back().second);
        }
        if (sums) finish(*sums);
      });
    });
    units_ = {Axis::Segment};
    if (k_.problem().layout == Layout::ChannelsFirst) units_.push_back(Axis::Feature);
    k_.phase("apply", PhaseRole::Apply, units_, [&] {
      k_.slab({Axis::Segment, Axis::Feature}, {.resident = true}, [&] {
        Parts parts(k_);
        bindSaved(parts);
        for (auto [part, name] : kept) parts.is(part, k_.load(name));
        const auto rowSums = around_.sums(Around::By::All);
        KernelBuilder::Sweep sweep{.writes = {"dx"}, .sums = unsigned(rowSums.size())};
        around_.addOutputs(Around::By::All, sweep);
        storeRowSums(rowSums, k_.sweep(sweep, parts, [&](Element& e) {
          Nums out{e.dx()};
          around_.appendOutputs(Around::By::All, e, out);
          for (const RowSum& sum : rowSums) out.push_back((e.*sum.term)());
          return out;
        }));
      });
    });
    if (!parted_.empty()) fold();
  }

  bool affine() const { return spec_.scale || spec_.bias; }
  llvm::StringRef partial(llvm::StringRef name) {
    return k_.workspace(name, {Axis::Chunk, Axis::Feature}, 0);
  }
  llvm::StringRef parted(const RowSum& sum) {
    const int64_t phase = k_.phases();  // that which is being built
    const llvm::StringRef tensor = k_.workspace(sum.name(), {Axis::Chunk, Axis::Feature}, phase);
    return parted_.emplace_back(sum, tensor, phase).partial;
  }

  /// Stores the gradient of a parameter from the slab of its feature, or of its feature in one segment.
  void gradient(llvm::StringRef name, Num value) {
    if (spec_.perFeature()) return k_.store(value, k_.argument(name));
    k_.accumulate(value, partial(name));
  }

  /// Adds the partial sums that the tasks left.
  void fold() {
    k_.phase("finish", PhaseRole::Finish, {Axis::Feature}, [&] {
      k_.slab({Axis::Feature}, {}, [&] {
        auto one = [&](llvm::StringRef name) {
          k_.store(k_.total(0, {partial(name)})[0], k_.argument(name));
        };
        if (spec_.scale && !spec_.perFeature()) one("dscale");
        if (spec_.bias && !spec_.perFeature()) one("dbias");
        around_.storeFeatures(parted_);
      });
    });
  }

  KernelBuilder& k_;
  const Spec& spec_;
  Step step_;
  Moments moments_;
  Around around_;
  llvm::SmallVector<Around::Parted, 3> parted_;  ///< sums over rows that other tasks have too
  Num rstd_;                                     ///< of the slab that is being built
  int64_t vector_;
  llvm::SmallVector<Axis, 3> per_, units_;
};

}  // namespace

void planInSlab(KernelBuilder& k, int64_t vector) { planEntry(InSlab(k, vector), k.problem().entry); }

}  // namespace normc::codegen
