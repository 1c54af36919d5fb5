// Plans one statistic per feature in chunks of rows: BN, PN-V, PN and mixes of them. Column sums go to one
// partial for each chunk. A phase over the features folds the partials in order, so results do not depend on
// which thread computed which chunk.
#include "codegen/plan/FeatureStep.h"
#include "codegen/plan/Operands.h"

namespace normc::codegen {
namespace {

class Streamed {
 public:
  explicit Streamed(KernelBuilder& k) : k_(k), spec_(k.spec()), step_(k) {
    leaveOut_ = k.problem().mask && spec_.padding == Padding::LeaveOutOfStatistics;
  }

  void forward() {
    bool lagged = step_.lagged(), statistics = !lagged || step_.hasWarmup();
    Moments early(*this, "statistics"), late(*this, "batch");
    // Statistics before apply. A lagged spec needs them only in warmup: the phase and its sweeps are
    // conditional.
    if (statistics) {
      k_.phase(
          "statistics", PhaseRole::Statistics, kRows,
          [&] {
            Num condition = lagged ? step_.inWarmup() : Num();
            early.begin(condition);
            overRows({.resident = true}, condition, [&](Num r) {
              Operands o(k_);
              o.sweep.condition = condition;
              early.addTo(o);
              k_.sweep(o.sweep, [&](const Nums& e) { return early.terms(o, e, scaled(o, e, r)); });
            });
            early.end();
          },
          /*warmup=*/lagged);
    }
    k_.phase(lagged ? "prepare" : "combine", PhaseRole::Combine, kFeatures, [&] {
      k_.slab(kFeatures, {}, [&] {
        Batch batch;
        if (statistics) batch = early.fold();
        keep(step_.forward(batch, /*save=*/true));
        if (lagged) return;
        step_.saveLate(batch);
        step_.updateState(batch);
      });
    });
    k_.phase("apply", PhaseRole::Apply, kRows, [&] {
      // apply reads x anyway, so for a lagged spec it also sums what finish folds into the state.
      if (lagged) late.begin({});
      apply(lagged ? &late : nullptr);
      if (lagged) late.end();
    });
    if (lagged) {
      k_.phase("finish", PhaseRole::Finish, kFeatures, [&] {
        k_.slab(kFeatures, {}, [&] {
          Batch batch = late.fold();
          step_.saveLate(batch);
          step_.updateState(batch);
        });
      });
    }
    planStepCounter(k_);
  }

  void infer() {
    if (step_.inferFromInput()) {
      Moments moments(*this, "statistics");
      k_.phase("statistics", PhaseRole::Statistics, kRows, [&] {
        moments.begin({});
        overRows({.resident = true}, {}, [&](Num r) {
          Operands o(k_);
          moments.addTo(o);
          k_.sweep(o.sweep, [&](const Nums& e) { return moments.terms(o, e, scaled(o, e, r)); });
        });
        moments.end();
      });
      k_.phase("combine", PhaseRole::Combine, kFeatures,
               [&] { k_.slab(kFeatures, {}, [&] { keep(step_.forward(moments.fold(), /*save=*/false)); }); });
    } else {
      k_.phase("prepare", PhaseRole::Combine, kFeatures,
               [&] { k_.slab(kFeatures, {}, [&] { keep(step_.infer()); }); });
    }
    k_.phase("apply", PhaseRole::Apply, kRows, [&] { apply(nullptr); });
  }

  void backward() {
    if (step_.backwardNeedsSums()) {
      k_.phase("statistics", PhaseRole::Statistics, kRows, [&] {
        overRows({.resident = true}, {}, [&](Num r) {
          Operands o = gradientOperands();
          addSums(o);
          k_.sweep(o.sweep, [&](const Nums& e) { return sumTerms(o, e, centred(o, e, r)); });
        });
      });
      k_.phase("combine", PhaseRole::Combine, kFeatures, [&] {
        k_.slab(kFeatures, {}, [&] {
          BackwardSums sums = foldSums();
          keep(step_.backward(sums));
          step_.finishBackward(sums);
        });
      });
      k_.phase("apply", PhaseRole::Apply, kRows, [&] { applyBackward(/*sums=*/false); });
      return;
    }
    // No sum is needed before dx: the sweep that writes dx collects them, and finish folds them.
    k_.phase("prepare", PhaseRole::Combine, kFeatures,
             [&] { k_.slab(kFeatures, {}, [&] { keep(step_.backward(std::nullopt)); }); });
    k_.phase("apply", PhaseRole::Apply, kRows, [&] { applyBackward(/*sums=*/true); });
    k_.phase("finish", PhaseRole::Finish, kFeatures,
             [&] { k_.slab(kFeatures, {}, [&] { step_.finishBackward(foldSums()); }); });
  }

