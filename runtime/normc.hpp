/// @file
/// normc runtime for C++17: the C API with owning objects, exceptions and containers.
///
/// @code
///   using namespace normc::host;
///   Context context;
///   Package package(context, "norms.npk");
///   Plan forward(package, "layer_norm:forward@f32[*x1024]");
///   Call call;
///   call.x = Tensor(x, {rows, 1024});  ...
///   forward(call);
/// @endcode
///
/// Header only: it adds nothing to the library's ABI. Functions throw Error if the C function that they call
/// fails; normc.h documents each function, its shapes, units, errors and thread-safety.
#ifndef NORMC_HPP
#define NORMC_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "normc.h"

/// The C++ API.
namespace normc::host {

/// A failed call: its status, and the library's sentence about it.
class Error : public std::runtime_error {
 public:
  /// Takes the message of the last failure on this thread.
  explicit Error(normc_status status) : std::runtime_error(normc_last_error()), status_(status) {}
  /// The status that the call returned.
  normc_status status() const { return status_; }

 private:
  normc_status status_;
};

/// Throws Error unless the status is NORMC_OK.
inline void check(normc_status status) {
  if (status != NORMC_OK) throw Error(status);
}

namespace detail {
template <typename T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <typename T, void (*destroy)(T*)>
using Owner = std::unique_ptr<T, Destroy<T, destroy>>;

/// Returns all structs of `query(index, &item)`.
template <typename Item, typename Query>
std::vector<Item> all(Query query) {
  std::vector<Item> result;
  for (;;) {
    Item item = {};
    item.struct_size = sizeof item;
    const normc_status status = query(result.size(), &item);
    if (status == NORMC_OUT_OF_RANGE) return result;
    check(status);
    result.push_back(item);
  }
}

inline std::uint32_t bitsOf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float floatOf(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// Returns value / 2^shift, rounded to nearest, ties to even. `shift` is from 1 to 31.
constexpr std::uint32_t shiftedToNearest(std::uint32_t value, int shift) {
  const std::uint32_t down = value >> shift, rest = value << (32 - shift);
  return down + (rest > 0x80000000u || (rest == 0x80000000u && (down & 1)));
}
}  // namespace detail

/// A number of 16 bits with the exponent of a float: DLPack's bfloat16. It stores, and converts: a float is
/// rounded to nearest, ties to even, and a NaN stays one.
struct bf16 {
  std::uint16_t bits = 0;  ///< the upper half of a float

  /// 0.
  bf16() = default;
  /// The nearest number.
  explicit bf16(float value) {
    const std::uint32_t from = detail::bitsOf(value);
    const bool nan = (from & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? from >> 16 | 0x40u : detail::shiftedToNearest(from, 16));
  }
  /// Returns the same number.
  operator float() const { return detail::floatOf(std::uint32_t{bits} << 16); }
};

/// An IEEE number of 16 bits: DLPack's float16. It stores, and converts: a float is rounded to nearest, ties
/// to even, and a NaN stays one.
struct half {
  std::uint16_t bits = 0;  ///< sign, 5 bits of exponent, 10 of fraction

  /// 0.
  half() = default;
  /// The nearest number; from 65520 on it is infinity.
  explicit half(float value) {
    const std::uint32_t from = detail::bitsOf(value), sign = from >> 16 & 0x8000u, size = from & 0x7fffffffu;
    const int exponent = static_cast<int>(size >> 23);
    std::uint32_t to = 0;
    if (size > 0x7f800000u) {
      to = 0x7e00u | (size >> 13 & 0x3ffu);
    } else if (exponent >= 143) {
      to = 0x7c00u;
    } else if (exponent >= 113) {
      to = detail::shiftedToNearest(size - (112u << 23), 13);  // may carry to infinity
    } else if (exponent >= 102) {
      to = detail::shiftedToNearest((size & 0x7fffffu) | 0x800000u, 126 - exponent);  // multiples of 2^-24
    }
    bits = static_cast<std::uint16_t>(sign | to);
  }
  /// Returns the same number.
  operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    if (exponent == 0) {
      const float size = static_cast<float>(fraction) / 16777216;
      return sign ? -size : size;
    }
    return detail::floatOf(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13);
  }
};

/// Owns a normc_context. Thread-safe.
class Context {
 public:
  /// Creates a context with the defaults of normc_context_options.
  Context() : Context(normc_context_options{}) {}
  /// Creates a context with these options; struct_size need not be set.
  explicit Context(normc_context_options options) {
    options.struct_size = sizeof options;
    normc_context* made;
    check(normc_context_create(&options, &made));
    owner_.reset(made);
  }
  /// Returns the number of CUDA devices. Throws if there is no driver or no device.
  int cudaDevices() const {
    std::int32_t count;
    check(normc_cuda_device_count(get(), &count));
    return count;
  }
  /// Returns facts about a device, 0 to cudaDevices() - 1.
  normc_cuda_device cudaDevice(int index) const {
    normc_cuda_device device = {};
    device.struct_size = sizeof device;
    check(normc_cuda_device_info(get(), index, &device));
    return device;
  }
  /// Returns the object of the C API.
  normc_context* get() const { return owner_.get(); }

