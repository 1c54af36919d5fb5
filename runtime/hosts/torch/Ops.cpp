// The operators of torch: one for each entry of a norm, for any norm. They are pure functions of tensors and
// of the norm's text, without gradients of their own; autograd, shapes for tracing and modules are in Python.
//
// Written against torch's stable ABI, so that one binary serves every torch from 2.10 on.
#include <dlfcn.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <forward_list>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "runtime/hosts/common/Scratch.h"
#include "runtime/hosts/torch/Tensors.h"

#ifndef NORMC_TORCH_NAMESPACE
#define NORMC_TORCH_NAMESPACE normc  // a hub that loads several builds into a process gives each its own
#endif

namespace normc::hosts {
namespace {

using Optional = const std::optional<Tensor>&;
using List = const std::vector<Tensor>&;
// No state is None: packages of AOTInductor give None for an empty list too.
using OptionalList = const std::optional<std::vector<Tensor>>&;

/// Runs the tasks of a kernel on the threads of torch.
int onThreadsOfTorch(void*, int64_t count, normc_task task, void* data) {
  ::torch::stable::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) task(data, begin);
  });
  return 0;
}

/// Returns a vector of a constant, for a norm whose scale or bias the host leaves out.
Tensor constantOf(int64_t features, double value, const Tensor& device, DLDataType type) {
  using Key = std::tuple<int64_t, double, int, int, int, int>;
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::map<Key, Tensor>;
  const DLDevice on = deviceOf(device);
  const std::lock_guard lock(mutex);
  const Key key{features, value, type.code, type.bits, on.device_type, on.device_id};
  auto found = all.find(key);
  if (found == all.end()) {
    Tensor made = emptyOf(std::array{features}, device, type);
    ::torch::stable::fill_(made, value);
    found = all.emplace(key, made).first;
  }
  return found->second;
}

/// Returns the current stream of torch on a CUDA device. The function is in torch's CUDA library alone.
void* streamOf(DLDevice device) {
  using Get = AOTITorchError (*)(int32_t, void**);
  static const Get get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
  void* stream = nullptr;
  if (!get) throw std::runtime_error("this torch has no CUDA, but a tensor is on a CUDA device");
  TORCH_ERROR_CODE_CHECK(get(device.device_id, &stream));
  return stream;
}

/// One call of a norm: its plan, and its arguments as they are given.
class Call {
 public:
  Call(Entry entry, const Tensor& given, Optional scale, Optional bias, Optional mask,
       const std::string& norm)
      : x_(given), device_(deviceOf(given)) {
    Request request{.entry = entry, .data = typeOf(x_), .mask = mask.has_value(), .device = device_};
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
    if (plan_->scale) args_.scale = parameter(scale, 1);
    if (plan_->bias) args_.bias = parameter(bias, 0);
    if (!plan_->scale && scale && !isBackward(entry))
      throw std::invalid_argument(text().name + " has no scale, but one is given");
    if (!plan_->bias && bias && !isBackward(entry))
      throw std::invalid_argument(text().name + " has no bias, but one is given");
    if (mask) args_.mask = view().plain(held(contiguous(*mask)));
  }

  const Prepared& plan() const { return *plan_; }
  const NormText& text() const { return plan_->text; }

  Tensor output() {
    Tensor y = likeInput(x_, axes_);
    args_.y = elements(y);
    return y;
  }
  void gradient(const Tensor& dy) {
    const auto wanted = x_.sizes(), given = dy.sizes();
    if (!std::equal(wanted.begin(), wanted.end(), given.begin(), given.end()))
      throw std::invalid_argument("dy has another shape than x");
    args_.dy = elements(held(walkable(dy, text(), axes_)));
  }
  Tensor dx() {
    Tensor result = likeInput(x_, axes_);
    args_.dx = elements(result);
    return result;
  }
  /// Adds the gradient of a parameter; `like` gives its shape.
  Tensor parameterGradient(Optional like, const DLTensor*& to) {
    Tensor result = like ? emptyLike(*like) : emptyOf(std::array{text().features}, x_, scaleType_);
    to = view().flat(result);
    return result;
  }
  normc_args& args() { return args_; }

