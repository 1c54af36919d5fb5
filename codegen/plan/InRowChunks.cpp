// Plans one statistic per feature in chunks of rows: BN, PN-V, PN and mixes of them. Column sums go to one
// partial for each chunk. A phase over the features folds the partials in order, so results do not depend on
// which thread computed which chunk.
#include "codegen/plan/Around.h"
#include "codegen/plan/Plans.h"
#include "codegen/plan/Quantize.h"
#include "codegen/plan/Step.h"

namespace normc::codegen {
namespace {

class InRowChunks {
 public:
  explicit InRowChunks(KernelBuilder& k)
      : k_(k), spec_(k.spec()), step_(k), moments_(k, step_.needsMean()), around_(k) {}

  void forward() {
    const bool lagged = step_.lagged(), statistics = !lagged || step_.hasWarmup();
    // Statistics before apply. A lagged spec needs them only in warmup: the phase and its sweeps are
    // conditional.
    Chunks early, late;
    if (statistics) early = sumMoments(/*warmup=*/lagged);
    ofFeatures(lagged ? "prepare" : "combine", PhaseRole::Combine, [&] {
      const Batch batch = statistics ? fold(early) : Batch();
      keep(step_.forward(batch, /*save=*/true));
      if (lagged) return;
      step_.saveLate(batch);
      step_.updateState(batch);
    });
    // apply reads x anyway, so for a lagged spec it also sums what finish folds into the state.
    if (lagged) late = Chunks{"batch", k_.phases()};
    apply(lagged ? &late : nullptr);
    if (lagged) {
      ofFeatures("finish", PhaseRole::Finish, [&] {
        const Batch batch = fold(late);
        step_.saveLate(batch);
        step_.updateState(batch);
      });
    }
    step_.advance();
  }

  void infer() {
    if (step_.inferFromInput()) {
      const Chunks chunks = sumMoments(/*warmup=*/false);
      ofFeatures("combine", PhaseRole::Combine, [&] { keep(step_.forward(fold(chunks), /*save=*/false)); });
    } else {
      ofFeatures("prepare", PhaseRole::Combine, [&] { keep(step_.infer()); });
    }
    apply(nullptr);
  }

  void backward() {
    if (step_.backwardNeedsSums()) {
      sumGradients();
      ofFeatures("combine", PhaseRole::Combine, [&] {
        const BackwardSums sums = foldGradients();
        keep(step_.backward(sums));
        finish(sums);
      });
      applyBackward(Around::By::Dx, /*sums=*/false);
      finishSums({});
      return;
    }
    if (applyAndSumGradients())
      finishSums([&](const BackwardSums& sums) { finish(sums); });
    else
      finishSums({});
  }

  //===-- Over ranks ------------------------------------------------------------===//

  void forwardReduce() {
    Chunks chunks;
    if (step_.lagged()) {  // y waits for nothing
      ofFeatures("prepare", PhaseRole::Combine, [&] { keep(step_.forward(Batch(), /*save=*/true)); });
      chunks = {"batch", k_.phases()};
      apply(&chunks);
    } else {
      chunks = sumMoments(/*warmup=*/false);
    }
    const llvm::StringRef rows = column(chunks, "rows");
    ofFeatures("finish", PhaseRole::Finish, [&] {
      const Nums sums =
          moments_.rawSums(chunks.phase, [&](llvm::StringRef name) { return column(chunks, name); });
      for (auto [field, sum] : llvm::zip(moments_.partialFields(), sums)) k_.store(sum, k_.partial(field));
    });
    step_.countRows(chunks.phase, rows);
  }

  void forwardApply() {
    ofFeatures("combine", PhaseRole::Combine, [&] {
      const Batch batch = moments_.ofPartials();
      keep(step_.forward(batch, /*save=*/true));
      step_.saveLate(batch);
      step_.updateState(batch);
    });
    apply(nullptr);
    step_.advance();
  }

  void backwardReduce() {
    if (step_.backwardNeedsSums()) {
      sumGradients();
    } else if (!applyAndSumGradients()) {
      return finishSums({});
    }
    finishSums([&](const BackwardSums& sums) {
      storeParameters(sums);
      step_.storePartial(sums);
    });
    step_.countRows(sums_.phase, {});
  }

