#include "runtime/plan/Tensors.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/abi/DlType.h"
#include "runtime/core/Error.h"
#include "runtime/core/UncheckedEnum.h"

namespace normc::runtime {
namespace {

/// Returns the letters of a DLDataTypeCode in messages; empty for a code that no type of normc has.
std::string_view lettersOf(uint8_t code) {
  switch (code) {
    case kDLInt:
      return "i";
    case kDLUInt:
      return "u";
    case kDLFloat:
      return "f";
    case kDLBfloat:
      return "bf";
    case kDLBool:
      return "bool";
    default:
      return {};
  }
}

struct DTypeName {
  Message text;
  explicit DTypeName(DLDataType type) {
    const std::string_view letters = lettersOf(type.code);
    if (letters.empty())
      text << "code " << type.code << " of ";
    else
      text << letters;
    text << type.bits;
    if (type.lanes != 1) text << " x " << type.lanes;
  }
};

normc_status checkPlace(const ArgumentName& name, const DLDevice& device, const Place& place) {
  const int type = uncheckedEnumValue(device.device_type);
  if (place.onHost()) {
    if (type == kDLCPU || type == kDLCUDAHost) return NORMC_OK;
    return fail(NORMC_INVALID_ARGUMENT, name, " is on device type ", type,
                "; this plan runs on the CPU (kDLCPU, 1)");
  }
  if (type == place.type && device.device_id == place.id) [[likely]]
    return NORMC_OK;
  if (type == place.type)
    return fail(NORMC_INVALID_ARGUMENT, name, " is on cuda:", device.device_id, "; this plan runs on ",
                place.name);
  return fail(NORMC_INVALID_ARGUMENT, name, " is on device type ", type, "; this plan runs on ", place.name,
              " (kDLCUDA, 2)");
}

/// Checks the rules that hold for every tensor, whatever its shape.
normc_status checkBasics(const ArgumentName& name, const DLTensor& tensor, DType type, const Place& place,
                         int64_t& count) {
  NORMC_TRY(checkPlace(name, tensor.device, place));
  if (typeOfDlpack(tensor.dtype) != type)
    return fail(NORMC_INVALID_ARGUMENT, name, " has dtype ", DTypeName(tensor.dtype).text.text(),
                "; this plan takes ", normc::name(type),
                infoOf(type).kind == TypeKind::Bool ? " or bool" : "");
  if (tensor.ndim > 0 && !tensor.shape)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", tensor.ndim, " dimensions but no shape");
  if (tensor.ndim < 0 || tensor.ndim > NORMC_MAX_DIMS)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", tensor.ndim, " dimensions; at most ", NORMC_MAX_DIMS,
                " are allowed");
  count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] < 0)
      return fail(NORMC_INVALID_ARGUMENT, name, " has size ", tensor.shape[i], " in dimension ", i);
    count = multiply(count, tensor.shape[i]);
  }
  if (multiply(count, bytes(type)) > kHuge / 16)
    return fail(NORMC_INVALID_ARGUMENT, name, " has more elements than a 64-bit machine can hold");
  if (count > 0 && !tensor.data)
    return fail(NORMC_INVALID_ARGUMENT, name, " has elements but its data is null");
  if ((reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset) % bytes(type) != 0)
    return fail(NORMC_INVALID_ARGUMENT, name, " is not aligned to its elements of ", bytes(type), " bytes");
  return NORMC_OK;
}

normc_status checkBasics(const TensorRules& rules, const DLTensor& tensor, int64_t& count) {
  return checkBasics(normc::name(rules.which), tensor, rules.type, *rules.place, count);
}

/// Returns the stride of a dimension, in elements; the compact one if the tensor gives none.
int64_t strideOf(const DLTensor& tensor, int32_t dimension) {
  if (tensor.strides) return tensor.strides[dimension];
  int64_t stride = 1;
  for (int32_t i = tensor.ndim - 1; i > dimension; --i) stride = multiply(stride, tensor.shape[i]);
  return stride;
}

