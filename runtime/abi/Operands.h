// The tensors of a call: one enum and one table. All properties of a tensor (name, shape, type, whether it is
// written, with which tensor it may share memory, whether it is optional) are in its row of the table.
//
// The meaning of a tensor is not here: the language, planning and the reference define it. State, saved
// statistics and workspace are not tensors but buffers, whose fields the norm defines.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/abi/ProblemText.h"

namespace normc {

/// Inputs come before the outputs that may share their memory.
enum Tensor : uint8_t {
  kX,
  kY,
  kDy,
  kDx,
  kScale,
  kBias,
  kDscale,
  kDbias,
  kMask,
  kResidual,
  kResidualOut,
  kGate,
  kModScale,
  kModShift,
  kDresidualOut,
  kDresidual,
  kDgate,
  kDmodScale,
  kDmodShift,
  kCodes,
  kQuantScale,
  kQuantScaleOut,
  kRopeCos,
  kRopeSin,
  kTensorCount
};

/// The axes that index a tensor.
enum class TensorShape : uint8_t {
  Elements,    ///< segments, rows and features, with strides: X-sized
  PerFeature,  ///< features, contiguous
  PerRow,      ///< segments and rows
  PerSegment,  ///< segments and features, contiguous
  PerBlock,    ///< segments, rows and blocks of features, contiguous
  PerPair,     ///< segments, rows and pairs of features, with strides
  One,         ///< a single element
};

enum class TypeRule : uint8_t {
  Data,    ///< the type of the problem's data
  Params,  ///< the type of its params
  Output,  ///< the type of its y
  Stream,  ///< the type of its residual, where that stands in front of the norm; else of the data
  Mask,    ///< U8
  Codes,   ///< of a quantized output, as the norm says
  Scale,   ///< F32
  Scales,  ///< of the scales of codes, as the norm says
};

/// The entries that take a tensor; infer takes the tensors of forward, and commit none. Where the batch is
/// divided, outputs are written before or after the sums are complete: `writesOutputs`.
enum class TakenBy : uint8_t {
  Both,
  Forward,  ///< where it writes its output
  Backward,
  Gradient,  ///< backward where it writes its output
  Sums,      ///< backward where it sums gradients
  Factor,    ///< forward where it writes its output, and backward
  Affine,    ///< what computes its output: forward and, where backward computes it again, backward
};

enum class Direction : uint8_t {
  Read,
  ReadIfGiven,    ///< null: all elements are 0
  ReadOrIgnored,  ///< callers pass all backwards the same inputs; a backward that does not need it ignores it
  Written,
  WrittenIfGiven,  ///< null if the caller does not need it
  Passed,          ///< written by forward, read by backward
};

/// The properties of a norm and a problem that determine the tensors of a call.
struct Has {
  bool scale = false, bias = false, mask = false;
  bool y = true;  ///< the output is not quantized
  bool codes = false, quantScale = false, quantScaleOut = false;
  bool recomputesOutput = false;  ///< backward needs the output of the affine
  bool waits = false;             ///< an output needs complete statistics of the batch
  bool residual = false, residualBefore = false;
  bool stream = false;  ///< the sum of input and residual is an output of forward
  bool gate = false, gateBefore = false;
  bool modScale = false, modShift = false;
  bool rope = false;
  /// The gradient of the residual is neither that of x nor that of y.
  bool ownResidualGradient = false;
  TensorShape gateShape = TensorShape::Elements, modulationShape = TensorShape::PerSegment;