 private:
  detail::Owner<normc_context, normc_context_destroy> owner_;
};

/// Returns the options of a plan for a CUDA device: `Plan(package, problem, onCuda(0))`.
inline normc_request onCuda(int device = 0) {
  normc_request request = {};
  request.device_type = kDLCUDA;
  request.device_id = device;
  return request;
}

/// Owns a normc_package. Thread-safe.
class Package {
 public:
  /// Opens a file. A package holds machine code: open only packages whose author you trust.
  Package(const Context& context, const std::string& path) {
    normc_package* made;
    check(normc_package_open(context.get(), path.c_str(), &made));
    owner_.reset(made);
  }
  /// Opens a package of `bytes` bytes in memory, which is copied.
  Package(const Context& context, const void* data, std::size_t bytes) {
    normc_package* made;
    check(normc_package_open_memory(context.get(), data, bytes, &made));
    owner_.reset(made);
  }
  /// Returns the manifest, as JSON.
  std::string manifest() const {
    const char* json;
    check(normc_package_manifest(get(), &json));
    return json;
  }
  /// Checks the hash of every blob; throws if one is wrong.
  void verify() const { check(normc_package_verify(get())); }
  /// Returns the object of the C API.
  normc_package* get() const { return owner_.get(); }

 private:
  detail::Owner<normc_package, normc_package_destroy> owner_;
};

/// The data type of elements of T: float, double, bf16, half, std::int64_t or std::uint8_t.
template <typename T>
constexpr DLDataType dtypeOf() {
  static_assert(
      sizeof(T) == 0,
      "make a Tensor of float, double, bf16, half, std::int64_t or std::uint8_t, or give its DLDataType");
  return {};
}
/// A tensor of float.
template <>
constexpr DLDataType dtypeOf<float>() {
  return {kDLFloat, 32, 1};
}
/// A tensor of double.
template <>
constexpr DLDataType dtypeOf<double>() {
  return {kDLFloat, 64, 1};
}
/// A tensor of bf16.
template <>
constexpr DLDataType dtypeOf<bf16>() {
  return {kDLBfloat, 16, 1};
}
/// A tensor of half.
template <>
constexpr DLDataType dtypeOf<half>() {
  return {kDLFloat, 16, 1};
}
/// A field of the state, such as a number of steps.
template <>
constexpr DLDataType dtypeOf<std::int64_t>() {
  return {kDLInt, 64, 1};
}
/// A mask.
template <>
constexpr DLDataType dtypeOf<std::uint8_t>() {
  return {kDLUInt, 8, 1};
}

/// A view of memory of the host or of a CUDA device. An empty Tensor is an argument that is left out. It owns
/// sizes and strides, but no elements. Strides are in elements; without strides the tensor is compact.
class Tensor {
 public:
  static constexpr int kMaxDims = NORMC_MAX_DIMS;  ///< the most dimensions

  /// An argument that is left out.
  Tensor() = default;
  /// A tensor of a type that dtypeOf knows: `Tensor(x, {rows, 1024})`. All constructors throw
  /// std::invalid_argument for more than kMaxDims dimensions, and if the number of strides is neither 0 nor
  /// the number of dimensions.
  template <typename T>
  Tensor(T* data, std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides = {})
      : Tensor(data, dtypeOf<std::remove_const_t<T>>(), shape, strides) {}
  /// A tensor of any data type.
  Tensor(const void* data, DLDataType dtype, std::initializer_list<std::int64_t> shape,
         std::initializer_list<std::int64_t> strides = {})
      : Tensor(data, dtype, shape.begin(), shape.size(), strides.begin(), strides.size()) {}

