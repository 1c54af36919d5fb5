// What a backward writes for the tensors around a norm, as outputs and sums of sweeps
// (docs/around-a-norm.md).
//
// The gradient of a tensor with rows is an output of an element. That of a tensor that rows share is a sum
// over them: over the rows of a segment, or over all. A plan asks which gradients a sweep is for, adds them
// to it, and stores each sum where it is complete.
#pragma once

#include "codegen/plan/Element.h"
#include "dsl/StateFields.h"

namespace normc::codegen {

/// True if the problem writes a gradient that is a sum over the rows of a segment.
bool hasSegmentSums(const Problem&);

/// A gradient that is a sum over rows.
struct RowSum {
  Tensor tensor;
  Num (Element::*term)();
  bool ofSegment;  ///< over the rows of a segment; else over all rows
  llvm::StringRef name() const { return normc::name(tensor); }
};

class Around {
 public:
  /// The sweep that writes dx, or the sweep that sums the gradients of parameters; All: it is the same.
  enum class By { Dx, Sums, All };

  explicit Around(KernelBuilder& k) : k_(k), has_(hasOf(k.problem())) {}

  /// Adds the outputs of an element to a sweep, behind those that it has.
  void addOutputs(By, KernelBuilder::Sweep&) const;
  /// Appends their values.
  void appendOutputs(By, Element&, Nums&) const;

  llvm::SmallVector<RowSum, 3> sums(By) const;
  bool hasSegmentSums(By by) const {
    return llvm::any_of(sums(by), [](const RowSum& sum) { return sum.ofSegment; });
  }
  /// Stores the complete sum for one element of the tensor.
  void store(const RowSum&, Num sum) const;

  /// A sum of which each chunk of a phase leaves a part.
  struct Parted {
    RowSum sum;
    llvm::StringRef partial;
    int64_t phase;
  };
  /// Stores those over all rows, in a slab of a feature.
  void storeFeatures(llvm::ArrayRef<Parted>) const;
  /// Adds the phase that stores those over the rows of a segment, if there are any.
  void foldSegments(llvm::ArrayRef<Parted>) const;

 private:
  struct Gradient {
    Tensor tensor;
    Num (Element::*value)();
  };
  llvm::SmallVector<Gradient, 4> gradients(By) const;

  KernelBuilder& k_;
  Has has_;
};

}  // namespace normc::codegen