  /// Returns the tensor of a backward that is the gradient of the residual; empty if there is no residual.
  constexpr std::optional<Tensor> gradientOfResidual() const {
    if (!residual) return std::nullopt;
    return ownResidualGradient ? kDresidual : residualBefore ? kDx : kDy;
  }
};

struct TensorInfo {
  Tensor tensor;
  std::string_view name;  ///< in manifests, in kernels and on the command line
  TensorShape shape;
  TypeRule type;
  TakenBy takenBy;
  Direction direction;
  bool Has::* needs = nullptr;       ///< null: all norms take it
  std::optional<Tensor> mayBe = {};  ///< for an output: `mayShare`, of norms without `rope`
  /// Where this flag is set the tensor enters the statistics, and `takenBy` does not count: entries that take
  /// x take it. Null: it is never set.
  bool Has::* before = nullptr;
  TensorShape Has::* shapeOf = nullptr;  ///< null: `shape` holds; else the norm decides

  /// True if calls of the entry write the tensor.
  constexpr bool written(Entry entry) const {
    if (direction == Direction::Passed) return !isBackward(entry);
    return direction >= Direction::Written;
  }
  constexpr bool mayBeLeftOut() const {
    return direction == Direction::WrittenIfGiven || direction == Direction::ReadIfGiven;
  }
  /// True for an input of a backward that its formula may not need.
  constexpr bool mayBeIgnored() const {
    return direction == Direction::ReadOrIgnored || direction == Direction::Passed;
  }
};

/// In the order of Tensor.
inline constexpr auto kTensorTable = [] {
  using enum TensorShape;
  using enum TypeRule;
  using enum TakenBy;
  using enum Direction;
  // clang-format off
  return std::array<TensorInfo, kTensorCount>{{
      {kX,            "x",              Elements,   Data,   Both,     ReadOrIgnored},
      {kY,            "y",              Elements,   Output, Forward,  Written,        &Has::y,         kX},
      {kDy,           "dy",             Elements,   Output, Backward, Read},
      {kDx,           "dx",             Elements,   Data,   Gradient, WrittenIfGiven, nullptr,         kDy},
      {kScale,        "scale",          PerFeature, Params, Factor,   ReadOrIgnored,  &Has::scale},
      {kBias,         "bias",           PerFeature, Params, Affine,   ReadOrIgnored,  &Has::bias},
      {kDscale,       "dscale",         PerFeature, Params, Sums,     WrittenIfGiven, &Has::scale},
      {kDbias,        "dbias",          PerFeature, Params, Sums,     WrittenIfGiven, &Has::bias},
      {kMask,         "mask",           PerRow,     Mask,   Both,     Read,           &Has::mask},
      {kResidual,     "residual",       Elements,   Stream, Factor,   ReadOrIgnored,  &Has::residual,  {},        &Has::residualBefore},
      {kResidualOut,  "residual_out",   Elements,   Stream, Factor,   Passed,         &Has::stream,    kResidual},
      {kGate,         "gate",           Elements,   Data,   Factor,   ReadOrIgnored,  &Has::gate,      {},        &Has::gateBefore,    &Has::gateShape},
      {kModScale,     "mod_scale",      PerSegment, Data,   Factor,   ReadOrIgnored,  &Has::modScale,  {},        nullptr,             &Has::modulationShape},
      {kModShift,     "mod_shift",      PerSegment, Data,   Factor,   ReadOrIgnored,  &Has::modShift,  {},        nullptr,             &Has::modulationShape},
      {kDresidualOut, "dresidual_out",  Elements,   Stream, Gradient, ReadIfGiven,    &Has::stream},
      {kDresidual,    "dresidual",      Elements,   Stream, Gradient, WrittenIfGiven, &Has::ownResidualGradient},
      {kDgate,        "dgate",          Elements,   Data,   Gradient, WrittenIfGiven, &Has::gate,      {},        nullptr,             &Has::gateShape},
      {kDmodScale,    "dmod_scale",     PerSegment, Data,   Sums,     WrittenIfGiven, &Has::modScale,  {},        nullptr,             &Has::modulationShape},
      {kDmodShift,    "dmod_shift",     PerSegment, Data,   Sums,     WrittenIfGiven, &Has::modShift,  {},        nullptr,             &Has::modulationShape},
      {kCodes,        "codes",          Elements,   Codes,  Forward,  Written,        &Has::codes},
      {kQuantScale,   "quant_scale",    One,        Scale,  Forward,  Read,           &Has::quantScale},
      {kQuantScaleOut,"quant_scale_out",PerBlock,   Scales, Forward,  Written,        &Has::quantScaleOut},
      {kRopeCos,      "rope_cos",       PerPair,    Scale,  Factor,   Read,           &Has::rope},
      {kRopeSin,      "rope_sin",       PerPair,    Scale,  Factor,   Read,           &Has::rope},
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
constexpr TensorShape shapeOf(Tensor tensor, const Has& has) {
  const TensorInfo& info = infoOf(tensor);
  return info.shapeOf ? has.*info.shapeOf : info.shape;
}
/// True if the tensor has rows and features.
constexpr bool isXSized(Tensor tensor, const Has& has) {
  return shapeOf(tensor, has) == TensorShape::Elements;
}

/// Returns the input whose memory and strides an output may share; empty if there is none. A norm that turns
/// pairs of features reads each input twice, the second time after it has written a part of the row.
constexpr std::optional<Tensor> mayShare(Tensor output, bool turnsPairs) {
  return turnsPairs ? std::nullopt : infoOf(output).mayBe;
}

/// Returns the type of a tensor's elements for a problem of these types.
constexpr DType typeOf(Tensor tensor, const ElementTypes& types) {
  switch (infoOf(tensor).type) {
    case TypeRule::Data:
      return types.data;
    case TypeRule::Params:
      return types.params;
    case TypeRule::Output:
      return types.output;
    case TypeRule::Stream:
      return types.stream;
    case TypeRule::Mask:
      break;
    case TypeRule::Codes:
      return types.codes;
    case TypeRule::Scale:
      return DType::F32;
    case TypeRule::Scales:
      return types.scales;
  }
  return DType::U8;
}

/// Returns the tensor of a name; empty if there is none.
constexpr std::optional<Tensor> tensorNamed(std::string_view name) {
  for (const TensorInfo& each : kTensorTable)
    if (each.name == name) return each.tensor;
  return std::nullopt;
}

/// True if the entry writes the outputs of its direction, y or dx.
constexpr bool writesOutputs(Entry entry, const Has& has) {
  return entry != Entry::Commit && !(writesPartial(entry) && has.waits);
}

/// True if a call of the entry takes the tensor.
constexpr bool isTaken(const TensorInfo& tensor, Entry entry, const Has& has) {
  if (tensor.needs && !(has.*tensor.needs)) return false;
  const bool backward = isBackward(entry);
  if (entry == Entry::Commit) return false;
  const bool outputs = writesOutputs(entry, has);
  if (tensor.before && has.*tensor.before) return true;
  switch (tensor.takenBy) {
    case TakenBy::Both:
      break;
    case TakenBy::Forward:
      return !backward && outputs;
    case TakenBy::Backward:
      return backward;
    case TakenBy::Gradient:
      return backward && outputs;
    case TakenBy::Sums:
      return backward && entry != Entry::BackwardApply;
    case TakenBy::Factor:
      return backward || outputs;
    case TakenBy::Affine:
      return backward ? has.recomputesOutput : outputs;
  }
  return true;
}

/// True if calls of the entry, a backward, may give the input although no formula of the entry needs it:
/// callers pass a backward the inputs of its forward.
constexpr bool mayComeAlong(const TensorInfo& tensor, Entry entry, const Has& has) {
  return isBackward(entry) && tensor.mayBeIgnored() &&
         (isTaken(tensor, entry, has) || isTaken(tensor, Entry::Forward, has));
}

/// Returns the tensors of a call, in the order of the table. Backward takes x and scale even if its formula
/// does not need them.
std::vector<Tensor> operandsOf(Entry entry, const Has& has);

}  // namespace normc
