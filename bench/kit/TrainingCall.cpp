#include "bench/kit/TrainingCall.h"

#include <algorithm>

#include "autotune/gate/Gate.h"

namespace normc::bench {
namespace {

std::string callOf(const Problem& problem, const Extents& sizes) {
  return problem.text(sizes.segments, sizes.rows);
}

Extents sizesOf(const Tensors& tensors) {
  return {tensors.shape.segments, tensors.shape.rows, tensors.shape.features};
}

Extents sizesOf(const ProblemText& call) { return {1, call.rows.value(), call.features.value()}; }

}  // namespace

std::string whyWrong(const Kernels& kernels, const Problem& problem, const Extents& sizes, int64_t elements,
                     const gate::CudaDevice* device) {
  const host::Plan timed = kernels.plan(callOf(problem, sizes));
  const host::Plan anyRows = kernels.planOfOneKernel(problem.text());
  const bool general = timed.kernel() == anyRows.kernel();
  const int64_t fewRows = std::max<int64_t>(3, elements / sizes.features);
  gate::Trial trial{.extents = sizes, .step = gate::stepsBehindLimits(problem)};
  if (general)
    trial.extents = {std::min(sizes.segments, std::max<int64_t>(1, fewRows / sizes.rows)),
                     std::min(sizes.rows, fewRows), sizes.features};
  const gate::Verdict verdict = gate::judge((general ? anyRows : timed).get(), problem, trial, device);
  return verdict.ok ? std::string() : verdict.text;
}

TrainingCall::TrainingCall(const Kernels& kernels, const Problem& problem, const Tensors& tensors,
                           int threads)
    : TrainingCall(kernels, problem, sizesOf(tensors), threads,
                   Buffers(kernels.plan(callOf(problem, sizesOf(tensors)), threads), problem,
                           sizesOf(tensors), tensors)) {}

TrainingCall::TrainingCall(const gate::CudaDevice& device, const Kernels& kernels, const ProblemText& call,
                           int sets)
    : TrainingCall(kernels, kernels.problem(call.withoutSizes().text()), sizesOf(call), 0,
                   Buffers(kernels.plan(call.text()), kernels.problem(call.withoutSizes().text()),
                           sizesOf(call), {.sets = sets, .asInTraining = true}, &device)) {
  freshState_ = contentOf(buffers_.state());
  device.synchronize();
}

TrainingCall::TrainingCall(const Kernels& kernels, const Problem& problem, const Extents& sizes, int threads,
                           Buffers buffers)
    : problem_(problem),
      buffers_(std::move(buffers)),
      subject_(kernels.plan(callOf(problem, sizes), threads), buffers_) {
  if (!readsSaved(problem.entry)) return;
  Problem forward = problem;
  forward.entry = Entry::Forward;
  buffers_.saveFrom(kernels.plan(callOf(forward, sizes)));
}

std::string TrainingCall::implementation() const {
  const std::string all = plan().describe();
  return all.substr(0, all.find("rejected:\n"));
}

std::vector<char> TrainingCall::contentOf(const Held& held) const {
  std::vector<char> content(static_cast<size_t>(held.bytes()));
  if (held.bytes()) buffers_.device()->download(content.data(), held.address(), held.bytes());
  return content;
}

std::vector<const Held*> TrainingCall::written(int set) const {
  std::vector<const Held*> all;
  for (const Tensor tensor : operandsOf(problem_))
    if (infoOf(tensor).written(problem_.entry)) all.push_back(buffers_.tensors(set).memory[tensor].get());
  return all;
}

std::vector<std::vector<char>> TrainingCall::outputs(int set) const {
  std::vector<std::vector<char>> all;
  for (const Held* each : written(set)) all.push_back(contentOf(*each));
  all.push_back(contentOf(buffers_.state()));
  buffers_.device()->synchronize();
  return all;
}

void TrainingCall::startAfresh() const {
  const gate::CudaDevice& device = *buffers_.device();
  const Held& state = buffers_.state();
  if (state.bytes()) device.upload(state.address(), freshState_.data(), state.bytes());
  for (int set = 0; set < sets(); ++set)
    for (const Held* each : written(set)) device.fill(each->address(), kPoison, each->bytes());
}

}  // namespace normc::bench