 private:
  static constexpr Axis kRowAxes[] = {Axis::Segment, Axis::Row};
  static constexpr Axis kRowGroupAxes[] = {Axis::Segment, Axis::Row, Axis::PreGroup};
  static constexpr Axis kFeatureAxes[] = {Axis::Feature};
  static constexpr Axes kRows = kRowAxes, kRowGroups = kRowGroupAxes, kFeatures = kFeatureAxes;
  /// The rows whose mean is the shift estimate of a chunk.
  static constexpr int64_t kHead = 8;

  Num scaled(const Operands& o, const Nums& e, Num r) { return multiply(o.get("x", e), r); }

  /// A slab over the rows of a task. With `pre` the scale r of each row group is computed first.
  void overRows(KernelBuilder::SlabOptions options, Num condition, llvm::function_ref<void(Num)> body) {
    if (!spec_.pre) return k_.slab({}, options, [&] { body({}); });
    k_.slab(kRowGroups, options, [&] { body(scaleOfRow(condition)); });
  }
  Num scaleOfRow(Num condition) {
    Nums squares = k_.sweep({.reads = {k_.argument("x")}, .sums = 1, .condition = condition},
                            [&](const Nums& e) { return Nums{e[0] * e[0]}; });
    return scaleOf(squares[0]);
  }
  Num scaleOf(Num squares) {
    return inverseSqrt(meanOf(squares, k_.width(WidthOf::PreGroups)) + k_.narrow(k_.number("pre_epsilon")));
  }

  /// Count, mean and second moment of u, for each chunk and merged over chunks.
  class Moments {
   public:
    Moments(Streamed& plan, llvm::StringRef prefix) : plan_(plan), k_(plan.k_), prefix_(prefix) {}

    void begin(Num condition) {
      chunk_ = k_.phases();
      k_.store(k_.count(CountScope::Task), counter());
      if (!plan_.step_.needsMean()) return;
      if (k_.problem().layout == Layout::ChannelsFirst) {  // rows of a feature are contiguous
        k_.slab(kFeatures, {}, [&] { k_.store(finiteOr(k_.probe("x"), k_.constant(0)), column("shift")); });
        return;
      }
      plan_.overRows({.resident = true, .head = kHead}, condition, [&](Num r) {
        Operands o(k_);
        o.sweep.condition = condition;
        o.sweep.partials = {column("shift")};
        k_.sweep(o.sweep,
                 [&](const Nums& e) { return Nums{masked(k_, o.get("mask", e), plan_.scaled(o, e, r))}; });
      });
      Num rows = max(k_.count(CountScope::Task, kHead), k_.constant(1));
      k_.slab(kFeatures, {}, [&] {
        k_.store(finiteOr(meanOf(k_.load(column("shift")), rows), k_.constant(0)), column("shift"));
      });
    }
    void addTo(Operands& o) {
      if (plan_.step_.needsMean()) o.add("shift", column("shift"));
      for (llvm::StringRef name : sums()) o.sweep.partials.push_back(column(name));
    }
    Nums terms(const Operands& o, const Nums& e, Num u) {
      Num valid = o.get("mask", e);
      if (!plan_.step_.needsMean()) {
        u = masked(k_, valid, u);
        return {u * u};
      }
      Num d = masked(k_, valid, u - o.get("shift", e));
      Nums terms{d, d * d};
      if (raw()) {
        u = masked(k_, valid, u);
        terms.push_back(u * u);
      }
      return terms;
    }
    /// Turns shifted sums into the distance of the mean from the shift, and the sum of squared distances from
    /// the mean.
    void end() {
      if (!plan_.step_.needsMean()) return;
      Num n = max(k_.count(CountScope::Task), k_.constant(1));
      k_.slab(kFeatures, {}, [&] {
        Num sum = k_.load(column("sum")), squares = k_.load(column("squares"));
        // exact division: if the shift is an outlier, the digits of delta are digits of the mean
        Num delta = sum / n;
        k_.store(delta, column("sum"));
        k_.store(max(k_.constant(0), squares - sum * delta), column("squares"));
      });
    }
    Batch fold() {
      Batch batch{.count = k_.count(CountScope::All), .mean = {}, .moment = {}};
      Num n = max(batch.count, k_.constant(1));
      if (!plan_.step_.needsMean()) {
        Nums total = k_.total(chunk_, {column("moment")});
        batch.moment = meanOf(total[0], n);
        return batch;
      }
      llvm::SmallVector<llvm::StringRef> reads{counter(), column("shift"), column("sum"), column("squares")};
      if (raw()) reads.push_back(column("moment"));
      const Merged merged = mergeChunks(k_, chunk_, reads);
      batch.mean = k_.narrow(merged.mean);
      batch.moment = meanOf(k_.narrow(raw() ? merged.raw : merged.squares), n);
      return batch;
    }

