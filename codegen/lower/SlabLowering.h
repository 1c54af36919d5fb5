// The part of lowering a phase that all targets share: the coordinates of a unit, and the scalar code between
// sweeps.
//
// Scalar code is cloned once for each replica: a row or channel (run, block, stream) or a vector of features
// (column). Targets differ in the number of threads that execute it. The virtual functions say which thread
// stores and when, how rows are counted, and from which elements a shift is estimated.
#pragma once

#include "codegen/lower/PairLowering.h"
#include "mlir/IR/IRMapping.h"

namespace normc::codegen {

class SlabLowering {
 public:
  /// One copy of a slab's scalar code: its coordinates, and the values that its operations became.
  struct Replica {
    Coordinates at;
    mlir::IRMapping values;
    int64_t index = 0;  ///< among its neighbours
    /// null: always; else i1: false for a replica that does not exist and stores nothing
    mlir::Value active;
  };
  using Replicas = llvm::SmallVector<Replica, 8>;

 protected:
  SlabLowering(Loops& loops, AccessLowering& frame) : l_(loops), f_(frame) {}
  virtual ~SlabLowering() = default;

  /// A sweep whose operands have been looked up once.
  struct SweepParts {
    SweepOp op;
    /// Reads of mates are behind the others.
    llvm::SmallVector<TensorOp> reads, writes, partials;
    size_t firstMate = 0;
    bool turns() const { return firstMate < reads.size(); }
    llvm::SmallVector<bool> hoisted;        ///< of reads: one value for each replica, loaded before the loop
    llvm::SmallVector<bool> shared;         ///< of reads: the same element for every replica
    llvm::SmallVector<bool> runPartial;     ///< of partials: summed along the contiguous axis first
    llvm::SmallVector<Combiner> combiners;  ///< of the slots
    size_t slots = 0;                       ///< sums and run partials of one replica
    /// Returns the combiners of running values in the order of replica, slot, and `unroll` of each slot.
    llvm::SmallVector<Combiner> combinersOf(size_t replicas, size_t unroll) const;
    /// Returns the rows whose terms are added first, for a schedule with steps of `rows`: twice as many in
    /// steps of 1 or 2 that add up 16-bit elements about a shift estimate. x is a multiple of a coarse step
    /// and a shift near zero is not, so all terms have the same fraction of a step. Once an outlier has made
    /// a sum so large that this fraction is lost, every addition rounds the same way. A sum of n terms has a
    /// fraction of fewer bits, and is added 1 / n as often.
    int64_t rowsTogether(int64_t rows) const;
  };
  SweepParts partsOf(SweepOp);  ///< of the slab that is being lowered
  /// Loads what argument i of a sweep takes for the features from at.feature on.
  mlir::Value loadRead(const SweepParts&, size_t i, const Coordinates& at, int64_t lanes, mlir::Value mask);
  void hoist(const SweepParts&, Replica&);

  using Kind = SlabKind;
  /// True if the lanes of the column that is being lowered are rows.
  bool isAcrossChannels() { return slab_ && slab_.isAcrossChannels(); }
  /// Returns the lanes of scalar code for an element of the tensor; 0: all lanes share it.
  int64_t lanesOf(TensorOp t) {
    return t.hasAxis(isAcrossChannels() ? Axis::Row : Axis::Feature) ? lanes_ : 0;
  }
  /// Returns the elements of a run of the slab that is being lowered, if tasks share runs those of the task.
  mlir::Value runWidth();

