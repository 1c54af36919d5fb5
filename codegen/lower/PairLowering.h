// Elements of the pairs of features that `rope` turns: those of the mate of a feature, and the angle of its
// pair. In kernels with layout features_last, whose lanes are features.
//
// Where a vector of features lies on one side of its pairs (half), or has both (interleaved), its mates are
// one vector too, or its own lanes in another order. Elsewhere lanes are found one by one.
#pragma once

#include "codegen/lower/AccessLowering.h"

namespace normc::codegen {

/// A vector of features that are all first, or all second, in their pairs, in a loop over the pairs of a run.
struct Side {
  bool first;
  mlir::Value pair;  ///< of the first lane
};

class PairLowering {
 public:
  /// For a kernel with rope. `side`: of the features that are loaded, where the loop knows it.
  PairLowering(Loops& loops, AccessLowering& frame, std::optional<Side> side = {});
  /// True if a loop over the pairs of a run of `width` elements has sides, by steps of so many features.
  bool hasSides(mlir::Value width, int64_t step) const;
  mlir::Value pairs() const { return half_; }
  /// True if the mates and the angles of such a vector, which begins at a multiple of its lanes, are loaded
  /// in whole vectors, without masks.
  bool hasWholeVectors(int64_t lanes) const;

  /// Loads the elements at the mates of `lanes` features from at.feature on, converted as by
  /// AccessLowering::load; any values for features that are not turned.
  mlir::Value mates(TensorOp, const Coordinates& at, int64_t lanes, mlir::Value mask);
  /// Loads the elements of a tensor of pairs for these features (NormOps.td, sweep).
  mlir::Value ofPairs(TensorOp, const Coordinates& at, int64_t lanes, mlir::Value mask);
  /// Returns for `lanes` features from `feature` on whether each is turned: i1, one value if all lanes have
  /// the same. In a kernel that turns a part of the features.
  mlir::Value isTurned(mlir::Value feature, int64_t lanes);

 private:
  /// A position in a run of features, or one for each lane: i1 and integers, scalars or vectors.
  struct Place {
    mlir::Value turned;  ///< it has a mate; null: each has
    mlir::Value first;   ///< it is the first of its pair
    mlir::Value pair;    ///< the number of the pair, 0 of a feature that is not turned
  };
  Place placeOf(mlir::Value position);
  Place placeOfVector(mlir::Value feature);
  /// True if vectors of features begin at a multiple of their lanes, and no run ends inside one.
  bool isAligned(int64_t lanes) const;
  /// True if, further, all lanes of a vector are first, or second, or not turned.
  bool isUniform(int64_t lanes) const;
  /// True if both features of a pair are in one vector, or neither.
  bool isPaired(int64_t lanes) const;
  /// True if, of aligned vectors, each has only features that are turned, or none.
  bool isTurnedAlike(int64_t lanes) const { return !rope_.getTurned() || rope_.getTurned() % lanes == 0; }
  mlir::Value positionOf(mlir::Value feature) { return l_.rem(feature, run_); }
  mlir::Value positionsOf(mlir::Value feature, int64_t lanes);
  /// Returns the distance of a mate.
  mlir::Value distance();
  /// Makes the element of a pair that of a feature: `value` has the tensor's elements.
  mlir::Value turn(TensorOp, mlir::Value value, Place);
  mlir::Value inverse(mlir::Value);

  Loops& l_;
  AccessLowering& f_;
  RopeAttr rope_;
  std::optional<Side> side_;
  mlir::Value run_;     ///< features of a run
  mlir::Value turned_;  ///< features of a run that are turned
  mlir::Value half_;    ///< its pairs
};

}  // namespace normc::codegen
