// A DLPack tensor as a kernel sees it: three axes, the innermost contiguous.
//
//   features_last    segments x rows x features
//   channels_first   segments x features x rows
//
// A tensor that a kernel cannot read is refused with its name, the dimension and the rule.
#pragma once

#include "runtime/core/Error.h"
#include "runtime/core/MemoryBlock.h"
#include "runtime/package/Package.h"

namespace normc::runtime {

/// The name of an argument in errors: "x", or "saved_fields[1] (`rstd`)" for one pointer of an array.
struct ArgumentName {
  std::string_view name;
  std::string_view field = {};  ///< empty: the argument is no array
  size_t index = 0;

  ArgumentName(std::string_view name) : name(name) {}
  ArgumentName(std::string_view name, std::string_view field, size_t index)
      : name(name), field(field), index(index) {}
};
Message& operator<<(Message& message, const ArgumentName& name);

struct View {
  char* data = nullptr;
  int64_t width = 1;                          ///< bytes of an element
  int64_t outer = 1, middle = 1, inner = 1;   ///< sizes
  int64_t outerStride = 0, middleStride = 0;  ///< in elements

  /// The range of bytes from the first to the last element. Only for a checked view.
  uintptr_t begin() const;
  uintptr_t end() const;
};

/// The rules of a plan for one tensor of a call.
struct TensorRules {
  Tensor which;
  DType type;
  bool written;
  const ProblemText* problem;
  const Place* place;  ///< the device that it has to be on
};

/// The tensor whose shape gives the sizes of a call: the first X-sized one.
struct ShapeSource {
  Tensor which = kX;
  const DLTensor* tensor = nullptr;
};

/// Checks a tensor of shape Elements. The first one sets `sizes` and `source`; the others must have its
/// shape.
normc_status bindXSized(const TensorRules& rules, const DLTensor& tensor, ShapeSource& source, Sizes& sizes,
                        View& view);

/// Checks a tensor of shape PerFeature.
normc_status bindVector(const TensorRules& rules, const DLTensor& tensor, const Sizes& sizes, View& view);

/// Checks a tensor of shape PerSegment.
normc_status bindVectors(const TensorRules& rules, const DLTensor& tensor, const Sizes& sizes, View& view);

/// Checks the tensor of one field of the state or of the saved statistics, and gives its memory.
normc_status bindField(const ArgumentName& name, const Field& field, const DLTensor& tensor,
                       const Sizes& sizes, const Place& place, char*& data);

/// Checks a tensor of shape PerBlock, of blocks of so many features; 0: of one block for each row.
normc_status bindBlocks(const TensorRules& rules, const DLTensor& tensor, const ShapeSource& source,
                        const Sizes& sizes, int64_t block, View& view);

/// Checks a tensor of shape PerPair, of so many pairs in a row.
normc_status bindPairs(const TensorRules& rules, const DLTensor& tensor, const ShapeSource& source,
                       const Sizes& sizes, int64_t pairs, View& view);

/// Checks a tensor of shape One.
normc_status bindOne(const TensorRules& rules, const DLTensor& tensor, View& view);

/// Checks a tensor of shape PerRow.
normc_status bindRows(const TensorRules& rules, const DLTensor& tensor, const ShapeSource& source,
                      const Sizes& sizes, View& view);

}  // namespace normc::runtime