  /// A tensor whose rank is known at run time.
  template <typename T>
  Tensor(T* data, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides = {})
      : Tensor(data, dtypeOf<std::remove_const_t<T>>(), shape, strides) {}
  /// The same of any data type.
  Tensor(const void* data, DLDataType dtype, const std::vector<std::int64_t>& shape,
         const std::vector<std::int64_t>& strides = {})
      : Tensor(data, dtype, shape.data(), shape.size(), strides.data(), strides.size()) {}
  /// A tensor with sizes and strides as arrays of `dimensions` elements.
  template <typename T>
  Tensor(T* data, const std::int64_t* shape, int dimensions, const std::int64_t* strides = nullptr)
      : Tensor(data, dtypeOf<std::remove_const_t<T>>(), shape, dimensions, strides) {}
  /// The same of any data type.
  Tensor(const void* data, DLDataType dtype, const std::int64_t* shape, int dimensions,
         const std::int64_t* strides = nullptr)
      : Tensor(data, dtype, shape, counted(dimensions), strides, strides ? counted(dimensions) : 0) {}

  /// A tensor of another library, on any device. Sizes and strides are copied.
  Tensor(const DLTensor& view) : Tensor(view.data, view.dtype, view.shape, view.ndim, view.strides) {
    device_ = view.device;
    byteOffset_ = view.byte_offset;
  }

  /// Returns the same view for memory of a CUDA device.
  Tensor onCuda(int device = 0) const {
    Tensor result = *this;
    result.device_ = {kDLCUDA, device};
    return result;
  }

  /// True for an argument that is left out.
  bool empty() const { return ndim_ < 0; }

  /// Returns the view for one call. It points into this Tensor.
  DLTensor dlpack() const {
    DLTensor view = {};
    view.data = data_;
    view.device = device_;
    view.ndim = ndim_;
    view.dtype = dtype_;
    view.shape = const_cast<std::int64_t*>(shape_.data());
    view.strides = const_cast<std::int64_t*>(strides_.data());
    view.byte_offset = byteOffset_;
    return view;
  }

 private:
  Tensor(const void* data, DLDataType dtype, const std::int64_t* shape, std::size_t dimensions,
         const std::int64_t* strides, std::size_t strideCount)
      : data_(const_cast<void*>(data)), dtype_(dtype), ndim_(static_cast<std::int32_t>(dimensions)) {
    if (dimensions > kMaxDims || (strideCount != 0 && strideCount != dimensions))
      throw std::invalid_argument("a Tensor has at most " + std::to_string(kMaxDims) +
                                  " dimensions, and one stride for each or none");
    std::copy_n(shape, dimensions, shape_.begin());
    std::uint64_t stride = 1;  // may wrap: the library rejects shapes that no memory holds
    for (int i = ndim_; i-- > 0; stride *= static_cast<std::uint64_t>(shape_[i]))
      strides_[i] = static_cast<std::int64_t>(stride);
    std::copy_n(strides, strideCount, strides_.begin());
  }
  /// A negative number becomes one that is too large, and is rejected as such.
  static std::size_t counted(int dimensions) { return static_cast<std::size_t>(dimensions); }

  void* data_ = nullptr;
  std::uint64_t byteOffset_ = 0;
  DLDevice device_ = {kDLCPU, 0};
  DLDataType dtype_ = {};
  std::int32_t ndim_ = -1;
  std::array<std::int64_t, kMaxDims> shape_ = {}, strides_ = {};
};

/// A flat buffer: a state, saved statistics, a workspace.
struct Buffer {
  void* data = nullptr;   ///< null: left out
  std::size_t bytes = 0;  ///< length in bytes

  /// An argument that is left out.
  Buffer() = default;
  /// Memory of the caller.
  Buffer(void* data, std::size_t bytes) : data(data), bytes(bytes) {}
  /// The elements of a vector.
  template <typename T>
  Buffer(std::vector<T>& vector) : data(vector.data()), bytes(vector.size() * sizeof(T)) {}
};

class State;

/// The arguments of one call, by name. Empty ones are left out. normc_args says which shapes they have and
/// what they may share.
struct Call {
  Tensor x,                ///< as in normc_args
      y,                   ///< as in normc_args
      dy,                  ///< as in normc_args
      dx,                  ///< as in normc_args
      scale,               ///< as in normc_args
      bias,                ///< as in normc_args
      dscale,              ///< as in normc_args
      dbias,               ///< as in normc_args
      mask;                ///< as in normc_args
  Buffer stateIn,          ///< the state before the call
      stateOut,            ///< the state after the call
      saved,               ///< statistics that forward passes to backward
      workspace;           ///< scratch memory
  State* state = nullptr;  ///< instead of stateIn and stateOut
  void* stream = nullptr;  ///< of CUDA

