// The tensors of a call: one enum and one table. All that depends on which tensor it is (name, shape, type,
// whether it is written, what memory it may share, whether it may be left out) stands in its row of the
// table.
//
// What a tensor means is not here: the language, planning and the reference know that. State, saved
// statistics and workspace are no tensors: they are buffers whose fields the norm publishes.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/abi/ProblemText.h"

namespace normc {

/// In the order of normc_args.
enum Tensor : uint8_t { kX, kY, kDy, kDx, kScale, kBias, kDscale, kDbias, kMask, kTensorCount };

/// The axes that index a tensor.
enum class TensorShape : uint8_t {
  Elements,    ///< segments, rows and features, with strides: X-sized
  PerFeature,  ///< features, contiguous
  PerRow,      ///< segments and rows
};

enum class TypeRule : uint8_t {
  Data,    ///< the type of the problem's data
  Params,  ///< the type of its params
  Mask,    ///< U8
};

/// The entries that take a tensor; infer takes what forward takes.
enum class TakenBy : uint8_t { Both, Forward, Backward };

enum class Direction : uint8_t {
  Read,
  ReadOrIgnored,  ///< a host hands all backwards the same inputs; one whose formula needs it not ignores it
  Written,
  WrittenIfGiven,  ///< null where the caller does not want it
};

/// What a norm, or the problem, has; the tensors of a call follow from it.
struct Has {
  bool scale = false, bias = false, mask = false;
};

struct TensorInfo {
  Tensor tensor;
  std::string_view name;  ///< in manifests, in kernels and on the command line
  TensorShape shape;
  TypeRule type;
  TakenBy takenBy;
  Direction direction;
  bool Has::* needs = nullptr;       ///< null: all norms take it
  std::optional<Tensor> mayBe = {};  ///< of an output: the input whose memory and strides it may have

  constexpr bool written() const { return direction >= Direction::Written; }
  constexpr bool mayBeLeftOut() const { return direction == Direction::WrittenIfGiven; }
  constexpr bool mayBeIgnored() const { return direction == Direction::ReadOrIgnored; }
};

/// In the order of Tensor.
inline constexpr auto kTensorTable = [] {
  using enum TensorShape;
  using enum TypeRule;
  using enum TakenBy;
  using enum Direction;
  // clang-format off
  return std::array<TensorInfo, kTensorCount>{{
      {kX,      "x",      Elements,   Data,   Both,     ReadOrIgnored},
      {kY,      "y",      Elements,   Data,   Forward,  Written,        nullptr,     kX},
      {kDy,     "dy",     Elements,   Data,   Backward, Read},
      {kDx,     "dx",     Elements,   Data,   Backward, WrittenIfGiven, nullptr,     kDy},
      {kScale,  "scale",  PerFeature, Params, Both,     ReadOrIgnored,  &Has::scale},
      {kBias,   "bias",   PerFeature, Params, Forward,  ReadOrIgnored,  &Has::bias},
      {kDscale, "dscale", PerFeature, Params, Backward, WrittenIfGiven, &Has::scale},
      {kDbias,  "dbias",  PerFeature, Params, Backward, WrittenIfGiven, &Has::bias},
      {kMask,   "mask",   PerRow,     Mask,   Both,     Read,           &Has::mask},
  }};
  // clang-format on
}();
static_assert([] {
  size_t at = 0;
  for (const TensorInfo& each : kTensorTable)
    if (each.tensor != at++ || (each.mayBe && *each.mayBe >= each.tensor)) return false;
  return at == kTensorCount;
}());

constexpr const TensorInfo& infoOf(Tensor tensor) { return kTensorTable[tensor]; }
constexpr std::string_view name(Tensor tensor) { return infoOf(tensor).name; }
/// True for the tensors with rows and features.
constexpr bool isXSized(Tensor tensor) { return infoOf(tensor).shape == TensorShape::Elements; }

/// Returns the type of a tensor's elements for a problem of these types.
constexpr DType typeOf(Tensor tensor, DType data, DType params) {
  switch (infoOf(tensor).type) {
    case TypeRule::Data:
      return data;
    case TypeRule::Params:
      return params;
    case TypeRule::Mask:
      break;
  }
  return DType::U8;
}

/// Returns the tensor of a name; absent if there is none.
constexpr std::optional<Tensor> tensorNamed(std::string_view name) {
  for (const TensorInfo& each : kTensorTable)
    if (each.name == name) return each.tensor;
  return std::nullopt;
}

/// Returns the tensors that a call takes, in the order of the table. Backward takes x and scale whether its
/// formula needs them or not.
std::vector<Tensor> operandsOf(Entry entry, const Has& has);

}  // namespace normc
