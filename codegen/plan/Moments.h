// Count, mean and second moment of u, from sums over a slab or merged from chunks of one.
//
// A central moment takes one pass about a shift estimate, in which sum (u - shift) and sum (u - shift)^2 are
// taken; a raw moment that needs no mean is sum u^2. Means of chunks are kept as distances from the first
// shift, so a large mean costs the variance no digits.
#pragma once

#include "codegen/plan/Element.h"

namespace normc::codegen {

/// Statistics of this batch. What the spec does not need is absent.
struct Batch {
  Num count;   ///< valid rows M, of statistics per feature
  Num mean;    ///< of u
  Num moment;  ///< q: mean(u^2), mean((u - mean)^2) or sum u^2, as the spec's moment says
};

class Moments {
 public:
  /// `needsMean`: the mean is used, or the moment is taken about it.
  Moments(KernelBuilder& k, bool needsMean)
      : k_(k), needsMean_(needsMean), raw_(k.spec().moment != Moment::Central) {}

  bool needsMean() const { return needsMean_; }
  /// Returns the names of the sums that `terms` yields: sum, squares, moment, as far as they are needed. The
  /// first two are about Part::Shift, `moment` is of u^2.
  llvm::ArrayRef<llvm::StringRef> sums() const;
  Nums terms(Element&) const;

  /// Binds Part::Shift to a shift estimate of the slab, and returns it; absent if there is no mean.
  Num shift(Parts&) const;
  /// Returns the statistics of a whole slab of n > 0 elements from its sums.
  Batch ofSlab(const Nums& sums, Num shift, Num n) const;

  /// The same in chunks. `field` returns the tensor with one element for each chunk, by its name: rows,
  /// shift, and those of sums().
  using Fields = llvm::function_ref<llvm::StringRef(llvm::StringRef)>;
  /// Returns what a chunk of n > 0 elements stores in place of `sum` and `squares`: the distance of its mean
  /// from the shift, and the sum of squared distances from the mean.
  std::pair<Num, Num> ofChunk(Num sum, Num squares, Num n) const;
  /// Returns the statistics of the n > 0 elements in the chunks of a phase, merged in f64 by Chan's formula,
  /// chunk after chunk.
  Batch merged(int64_t phase, Fields field, Num n) const;

  //===-- Partials ---------------------------------------------------------------===//
  /// Returns the names of the fields of a partial with an element per feature: sum, if there is a mean, and
  /// squares.
  llvm::ArrayRef<llvm::StringRef> partialFields() const;
  /// Returns these fields, in f64, from the chunks of a phase. The squares of a central moment come from the
  /// mean of each chunk and the distances from it, so that only f64 loses digits to a large mean; they are
  /// NaN where the sum is not finite, whatever the chunks.
  Nums rawSums(int64_t phase, Fields field) const;
  /// Returns the statistics of the rows of all partials of the call; mean and moment are 0 without rows. The
  /// arithmetic is f64, since raw moments cancel.
  Batch ofPartials() const;

 private:
  /// Returns the raw moment of n elements from the sum of their squares.
  Num rawMoment(Num squares, Num n) const {
    return k_.spec().moment == Moment::Sum ? squares : meanOf(squares, n);
  }

  KernelBuilder& k_;
  bool needsMean_, raw_;  ///< raw: the moment is about 0
};

}  // namespace normc::codegen