  /// Instead of stateIn: a tensor for each field, in the order of Plan::stateFields. An empty Tensor is a
  /// null pointer of normc_args.
  std::vector<Tensor> stateInFields;
  /// Instead of stateOut.
  std::vector<Tensor> stateOutFields;
  /// Instead of saved, in the order of Plan::savedFields.
  std::vector<Tensor> savedFields;

  Buffer partial,                ///< the sums of this call
      partials;                  ///< the sums of several calls, one behind another
  std::size_t partialCount = 1;  ///< number of partials in `partials`

  Tensor residual,    ///< as in normc_args
      residualOut,    ///< as in normc_args
      gate,           ///< as in normc_args
      modScale,       ///< as in normc_args
      modShift,       ///< as in normc_args
      dresidualOut,   ///< as in normc_args
      dresidual,      ///< as in normc_args
      dgate,          ///< as in normc_args
      dmodScale,      ///< as in normc_args
      dmodShift,      ///< as in normc_args
      codes,          ///< as in normc_args
      quantScale,     ///< as in normc_args
      quantScaleOut,  ///< as in normc_args
      ropeCos,        ///< as in normc_args
      ropeSin;        ///< as in normc_args
};

/// Owns a normc_plan. Thread-safe: any number of threads may execute one plan.
class Plan {
 public:
  /// A plan for the CPU, with the defaults of normc_request.
  Plan(const Package& package, const std::string& problem) : Plan(package, problem, normc_request{}) {}
  /// A plan with options: a device, the newest instruction set, the number of threads, numbers. struct_size
  /// and problem need not be set.
  Plan(const Package& package, const std::string& problem, normc_request options) {
    options.struct_size = sizeof options;
    options.problem = problem.c_str();
    normc_plan* made;
    check(normc_plan_create(package.get(), &options, &made));
    owner_.reset(made);
  }

  /// Returns a text for people: the kernels, and why they were chosen.
  std::string describe() const {
    const char* text;
    check(normc_plan_describe(get(), &text));
    return text;
  }
  /// Returns the kernel that serves any call, as an index into the manifest's "kernels".
  std::size_t kernel() const { return kernelFor(nullptr); }
  /// Returns the kernel that calls of these sizes run.
  std::size_t kernel(const normc_sizes& of) const { return kernelFor(&of); }
  /// Returns the bytes of the state. `features` 0: the number in the problem.
  std::size_t stateBytes(std::int64_t features = 0) const {
    return bytes(normc_plan_state_bytes, sizes(1, 0, features));
  }
  /// Returns the bytes of the saved statistics of a call.
  std::size_t savedBytes(const normc_sizes& of) const { return bytes(normc_plan_saved_bytes, of); }
  /// Returns bytes of workspace that are enough for calls of these sizes, or of fewer segments or rows.
  std::size_t workspaceBytes(const normc_sizes& of) const { return bytes(normc_plan_workspace_bytes, of); }
  /// Returns the bytes of one partial. `features` 0: the number in the problem.
  std::size_t partialBytes(std::int64_t features = 0) const {
    return bytes(normc_plan_partial_bytes, sizes(1, 0, features));
  }
  /// Returns the fields of a partial. `features` 0: the number in the problem.
  std::vector<normc_field> partialFields(std::int64_t features = 0) const {
    return fields(normc_plan_partial_field, sizes(1, 0, features));
  }
  /// Returns the fields of the state. `features` 0: the number in the problem.
  std::vector<normc_field> stateFields(std::int64_t features = 0) const {
    return fields(normc_plan_state_field, sizes(1, 0, features));
  }
  /// Returns the fields of the saved statistics.
  std::vector<normc_field> savedFields(const normc_sizes& of) const {
    return fields(normc_plan_saved_field, of);
  }

