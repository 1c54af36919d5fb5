// The operators of torch: one for each entry of a norm, for any norm. They are pure functions of tensors and
// of the norm's text, without gradients of their own; autograd, shapes for tracing and modules are in Python.
//
// Written against torch's stable ABI, so that one binary serves every torch from 2.10 on.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "runtime/hosts/torch/Call.h"

#ifndef NORMC_TORCH_NAMESPACE
#define NORMC_TORCH_NAMESPACE normc  // a hub that loads several builds into a process gives each its own
#endif

namespace normc::hosts {
namespace {

/// Runs the tasks of a kernel on the threads of torch.
int onThreadsOfTorch(void*, int64_t count, normc_task task, void* data) {
  ::torch::stable::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) task(data, begin);
  });
  return 0;
}

Tensor infer(const Tensor& x, Optional scale, Optional bias, Optional mask, OptionalList state,
             const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::Infer, x, scale, bias, mask, norm);
  call.outputTo(out);
  call.stateIn(state);
  call.run();
  return out[0];
}

std::vector<Tensor> forward(const Tensor& x, Optional scale, Optional bias, Optional mask, OptionalList state,
                            const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::Forward, x, scale, bias, mask, norm);
  call.outputTo(out);
  call.savedTo(out);
  call.stateIn(state);
  call.stateTo(out);
  call.run();
  return out;
}

std::vector<Tensor> backward(const Tensor& x, const Tensor& dy, Optional scale, Optional bias, Optional mask,
                             List saved, OptionalList state, const std::string& norm, bool dx, bool dscale,
                             bool dbias) {
  std::vector<Tensor> out;
  Call call(Entry::Backward, x, scale, bias, mask, norm);
  call.gradient(dy);
  call.gradientsTo(out, scale, bias, dx, dscale, dbias);
  call.saved(saved);
  call.stateIn(state);
  call.stateTo(out);
  call.run();
  return out;
}

std::vector<Tensor> inferBackward(const Tensor& x, const Tensor& dy, Optional scale, Optional bias,
                                  Optional mask, OptionalList state, const std::string& norm, bool dx,
                                  bool dscale, bool dbias) {
  std::vector<Tensor> out;
  Call call(Entry::InferBackward, x, scale, bias, mask, norm);
  call.gradient(dy);
  call.gradientsTo(out, scale, bias, dx, dscale, dbias);
  call.stateIn(state);
  call.run();
  return out;
}

std::vector<Tensor> forwardReduce(const Tensor& x, Optional scale, Optional bias, Optional mask,
                                  OptionalList state, const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::ForwardReduce, x, scale, bias, mask, norm);
  call.outputTo(out);
  call.savedTo(out);
  call.stateIn(state);
  call.partialTo(out);
  call.run();
  return out;
}

std::vector<Tensor> forwardApply(const Tensor& x, Optional scale, Optional bias, Optional mask,
                                 const Tensor& partials, OptionalList state, const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::ForwardApply, x, scale, bias, mask, norm);
  call.partials(partials);
  call.outputTo(out);
  call.savedTo(out);
  call.stateIn(state);
  call.stateTo(out);
  call.run();
  return out;
}

std::vector<Tensor> backwardReduce(const Tensor& x, const Tensor& dy, Optional scale, Optional bias,
                                   Optional mask, List saved, OptionalList state, const std::string& norm,
                                   bool dx, bool dscale, bool dbias) {
  std::vector<Tensor> out;
  Call call(Entry::BackwardReduce, x, scale, bias, mask, norm);
  call.gradient(dy);
  call.gradientsTo(out, scale, bias, dx, dscale, dbias);
  call.saved(saved);
  call.stateIn(state);
  call.partialTo(out);
  call.run();
  return out;
}

std::vector<Tensor> backwardApply(const Tensor& x, const Tensor& dy, Optional scale, Optional bias,
                                  Optional mask, List saved, const Tensor& partials, OptionalList state,
                                  const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::BackwardApply, x, scale, bias, mask, norm);
  call.partials(partials);
  call.gradient(dy);
  call.gradientsTo(out, scale, bias, true, false, false);
  call.saved(saved);
  call.stateIn(state);
  call.stateTo(out);
  call.run();
  return out;
}

std::vector<Tensor> inferAround(const Tensor& x, Optional scale, Optional bias, Optional mask, List around,
                                OptionalList state, const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::Infer, x, scale, bias, mask, norm);
  call.around(around);
  call.outputTo(out);
  call.aroundTo(out);
  call.stateIn(state);
  call.run();
  return out;
}

