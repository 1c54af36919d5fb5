#include "runtime/hosts/torch/Tensors.h"

#include <dlfcn.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/hosts/common/TypeNames.h"

namespace normc::hosts {
namespace {

/// The dimensions of x in the order in which the runtime takes them: segments, rows, features; or segments,
/// channels, rows.
struct Dims {
  std::array<int64_t, NORMC_MAX_DIMS> sizes, strides;
  int count = 0;
  void add(int64_t size, int64_t stride) {
    sizes[count] = size;
    strides[count++] = stride;
  }
};

Dims dimsOf(const Tensor& x, const Axes& axes) {
  const auto sizes = x.sizes(), strides = x.strides();
  const int n = int(sizes.size());
  Dims dims;
  if (axes.channelsFirst || axes.permuted) {
    for (int i = 0; i < n; ++i)
      if (i != 1 || axes.channelsFirst) dims.add(sizes[i], strides[i]);
    if (axes.permuted) dims.add(sizes[1], strides[1]);
    return dims;
  }
  for (int i = 0; i < n - axes.features; ++i) dims.add(sizes[i], strides[i]);
  int64_t features = 1;
  for (int i = n - axes.features; i < n; ++i) features *= sizes[i];
  dims.add(features, 1);
  return dims;
}

/// True if one stride leads through the dimensions [from, to).
bool collapses(const Dims& dims, int from, int to) {
  int64_t next = -1;
  for (int i = to; i-- > from;) {
    if (dims.sizes[i] == 1) continue;
    if (next >= 0 && dims.strides[i] != next) return false;
    next = dims.strides[i] * dims.sizes[i];
  }
  return true;
}

bool isContiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t next = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != next) return false;
    next *= sizes[i];
  }
  return true;
}
template <typename Range>
std::span<const int64_t> spanOf(const Range& range) {
  return {range.data(), range.size()};
}
bool isContiguous(const Tensor& tensor) {
  return isContiguous(spanOf(tensor.sizes()), spanOf(tensor.strides()));
}

/// The strides of a contiguous tensor whose dimension 1 is innermost.
std::array<int64_t, NORMC_MAX_DIMS> channelsLast(std::span<const int64_t> sizes) {
  std::array<int64_t, NORMC_MAX_DIMS> strides;
  int64_t next = sizes[1];
  strides[1] = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (i == 1) continue;
    strides[i] = next;
    next *= sizes[i];
  }
  return strides;
}

bool isChannelsLast(const Tensor& x) {
  const auto sizes = spanOf(x.sizes()), strides = spanOf(x.strides());
  const auto wanted = channelsLast(sizes);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 && strides[i] != wanted[i]) return false;
  return true;
}

/// Returns torch's type of scales that are powers of two; nothing if it is too old to have a function for it.
std::optional<int32_t> codeOfPowers() {
  using Get = int32_t (*)();
  static const Get get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "aoti_torch_dtype_float8_e8m0fnu"));
  return get ? std::optional(get()) : std::nullopt;
}

int32_t codeOf(DLDataType type) {
  if (type.code == kDLBfloat) return aoti_torch_dtype_bfloat16();
  if (type.code == kFloat8E4M3) return aoti_torch_dtype_float8_e4m3fn();
  if (type.code == kFloat8E8M0) {
    if (const auto code = codeOfPowers()) return *code;
    throw std::runtime_error(
        "this torch gives extensions no float8_e8m0fnu, the type of scales that are powers "
        "of two; a newer one does");
  }
  if (type.code == kDLInt) return type.bits == 8 ? aoti_torch_dtype_int8() : aoti_torch_dtype_int64();
  if (type.code == kDLUInt) return aoti_torch_dtype_uint8();
  return type.bits == 64   ? aoti_torch_dtype_float64()
         : type.bits == 16 ? aoti_torch_dtype_float16()
                           : aoti_torch_dtype_float32();
}

Tensor empty(const int64_t* sizes, const int64_t* strides, size_t dims, const Tensor& device, int32_t dtype) {
  const DLDevice on = deviceOf(device);
  AtenTensorHandle handle;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      int64_t(dims), sizes, strides, dtype,
      on.device_type == kDLCUDA ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu(), on.device_id,
      &handle));
  return Tensor(handle);
}

