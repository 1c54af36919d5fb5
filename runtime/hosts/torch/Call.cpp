#include "runtime/hosts/torch/Call.h"

#include <dlfcn.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "runtime/hosts/common/Scratch.h"

namespace normc::hosts {
namespace {

/// The functions of torch, and of the CUDA runtime that torch uses, for calls on a CUDA device. A process
/// that has such a tensor has loaded torch's CUDA library, but no library that links torch's CPU library
/// alone sees it.
struct TorchOnCuda {
  AOTITorchError (*currentStream)(int32_t device, void** stream);
  int (*isCapturing)(void* stream, int* status);
  int (*synchronize)(void* stream);

  static const TorchOnCuda& get() {
    static const TorchOnCuda found;
    return found;
  }

 private:
  TorchOnCuda() {
    void* const library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
    const auto find = [&](auto& function, const char* name) {
      void* const symbol = library ? dlsym(library, name) : nullptr;
      if (!symbol)
        throw std::runtime_error(std::string("a tensor is on a CUDA device, and this torch has no ") + name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    find(currentStream, "aoti_torch_get_current_cuda_stream");
    find(isCapturing, "cudaStreamIsCapturing");
    find(synchronize, "cudaStreamSynchronize");
  }
};

void* streamOf(DLDevice device) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(TorchOnCuda::get().currentStream(device.device_id, &stream));
  return stream;
}

/// Returns a vector of a constant, for a norm whose scale or bias the host leaves out. It is kept for calls
/// on any stream, so its values are there when this returns. A capture only records how they are made, so it
/// makes its own.
Tensor constantOf(int64_t features, double value, const Tensor& device, DLDataType type) {
  using Key = std::tuple<int64_t, double, int, int, int, int>;
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<Key, Tensor>;
  const DLDevice on = deviceOf(device);
  const auto make = [&] {
    Tensor made = emptyOf(std::array{features}, device, type);
    ::torch::stable::fill_(made, value);
    return made;
  };
  const std::lock_guard lock(mutex);
  const Key key{features, value, type.code, type.bits, on.device_type, on.device_id};
  const auto found = all.find(key);
  if (found != all.end()) return found->second;
  if (on.device_type == kDLCPU) return all.emplace(key, make()).first->second;
  void* const stream = streamOf(on);
  int capturing = 0;
  TorchOnCuda::get().isCapturing(stream, &capturing);
  Tensor made = make();
  if (capturing) return made;
  if (TorchOnCuda::get().synchronize(stream) != 0)
    throw std::runtime_error(
        "waiting for a CUDA stream failed: an earlier kernel on it did, or a capture forbids it");
  return all.emplace(key, made).first->second;
}

Tensor compact(const Tensor& tensor) { return ::torch::stable::contiguous(tensor); }

/// Gives `args` a workspace of `bytes`, and the stream.
void giveWorkspace(normc_args& args, size_t bytes, const Tensor& like, DLDevice device,
                   std::vector<Tensor>& held) {
  args.workspace_bytes = bytes;
  if (device.device_type == kDLCPU) {
    args.workspace = Scratch::of(bytes);
    return;
  }
  args.workspace = held.emplace_back(emptyOf(std::array{int64_t(bytes)}, like, {kDLUInt, 8, 1})).data_ptr();
  args.stream = streamOf(device);
}

/// Gives `args` the sums of ranks.
void givePartials(normc_args& args, const Tensor& partials, const Prepared& plan) {
  const DLDevice on = deviceOf(partials), device = plan.request.device;
  if (on.device_type != device.device_type || on.device_id != device.device_id)
    throw std::invalid_argument("partials are on another device than x");
  const size_t one = plan.partialBytes;
  const size_t bytes = size_t(partials.numel()) * sizeof(double);
  if (typeOf(partials).bits != 64 || typeOf(partials).code != kDLFloat || !partials.is_contiguous())
    throw std::invalid_argument("partials are contiguous and of float64");
  if (one == 0 || bytes == 0 || bytes % one != 0)
    throw std::invalid_argument("partials have " + std::to_string(bytes) + " bytes; one of " +
                                plan.text.name + " has " + std::to_string(one));
  args.partials = partials.data_ptr();
  args.partials_bytes = bytes;
  args.partial_count = bytes / one;
}

}  // namespace

Call::Call(Entry entry, const Tensor& given, Optional scale, Optional bias, Optional mask,
           const std::string& norm)
    : x_(given), device_(deviceOf(given)) {
  Request request{.entry = entry, .data = dataTypeOf(x_), .mask = mask.has_value(), .device = device_};
  if (scale || bias) request.params = typeOf(scale ? *scale : *bias);
  // The axes depend on the shape of the norm alone, which every plan of the text has.
  request.channelsFirst = isChannelsFirst(norm);
  if (request.channelsFirst) {
    const NormText text = NormText::parse(norm);
    axes_ = axesOf(x_, text);
    request.channelsFirst = axes_.channelsFirst;
  }
  plan_ = &Registry::get().prepared(norm, request);
  if (!request.channelsFirst && !axes_.permuted) axes_ = axesOf(x_, plan_->text);
  x_ = walkable(x_, text(), axes_);
  args_.struct_size = sizeof args_;
  args_.x = elements(x_);
  scaleType_ = request.params.bits       ? request.params
               : request.data.bits == 64 ? request.data
                                         : DLDataType{kDLFloat, 32, 1};
  if (plan_->scale) args_.scale = parameter(scale, plan_->neutralScale);
  if (plan_->bias) args_.bias = parameter(bias, 0);
  if (entry == Entry::Forward || entry == Entry::Infer) {
    if (!plan_->scale && scale) throw std::invalid_argument(text().name + " has no scale, but one is given");
    if (!plan_->bias && bias) throw std::invalid_argument(text().name + " has no bias, but one is given");
  }
  if (mask) args_.mask = view().plain(held(compact(*mask)), mask->dim() == 0);
}

void Call::gradient(const Tensor& dy) {
  const auto wanted = x_.sizes(), given = dy.sizes();
  if (!std::equal(wanted.begin(), wanted.end(), given.begin(), given.end()))
    throw std::invalid_argument("dy has another shape than x");
  args_.dy = elements(held(walkable(dy, text(), axes_)));
}

void Call::saved(List saved) {
  give(saved, plan_->saved.size(), "saved", args_.saved_fields, savedFields_);
  args_.saved_field_count = saved.size();
}

void Call::stateIn(OptionalList state) {
  if ((!state || state->empty()) && !plan_->readsState) return;
  const auto matches = [&](const Tensor& field) {
    const DLDataType type = typeOf(field);
    return type.code != kDLFloat || (type.bits == 64) == (typeOf(x_).bits == 64);
  };
  if (state && !std::ranges::all_of(*state, matches))
    throw std::invalid_argument("the state of " + text().name +
                                " is of another type than x; it is of float64 for x of float64, and of "
                                "float32 for all others");
  give(state ? *state : std::vector<Tensor>(), plan_->state.size(), "state", args_.state_in_fields,
       stateFields_[0]);
}

void Call::around(List tensors) {
  size_t given = 0, needed = 0;
  std::string names;
  for (const Around& each : plan_->around) {
    if (!each.isRead()) continue;
    names += (names.empty() ? ": " : ", ") + std::string(each.row->name);
    needed += each.use == NORMC_TENSOR_READ;
    if (given < tensors.size()) args_.*each.row->argument = beside(each, tensors[given++]);
  }
  if (given != tensors.size() || given < needed)
    throw std::invalid_argument(text().name + " takes " + std::to_string(needed) +
                                " tensors around the norm" + names + "; given are " +
                                std::to_string(tensors.size()));
}

void Call::partials(const Tensor& partials) { givePartials(args_, partials, *plan_); }

void Call::outputTo(std::vector<Tensor>& out) {
  if (plan_->y) args_.y = elements(out.emplace_back(likeInput(x_, axes_)));
  if (plan_->codes) args_.codes = elements(out.emplace_back(likeInput(x_, axes_, *plan_->codes)));
}

void Call::savedTo(std::vector<Tensor>& out) {
  fields(plan_->saved, out, args_.saved_fields, savedFields_);
  args_.saved_field_count = plan_->saved.size();
}

void Call::stateTo(std::vector<Tensor>& out) {
  if (plan_->writesState) fields(plan_->state, out, args_.state_out_fields, stateFields_[1]);
}

void Call::partialTo(std::vector<Tensor>& out) {
  const int64_t elements = int64_t(plan_->partialBytes / sizeof(double));
  args_.partial = out.emplace_back(emptyOf(std::array{elements}, x_, {kDLFloat, 64, 1})).data_ptr();
  args_.partial_bytes = plan_->partialBytes;
}

void Call::gradientsTo(std::vector<Tensor>& out, Optional scale, Optional bias, bool dx, bool dscale,
                       bool dbias) {
  if (dx && plan_->dx) args_.dx = elements(out.emplace_back(likeInput(x_, axes_)));
  if (dscale && plan_->dscale) out.push_back(parameterGradient(scale, args_.dscale));
  if (dbias && plan_->dbias) out.push_back(parameterGradient(bias, args_.dbias));
}

void Call::aroundTo(std::vector<Tensor>& out, int64_t wanted) {
  for (const Around& each : plan_->around) {
    if (!each.isWritten()) continue;
    if (each.use == NORMC_TENSOR_OPTIONAL) {
      const bool leftOut = (wanted & 1) == 0;
      wanted >>= 1;
      if (leftOut) continue;
    }
    if (each.shape == NORMC_TENSOR_ELEMENTS) {
      args_.*each.row->argument = elements(out.emplace_back(likeInput(x_, axes_, each.dtype)));
      continue;
    }
    if (each.shape == NORMC_TENSOR_PER_BLOCK) {
      std::vector<int64_t> shape(x_.sizes().begin(), x_.sizes().end() - axes_.features);
      if (each.blocks) shape.push_back(each.blocks);
      out.push_back(emptyOf(shape, x_, each.dtype));
      args_.*each.row->argument = view().plain(out.back(), x_.dim() == 1);
      continue;
    }
    const int64_t shape[] = {sizesOf(x_, text(), axes_).segments, text().features};
    const std::span<const int64_t> all = shape;
    out.push_back(emptyOf(all.subspan(each.shape == NORMC_TENSOR_PER_FEATURE), x_, each.dtype));
    args_.*each.row->argument = view().plain(out.back());
  }
}

void Call::run() {
  if (args_.state_in_fields || args_.state_out_fields) args_.state_field_count = plan_->state.size();
  size_t bytes;
  const normc_sizes sizes = sizesOf(x_, text(), axes_);
  host::check(normc_plan_workspace_bytes(plan_->plan.get(), &sizes, &bytes));
  giveWorkspace(args_, bytes, x_, device_, held_);
  host::check(normc_execute(plan_->plan.get(), &args_));
}

const DLTensor* Call::beside(const Around& around, const Tensor& given) {
  const auto sizes = given.sizes(), like = x_.sizes();
  const auto check = [&](const std::string& what, std::span<const int64_t> wanted) {
    if (std::ranges::equal(sizes, wanted)) return;
    throw std::invalid_argument(std::string(around.row->name) + " has the shape " +
                                shapeText({sizes.data(), sizes.size()}) + "; " + text().name + " takes " +
                                what + ", " + shapeText(wanted));
  };
  if (around.shape == NORMC_TENSOR_ELEMENTS) {
    check("that of x", {like.data(), like.size()});
    return elements(held(walkable(given, text(), axes_)));
  }
  if (around.shape == NORMC_TENSOR_PER_PAIR) {
    std::vector<int64_t> wanted(like.begin(), like.end());
    wanted.back() = around.pairs;
    check("that of x with pairs in place of features", wanted);
    return elements(held(walkable(given, text(), axes_)));
  }
  if (around.shape == NORMC_TENSOR_ONE) {
    if (given.numel() != 1) check("one element", std::array<int64_t, 1>{1});
    return view().flat(held(compact(given)));
  }
  const int64_t shape[] = {sizesOf(x_, text(), axes_).segments, text().features};
  if (around.shape == NORMC_TENSOR_PER_SEGMENT)
    check("[segments, features]", shape);
  else
    check("[features]", std::span<const int64_t>(shape).subspan(1));
  return view().plain(held(compact(given)));
}

const DLTensor* Call::parameter(Optional given, double otherwise) {
  if (!given) return view().flat(held(constantOf(text().features, otherwise, x_, scaleType_)));
  const auto sizes = given->sizes(), strides = given->strides();
  if (sizes.size() == 1 && (strides[0] == 1 || sizes[0] == 1)) return view().flat(*given);
  return view().flat(held(compact(*given)));
}

Tensor Call::parameterGradient(Optional like, const DLTensor*& to) {
  Tensor result = like ? emptyLike(*like) : emptyOf(std::array{text().features}, x_, scaleType_);
  to = view().flat(result);
  return result;
}

void Call::give(List tensors, size_t wanted, const char* what, const DLTensor* const*& to, Fields& fields) {
  if (tensors.size() != wanted)
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(tensors.size()) + " tensors; " +
                                text().name + " has " + std::to_string(wanted));
  for (size_t i = 0; i < wanted; ++i)
    fields[i] = view().plain(tensors[i].is_contiguous() ? tensors[i] : held(compact(tensors[i])));
  if (wanted) to = fields.data();
}

void Call::fields(const std::vector<normc_field>& all, std::vector<Tensor>& out, const DLTensor* const*& to,
                  Fields& fields) {
  const normc_sizes sizes = sizesOf(x_, text(), axes_);
  for (size_t i = 0; i < all.size(); ++i) {
    std::array<int64_t, NORMC_MAX_FIELD_DIMS> shape;
    size_t dims = 0;
    for (int axis = 0; axis < all[i].ndim; ++axis) {
      const int64_t of[] = {all[i].shape[axis], sizes.segments, sizes.rows, sizes.features};
      const int extent = all[i].extent[axis];
      // Axes that no call of the norm has are left out.
      if (extent == NORMC_EXTENT_SEGMENTS && !text().segmented) continue;
      if (extent == NORMC_EXTENT_FIXED && of[0] == 1) continue;
      shape[dims++] = of[extent];
    }
    out.push_back(emptyOf({shape.data(), dims}, x_, all[i].dtype));
    fields[i] = view().plain(out.back());
  }
  if (!all.empty()) to = fields.data();
}

std::vector<Tensor> committed(const Tensor& partials, List state, const std::string& norm) {
  const DLDevice device = deviceOf(partials);
  Request request{.entry = Entry::Commit, .device = device};
  // A state is of f64 for data of f64, and of f32 for all others.
  for (const Tensor& field : state)
    if (const DLDataType type = typeOf(field); type.code == kDLFloat) request.data = type;
  request.channelsFirst = isChannelsFirst(norm);
  const Prepared& plan = Registry::get().prepared(norm, request);
  if (state.size() != plan.state.size())
    throw std::invalid_argument("state has " + std::to_string(state.size()) + " tensors; " + plan.text.name +
                                " has " + std::to_string(plan.state.size()));
  std::vector<Tensor> out, held;
  std::array<View, 2 * NORMC_MAX_FIELDS> views;
  std::array<const DLTensor*, NORMC_MAX_FIELDS> before, after;
  for (size_t i = 0; i < state.size(); ++i) {
    const Tensor& field = held.emplace_back(compact(state[i]));
    before[i] = views[2 * i].plain(field);
    after[i] = views[2 * i + 1].plain(out.emplace_back(emptyLike(field)));
  }
  normc_args args = {};
  args.struct_size = sizeof args;
  args.state_in_fields = before.data();
  args.state_out_fields = after.data();
  args.state_field_count = state.size();
  givePartials(args, partials, plan);
  size_t bytes;
  const normc_sizes sizes = {sizeof sizes, 1, 0, plan.text.features};
  host::check(normc_plan_workspace_bytes(plan.plan.get(), &sizes, &bytes));
  giveWorkspace(args, bytes, partials, device, held);
  host::check(normc_execute(plan.plan.get(), &args));
  return out;
}

}  // namespace normc::hosts
