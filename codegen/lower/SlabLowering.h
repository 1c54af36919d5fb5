// What lowering a phase needs whatever the target: which kind of slab this is,
// where a unit lies, and the scalar code between sweeps.
//
// Scalar code is cloned once per replica: a row (line, block, stream) or a vector
// of features (column). Targets differ in how many threads run it and say so in
// the virtual functions: who stores and when, how rows are counted, where a mean is guessed.
#pragma once

#include "codegen/lower/AccessLowering.h"
#include "mlir/IR/IRMapping.h"

namespace normc::codegen {

class SlabLowering {
 protected:
  SlabLowering(Loops& loops, AccessLowering& frame) : l_(loops), f_(frame) {}
  virtual ~SlabLowering() = default;

  /// One copy of a slab's scalar code: where it stands and what its values became.
  struct Replica {
    Coordinates at;
    mlir::IRMapping values;
    int64_t index = 0;   ///< among its neighbours
    mlir::Value active;  ///< null: always; else it stands in for one that is not there, and stores nothing
  };
  using Replicas = llvm::SmallVector<Replica, 8>;

  /// A sweep whose operands have been looked up once.
  struct SweepParts {
    SweepOp op;
    llvm::SmallVector<TensorOp> reads, writes, partials;
    llvm::SmallVector<bool> hoisted;     ///< of reads: one value per replica, loaded before the loop
    llvm::SmallVector<bool> shared;      ///< of reads: the same element for every replica
    llvm::SmallVector<bool> runPartial;  ///< of partials: summed along the contiguous axis first
    size_t slots = 0;                    ///< sums and run partials of one replica
  };
  SweepParts partsOf(SweepOp);  ///< of the slab being lowered
  void hoist(const SweepParts&, Replica&);

  /// Where the contiguous axis lies, seen from the statistic: docs/codegen.md.
  enum class Kind { Run, Block, Column, Stream };
  Kind kindOf(SlabOp);
  /// Whether the rows of the slab are cut across: a task has some features of each.
  bool isSplit(SlabOp);
  /// Whether a slab of each feature is of the rows of the task alone, with layout channels_first.
  bool isOfRows(SlabOp);
  bool hasUnits(llvm::StringRef axis);  ///< whether units of the phase are told apart along it
  /// Elements of a run of the slab that is being lowered, as far as they are the task's.
  mlir::Value runWidth();

  /// Indices of the n-th unit of the phase.
  Coordinates unitCoordinates(mlir::Value n);
  /// Where the n-th row of a batch lies.
  std::pair<mlir::Value, mlir::Value> segmentAndRow(mlir::Value n);
  /// Which of the phase's units that is, where a task has others than those from begin_ to end_.
  virtual mlir::Value unitAt(mlir::Value n) { return n; }
  /// The n-th row of a task that is asked for its head: each of the first `head` as far from the next as keeps them in
  /// cache, so that a task that drifts is asked all over, then those behind each.
  mlir::Value headUnit(mlir::Value n, int64_t head);
  /// One past the `head`-th valid row of [begin, end) in that order, or its end.
  mlir::Value headEnd(mlir::Value begin, mlir::Value end, int64_t head);

  static mlir::Value mapped(mlir::Value v, const mlir::IRMapping& values) { return values.lookup(v); }
  /// A copy of an elementwise operation on mapped values: on vectors as soon as one operand
  /// is a vector, else it stays a scalar that all lanes share.
  mlir::Operation* clone(mlir::Operation&, mlir::IRMapping&);

  /// Clones the region of a sweep for one replica, whose arguments are mapped. Returns what the region
  /// yields.
  Values elementCode(SweepOp, Replica&);

  void scalarOp(mlir::Operation&, Replica&);
  /// Counts that are the same for the whole task, before anything else.
  void countRows();
  mlir::Value horizontal(mlir::Value vector);

  /// A store of scalar code to the tensor: on a GPU one thread does it, and not before others have read.
  virtual void once(const Replica&, TensorOp, std::function<void()> store) { store(); }
  /// Whether the value is remembered instead of stored.
  virtual bool kept(const Replica&, TensorOp, mlir::Value) { return false; }
  /// Around the steps of a fold that stores.
  virtual void beginFold() {}
  virtual void endFoldStep() {}
  /// Before scalar code or a sweep reads the tensor.
  virtual void beforeRead(TensorOp) {}
  /// Rows of all segments (`rows`), those of them that are valid (`all`), or that are in the task, or the segment (`slab`).
  mlir::Value rowsOf(llvm::StringRef scope, mlir::Value segment);
  /// What a probe of the slab counts.
  llvm::StringRef probedScope();
  /// A value near the mean of the slab, exact where the data are constant.
  virtual mlir::Value probe(ProbeOp, Replica&);
  /// Of a run that is known to be long enough: the vector whose lanes, added up and multiplied by `share`, are what
  /// `probe` gives. Else null.
  mlir::Value probedSum(ProbeOp, Coordinates, double& share);
  mlir::Value shareOf(mlir::Value sum, double share);
  /// Where the i-th of `parts` places is asked that lie as far apart as the slab allows.
  Coordinates probedPlace(Coordinates, mlir::Value i, int64_t parts);
  static constexpr int64_t kProbedRows = 8;
  /// Rounded to the type of the data, so that differences from it, and many sums of these, are exact.
  mlir::Value asStored(TensorOp x, mlir::Value shift);
  /// Valid rows among the mask's elements at place(begin) to place(end - 1), an index.
  virtual mlir::Value countValid(mlir::Value begin, mlir::Value end, llvm::function_ref<Coordinates(mlir::Value)> place);

  Loops& l_;
  AccessLowering& f_;
  mlir::Value begin_, end_;  ///< units of the task
  SlabOp slab_;              ///< being lowered, and its kind
  Kind kind_ = Kind::Run;
  int64_t lanes_ = 0;        ///< of scalar code: 0, or a vector's in a column slab
  mlir::Value laneMask_;     ///< of the last column tile
  mlir::Value runBegin_;     ///< first index of a slab along the contiguous axis
  int64_t probeWidth_ = 1;   ///< lanes that a probe loads at once
  bool slowRoots_ = false;   ///< whether products are faster than a root and a division of lanes_ numbers
  int64_t foldBatch_ = 1;    ///< chunks whose loads are under way together

 private:
  void fold(FoldOp, Replica&);
  mlir::Value count(CountOp, Replica*);
  mlir::Value probed(TensorOp x, const Coordinates&);
  mlir::Value probedFeature(const Coordinates&, mlir::Value i, int64_t parts);
  mlir::Value probeRows(TensorOp x, const Coordinates&);
  mlir::Value probeValid(TensorOp x, const Coordinates&);
  mlir::Value probeRun(ProbeOp, const Coordinates&);
  static std::string countKey(CountOp);

  llvm::StringMap<mlir::Value> counts_;
  /// Counted once where masked: whoever asks again within the same loops has the answer.
  struct ValidRows {
    std::string scope;
    mlir::Value segment, rows;
  };
  llvm::SmallVector<ValidRows> validRows_;
};

}  // namespace normc::codegen