/// Returns the tensor with the strides that count. Without elements strides are ignored, and NumPy's are all
/// 0 then.
DLTensor walked(const DLTensor& tensor, int64_t count) {
  DLTensor result = tensor;
  if (count == 0) result.strides = nullptr;
  return result;
}

/// Dimensions [first, last) as one axis.
struct Axis {
  int64_t size = 1, stride = 0;
};

normc_status collapse(std::string_view name, const DLTensor& tensor, int32_t first, int32_t last,
                      Axis& axis) {
  int32_t inner = -1;  // the last dimension seen that has more than one element
  for (int32_t i = last - 1; i >= first; --i) {
    axis.size = multiply(axis.size, tensor.shape[i]);
    if (tensor.shape[i] == 1) continue;
    if (inner < 0) {
      axis.stride = strideOf(tensor, i);
    } else if (int64_t walked;
               __builtin_mul_overflow(strideOf(tensor, inner), tensor.shape[inner], &walked) ||
               walked != strideOf(tensor, i)) {
      return fail(NORMC_INVALID_ARGUMENT, name, " cannot be walked with one stride along dimensions ", i,
                  " and ", inner, " (sizes ", tensor.shape[i], " and ", tensor.shape[inner], ", strides ",
                  strideOf(tensor, i), " and ", strideOf(tensor, inner), "); make it contiguous there");
    }
    inner = i;
  }
  return NORMC_OK;
}

/// Checks that every element has an address, and every element of an output its own.
normc_status checkStrides(std::string_view name, const View& view, bool written) {
  struct {
    int64_t size, stride;
  } near = {view.middle, view.middleStride}, far = {view.outer, view.outerStride};
  constexpr int64_t kLimit = int64_t{1} << 60;
  if (view.outer == 0 || view.middle == 0 || view.inner == 0) return NORMC_OK;
  for (auto* axis : {&near, &far}) {
    if (axis->size == 1) axis->stride = 0;
    if (axis->stride == INT64_MIN ||
        multiply(multiply(std::abs(axis->stride), axis->size), view.width) > kLimit)
      return fail(NORMC_INVALID_ARGUMENT, name, " has a stride of ", axis->stride,
                  " elements: it reaches past the end of memory");
    axis->stride = std::abs(axis->stride);
  }
  if (!written) return NORMC_OK;
  if (near.size > 1 && far.size > 1 && near.stride > far.stride) std::swap(near, far);
  const int64_t nearExtent = near.size == 1 ? view.inner : (near.size - 1) * near.stride + view.inner;
  if ((near.size > 1 && near.stride < view.inner) || (far.size > 1 && far.stride < nearExtent))
    return fail(NORMC_INVALID_ARGUMENT, name, " is written, but its strides make elements share memory");
  return NORMC_OK;
}

/// Checks that a tensor of so many elements has no gaps.
normc_status checkCompact(const ArgumentName& name, const DLTensor& tensor, int64_t count) {
  int64_t compact = 1;
  for (int32_t i = tensor.ndim; i-- > 0 && count > 0; compact *= tensor.shape[i])
    if (tensor.shape[i] > 1 && strideOf(tensor, i) != compact)
      return fail(NORMC_INVALID_ARGUMENT, name, " has stride ", strideOf(tensor, i), " in dimension ", i,
                  "; it must be contiguous");
  return NORMC_OK;
}

normc_status sameShape(std::string_view name, const DLTensor& tensor, std::string_view otherName,
                       const DLTensor& other) {
  if (tensor.ndim != other.ndim)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", tensor.ndim, " dimensions, ", otherName, " has ",
                other.ndim, "; they must have the same shape");
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] != other.shape[i])
      return fail(NORMC_INVALID_ARGUMENT, name, " has size ", tensor.shape[i], " in dimension ", i, ", ",
                  otherName, " has ", other.shape[i], "; they must have the same shape");
  return NORMC_OK;
}

/// Returns the address of the first element. The data of a tensor without elements may be null, from which no
/// pointer has an offset.
char* address(const DLTensor& tensor) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset);
}

/// Returns the view of a tensor without gaps.
View compactView(const TensorRules& rules, const DLTensor& tensor, int64_t count) {
  return {.data = address(tensor), .width = bytes(rules.type), .inner = count};
}

