// The functions of tvm-ffi: one for each entry of a norm, for any norm, without allocation: results are
// arguments.
//
//   forward(text, x, scale, bias, mask, around..., state..., y, around..., saved..., next state...)
//   infer(text, x, scale, bias, mask, around..., state..., y, around...)
//   backward(text, x, dy, scale, bias, mask, around..., saved..., state...,
//            dx, around..., dscale, dbias, next state...)
//   infer_backward(text, x, dy, scale, bias, mask, around..., state..., dx, around..., dscale, dbias)
//
// scale, bias and mask have their place in every call, and are None where a norm has none; backward needs a
// bias only where the norm has an activation, a gate behind it or a modulation with a scale. The rest is in
// the order of common/Arguments.h. Tensors are those of any framework with DLPack, and stay where they are.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
// DLPack's header comes before normc.h, which has the same declarations.
#include <stdexcept>

#include "runtime/hosts/common/Arguments.h"
#include "runtime/hosts/common/Scratch.h"

namespace normc::hosts {
namespace {

namespace ffi = tvm::ffi;

/// The arguments of a call, which begin with a text.
class Reader {
 public:
  Reader(const TVMFFIAny* args, int32_t count)
      : args_(reinterpret_cast<const ffi::AnyView*>(args)), count_(count) {}

  std::string_view text() {
    const auto text = next().try_cast<ffi::String>();
    if (!text) throw std::invalid_argument("the first argument is not the text of a norm");
    text_ = *text;
    return {text_.data(), text_.size()};
  }
  /// Returns the next tensor; nothing for None.
  std::optional<DLTensor> tensor() {
    const ffi::AnyView given = next();
    if (given == nullptr) return std::nullopt;
    const auto tensor = given.try_cast<DLTensor*>();
    if (!tensor)
      throw std::invalid_argument("argument " + std::to_string(at_) + " is neither a tensor nor None");
    return **tensor;
  }
  size_t left() const { return size_t(count_ - at_); }

 private:
  ffi::AnyView next() {
    if (at_ == count_)
      throw std::invalid_argument("a norm takes a text, x, scale, bias, mask and its results");
    return args_[at_++];
  }
  const ffi::AnyView* args_;
  int32_t count_, at_ = 0;
  ffi::String text_;
};

void run(Entry entry, Reader args) {
  const std::string_view text = args.text();
  std::vector<DLTensor> in;
  in.reserve(args.left());
  const auto add = [&](bool has, const char* what, std::optional<DLTensor> given) {
    if (has && !given) throw std::invalid_argument(std::string(what) + " is missing");
    if (has) in.push_back(*given);
  };
  add(true, "x", args.tensor());
  if (takesGradient(entry)) add(true, "dy", args.tensor());
  const std::optional<DLTensor> scale = args.tensor(), bias = args.tensor(), mask = args.tensor();

  DLDevice device = in[0].device;
  if (device.device_type == kDLCPU || device.device_type == kDLCUDAHost)
    device = {kDLCPU, 0};  // as the runtime
  Request request{.entry = entry, .data = in[0].dtype, .mask = mask.has_value(), .device = device};
  if (scale || bias) request.params = (scale ? scale : bias)->dtype;
  request.channelsFirst = isChannelsFirst(text);
  const Prepared& plan = Registry::get().prepared(text, request);
  const auto takes = [&](bool has, const char* what, bool given) {
    if (given && !has) throw std::invalid_argument(plan.text.name + " has no " + what + ", but one is given");
  };
  takes(plan.scale, "scale", scale.has_value());
  takes(plan.bias, "bias", bias.has_value());
  add(plan.readsScale, "scale", scale);
  add(plan.readsBias, "bias", bias);
  add(request.mask, "mask", mask);
  const Operands operands(plan);
  if (args.left() != operands.inputs - in.size() + operands.outputs)
    throw std::invalid_argument(plan.text.name + ":" + std::string(kEntries[size_t(entry)]) + " takes " +
                                std::to_string(operands.inputs - in.size() + operands.outputs) +
                                " tensors after mask, not " + std::to_string(args.left()));
  while (in.size() < operands.inputs) add(true, "an input", args.tensor());
  std::vector<DLTensor> out;
  while (args.left()) {
    const std::optional<DLTensor> given = args.tensor();
    if (!given) throw std::invalid_argument("a result is missing");
    out.push_back(*given);
  }

  Arguments call(plan, in, out);
  const size_t bytes = call.workspaceBytes();
  if (request.device.device_type == kDLCPU) return call.run(Scratch::of(bytes), bytes);
  ffi::Tensor workspace;
  if (bytes)
    workspace = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, ffi::Shape({int64_t(bytes)}), {kDLUInt, 8, 1},
                                          request.device);
  call.run(bytes ? workspace.data_ptr() : nullptr, bytes,
           TVMFFIEnvGetStream(request.device.device_type, request.device.device_id));
}

int exported(Entry entry, const TVMFFIAny* args, int32_t count) {
  TVM_FFI_SAFE_CALL_BEGIN();
  try {
    run(entry, {args, count});
  } catch (const std::invalid_argument& error) {
    TVM_FFI_THROW(ValueError) << error.what();
  } catch (const host::Error& error) {
    TVM_FFI_THROW(ValueError) << error.what();
  } catch (const std::runtime_error& error) {
    TVM_FFI_THROW(RuntimeError) << error.what();
  }
  TVM_FFI_SAFE_CALL_END();
}

}  // namespace
}  // namespace normc::hosts

using normc::hosts::Entry;

// What TVM_FFI_DLL_EXPORT_TYPED_FUNC makes, for functions of any number of arguments.
extern "C" {
TVM_FFI_DLL_EXPORT int __tvm_ffi_forward(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny*) {
  return normc::hosts::exported(Entry::Forward, args, count);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_backward(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny*) {
  return normc::hosts::exported(Entry::Backward, args, count);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_infer(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny*) {
  return normc::hosts::exported(Entry::Infer, args, count);
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_infer_backward(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny*) {
  return normc::hosts::exported(Entry::InferBackward, args, count);
}
}
