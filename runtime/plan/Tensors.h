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
  TensorShape shape;
  DType type;
  bool written;
  const ProblemText* problem;
  const Kernel* kernel;  ///< any of the plan: all have the same blocks and pairs
  const Place* place;    ///< the device that it has to be on
};

/// The tensor whose shape gives the sizes of a call: the first one of shape Elements.
struct ShapeSource {
  Tensor which = kX;
  const DLTensor* tensor = nullptr;
};

/// Checks a tensor of a call. The first one of shape Elements sets `sizes` and `source`, which the tensors
/// after it have to fit.
normc_status bindTensor(const TensorRules& rules, const DLTensor& tensor, ShapeSource& source, Sizes& sizes,
                        View& view);

/// Checks the tensor of one field of the state or of the saved statistics, and gives its memory.
normc_status bindField(const ArgumentName& name, const Field& field, const DLTensor& tensor,
                       const Sizes& sizes, const Place& place, char*& data);

}  // namespace normc::runtime