/// The first tensor of this shape sets `sizes` and `source`; the others must have its shape.
normc_status bindElements(const TensorRules& rules, const DLTensor& given, ShapeSource& source, Sizes& sizes,
                          View& view) {
  const std::string_view name = normc::name(rules.which);
  const ProblemText& parts = *rules.problem;
  const bool channelsFirst = parts.channelsFirst();
  int64_t count;
  NORMC_TRY(checkBasics(rules, given, count));
  const DLTensor tensor = walked(given, count);
  if (source.tensor) NORMC_TRY(sameShape(name, tensor, normc::name(source.which), *source.tensor));
  const int32_t least = parts.segmented ? 3 : 2;
  if (tensor.ndim < least)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", tensor.ndim,
                tensor.ndim == 1 ? " dimension" : " dimensions", "; this plan takes ",
                channelsFirst     ? "segments x features x rows"
                : parts.segmented ? "segments x rows x features"
                                  : "rows x features");

  // Dimensions: [segments] [rows...] features, or segments features [rows...].
  const int32_t featureDim = channelsFirst ? 1 : tensor.ndim - 1;
  const int32_t firstRow = channelsFirst ? 2 : parts.segmented ? 1 : 0;
  Axis segments, rows;
  NORMC_TRY(collapse(name, tensor, firstRow, channelsFirst ? tensor.ndim : featureDim, rows));
  if (parts.segmented) segments = {tensor.shape[0], strideOf(tensor, 0)};
  const Axis features = {tensor.shape[featureDim], strideOf(tensor, featureDim)};
  const Axis& middle = channelsFirst ? features : rows;
  const Axis& inner = channelsFirst ? rows : features;
  if (inner.size > 1 && inner.stride != 1)
    return fail(NORMC_INVALID_ARGUMENT, name, " has stride ", inner.stride, " in dimension ",
                channelsFirst ? tensor.ndim - 1 : featureDim, ", along its ",
                channelsFirst ? "rows" : "features", "; it must be 1 there");
  if (features.size == 0) return fail(NORMC_INVALID_ARGUMENT, name, " has no features");
  if (parts.features && features.size != *parts.features)
    return fail(NORMC_FAILED_PRECONDITION, name, " has ", features.size, " features (dimension ", featureDim,
                "); this plan is for ", *parts.features);

  view = {.data = address(tensor),
          .width = bytes(rules.type),
          .outer = segments.size,
          .middle = middle.size,
          .inner = inner.size,
          .outerStride = segments.stride,
          .middleStride = middle.stride};
  NORMC_TRY(checkStrides(name, view, rules.written));
  if (source.tensor) return NORMC_OK;
  source = {rules.which, &given};
  sizes = {segments.size, rows.size, features.size};
  return NORMC_OK;
}

normc_status bindPerFeature(const TensorRules& rules, const DLTensor& tensor, const Sizes& sizes,
                            View& view) {
  const std::string_view name = normc::name(rules.which);
  int64_t count;
  NORMC_TRY(checkBasics(rules, tensor, count));
  if (tensor.ndim != 1)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", tensor.ndim,
                " dimensions; it must have one, the features");
  if (count != sizes.features)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", count, " elements; there are ", sizes.features,
                " features");
  if (count > 1 && strideOf(tensor, 0) != 1)
    return fail(NORMC_INVALID_ARGUMENT, name, " has stride ", strideOf(tensor, 0), "; it must be contiguous");
  view = compactView(rules, tensor, count);
  return NORMC_OK;
}