   private:
    bool raw() const { return plan_.spec_.moment == Moment::Raw; }
    llvm::SmallVector<llvm::StringRef> sums() const {
      if (!plan_.step_.needsMean()) return {"moment"};
      if (raw()) return {"sum", "squares", "moment"};
      return {"sum", "squares"};
    }
    llvm::StringRef column(llvm::StringRef name) {
      return k_.workspace((prefix_ + "_" + name).str(), {Axis::Chunk, Axis::Feature}, chunk_);
    }
    llvm::StringRef counter() { return k_.workspace((prefix_ + "_rows").str(), {Axis::Chunk}, chunk_); }

    Streamed& plan_;
    KernelBuilder& k_;
    llvm::StringRef prefix_;
    int64_t chunk_ = 0;  ///< the phase that sums
  };

  //===-- Forward -------------------------------------------------------------===//

  llvm::StringRef vector(llvm::StringRef name) { return k_.workspace(name, kFeatures); }

  void keep(const ForwardTerms& terms) {
    kept_.clear();
    keepOne("c", terms.c), keepOne("a", terms.a), keepOne("b", terms.b);
  }
  void keepOne(llvm::StringRef name, Num value) {
    if (!value) return;
    const bool there = isStoredBias(value);
    if (!there) k_.store(value, vector(name));
    kept_.emplace_back(name.str(), there ? k_.argument("bias") : vector(name));
  }
  /// True if the value is an unchanged parameter of the caller, which needs no copy in the workspace.
  bool isStoredBias(Num value) {
    auto load = value.value.getDefiningOp<LoadOp>();
    return load && load.getTensor() == "bias" && k_.problem().params == DType::F32;
  }
  void addKept(Operands& o) {
    for (const auto& [name, tensor] : kept_) o.add(name, tensor);
  }

  void apply(Moments* moments) {
    overRows({.resident = true}, {}, [&](Num r) {
      Operands o(k_);
      addKept(o);
      o.sweep.writes = {k_.argument("y")};
      if (moments) moments->addTo(o);
      k_.sweep(o.sweep, [&](const Nums& e) {
        Num u = scaled(o, e, r), c = o.get("c", e);
        Nums out{elementY(k_, c ? u - c : u, o.get("a", e), o.get("b", e), o.get("mask", e))};
        if (moments) out.append(moments->terms(o, e, u));
        return out;
      });
    });
  }

  //===-- Backward ------------------------------------------------------------===//

  Operands gradientOperands() {
    Operands o(k_);
    o.read("dy");
    if (k_.hasSaved("mean")) o.add("c", k_.saved("mean"));
    return o;
  }
  Num centred(const Operands& o, const Nums& e, Num r) {
    Num u = scaled(o, e, r), c = o.get("c", e);
    return c ? u - c : u;
  }
  /// Returns the factor of the coefficients of dx: x0, or, if group scaling keeps u near 1, u - c, with s in
  /// the coefficients.
  Num normalized(const Operands& o, const Nums& e, Num r) {
    return multiply(centred(o, e, r), o.get("s", e));
  }
  Num rho(const Operands& o, const Nums& e, Num r) {
    if (!hasOwnRho(spec_)) return {};
    Num u = scaled(o, e, r), mean = o.get("mean", e);
    return multiply(mean ? u - mean : u, o.get("s", e));
  }
  llvm::StringRef sumColumn(llvm::StringRef name) {
    return k_.workspace("sum_" + name.str(), {Axis::Chunk, Axis::Feature}, sumChunk_);
  }

  void addSums(Operands& o) {
    sumChunk_ = k_.phases();
    o.sweep.partials = {sumColumn("g"), sumColumn("gx")};
    if (step_.needsSquares()) o.sweep.partials.push_back(sumColumn("xx"));
  }
  /// The sums are over d = u - c. The factor s of x0 = d s is applied once, when they are folded.
  Nums sumTerms(const Operands& o, const Nums& e, Num d) {
    Num valid = leaveOut_ ? Num() : o.get("mask", e);
    Num g = masked(k_, valid, o.get("dy", e));
    Nums terms{g, masked(k_, valid, g * d)};
    if (step_.needsSquares()) terms.push_back(masked(k_, valid, d * d));
    return terms;
  }
  BackwardSums foldSums() {
    llvm::SmallVector<llvm::StringRef> reads{sumColumn("g"), sumColumn("gx")};
    if (step_.needsSquares()) reads.push_back(sumColumn("xx"));
    Nums sums = k_.total(sumChunk_, reads);
    Num s = step_.rstd();
    return {sums[0], sums[1] * s, sums.size() > 2 ? sums[2] * s * s : Num()};
  }