  /// Returns the value of one number of the kernel that serves any call.
  double number(const std::string& name) const {
    double value;
    check(normc_plan_number(get(), name.c_str(), &value));
    return value;
  }
  /// Returns the numbers of the kernel that serves any call.
  std::vector<normc_number_info> numbers() const {
    return detail::all<normc_number_info>([&](std::size_t index, normc_number_info* info) {
      return normc_plan_number_info(get(), index, info);
    });
  }
  /// Returns the tensors that calls may give.
  std::vector<normc_tensor_info> tensors() const {
    return detail::all<normc_tensor_info>([&](std::size_t index, normc_tensor_info* info) {
      return normc_plan_tensor_info(get(), index, info);
    });
  }
  /// Executes the call: normc_execute.
  void operator()(const Call& call) const;
  /// Executes the part of thread `ith` of `nth`, for a kernel of one phase: normc_execute_part.
  void part(const Call& call, int ith, int nth) const;
  /// Executes the part of thread `ith` of `nth`: normc_execute_part. `barrier()` waits for the other threads,
  /// as `[&] { b.arrive_and_wait(); }` does with a std::barrier; it must not throw.
  template <typename Barrier>
  void part(const Call& call, int ith, int nth, Barrier& barrier) const;
  /// Returns how often each thread of `part` calls `barrier` in a call of these sizes.
  int barriers(const normc_sizes& of) const {
    std::int32_t count;
    check(normc_plan_barriers(get(), &of, &count));
    return count;
  }
  /// Returns the object of the C API.
  normc_plan* get() const { return owner_.get(); }

  /// Returns the sizes of a call. `features` 0: the number in the problem.
  static normc_sizes sizes(std::int64_t segments, std::int64_t rows, std::int64_t features) {
    return {sizeof(normc_sizes), segments, rows, features};
  }

 private:
  template <typename Query>
  std::size_t bytes(Query query, const normc_sizes& of) const {
    std::size_t result;
    check(query(get(), &of, &result));
    return result;
  }
  std::size_t kernelFor(const normc_sizes* of) const {
    std::size_t result;
    check(normc_plan_kernel(get(), of, &result));
    return result;
  }
  template <typename Query>
  std::vector<normc_field> fields(Query query, const normc_sizes& of) const {
    return detail::all<normc_field>(
        [&](std::size_t index, normc_field* field) { return query(get(), &of, index, field); });
  }

  detail::Owner<normc_plan, normc_plan_destroy> owner_;
};

/// Owns a normc_state. The caller orders all uses of one.
class State {
 public:
  /// A fresh state of the plan's norm. `features` 0: the number in the problem.
  explicit State(const Plan& plan, std::int64_t features = 0) {
    normc_state* made;
    check(normc_state_create(plan.get(), features, &made));
    owner_.reset(made);
  }
  /// Sets every field to its initial value.
  void reset() { check(normc_state_init(get())); }
  /// Returns the memory of the state, which the State owns.
  Buffer buffer() const {
    Buffer result;
    check(normc_state_data(get(), &result.data, &result.bytes));
    return result;
  }
  /// Returns the fields of the state.
  std::vector<normc_field> fields() const {
    return detail::all<normc_field>(
        [&](std::size_t index, normc_field* field) { return normc_state_field(get(), index, field); });
  }
  /// Copies a field of `count` elements to memory of the host. Throws if there is no such field, or its bytes
  /// differ.
  template <typename T>
  void read(const char* field, T* values, std::size_t count) const {
    check(normc_state_get(get(), field, values, count * sizeof(T)));
  }
  /// Copies a field of `count` elements from memory of the host. Throws if there is no such field, or its
  /// bytes differ.
  template <typename T>
  void write(const char* field, const T* values, std::size_t count) {
    check(normc_state_set(get(), field, values, count * sizeof(T)));
  }
  /// Copies a state of the same norm, type and number of features, on any device.
  void copyFrom(const State& other) { check(normc_state_copy(get(), other.get())); }
  /// Returns the object of the C API.
  normc_state* get() const { return owner_.get(); }

 private:
  detail::Owner<normc_state, normc_state_destroy> owner_;
};

namespace detail {
/// The views of one array of fields, on the stack of a call.
class FieldViews {
 public:
  explicit FieldViews(const std::vector<Tensor>& tensors) : given_(!tensors.empty()) {
    if (tensors.size() > NORMC_MAX_FIELDS)
      throw std::invalid_argument("a call has at most " + std::to_string(NORMC_MAX_FIELDS) + " fields");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      views_[i] = tensors[i].dlpack();
      pointers_[i] = tensors[i].empty() ? nullptr : &views_[i];
    }
  }
  FieldViews(const FieldViews&) = delete;
  const DLTensor* const* get() const { return given_ ? pointers_.data() : nullptr; }