normc_status bindPerRow(const TensorRules& rules, const DLTensor& given, const ShapeSource& source,
                        const Sizes& sizes, View& view) {
  const std::string_view name = normc::name(rules.which);
  const DLTensor& x = *source.tensor;
  int64_t count;
  NORMC_TRY(checkBasics(rules, given, count));
  const DLTensor tensor = walked(given, count);
  // Either the leading dimensions of x, or its rows as one dimension.
  const bool channelsFirst = rules.problem->channelsFirst();
  const int32_t fixed = rules.problem->segmented ? 1 : 0;  // leading dimensions that are not merged
  const int32_t firstRow = channelsFirst ? 2 : fixed, rowDims = x.ndim - 1 - fixed;
  bool fits = tensor.ndim == fixed + rowDims || tensor.ndim == fixed + 1;
  if (fits && fixed) fits = tensor.shape[0] == sizes.segments;
  if (fits && tensor.ndim == fixed + rowDims) {
    for (int32_t i = 0; i < rowDims; ++i) fits &= tensor.shape[fixed + i] == x.shape[firstRow + i];
  } else if (fits) {
    fits = tensor.shape[fixed] == sizes.rows;
  }
  if (!fits && fixed)
    return fail(NORMC_INVALID_ARGUMENT, name, " must have the shape of ", normc::name(source.which),
                " without features, ", sizes.segments, " segments x ", sizes.rows, " rows; it has ", count,
                " elements in ", tensor.ndim, " dimensions");
  if (!fits)
    return fail(NORMC_INVALID_ARGUMENT, name, " must have the shape of ", normc::name(source.which),
                " without features, ", sizes.rows, " rows; it has ", count, " elements in ", tensor.ndim,
                " dimensions");
  Axis rows;
  NORMC_TRY(collapse(name, tensor, fixed, tensor.ndim, rows));
  if (rows.size > 1 && rows.stride != 1)
    return fail(NORMC_INVALID_ARGUMENT, name, " has stride ", rows.stride,
                " along its rows; it must be contiguous there");
  view = {.data = address(tensor),
          .width = bytes(rules.type),
          .outer = sizes.segments,
          .inner = sizes.rows,
          .outerStride = fixed ? strideOf(tensor, 0) : 0};
  return checkStrides(name, view, rules.written);
}

normc_status bindPerSegment(const TensorRules& rules, const DLTensor& tensor, const Sizes& sizes,
                            View& view) {
  const std::string_view name = normc::name(rules.which);
  int64_t count;
  NORMC_TRY(checkBasics(rules, tensor, count));
  if (tensor.ndim != 2 || tensor.shape[0] != sizes.segments || tensor.shape[1] != sizes.features)
    return fail(NORMC_INVALID_ARGUMENT, name, " must have a vector of features for each segment, ",
                sizes.segments, " x ", sizes.features, "; it has ", count, " elements in ", tensor.ndim,
                tensor.ndim == 1 ? " dimension" : " dimensions");
  NORMC_TRY(checkCompact(name, tensor, count));
  view = compactView(rules, tensor, count);
  return NORMC_OK;
}

normc_status bindPerBlock(const TensorRules& rules, const DLTensor& tensor, const ShapeSource& source,
                          const Sizes& sizes, View& view) {
  const std::string_view name = normc::name(rules.which);
  const DLTensor& x = *source.tensor;
  const int64_t block = rules.kernel->block, blocks = rules.kernel->blocks(sizes.features);
  int64_t count;
  NORMC_TRY(checkBasics(rules, tensor, count));
  // The leading dimensions of x, then the blocks.
  const int32_t leading = x.ndim - 1;
  bool fits = tensor.ndim == leading + (block != 0);
  for (int32_t i = 0; fits && i < leading; ++i) fits = tensor.shape[i] == x.shape[i];
  if (fits && block) fits = tensor.shape[leading] == blocks;
  if (!fits)
    return fail(NORMC_INVALID_ARGUMENT, name, " must have the shape of ", normc::name(source.which),
                block ? " with blocks in place of features, " : " with one scale in place of features, ",
                sizes.totalRows(), " rows of ", blocks, "; it has ", count, " elements in ", tensor.ndim,
                " dimensions");
  NORMC_TRY(checkCompact(name, tensor, count));
  view = compactView(rules, tensor, count);
  return NORMC_OK;
}

