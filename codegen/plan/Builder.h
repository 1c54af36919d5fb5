// Builds a kernel of the norm dialect: its tensors, phases, slabs and sweeps, and the values between them.
#pragma once

#include <memory>
#include <optional>

#include "codegen/plan/Num.h"
#include "dsl/Problem.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace normc::codegen {

class Element;
class Parts;

using Axes = llvm::ArrayRef<Axis>;

/// Attributes of a phase (NormOps.td).
struct PhaseOptions {
  bool warmup = false, bySegment = false;
};

class KernelBuilder {
 public:
  KernelBuilder(mlir::ModuleOp module, const Problem& problem, llvm::StringRef symbol);

  const Problem& problem() const { return problem_; }
  /// Returns the spec that is planned: that of the problem, or, for a gradient of constant statistics, one
  /// that takes no statistic of a batch.
  const Spec& spec() const { return *spec_; }
  KernelOp kernel() { return kernel_; }
  mlir::Type statisticsType() const { return statistics_; }

  //===-- Tensors ---------------------------------------------------------===//
  /// Declares a tensor of the call (runtime/abi/Operands.h) on first use, with the
  /// type and axes that the problem gives it.
  llvm::StringRef argument(llvm::StringRef name);
  /// `state_in.F`, `state_out.F`, `saved.F`: the fields that the spec publishes.
  llvm::StringRef stateIn(llvm::StringRef field);
  llvm::StringRef stateOut(llvm::StringRef field);
  llvm::StringRef saved(llvm::StringRef field);
  /// Scratch of the statistics type. `chunkOf`: the number of the phase whose chunks its axis `chunk` has.
  llvm::StringRef workspace(llvm::StringRef name, Axes axes, std::optional<int64_t> chunkOf = {});
  /// `partial.F` that a call writes, and `partials.F` that it adds up: the fields of the entry's partials, in
  /// f64.
  llvm::StringRef partial(llvm::StringRef field);
  llvm::StringRef partials(llvm::StringRef field);
  /// True if forward and backward have the field; an entry without saved statistics has none.
  bool hasSaved(llvm::StringRef field) const;
  bool hasState(llvm::StringRef field) const;
  bool hasPartial(llvm::StringRef field) const;
  /// True if a declared tensor has an element for each feature.
  bool hasFeatures(llvm::StringRef tensor) const;

  //===-- Structure -------------------------------------------------------===//
  void phase(llvm::StringRef name, PhaseRole role, Axes units, llvm::function_ref<void()> body,
             PhaseOptions = {});
  int64_t phases() const { return phases_; }  ///< how many there are so far
  struct SlabOptions {
    bool resident = false;
    int64_t head = 0;
  };
  void slab(Axes per, SlabOptions options, llvm::function_ref<void()> body);
  /// Adds code for each block of codes, in a slab of runs.
  void blocks(llvm::function_ref<void()> body);
  struct Sweep {
    llvm::SmallVector<llvm::StringRef, 4> writes = {};  ///< tensors of the call
    unsigned sums = 0;
    llvm::SmallVector<Combiner, 4> combiners = {};  ///< of the sums; those without one are added
    llvm::SmallVector<llvm::StringRef, 4> partials = {};
    Num condition = {};  ///< optional
  };
  /// Adds a sweep, and returns its sums. `element` returns writes, sums, partials in that order.
  Nums sweep(const Sweep&, const Parts&, llvm::function_ref<Nums(Element&)> element);
  /// Combines `reads` over the chunks of a phase, in f64: there may be hundreds of them.
  Nums total(int64_t phase, llvm::ArrayRef<llvm::StringRef> reads, Combiner = Combiner::Add);
  /// Adds `read` over the chunks of the slab's segment, of a phase that is cut by segment.
  Num totalOfSegment(int64_t phase, llvm::StringRef read);
  /// Returns the sums of fields over the partials of the call, in f64.
  Nums totalOfPartials(llvm::ArrayRef<llvm::StringRef> fields);
  /// Folds `reads` from `init` along the chunks of the phase `number`, along a window of `number`, or along
  /// the partials of the call. `step` gets (position, running values, elements).
  enum class Folding { InOrder, Merges, OfSegment };
  Nums fold(Axis axis, int64_t number, llvm::ArrayRef<llvm::StringRef> reads, const Nums& init,
            llvm::function_ref<Nums(mlir::Value, const Nums&, const Nums&)> step, Folding = Folding::InOrder);

  //===-- Values ----------------------------------------------------------===//
  Num load(llvm::StringRef tensor, mlir::Value window = {});
  void store(Num value, llvm::StringRef tensor, mlir::Value window = {});
  void accumulate(Num value, llvm::StringRef tensor);
  /// A shift estimate of Element::u.
  Num probe(const Parts&, bool whole = false);
  Num count(CountScope scope, int64_t head = 0);
  Num width(WidthOf groups);
  /// A number of the spec in f64, e.g. for `1 - decay` before it is rounded.
  Num number(llvm::StringRef name);
  /// The same in the statistics type, of the whole task.
  Num numberOfTask(llvm::StringRef name);
  /// Computes a value before the slab that is being built: a stream has no scalar code.
  Num ofTask(llvm::function_ref<Num()> value);
  Num constant(double);
  Num wideConstant(double);  ///< in f64
  Num narrow(Num);           ///< f64 -> statistics type
  Num rounded(Num, DType);   ///< to another type, and back
  Num widen(Num);            ///< any float or i64 -> f64
  mlir::Value index(Num);    ///< i64 -> index
  Num integer(mlir::Value index);
  mlir::OpBuilder& ops() { return builder_; }
  mlir::Location loc() const { return builder_.getUnknownLoc(); }

 private:
  llvm::StringRef declare(llvm::StringRef name, mlir::Type, Axes axes, package::Role, package::Access,
                          int64_t window = 0, std::optional<int64_t> chunkOf = {});
  mlir::IntegerAttr integerOr(std::optional<int64_t>);  ///< null without a value
  mlir::ArrayAttr symbols(llvm::ArrayRef<llvm::StringRef> names);
  Nums wrap(mlir::ValueRange);

  Problem problem_;
  std::shared_ptr<const Spec> spec_;
  mutable mlir::OpBuilder builder_;
  KernelOp kernel_;
  mlir::Type statistics_;
  int64_t phases_ = 0;
};

}  // namespace normc::codegen