 private:
  bool given_;
  std::array<DLTensor, NORMC_MAX_FIELDS> views_;
  std::array<const DLTensor*, NORMC_MAX_FIELDS> pointers_;
};

/// A tensor of a call, and its member of normc_args.
struct TensorArgument {
  Tensor Call::* from;
  const DLTensor* normc_args::* to;
};
inline constexpr TensorArgument kTensorArguments[] = {
    {&Call::x, &normc_args::x},
    {&Call::y, &normc_args::y},
    {&Call::dy, &normc_args::dy},
    {&Call::dx, &normc_args::dx},
    {&Call::scale, &normc_args::scale},
    {&Call::bias, &normc_args::bias},
    {&Call::dscale, &normc_args::dscale},
    {&Call::dbias, &normc_args::dbias},
    {&Call::mask, &normc_args::mask},
    {&Call::residual, &normc_args::residual},
    {&Call::residualOut, &normc_args::residual_out},
    {&Call::gate, &normc_args::gate},
    {&Call::modScale, &normc_args::mod_scale},
    {&Call::modShift, &normc_args::mod_shift},
    {&Call::dresidualOut, &normc_args::dresidual_out},
    {&Call::dresidual, &normc_args::dresidual},
    {&Call::dgate, &normc_args::dgate},
    {&Call::dmodScale, &normc_args::dmod_scale},
    {&Call::dmodShift, &normc_args::dmod_shift},
    {&Call::codes, &normc_args::codes},
    {&Call::quantScale, &normc_args::quant_scale},
    {&Call::quantScaleOut, &normc_args::quant_scale_out},
    {&Call::ropeCos, &normc_args::rope_cos},
    {&Call::ropeSin, &normc_args::rope_sin},
};

/// The arguments of a call as the C API takes them, on the stack of a call.
class Arguments {
 public:
  explicit Arguments(const Call& call)
      : stateIn_(call.stateInFields), stateOut_(call.stateOutFields), saved_(call.savedFields) {
    args_.struct_size = sizeof args_;
    for (std::size_t i = 0; i < views_.size(); ++i) {
      const Tensor& tensor = call.*kTensorArguments[i].from;
      if (tensor.empty()) continue;
      views_[i] = tensor.dlpack();
      args_.*kTensorArguments[i].to = &views_[i];
    }
    args_.state_in = call.stateIn.data;
    args_.state_in_bytes = call.stateIn.bytes;
    args_.state_out = call.stateOut.data;
    args_.state_out_bytes = call.stateOut.bytes;
    args_.saved = call.saved.data;
    args_.saved_bytes = call.saved.bytes;
    args_.workspace = call.workspace.data;
    args_.workspace_bytes = call.workspace.bytes;
    const std::size_t fieldsIn = call.stateInFields.size(), fieldsOut = call.stateOutFields.size();
    if (fieldsIn && fieldsOut && fieldsIn != fieldsOut)
      throw std::invalid_argument("stateInFields and stateOutFields have different lengths");
    args_.state_in_fields = stateIn_.get();
    args_.state_out_fields = stateOut_.get();
    args_.state_field_count = std::max(fieldsIn, fieldsOut);
    args_.saved_fields = saved_.get();
    args_.saved_field_count = call.savedFields.size();
    args_.partial = call.partial.data;
    args_.partial_bytes = call.partial.bytes;
    args_.partials = call.partials.data;
    args_.partials_bytes = call.partials.bytes;
    args_.partial_count = call.partials.data ? call.partialCount : 0;
    args_.state = call.state ? call.state->get() : nullptr;
    args_.stream = call.stream;
  }
  const normc_args* get() const { return &args_; }

 private:
  std::array<DLTensor, std::size(kTensorArguments)> views_;
  FieldViews stateIn_, stateOut_, saved_;
  normc_args args_ = {};
};
}  // namespace detail

inline void Plan::operator()(const Call& call) const {
  check(normc_execute(get(), detail::Arguments(call).get()));
}

inline void Plan::part(const Call& call, int ith, int nth) const {
  check(normc_execute_part(get(), detail::Arguments(call).get(), ith, nth, nullptr, nullptr));
}

template <typename Barrier>
void Plan::part(const Call& call, int ith, int nth, Barrier& barrier) const {
  const normc_barrier wait = [](void* ctx) { (*static_cast<Barrier*>(ctx))(); };
  check(normc_execute_part(get(), detail::Arguments(call).get(), ith, nth, wait, &barrier));
}

}  // namespace normc::host
#endif  // NORMC_HPP