  void backwardApply() {
    ofFeatures("combine", PhaseRole::Combine, [&] {
      keepOutput();
      const BackwardSums sums = step_.sumsOfPartials(std::nullopt);
      keep(step_.backward(sums));
      step_.updateNu(sums);
    });
    applyBackward(Around::By::Dx, /*sums=*/false);
    finishSums({});
  }

  void commit() {
    ofFeatures("finish", PhaseRole::Finish, [&] {
      const Batch batch = moments_.ofPartials();
      // The new state may be in the memory of the old one: nu needs the old moment, so it comes first.
      if (spec_.backward == Backward::Approximate) step_.updateNu(step_.sumsOfPartials(batch));
      step_.updateState(batch);
    });
    step_.advance();
  }

 private:
  static constexpr Axis kRowAxes[] = {Axis::Segment, Axis::Row};
  static constexpr Axis kRowGroupAxes[] = {Axis::Segment, Axis::Row, Axis::PreGroup};
  static constexpr Axis kFeatureAxes[] = {Axis::Feature};
  static constexpr Axes kRows = kRowAxes, kRowGroups = kRowGroupAxes, kFeatures = kFeatureAxes;
  /// The rows whose mean is the shift estimate of a chunk.
  static constexpr int64_t kHead = 8;

  //===-- Structure -----------------------------------------------------------===//

  void ofFeatures(llvm::StringRef name, PhaseRole role, llvm::function_ref<void()> body) {
    k_.phase(name, role, kFeatures, [&] { k_.slab(kFeatures, {}, body); });
  }

  /// Adds a slab over the rows of a task; `whole`: slabs of a row each. With `pre` the scale r of each row
  /// group is computed first.
  void overRows(Num condition, llvm::function_ref<void(Parts&)> body, int64_t head = 0, bool whole = false) {
    k_.slab(spec_.pre ? kRowGroups
            : whole   ? kRows
                      : Axes(),
            {.resident = true, .head = head}, [&] {
              Parts parts = ofElements();
              if (spec_.pre) parts.is(Part::RowScale, scaleOfRow(condition));
              body(parts);
            });
  }
  /// Returns the parts of the call. Once h is stored it is read in place of what it was made of: it may be in
  /// the memory of the residual.
  Parts ofElements() {
    Parts parts(k_);
    if (hStored_) parts.argument(Part::ResidualOut, "residual_out");
    return parts;
  }
  Num scaleOfRow(Num condition) {
    Nums squares = k_.sweep({.sums = 1, .condition = condition}, ofElements(),
                            [&](Element& e) { return Nums{e.h() * e.h()}; });
    return scaleOf(squares[0]);
  }
  Num scaleOf(Num squares) {
    return inverseSqrt(meanOf(squares, k_.width(WidthOf::PreGroups)) + k_.narrow(k_.number("pre_epsilon")));
  }

  /// The sums that the tasks of a phase leave: a tensor of chunks and features for each, and the rows of each
  /// chunk.
  struct Chunks {
    llvm::StringRef prefix;
    int64_t phase = 0;
  };
  llvm::StringRef column(const Chunks& chunks, llvm::StringRef name) {
    const std::string field = (chunks.prefix + "_" + name).str();
    if (name == "rows") return k_.workspace(field, {Axis::Chunk}, chunks.phase);
    return k_.workspace(field, {Axis::Chunk, Axis::Feature}, chunks.phase);
  }

  //===-- Forward -------------------------------------------------------------===//

  bool writesH() const {
    return spec_.hasStream() && !hStored_ &&
           isTaken(infoOf(kResidualOut), k_.problem().entry, hasOf(k_.problem()));
  }

  /// Stores h too, unless the phase runs only in warmup.
  Chunks sumMoments(bool warmup) {
    const Chunks chunks{"statistics", k_.phases()};
    const bool writes = writesH() && !warmup;
    k_.phase("statistics", PhaseRole::Statistics, kRows,
             [&] {
               const Num condition = warmup ? step_.inWarmup() : Num();
               beginMoments(chunks, condition);
               overRows(condition, [&](Parts& parts) {
                 momentParts(parts, chunks);
                 KernelBuilder::Sweep sweep{.partials = momentColumns(chunks), .condition = condition};
                 if (writes) sweep.writes.push_back("residual_out");
                 k_.sweep(sweep, parts, [&](Element& e) {
                   Nums out;
                   if (writes) out.push_back(e.residualOut());
                   out.append(moments_.terms(e));
                   return out;
                 });
               });
               endMoments(chunks);
             },
             {.warmup = warmup});
    hStored_ = writes;
    return chunks;
  }