  /// True if coordinates are asked for of units that do not exist, of a call without rows too.
  virtual bool readsAhead() const { return false; }
  /// Returns how many units a segment has in a phase whose units have this axis beside segments.
  mlir::Value unitsOfSegment(Axis);
  /// Returns the indices of the n-th unit of the phase.
  Coordinates unitCoordinates(mlir::Value n);
  /// Returns the segment of the n-th row of a batch, and its row in it.
  std::pair<mlir::Value, mlir::Value> segmentAndRow(mlir::Value n);
  /// Returns the unit of the phase for the n-th of a task, if a task has others than those from begin_ to
  /// end_.
  virtual mlir::Value unitAt(mlir::Value n) { return n; }
  /// Returns the n-th row of a task in the order of its head. The first `head` rows are as far apart as keeps
  /// all rows between them in cache, so that data that drift are sampled all over; the rows after each of
  /// these follow.
  mlir::Value headUnit(mlir::Value n, int64_t head);
  /// Returns the number of rows in the head. A phase with one task takes headRounds_ times as many: the error
  /// of its sums is that of one estimate, while several tasks do not have their largest errors together.
  mlir::Value headLimit(int64_t head);
  /// Returns one past the last valid row of the head in [begin, end) in that order; `end` if there are fewer.
  mlir::Value headEnd(mlir::Value begin, mlir::Value end, int64_t head);

  /// Returns the sum of what rows add to a partial. Of all rows of the head, whose mean is the shift
  /// estimate, it is their middle times their number: no single row may move the estimate.
  mlir::Value sumOfRows(llvm::ArrayRef<mlir::Value> rows);

  static mlir::Value mapped(mlir::Value v, const mlir::IRMapping& values) { return values.lookup(v); }
  /// Clones an elementwise operation on mapped values. The copy works on vectors if one operand is a vector;
  /// otherwise it stays a scalar that all lanes share.
  mlir::Operation* clone(mlir::Operation&, mlir::IRMapping&);

  /// Clones the region of a sweep or a probe, whose arguments are mapped, but for operations that are not
  /// needed. Returns the values that it yields.
  Values regionCode(
      mlir::Block&, mlir::IRMapping&,
      llvm::function_ref<bool(mlir::Operation&)> isNeeded = [](mlir::Operation&) { return true; });
  Values elementCode(SweepOp op, Replica& replica) {
    return regionCode(op.getBody().front(), replica.values);
  }

  void scalarOp(mlir::Operation&, Replica&);
  /// Emits the counts that are the same for the whole task, before anything else.
  void countRows();
  mlir::Value horizontal(mlir::Value vector, Combiner = Combiner::Add);

  /// Emits a store of scalar code to the tensor. On a GPU one thread stores, after all others have read.
  virtual void once(const Replica&, TensorOp, std::function<void()> store) { store(); }
  /// True if the target keeps the value in registers instead of storing it.
  virtual bool kept(const Replica&, TensorOp, mlir::Value) { return false; }
  /// Called before a fold that stores, and after each of its steps.
  virtual void beginFold() {}
  virtual void endFoldStep() {}
  /// Called before scalar code or a sweep reads the tensor.
  virtual void beforeRead(TensorOp) {}
  /// Returns the number of rows of all segments (`rows`), of valid rows of all segments (`all`), of the task
  /// (`task`), or of the segment (`slab`).
  mlir::Value rowsOf(CountScope, mlir::Value segment);
  /// Returns the scope of the rows that a probe of the slab samples.
  CountScope probedScope();
  /// Returns a shift estimate: a value near the mean of the slab, exact if the data are constant.
  virtual mlir::Value probe(ProbeOp, Replica&);
  /// Returns, for a run that is known to be long enough, the vector whose horizontal sum times `share` is the
  /// result of `probe`; else null.
  mlir::Value probedSum(ProbeOp, Coordinates, double& share);
  mlir::Value shareOf(mlir::Value sum, double share);
  /// Returns the coordinates of sample i of `parts`, spread over the whole slab.
  Coordinates probedPlace(Coordinates, mlir::Value i, int64_t parts);
  /// Returns the coordinates of the valid rows that a probe of the slab samples, with a mask: one from each
  /// share of the valid rows. Places that were found in an enclosing region are used again, so that a target
  /// calls this before its loop over features.
  llvm::ArrayRef<Coordinates> validPlaces(mlir::Value segment);
  /// Emits the search for them among `count` > 0 valid rows. Returns a segment and a row for each.
  virtual Values searchValid(mlir::Value segment, mlir::Value count) = 0;
  /// Returns the shift rounded to the type of the data, so that differences from it, and many sums of these,
  /// are exact. Computed elements have no such type.
  mlir::Value asStored(ProbeOp, mlir::Value shift);
  /// Returns the value of one element of a probe; `load` returns that of a tensor.
  mlir::Value sampled(ProbeOp, llvm::function_ref<mlir::Value(TensorOp)> load);
  mlir::Value sampledAt(ProbeOp, const Coordinates&, int64_t lanes, mlir::Value mask = {});
  /// Returns the lanes of an element of the tensor beside `lanes` elements of x; 0 if all have the same.
  int64_t lanesBeside(TensorOp t, int64_t lanes) {
    const bool features = kind_ == Kind::Column && !isAcrossChannels();
    return t.hasAxis(features ? Axis::Feature : f_.kernel().contiguousAxis()) ? lanes : 0;
  }
  /// Returns the number of valid rows among the mask's elements at place(begin) to place(end - 1), an index.
  virtual mlir::Value countValid(mlir::Value begin, mlir::Value end,
                                 llvm::function_ref<Coordinates(mlir::Value)> place);