constexpr const char* kTypesOfData = "a norm takes tensors of float32, float64, bfloat16 or float16";

}  // namespace

DLDataType typeOf(const Tensor& tensor) {
  int32_t code;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &code));
  if (code == aoti_torch_dtype_float32()) return {kDLFloat, 32, 1};
  if (code == aoti_torch_dtype_bfloat16()) return {kDLBfloat, 16, 1};
  if (code == aoti_torch_dtype_float16()) return {kDLFloat, 16, 1};
  if (code == aoti_torch_dtype_float64()) return {kDLFloat, 64, 1};
  if (code == aoti_torch_dtype_int64()) return {kDLInt, 64, 1};
  if (code == aoti_torch_dtype_uint8()) return {kDLUInt, 8, 1};
  if (code == aoti_torch_dtype_bool()) return {kDLBool, 8, 1};
  if (code == aoti_torch_dtype_int8()) return {kDLInt, 8, 1};
  if (code == aoti_torch_dtype_float8_e4m3fn()) return {kFloat8E4M3, 8, 1};
  if (code == codeOfPowers()) return {kFloat8E8M0, 8, 1};
  throw std::invalid_argument(kTypesOfData);
}

DLDataType dataTypeOf(const Tensor& x) {
  const DLDataType type = typeOf(x);
  if (type.code != kDLFloat && type.code != kDLBfloat) throw std::invalid_argument(kTypesOfData);
  return type;
}

DLDevice deviceOf(const Tensor& tensor) {
  int32_t type, index;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type));
  if (type == aoti_torch_device_type_cpu()) return {kDLCPU, 0};
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(tensor.get(), &index));
  return {kDLCUDA, index};
}

std::string shapeText(std::span<const int64_t> sizes) {
  std::string shape;
  for (const int64_t size : sizes) shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return "[" + shape + "]";
}

/// Throws std::invalid_argument for more dimensions than a DLTensor of the runtime has.
static void checkDimensions(size_t count) {
  if (count > NORMC_MAX_DIMS)
    throw std::invalid_argument("a tensor has " + std::to_string(count) +
                                " dimensions; a norm takes at most " + std::to_string(NORMC_MAX_DIMS));
}

Axes axesOf(const Tensor& x, const NormText& norm) {
  const auto sizes = x.sizes();
  const int n = int(sizes.size());
  checkDimensions(sizes.size());
  const auto wrong = [&](const std::string& wanted) {
    return std::invalid_argument("x has the shape " + shapeText(spanOf(sizes)) + "; " + norm.name +
                                 " takes " + wanted);
  };
  const std::string features = std::to_string(norm.features);
  if (norm.channelsFirst) {
    if (n < 3 || sizes[1] != norm.features) throw wrong("[batch, " + features + ", positions...]");
    if (isContiguous(x) || !isChannelsLast(x)) return {.channelsFirst = true};
    return {.permuted = true};
  }
  int64_t trailing = 1;
  int dims = 0;
  while (dims < n && trailing < norm.features) trailing *= sizes[n - ++dims];
  if (dims == 0 && n > 0 && sizes[n - 1] == 1) dims = 1;  // one feature
  if (trailing != norm.features || dims == 0 || n - dims < (norm.segmented ? 2 : 0))
    throw wrong(norm.segmented ? "[batch, positions..., " + features + "]" : "[..., " + features + "]");
  return {.features = dims};
}

bool isWalkable(const Tensor& x, const NormText& norm, const Axes& axes) {
  if (axes.permuted) return isChannelsLast(x);
  if (isContiguous(x)) return true;
  const auto sizes = spanOf(x.sizes()), strides = spanOf(x.strides());
  const Dims dims = dimsOf(x, axes);
  if (axes.channelsFirst) {
    const size_t from = 2;
    return collapses(dims, 2, dims.count) && isContiguous(sizes.subspan(from), strides.subspan(from)) &&
           strides[0] >= 0 && strides[1] > 0;
  }
  const size_t rows = sizes.size() - axes.features;
  if (!isContiguous(sizes.subspan(rows), strides.subspan(rows))) return false;
  for (size_t i = 0; i < rows; ++i)
    if (strides[i] < 0) return false;
  return collapses(dims, norm.segmented ? 1 : 0, dims.count - 1);
}