  /// Stores the rows of the chunk, if they are needed, and its shift estimate.
  void beginMoments(const Chunks& chunks, Num condition) {
    if (moments_.needsMean() || writesPartial(k_.problem().entry))
      k_.store(k_.count(CountScope::Task), column(chunks, "rows"));
    if (!moments_.needsMean()) return;
    const llvm::StringRef shift = column(chunks, "shift");
    if (k_.problem().layout == Layout::ChannelsFirst)  // rows of a feature are contiguous
      return k_.slab(kFeatures, {}, [&] {
        Parts parts(k_);
        k_.store(moments_.shift(parts), shift);
      });
    overRows(
        condition,
        [&](Parts& parts) {
          k_.sweep({.partials = {shift}, .condition = condition}, parts,
                   [&](Element& e) { return Nums{e.where(e.valid(), e.u())}; });
        },
        kHead);
    const Num rows = max(k_.count(CountScope::Task, kHead), k_.constant(1));
    k_.slab(kFeatures, {}, [&] { k_.store(finiteOr(meanOf(k_.load(shift), rows), k_.constant(0)), shift); });
  }
  void momentParts(Parts& parts, const Chunks& chunks) {
    if (moments_.needsMean()) parts.workspace(Part::Shift, column(chunks, "shift"));
  }
  llvm::SmallVector<llvm::StringRef, 4> momentColumns(const Chunks& chunks) {
    return llvm::map_to_vector<4>(moments_.sums(),
                                  [&](llvm::StringRef name) { return column(chunks, name); });
  }
  void endMoments(const Chunks& chunks) {
    if (!moments_.needsMean()) return;
    const Num n = max(k_.count(CountScope::Task), k_.constant(1));
    k_.slab(kFeatures, {}, [&] {
      const llvm::StringRef sum = column(chunks, "sum"), squares = column(chunks, "squares");
      auto [delta, distances] = moments_.ofChunk(k_.load(sum), k_.load(squares), n);
      k_.store(delta, sum);
      k_.store(distances, squares);
    });
  }
  Batch fold(const Chunks& chunks) {
    Batch batch = moments_.merged(
        chunks.phase, [&](llvm::StringRef name) { return column(chunks, name); }, step_.elements());
    batch.count = k_.count(CountScope::All);
    return batch;
  }

  void apply(const Chunks* also) {
    // Slabs of whole rows have no levels of sums over rows: a slab before them takes those.
    const bool apart = also && scalesRows(spec_);
    k_.phase("apply", PhaseRole::Apply, kRows, [&] {
      if (also) beginMoments(*also, {});
      if (apart)
        overRows({}, [&](Parts& parts) {
          momentParts(parts, *also);
          k_.sweep({.partials = momentColumns(*also)}, parts,
                   [&](Element& e) { return Nums(moments_.terms(e)); });
        });
      overRows(
          {}, [&](Parts& parts) { writeOutput(parts, apart ? nullptr : also); }, /*head=*/0,
          /*whole=*/scalesRows(spec_));
      if (also) endMoments(*also);
    });
  }
  void writeOutput(Parts& parts, const Chunks* also) {
    addKept(parts);
    KernelBuilder::Sweep sweep;
    if (writesH()) sweep.writes.push_back("residual_out");
    if (also) {
      momentParts(parts, *also);
      sweep.partials = momentColumns(*also);
    }
    sweepOutput(k_, parts, sweep, [&](Element& e, Nums& out) {
      if (writesH()) out.push_back(e.residualOut());
      if (also) out.append(moments_.terms(e));
    });
  }

  //===-- Coefficients of a feature -------------------------------------------===//