  void keep(DxTerms terms) {
    kept_.clear();
    if (spec_.pre)
      for (Num* slope : {&terms.all, &terms.own})
        if (*slope) *slope = *slope * step_.rstd();
    keepOne("p", terms.p);
    if (leaveOut_) {
      keepOne("all", terms.all), keepOne("own", terms.own);
    } else {
      keepOne("own", add(terms.all, terms.own));
    }
    keepOne("offset", terms.offset);
  }

  Operands dxOperands() {
    Operands o = gradientOperands();
    if (!spec_.pre) o.add("s", k_.saved("rstd"));
    if (hasOwnRho(spec_) && isRhoCentred(spec_)) o.add("mean", k_.saved("batch_mean"));
    addKept(o);
    return o;
  }
  Num du(const Operands& o, const Nums& e, Num r) {
    DxTerms terms{o.get("p", e), o.get("all", e), o.get("own", e), o.get("offset", e)};
    return elementDx(k_, terms, o.get("dy", e), normalized(o, e, r), rho(o, e, r), o.get("mask", e));
  }
  Num keptRow(const Operands& o, const Nums& e) {
    return spec_.padding == Padding::Exclude ? o.get("mask", e) : Num();
  }

  /// Returns r of a row group, and the mean of du u over it: the exact derivative of group scaling.
  std::pair<Num, Num> scaleAndPull() {
    Operands o = dxOperands();
    Num width = k_.width(WidthOf::PreGroups);
    if (k_.hasSaved("mean") || leaveOut_ || hasOwnRho(spec_)) {
      Num r = scaleOfRow({});
      o.sweep.sums = 1;
      Nums dot = k_.sweep(o.sweep, [&](const Nums& e) {
        return Nums{masked(k_, keptRow(o, e), du(o, e, r) * scaled(o, e, r))};
      });
      return {r, meanOf(dot[0], width)};
    }
    // Without a centre, du u = r x (p g + offset) + r^2 x (slope x). The factors with r are outside of the
    // sums, so r and the sums come from one sweep.
    o.sweep.sums = 3;
    Nums sums = k_.sweep(o.sweep, [&](const Nums& e) {
      Num x = o.get("x", e), direct = add(multiply(o.get("dy", e), o.get("p", e)), o.get("offset", e));
      Num slope = add(o.get("all", e), o.get("own", e));
      auto term = [&](Num v) { return masked(k_, keptRow(o, e), v); };
      return Nums{x * x, term(x * direct), slope ? term(x * x * slope) : k_.constant(0)};
    });
    Num r = scaleOf(sums[0]);
    return {r, meanOf((sums[1] + sums[2] * r) * r, width)};
  }

  void applyBackward(bool sums) {
    if (!spec_.pre) return k_.slab({}, {.resident = true}, [&] { sweepDx(sums, {}, {}); });
    k_.slab(kRowGroups, {.resident = true}, [&] {
      auto [r, pull] = scaleAndPull();
      sweepDx(sums, r, pull);
    });
  }
  void sweepDx(bool sums, Num r, Num pull) {
    Operands o = dxOperands();
    o.sweep.writes = {k_.argument("dx")};
    if (sums) addSums(o);
    k_.sweep(o.sweep, [&](const Nums& e) {
      Num dx = du(o, e, r);
      if (pull) dx = masked(k_, keptRow(o, e), r * (dx - scaled(o, e, r) * pull));
      Nums out{dx};
      if (sums) out.append(sumTerms(o, e, centred(o, e, r)));
      return out;
    });
  }

  KernelBuilder& k_;
  const Spec& spec_;
  FeatureStep step_;
  bool leaveOut_;
  /// the coefficients of an element, and the tensors that hold them
  std::vector<std::pair<std::string, llvm::StringRef>> kept_;
  int64_t sumChunk_ = 0;  ///< the phase that sums
};

}  // namespace

void planPerFeatureStreamed(KernelBuilder& k) {
  Streamed plan(k);
  switch (k.problem().entry) {
    case Entry::Forward:
      return plan.forward();
    case Entry::Backward:
      return plan.backward();
    case Entry::Infer:
      return plan.infer();
  }
}

}  // namespace normc::codegen