  Loops& l_;
  AccessLowering& f_;
  mlir::Value begin_, end_;  ///< units of the task
  mlir::Value segment_;      ///< of all units that are being lowered, where a loop over segments is around
  SlabOp slab_;              ///< the slab that is being lowered, and its kind
  Kind kind_ = Kind::Run;
  int64_t lanes_ = 0;         ///< of scalar code: those of a vector in a column slab, else 0
  mlir::Value laneMask_;      ///< of the last vector of a column
  mlir::Value runBegin_;      ///< first index of a slab along the contiguous axis
  std::optional<Side> side_;  ///< of the pairs that `rope` turns, in a loop over the pairs of a run
  mlir::Value blockWidth_;  ///< the elements of a block of the run that is being lowered; null: the whole run
  int64_t probeWidth_ = 1;  ///< lanes that a probe loads at once
  /// The rows that the shift of a column is estimated from, or the valid rows with a mask: 4, 8 or 16. If the
  /// shift is k standard deviations from the mean, the error of a sum of squares is 1 + k^2 times as large,
  /// so long chains of additions need more rows than sums of many threads.
  int64_t probedRows_ = 16;
  int64_t headRounds_ = 1;  ///< of the head of a stream: 1 or 2
  bool slowRoots_ = false;  ///< true if products are faster than a root and a division of lanes_ numbers
  int64_t foldBatch_ = 1;   ///< chunks that are loaded before the first is used

  /// Returns the elements of a fold at a position.
  Values foldElements(FoldOp, const Replica&, mlir::Value position);
  /// Returns the running values of a fold after one step. In place of the elements may be the running values
  /// of another part, if the fold merges.
  Values foldStep(FoldOp, Replica&, mlir::Value position, mlir::ValueRange running,
                  mlir::ValueRange elements);
  /// Returns the values of a fold where they are known before its slab is lowered; empty if not.
  virtual Values folded(FoldOp) { return {}; }

 private:
  void fold(FoldOp, Replica&);
  mlir::Value count(CountOp, Replica*);
  mlir::Value probed(ProbeOp, const Coordinates&);
  mlir::Value probedFeature(const Coordinates&, mlir::Value i, int64_t parts);
  mlir::Value probeRows(ProbeOp, const Coordinates&);
  mlir::Value probeFeatures(ProbeOp, const Coordinates&);
  mlir::Value probeValid(ProbeOp, const Coordinates&);
  mlir::Value probeRun(ProbeOp, const Coordinates&);
  static std::string countKey(CountOp);

  llvm::StringMap<mlir::Value> counts_;
  /// Counts of valid rows that have been emitted; a later request inside the same loops uses them again.
  struct ValidRows {
    CountScope scope;
    mlir::Value segment, rows;
  };
  llvm::SmallVector<ValidRows> validRows_;
  struct ValidPlaces {
    CountScope scope;
    mlir::Value segment, anchor;  ///< anchor: a result of the search
    llvm::SmallVector<Coordinates> places;
  };
  std::vector<ValidPlaces> validPlaces_;
};

}  // namespace normc::codegen