  void keep(Part part, llvm::StringRef name, Num value) {
    if (!value) return;
    llvm::StringRef tensor;
    if (isStoredBias(value)) {
      tensor = k_.argument("bias");
    } else {
      tensor = k_.workspace(name, kFeatures);
      k_.store(value, tensor);
    }
    kept_.push_back({part, tensor});
  }
  /// True if the value is an unchanged parameter of the caller, which needs no copy in the workspace.
  bool isStoredBias(Num value) {
    auto load = value.value.getDefiningOp<LoadOp>();
    return load && load.getTensor() == "bias" && k_.problem().params == DType::F32;
  }
  void keep(const ForwardTerms& terms) {
    keep(Part::Center, "c", terms.c);
    keep(Part::Slope, "a", terms.a);
    keep(Part::Intercept, "b", terms.b);
  }
  void keep(DxTerms terms) {
    // Group scaling keeps u near 1: the coefficients are of u - c, with s in them.
    if (spec_.pre)
      for (Num* slope : {&terms.all, &terms.own})
        if (*slope) *slope = *slope * step_.rstd();
    // Every row is one of the statistic.
    if (!k_.problem().leavesRowsOut()) {
      terms.own = add(terms.all, terms.own);
      terms.all = Num();
    }
    for (const auto& term : terms.list()) keep(term.part, term.name, term.value);
  }
  /// Keeps what the output of the affine is computed from again.
  void keepOutput() {
    const ForwardTerms output = step_.recomputed();
    keep(Part::Slope, "a", output.a);
    keep(Part::Intercept, "b", output.b);
  }
  void addKept(Parts& parts) {
    for (auto [part, tensor] : kept_) parts.workspace(part, tensor);
  }

  //===-- Backward ------------------------------------------------------------===//

  void gradientParts(Parts& parts) {
    if (step_.hasCenter() && !step_.isConstant()) parts.saved(Part::Center, "mean");
    addKept(parts);
  }
  llvm::SmallVector<llvm::StringRef, 4> gradientColumns() {
    const GradientSums needed = step_.gradientSums();
    llvm::SmallVector<llvm::StringRef, 4> columns;
    if (needed.g) columns.push_back(column(sums_, "g"));
    if (needed.gx) columns.push_back(column(sums_, "gx"));
    if (needed.xx) columns.push_back(column(sums_, "xx"));
    return columns;
  }
  BackwardSums foldGradients() {
    const Nums sums = k_.total(sums_.phase, gradientColumns());
    return step_.backwardSums(sums, step_.rstd());
  }
  void storeParameters(const BackwardSums& sums) {
    if (spec_.scale) k_.store(step_.dscale(sums), k_.argument("dscale"));
    if (spec_.bias) k_.store(sums.g, k_.argument("dbias"));
  }
  void finish(const BackwardSums& sums) {
    storeParameters(sums);
    step_.updateNu(sums);
  }

  void sumGradients() {
    if (spec_.recomputesOutput()) ofFeatures("prepare", PhaseRole::Combine, [&] { keepOutput(); });
    sums_ = {"sum", k_.phases()};
    constexpr auto by = Around::By::Sums;
    k_.phase("statistics", PhaseRole::Statistics, kRows,
             [&] {
               overRows({}, [&](Parts& parts) {
                 gradientParts(parts);
                 KernelBuilder::Sweep sweep{.partials = gradientColumns()};
                 addRowSums(by, sums_, sweep);
                 k_.sweep(sweep, parts, [&](Element& e) {
                   Nums out;
                   around_.appendOutputs(by, e, out);
                   out.append(e.gradientTerms(step_.gradientSums()));
                   for (const RowSum& sum : around_.sums(by)) out.push_back((e.*sum.term)());
                   return out;
                 });
               });
             },
             {.bySegment = around_.hasSegmentSums(by)});
  }
  /// Adds what a sweep writes and sums for the tensors around the norm.
  void addRowSums(Around::By by, const Chunks& chunks, KernelBuilder::Sweep& sweep) {
    around_.addOutputs(by, sweep);
    for (const RowSum& sum : around_.sums(by)) {
      parted_.emplace_back(sum, column(chunks, sum.name()), chunks.phase);
      sweep.partials.push_back(parted_.back().partial);
    }
  }
  /// Adds the phases that complete sums over rows: those of the gradient, if there are any, with `finish`.
  void finishSums(llvm::function_ref<void(const BackwardSums&)> finish) {
    if (finish || llvm::any_of(parted_, [](const auto& each) { return !each.sum.ofSegment; }))
      ofFeatures("finish", PhaseRole::Finish, [&] {
        if (finish) finish(foldGradients());
        around_.storeFeatures(parted_);
      });
    around_.foldSegments(parted_);
  }
  /// Writes dx, for which no sum is needed: the same sweep collects the sums. True if there are any.
  bool applyAndSumGradients() {
    ofFeatures("prepare", PhaseRole::Combine, [&] {
      if (step_.isConstant() && step_.readsCenter()) keep(Part::Center, "c", step_.center());
      keepOutput();
      keep(step_.backward(std::nullopt));
    });
    const bool sums = step_.hasGradientSums();
    applyBackward(Around::By::All, sums);
    return sums;
  }