  /// Gives the state. A plan that does not read it also takes none.
  void stateIn(OptionalList state) {
    if ((!state || state->empty()) && !plan_->readsState) return;
    give(state ? *state : std::vector<Tensor>(), plan_->state.size(), "state", args_.state_in_fields,
         stateFields_[0]);
  }
  /// Adds the next state, if the plan changes it.
  void stateOut(std::vector<Tensor>& out) {
    if (plan_->writesState) fields(plan_->state, out, args_.state_out_fields, stateFields_[1]);
  }
  void saved(List saved) {
    give(saved, plan_->saved.size(), "saved", args_.saved_fields, savedFields_);
    args_.saved_field_count = saved.size();
  }
  void savedOut(std::vector<Tensor>& out) {
    fields(plan_->saved, out, args_.saved_fields, savedFields_);
    args_.saved_field_count = plan_->saved.size();
  }

  void run() {
    if (args_.state_in_fields || args_.state_out_fields) args_.state_field_count = plan_->state.size();
    size_t bytes;
    const normc_sizes sizes = sizesOf(x_, text(), axes_);
    host::check(normc_plan_workspace_bytes(plan_->plan.get(), &sizes, &bytes));
    args_.workspace_bytes = bytes;
    if (device_.device_type == kDLCPU) {
      args_.workspace = Scratch::of(bytes);
    } else {
      args_.workspace = held(emptyOf(std::array{int64_t(bytes)}, x_, {kDLUInt, 8, 1})).data_ptr();
      args_.stream = streamOf(device_);
    }
    host::check(normc_execute(plan_->plan.get(), &args_));
  }

 private:
  using Fields = std::array<const DLTensor*, NORMC_MAX_FIELDS>;

  static bool isChannelsFirst(const std::string& norm) {
    const size_t end = norm.find(']');
    return end != norm.npos && end >= 2 && norm[end - 1] == '*' && norm[end - 2] == 'x';
  }
  static Tensor contiguous(const Tensor& tensor) { return ::torch::stable::contiguous(tensor); }
  View& view() { return used_ < views_.size() ? views_[used_++] : more_.emplace_front(); }
  const Tensor& held(Tensor tensor) { return held_.emplace_back(std::move(tensor)); }
  const DLTensor* elements(const Tensor& tensor) { return view().elements(tensor, text(), axes_); }

