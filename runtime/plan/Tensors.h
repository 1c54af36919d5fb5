// A DLPack tensor as a kernel sees it: three axes, the innermost contiguous.
//
//   features_last    segments x rows x features
//   channels_first   segments x features x rows
//
// Whatever a kernel cannot walk is refused with the tensor, the dimension and the rule.
#pragma once

#include "runtime/core/Memory.h"
#include "runtime/package/Manifest.h"

namespace normc::runtime {

struct View {
  char* data = nullptr;
  int64_t width = 1;                          ///< bytes of an element
  int64_t outer = 1, middle = 1, inner = 1;   ///< sizes
  int64_t outerStride = 0, middleStride = 0;  ///< in elements

  /// The bytes between the first and the last element. Only for a checked view.
  uintptr_t begin() const;
  uintptr_t end() const;
};

/// What a plan says of one tensor of a call.
struct TensorRules {
  Tensor which;
  DType type;
  bool written;
  const ProblemText* problem;
  const Place* place;  ///< where it has to lie
};

/// The tensor whose shape gives the sizes of a call: the first X-sized one.
struct ShapeSource {
  Tensor which = kX;
  const DLTensor* tensor = nullptr;
};

/// Elements. Sets `sizes` from the first one, when `source` has no tensor yet; the others must have its
/// shape.
normc_status bindXSized(const TensorRules& rules, const DLTensor& tensor, ShapeSource& source, Sizes& sizes,
                        View& view);

/// PerFeature.
normc_status bindVector(const TensorRules& rules, const DLTensor& tensor, const Sizes& sizes, View& view);

/// PerRow.
normc_status bindRows(const TensorRules& rules, const DLTensor& tensor, const ShapeSource& source,
                      const Sizes& sizes, View& view);

}  // namespace normc::runtime