  void dxParts(Parts& parts) {
    gradientParts(parts);
    if (!spec_.pre && !step_.isConstant()) parts.saved(Part::Rstd, "rstd");
    if (k_.hasSaved("batch_mean")) parts.saved(Part::BatchMean, "batch_mean");
  }

  /// Returns r of a row group, and the mean of du u over it: the exact derivative of group scaling.
  std::pair<Num, Num> scaleAndPull() {
    const Num width = k_.width(WidthOf::PreGroups);
    Parts parts(k_);
    dxParts(parts);
    if ((step_.hasCenter() && !step_.isConstant()) || k_.problem().leavesRowsOut() || hasOwnRho(spec_) ||
        spec_.activation != Activation::None) {
      const Num r = scaleOfRow({});
      parts.is(Part::RowScale, r);
      Nums dot =
          k_.sweep({.sums = 1}, parts, [&](Element& e) { return Nums{e.where(e.kept(), e.du() * e.u())}; });
      return {r, meanOf(dot[0], width)};
    }
    // Without a centre, du u = r h (p g + offset) + r^2 h (slope h). The factors with r are outside of the
    // sums, so r and the sums come from one sweep.
    Nums sums = k_.sweep({.sums = 3}, parts, [&](Element& e) {
      Num h = e.h(), direct = add(multiply(e.gradient(), e[Part::DxSlope]), e[Part::DxOffset]);
      Num slope = add(e[Part::DxAll], e[Part::DxOwn]);
      return Nums{h * h, e.where(e.kept(), h * direct),
                  slope ? e.where(e.kept(), h * h * slope) : k_.constant(0)};
    });
    const Num r = scaleOf(sums[0]);
    return {r, meanOf((sums[1] + sums[2] * r) * r, width)};
  }

  /// Writes dx and the gradients of `by`; with `sums` the sweep collects the sums of the gradient, too.
  void applyBackward(Around::By by, bool sums) {
    const Chunks chunks{by == Around::By::All ? "sum" : "apply", k_.phases()};
    if (by == Around::By::All) sums_ = chunks;
    k_.phase("apply", PhaseRole::Apply, kRows,
             [&] {
               k_.slab(spec_.pre ? kRowGroups : Axes(), {.resident = true}, [&] {
                 Num r, pull;
                 if (spec_.pre) std::tie(r, pull) = scaleAndPull();
                 Parts parts(k_);
                 dxParts(parts);
                 parts.is(Part::RowScale, r);
                 parts.is(Part::Pull, pull);
                 KernelBuilder::Sweep sweep{.writes = {"dx"}};
                 if (sums) sweep.partials = gradientColumns();
                 addRowSums(by, chunks, sweep);
                 k_.sweep(sweep, parts, [&](Element& e) {
                   Nums out{e.dx()};
                   around_.appendOutputs(by, e, out);
                   if (sums) out.append(e.gradientTerms(step_.gradientSums()));
                   for (const RowSum& sum : around_.sums(by)) out.push_back((e.*sum.term)());
                   return out;
                 });
               });
             },
             {.bySegment = around_.hasSegmentSums(by)});
  }

  KernelBuilder& k_;
  const Spec& spec_;
  Step step_;
  Moments moments_;
  Around around_;
  bool hStored_ = false;  ///< an earlier phase has stored h
  Chunks sums_;           ///< of the gradient
  llvm::SmallVector<Around::Parted, 3> parted_;
  /// The coefficients of an element, and the tensors that hold them.
  llvm::SmallVector<std::pair<Part, llvm::StringRef>> kept_;
};

}  // namespace

void planInRowChunks(KernelBuilder& k) {
  InRowChunks plan(k);
  switch (k.problem().entry) {
    case Entry::ForwardReduce:
      return plan.forwardReduce();
    case Entry::ForwardApply:
      return plan.forwardApply();
    case Entry::BackwardReduce:
      return plan.backwardReduce();
    case Entry::BackwardApply:
      return plan.backwardApply();
    case Entry::Commit:
      return plan.commit();
    default:
      return planEntry(plan, k.problem().entry);
  }
}

}  // namespace normc::codegen