Tensor walkable(const Tensor& x, const NormText& norm, const Axes& axes) {
  if (isWalkable(x, norm, axes)) return x;
  if (!axes.permuted) return ::torch::stable::contiguous(x);
  Tensor copy = likeInput(x, axes);
  ::torch::stable::copy_(copy, x);
  return copy;
}

Tensor likeInput(const Tensor& x, const Axes& axes) { return likeInput(x, axes, typeOf(x)); }

Tensor likeInput(const Tensor& x, const Axes& axes, DLDataType type) {
  const auto sizes = spanOf(x.sizes());
  std::array<int64_t, NORMC_MAX_DIMS> strides;
  if (axes.permuted) {
    strides = channelsLast(sizes);
  } else {
    int64_t next = 1;
    for (size_t i = sizes.size(); i-- > 0; next *= std::max<int64_t>(1, sizes[i])) strides[i] = next;
  }
  return empty(sizes.data(), strides.data(), sizes.size(), x, codeOf(type));
}

Tensor emptyOf(std::span<const int64_t> shape, const Tensor& device, DLDataType type) {
  checkDimensions(shape.size());
  std::array<int64_t, NORMC_MAX_DIMS> strides;
  int64_t next = 1;
  for (size_t i = shape.size(); i-- > 0; next *= std::max<int64_t>(1, shape[i])) strides[i] = next;
  return empty(shape.data(), strides.data(), shape.size(), device, codeOf(type));
}

Tensor emptyLike(const Tensor& tensor) { return emptyOf(spanOf(tensor.sizes()), tensor, typeOf(tensor)); }

void View::begin(const Tensor& tensor) {
  view_ = {};
  view_.data = tensor.data_ptr();
  view_.device = deviceOf(tensor);
  view_.dtype = typeOf(tensor);
  view_.shape = shape_.data();
  view_.strides = strides_.data();
}

const DLTensor* View::elements(const Tensor& tensor, const Axes& axes) {
  begin(tensor);
  const Dims dims = dimsOf(tensor, axes);
  std::copy_n(dims.sizes.begin(), dims.count, shape_.begin());
  std::copy_n(dims.strides.begin(), dims.count, strides_.begin());
  view_.ndim = dims.count;
  if (dims.count == 1) {  // one row
    shape_[1] = shape_[0];
    strides_[1] = 1;
    shape_[0] = 1;
    strides_[0] = shape_[1];
    view_.ndim = 2;
  }
  return &view_;
}

const DLTensor* View::flat(const Tensor& tensor) {
  begin(tensor);
  shape_[0] = 1;
  for (const int64_t size : tensor.sizes()) shape_[0] *= size;
  strides_[0] = 1;
  view_.ndim = 1;
  return &view_;
}

const DLTensor* View::plain(const Tensor& tensor, int leading) {
  begin(tensor);
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  checkDimensions(leading + sizes.size());
  std::fill_n(shape_.begin(), leading, 1);
  std::fill_n(strides_.begin(), leading, 1);
  std::copy(sizes.begin(), sizes.end(), shape_.begin() + leading);
  std::copy(strides.begin(), strides.end(), strides_.begin() + leading);
  view_.ndim = int32_t(sizes.size()) + leading;
  return &view_;
}

normc_sizes sizesOf(const Tensor& x, const NormText& norm, const Axes& axes) {
  const Dims dims = dimsOf(x, axes);
  const int feature = axes.channelsFirst ? 1 : dims.count - 1;
  int64_t segments = 1, rows = 1;
  for (int i = 0; i < dims.count; ++i) {
    if (i == feature) continue;
    (norm.segmented && i == 0 ? segments : rows) *= dims.sizes[i];
  }
  return {sizeof(normc_sizes), segments, rows, norm.features};
}

}  // namespace normc::hosts