  const DLTensor* parameter(Optional given, double otherwise) {
    if (!given) return view().flat(held(constantOf(text().features, otherwise, x_, scaleType_)));
    const auto sizes = given->sizes(), strides = given->strides();
    if (sizes.size() == 1 && (strides[0] == 1 || sizes[0] == 1)) return view().flat(*given);
    return view().flat(held(contiguous(*given)));
  }
  void give(List tensors, size_t wanted, const char* what, const DLTensor* const*& to, Fields& fields) {
    if (tensors.size() != wanted)
      throw std::invalid_argument(std::string(what) + " has " + std::to_string(tensors.size()) +
                                  " tensors; " + text().name + " has " + std::to_string(wanted));
    for (size_t i = 0; i < wanted; ++i) fields[i] = view().plain(tensors[i]);
    if (wanted) to = fields.data();
  }
  void fields(const std::vector<normc_field>& all, std::vector<Tensor>& out, const DLTensor* const*& to,
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

  Tensor x_;
  DLDevice device_;
  Axes axes_;
  const Prepared* plan_;
  DLDataType scaleType_;
  normc_args args_ = {};
  std::array<View, 24> views_;  // most calls need no more
  size_t used_ = 0;
  std::forward_list<View> more_;
  std::vector<Tensor> held_;
  Fields stateFields_[2], savedFields_;
};

Tensor infer(const Tensor& x, Optional scale, Optional bias, Optional mask, OptionalList state,
             std::string norm) {
  Call call(Entry::Infer, x, scale, bias, mask, norm);
  Tensor y = call.output();
  call.stateIn(state);
  call.run();
  return y;
}

std::vector<Tensor> forward(const Tensor& x, Optional scale, Optional bias, Optional mask, OptionalList state,
                            std::string norm) {
  Call call(Entry::Forward, x, scale, bias, mask, norm);
  std::vector<Tensor> out{call.output()};
  call.stateIn(state);
  call.savedOut(out);
  call.stateOut(out);
  call.run();
  return out;
}

std::vector<Tensor> gradients(Call& call, const Tensor& dy, Optional scale, Optional bias, bool dx,
                              bool dscale, bool dbias) {
  std::vector<Tensor> out;
  call.gradient(dy);
  if (dx) out.push_back(call.dx());
  if (dscale && call.plan().dscale) out.push_back(call.parameterGradient(scale, call.args().dscale));
  if (dbias && call.plan().dbias) out.push_back(call.parameterGradient(bias, call.args().dbias));
  return out;
}

std::vector<Tensor> backward(const Tensor& x, const Tensor& dy, Optional scale, Optional bias, Optional mask,
                             List saved, OptionalList state, std::string norm, bool dx, bool dscale,
                             bool dbias) {
  Call call(Entry::Backward, x, scale, bias, mask, norm);
  std::vector<Tensor> out = gradients(call, dy, scale, bias, dx, dscale, dbias);
  call.saved(saved);
  call.stateIn(state);
  call.stateOut(out);
  call.run();
  return out;
}

std::vector<Tensor> inferBackward(const Tensor& x, const Tensor& dy, Optional scale, Optional bias,
                                  Optional mask, OptionalList state, std::string norm, bool dx, bool dscale,
                                  bool dbias) {
  Call call(Entry::InferBackward, x, scale, bias, mask, norm);
  std::vector<Tensor> out = gradients(call, dy, scale, bias, dx, dscale, dbias);
  call.stateIn(state);
  call.run();
  return out;
}

void implement(::torch::stable::detail::StableLibrary& m) {
  m.impl("infer", TORCH_BOX(&infer));
  m.impl("forward", TORCH_BOX(&forward));
  m.impl("backward", TORCH_BOX(&backward));
  m.impl("infer_backward", TORCH_BOX(&inferBackward));
}

}  // namespace
}  // namespace normc::hosts

#define NORMC_LIBRARY(ns, m) STABLE_TORCH_LIBRARY(ns, m)
#define NORMC_LIBRARY_IMPL(ns, key, m) STABLE_TORCH_LIBRARY_IMPL(ns, key, m)

NORMC_LIBRARY(NORMC_TORCH_NAMESPACE, m) {
  // y; of forward followed by the saved statistics and the next state
  m.def("infer(Tensor x, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[]? state, str norm) -> Tensor");
  m.def(
      "forward(Tensor x, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[]? state, str norm) -> Tensor[]");
  // the wanted ones of dx, dscale, dbias; of backward followed by the next state
  m.def(
      "backward(Tensor x, Tensor dy, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[] saved, "
      "Tensor[]? state, str norm, bool dx, bool dscale, bool dbias) -> Tensor[]");
  m.def(
      "infer_backward(Tensor x, Tensor dy, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[]? state, "
      "str norm, bool dx, bool dscale, bool dbias) -> Tensor[]");
  normc::hosts::Registry::get().setThreads(normc::hosts::onThreadsOfTorch);
}
NORMC_LIBRARY_IMPL(NORMC_TORCH_NAMESPACE, CPU, m) { normc::hosts::implement(m); }
NORMC_LIBRARY_IMPL(NORMC_TORCH_NAMESPACE, CUDA, m) { normc::hosts::implement(m); }