normc_status bindPerPair(const TensorRules& rules, const DLTensor& given, const ShapeSource& source,
                         const Sizes& sizes, View& view) {
  const std::string_view name = normc::name(rules.which);
  const DLTensor& x = *source.tensor;
  const int64_t pairs = rules.kernel->pairs(sizes.features);
  int64_t count;
  NORMC_TRY(checkBasics(rules, given, count));
  const DLTensor tensor = walked(given, count);
  const int32_t last = x.ndim - 1, firstRow = rules.problem->segmented ? 1 : 0;
  bool fits = tensor.ndim == x.ndim && tensor.shape[last] == pairs;
  for (int32_t i = 0; fits && i < last; ++i) fits = tensor.shape[i] == x.shape[i];
  if (!fits)
    return fail(NORMC_INVALID_ARGUMENT, name, " must have the shape of ", normc::name(source.which),
                " with pairs in place of features, ", sizes.totalRows(), " rows of ", pairs, "; it has ",
                count, " elements in ", tensor.ndim, " dimensions");
  if (pairs > 1 && strideOf(tensor, last) != 1)
    return fail(NORMC_INVALID_ARGUMENT, name, " has stride ", strideOf(tensor, last), " in dimension ", last,
                ", along its pairs; it must be 1 there");
  Axis rows;
  NORMC_TRY(collapse(name, tensor, firstRow, last, rows));
  view = {.data = address(tensor),
          .width = bytes(rules.type),
          .outer = sizes.segments,
          .middle = rows.size,
          .inner = pairs,
          .outerStride = firstRow ? strideOf(tensor, 0) : 0,
          .middleStride = rows.stride};
  return checkStrides(name, view, rules.written);
}

normc_status bindOne(const TensorRules& rules, const DLTensor& tensor, View& view) {
  const std::string_view name = normc::name(rules.which);
  int64_t count;
  NORMC_TRY(checkBasics(rules, tensor, count));
  if (count != 1) return fail(NORMC_INVALID_ARGUMENT, name, " has ", count, " elements; it must have one");
  view = compactView(rules, tensor, 1);
  return NORMC_OK;
}

}  // namespace

Message& operator<<(Message& message, const ArgumentName& name) {
  message << name.name;
  return name.field.empty() ? message : message << "[" << name.index << "] ('" << name.field << "')";
}

uintptr_t View::begin() const {
  if (outer == 0 || middle == 0) return reinterpret_cast<uintptr_t>(data);  // strides are ignored then
  const int64_t back =
      std::min<int64_t>(0, (outer - 1) * outerStride) + std::min<int64_t>(0, (middle - 1) * middleStride);
  return reinterpret_cast<uintptr_t>(data) + back * width;
}

uintptr_t View::end() const {
  if (outer == 0 || middle == 0 || inner == 0) return begin();
  const int64_t forth =
      std::max<int64_t>(0, (outer - 1) * outerStride) + std::max<int64_t>(0, (middle - 1) * middleStride);
  return reinterpret_cast<uintptr_t>(data) + (forth + inner) * width;
}

normc_status bindTensor(const TensorRules& rules, const DLTensor& tensor, ShapeSource& source, Sizes& sizes,
                        View& view) {
  switch (rules.shape) {
    case TensorShape::Elements:
      return bindElements(rules, tensor, source, sizes, view);
    case TensorShape::PerFeature:
      return bindPerFeature(rules, tensor, sizes, view);
    case TensorShape::PerRow:
      return bindPerRow(rules, tensor, source, sizes, view);
    case TensorShape::PerSegment:
      return bindPerSegment(rules, tensor, sizes, view);
    case TensorShape::PerBlock:
      return bindPerBlock(rules, tensor, source, sizes, view);
    case TensorShape::PerPair:
      return bindPerPair(rules, tensor, source, sizes, view);
    case TensorShape::One:
      return bindOne(rules, tensor, view);
  }
  return NORMC_OK;
}

normc_status bindField(const ArgumentName& name, const Field& field, const DLTensor& tensor,
                       const Sizes& sizes, const Place& place, char*& data) {
  int64_t count;
  NORMC_TRY(checkBasics(name, tensor, field.type, place, count));
  if (const int64_t wanted = elements(field.shape, sizes); count != wanted)
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", count, " elements; with these sizes the field has ",
                wanted);
  NORMC_TRY(checkCompact(name, tensor, count));
  data = address(tensor);
  return NORMC_OK;
}

}  // namespace normc::runtime
