#include "bench/Ours.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "codegen/Package.h"
#include "runtime/abi/DlType.h"
#include "runtime/package/ManifestJson.h"

namespace normc::bench {
namespace {

/// Past every warmup.
constexpr int64_t kSteps = 10000;

template <typename T>
T orThrow(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

normc_sizes sizesOf(const Shape& shape) {
  return host::Plan::sizes(shape.segments, shape.rows, shape.features);
}

/// All rows as one segment where the problem knows no segments.
host::Tensor tensorOf(const Memory& memory, const Problem& problem, const Shape& shape) {
  const DLDataType type = dlType(problem.data);
  if (problem.layout == Layout::ChannelsFirst)
    return {memory.data(), type, {shape.segments, shape.features, shape.rows}};
  if (problem.segmented) return {memory.data(), type, {shape.segments, shape.rows, shape.features}};
  return {memory.data(), type, {shape.rows, shape.features}};
}

/// A plan for the problem that leaves the number of threads to `threads`.
host::Plan planFor(const Kernels& kernels, const Problem& problem, const Shape& shape, int threads) {
  normc_request request = {};
  request.max_threads = threads;
  return host::Plan(kernels.package(), problem.text(shape.segments, shape.rows), request);
}

std::optional<Memory> memoryOf(size_t bytes) {
  if (bytes == 0) return std::nullopt;
  return Memory(int64_t(bytes));
}

host::Buffer bufferOf(const std::optional<Memory>& memory) {
  return memory ? host::Buffer(memory->data(), size_t(memory->bytes())) : host::Buffer();
}

}  // namespace

Kernels Kernels::compile(const std::vector<Problem>& problems, const codegen::TargetPtr& target) {
  std::string bytes;
  const double seconds = timed(1, [&] {
    std::vector<codegen::Job> jobs;
    for (const Problem& problem : problems)
      for (codegen::Job& job : codegen::defaultJobs(problem, target)) jobs.push_back(std::move(job));
    bytes = orThrow(codegen::buildPackage(jobs));
  });
  return Kernels(std::move(bytes), seconds);
}

Kernels Kernels::compile(const std::vector<Problem>& problems) {
  return compile(problems, orThrow(codegen::findTarget("host")));
}

Kernels Kernels::read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file);
  return Kernels(std::string(std::istreambuf_iterator<char>(stream), {}), 0);
}

Kernels::Kernels(std::string bytes, double seconds)
    : seconds_(seconds), package_(context_, bytes.data(), bytes.size()) {}

Traffic Kernels::traffic(const host::Plan& plan) const {
  const package::Traffic traffic =
      package::wholeManifest(package_.manifest()).kernels.at(plan.kernel()).traffic;
  return {int(traffic.reads), int(traffic.writes)};
}

Ours::Ours(const Kernels& kernels, const Problem& problem, Tensors& tensors, int threads)
    : plan_(planFor(kernels, problem, tensors.shape, threads)) {
  const Spec& spec = *problem.spec;
  const auto wide = [&](const Memory& memory) { return tensorOf(memory, problem, tensors.shape); };
  const auto narrow = [&](const Memory& memory) {
    return host::Tensor(memory.data(), dlType(problem.params), {tensors.shape.features});
  };
  const normc_sizes sizes = sizesOf(tensors.shape);
  call_.x = wide(tensors.x);
  if (spec.scale) call_.scale = narrow(tensors.scale);
  if (problem.entry != Entry::Infer) saved_ = memoryOf(plan_.savedBytes(sizes));
  call_.saved = bufferOf(saved_);
  prepareState(problem, tensors.shape.features);
  if (problem.entry == Entry::Backward) {
    prepareBackward(kernels, problem, tensors);
    call_.dy = wide(tensors.dy), call_.dx = wide(tensors.dx);
    if (spec.scale) call_.dscale = narrow(tensors.dscale);
    if (spec.bias) call_.dbias = narrow(tensors.dbias);
  } else {
    if (spec.bias) call_.bias = narrow(tensors.bias);
    call_.y = wide(tensors.y);
  }
  workspace_ = memoryOf(plan_.workspaceBytes(sizes));
  call_.workspace = bufferOf(workspace_);
}

void Ours::prepareState(const Problem& problem, int64_t features) {
  state_ = memoryOf(plan_.stateBytes(features));
  if (!state_) return;
  const normc_sizes sizes = host::Plan::sizes(1, 0, features);
  host::check(normc_plan_state_init(plan_.get(), &sizes, state_->data(), size_t(state_->bytes())));
  for (const normc_field& field : plan_.stateFields(features))
    if (std::strcmp(field.name, "step") == 0)
      std::memcpy(static_cast<char*>(state_->data()) + field.offset, &kSteps, sizeof kSteps);
  call_.stateIn = bufferOf(state_);
  if (problem.entry != Entry::Infer) call_.stateOut = bufferOf(state_);
}

/// Saved statistics come from the forward of the same rows; its y goes where dx will be.
void Ours::prepareBackward(const Kernels& kernels, const Problem& problem, Tensors& tensors) {
  Problem before = problem;
  before.entry = Entry::Forward;
  const host::Plan forward = planFor(kernels, before, tensors.shape, 0);
  const std::optional<Memory> workspace = memoryOf(forward.workspaceBytes(sizesOf(tensors.shape)));
  host::Call call = call_;
  call.y = tensorOf(tensors.dx, problem, tensors.shape);
  if (problem.spec->bias)
    call.bias = host::Tensor(tensors.bias.data(), dlType(problem.params), {tensors.shape.features});
  call.workspace = bufferOf(workspace);
  forward(call);
}

double Ours::run(int64_t calls) {
  return timed(calls, [this] { plan_(call_); });
}

}  // namespace normc::bench