std::vector<Tensor> forwardAround(const Tensor& x, Optional scale, Optional bias, Optional mask, List around,
                                  OptionalList state, const std::string& norm) {
  std::vector<Tensor> out;
  Call call(Entry::Forward, x, scale, bias, mask, norm);
  call.around(around);
  call.outputTo(out);
  call.aroundTo(out);
  call.savedTo(out);
  call.stateIn(state);
  call.stateTo(out);
  call.run();
  return out;
}

std::vector<Tensor> backwardAround(const Tensor& x, const Tensor& dy, Optional scale, Optional bias,
                                   Optional mask, List around, List saved, OptionalList state,
                                   const std::string& norm, int64_t wanted) {
  std::vector<Tensor> out;
  Call call(Entry::Backward, x, scale, bias, mask, norm);
  call.gradient(dy);
  call.around(around);
  call.gradientsTo(out, scale, bias, wanted & 1, wanted & 2, wanted & 4);
  call.aroundTo(out, wanted >> 3);
  call.saved(saved);
  call.stateIn(state);
  call.stateTo(out);
  call.run();
  return out;
}

std::vector<Tensor> inferBackwardAround(const Tensor& x, const Tensor& dy, Optional scale, Optional bias,
                                        Optional mask, List around, OptionalList state,
                                        const std::string& norm, int64_t wanted) {
  std::vector<Tensor> out;
  Call call(Entry::InferBackward, x, scale, bias, mask, norm);
  call.gradient(dy);
  call.around(around);
  call.gradientsTo(out, scale, bias, wanted & 1, wanted & 2, wanted & 4);
  call.aroundTo(out, wanted >> 3);
  call.stateIn(state);
  call.run();
  return out;
}

std::vector<Tensor> commit(const Tensor& partials, List state, const std::string& norm) {
  return committed(partials, state, norm);
}

void implement(::torch::stable::detail::StableLibrary& m) {
  m.impl("infer", TORCH_BOX(&infer));
  m.impl("forward", TORCH_BOX(&forward));
  m.impl("backward", TORCH_BOX(&backward));
  m.impl("infer_backward", TORCH_BOX(&inferBackward));
  m.impl("infer_around", TORCH_BOX(&inferAround));
  m.impl("forward_around", TORCH_BOX(&forwardAround));
  m.impl("backward_around", TORCH_BOX(&backwardAround));
  m.impl("infer_backward_around", TORCH_BOX(&inferBackwardAround));
  m.impl("forward_reduce", TORCH_BOX(&forwardReduce));
  m.impl("forward_apply", TORCH_BOX(&forwardApply));
  m.impl("backward_reduce", TORCH_BOX(&backwardReduce));
  m.impl("backward_apply", TORCH_BOX(&backwardApply));
  m.impl("commit", TORCH_BOX(&commit));
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
  // The same with tensors around the norm (common/Around.h): `around` are those that the entry reads, and
  // those that it writes follow y, or dx, dscale and dbias. `wanted` has a bit for each gradient, in this
  // order.
  m.def(
      "infer_around(Tensor x, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[] around, Tensor[]? state, "
      "str norm) -> Tensor[]");
  m.def(
      "forward_around(Tensor x, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[] around, Tensor[]? state, "
      "str norm) -> Tensor[]");
  m.def(
      "backward_around(Tensor x, Tensor dy, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[] around, "
      "Tensor[] saved, Tensor[]? state, str norm, int wanted) -> Tensor[]");
  m.def(
      "infer_backward_around(Tensor x, Tensor dy, Tensor? scale, Tensor? bias, Tensor? mask, "
      "Tensor[] around, Tensor[]? state, str norm, int wanted) -> Tensor[]");
  // Over ranks (docs/many-ranks.md): what a norm has of y, saved statistics and gradients, then the partial
  m.def(
      "forward_reduce(Tensor x, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[]? state, str norm) -> "
      "Tensor[]");
  m.def(
      "forward_apply(Tensor x, Tensor? scale, Tensor? bias, Tensor? mask, Tensor partials, Tensor[]? state, "
      "str norm) -> Tensor[]");
  m.def(
      "backward_reduce(Tensor x, Tensor dy, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[] saved, "
      "Tensor[]? state, str norm, bool dx, bool dscale, bool dbias) -> Tensor[]");
  m.def(
      "backward_apply(Tensor x, Tensor dy, Tensor? scale, Tensor? bias, Tensor? mask, Tensor[] saved, "
      "Tensor partials, Tensor[]? state, str norm) -> Tensor[]");
  m.def("commit(Tensor partials, Tensor[] state, str norm) -> Tensor[]");
  normc::hosts::Registry::get().setThreads(normc::hosts::onThreadsOfTorch);
}
NORMC_LIBRARY_IMPL(NORMC_TORCH_NAMESPACE, CPU, m) { normc::hosts::implement(m); }
NORMC_LIBRARY_IMPL(NORMC_TORCH_NAMESPACE, CUDA, m) { normc::hosts::implement(m); }
