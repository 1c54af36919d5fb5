#include "bench/gpu/Subject.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/abi/DlType.h"

namespace normc::gpu {

using gate::CudaDevice;
using gate::CudaMemory;

namespace {

/// Past every warmup.
constexpr int64_t kSteps = 10000;

/// About normal: the sum of four uniform numbers.
float number(uint32_t& state) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    state = state * 1664525u + 1013904223u;
    sum += float(state >> 8) * (1.0f / (1 << 24)) - 0.5f;
  }
  return sum * 1.7f;
}

/// A pattern long enough that no row repeats the one before.
std::vector<char> pattern(DType type, int64_t most, unsigned seed) {
  const int64_t size = bytes(type), count = std::clamp<int64_t>(most / size, 1, (1 << 20) - 3);
  std::vector<char> result(size_t(count * size));
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(number(state));
    const uint32_t stored = type == DType::BF16 ? bits >> 16 : bits;
    std::memcpy(&result[size_t(i * size)], &stored, size_t(size));
  }
  return result;
}

CudaMemory memoryOf(const CudaDevice& device, int64_t bytes) {
  return bytes ? CudaMemory(device, bytes) : CudaMemory();
}
host::Buffer bufferOf(const CudaMemory& memory) {
  return memory.bytes() ? host::Buffer(memory.data(), size_t(memory.bytes())) : host::Buffer();
}

}  // namespace

CudaMemory filled(const CudaDevice& device, DType type, int64_t bytes, unsigned seed) {
  CudaMemory memory(device, bytes);
  const std::vector<char> values = pattern(type, bytes, seed);
  const int64_t have = std::min<int64_t>(bytes, int64_t(values.size()));
  device.upload(memory.address(), values.data(), have);
  device.repeat(memory.address(), have, bytes);
  device.synchronize();
  return memory;
}

int64_t Subject::footprint(const Shape& shape) {
  return (shape.entry == "backward" ? 3 : 2) * shape.tensorBytes();
}

Subject::Subject(const CudaDevice& device, const Kernels& kernels, const Shape& shape, int sets)
    : device_(device),
      shape_(shape),
      problem_(kernels.problem(shape.problem())),
      backward_(problem_.entry == Entry::Backward),
      plan_(kernels.plan(shape.text())) {
  const normc_sizes sizes = host::Plan::sizes(1, shape.rows, shape.features);
  const int64_t wideBytes = shape.tensorBytes(), narrowBytes = shape.features * bytes(problem_.params);
  const auto savedBytes = problem_.entry == Entry::Infer ? 0 : int64_t(plan_.savedBytes(sizes));
  const Spec& spec = *problem_.spec;
  if (spec.scale)
    scale_ = filled(device, problem_.params, narrowBytes, 1), dscale_ = CudaMemory(device, narrowBytes);
  if (spec.bias)
    bias_ = filled(device, problem_.params, narrowBytes, 2), dbias_ = CudaMemory(device, narrowBytes);
  for (int i = 0; i < sets; ++i) {
    Set set;
    set.x = filled(device, problem_.data, wideBytes, 3 + unsigned(i));
    (backward_ ? set.dx : set.y) = CudaMemory(device, wideBytes);
    if (backward_) set.dy = filled(device, problem_.data, wideBytes, 100 + unsigned(i));
    set.saved = memoryOf(device, savedBytes);
    sets_.push_back(std::move(set));
  }
  prepareState(problem_);
  if (backward_) runForward(kernels, problem_);
  workspace_ = memoryOf(device, int64_t(plan_.workspaceBytes(sizes)));
  for (const Set& set : sets_) calls_.push_back(callOn(set));
}

void Subject::prepareState(const Problem& problem) {
  const size_t size = plan_.stateBytes(shape_.features);
  state_ = memoryOf(device_, int64_t(size));
  if (!size) return;
  const normc_sizes sizes = host::Plan::sizes(1, 0, shape_.features);
  host::check(normc_plan_state_init(plan_.get(), &sizes, state_.data(), size));
  for (const normc_field& field : plan_.stateFields(shape_.features))
    if (std::strcmp(field.name, "step") == 0)
      device_.upload(state_.address() + field.offset, &kSteps, sizeof kSteps);
  freshState_.resize(size);
  device_.download(freshState_.data(), state_.address(), int64_t(size));
  device_.synchronize();
}

host::Tensor Subject::wide(const CudaMemory& memory) const {
  return host::Tensor(memory.data(), dlType(problem_.data), {shape_.rows, shape_.features})
      .onCuda(device_.index());
}
host::Tensor Subject::narrow(const CudaMemory& memory) const {
  return host::Tensor(memory.data(), dlType(problem_.params), {shape_.features}).onCuda(device_.index());
}

host::Call Subject::callOn(const Set& set) const {
  const Spec& spec = *problem_.spec;
  host::Call call;
  call.x = wide(set.x);
  if (spec.scale) call.scale = narrow(scale_);
  if (backward_) {
    call.dy = wide(set.dy), call.dx = wide(set.dx);
    if (spec.scale) call.dscale = narrow(dscale_);
    if (spec.bias) call.dbias = narrow(dbias_);
  } else {
    call.y = wide(set.y);
    if (spec.bias) call.bias = narrow(bias_);
  }
  call.saved = bufferOf(set.saved);
  call.stateIn = bufferOf(state_);
  if (problem_.entry != Entry::Infer) call.stateOut = bufferOf(state_);
  call.workspace = bufferOf(workspace_);
  call.stream = device_.stream();
  return call;
}

/// The saved statistics of every set; y goes where dx will be.
void Subject::runForward(const Kernels& kernels, const Problem& problem) {
  Shape before = shape_;
  before.entry = "forward";
  const host::Plan forward = kernels.plan(before.text());
  const CudaMemory workspace =
      memoryOf(device_, int64_t(forward.workspaceBytes(host::Plan::sizes(1, shape_.rows, shape_.features))));
  for (const Set& set : sets_) {
    host::Call call = callOn(set);
    call.y = wide(set.dx);
    call.dx = call.dy = call.dscale = call.dbias = host::Tensor();
    if (problem.spec->bias) call.bias = narrow(bias_);
    call.workspace = bufferOf(workspace);
    forward(call);
  }
  device_.synchronize();
}

Rival::Rival(const Subject& subject, host::Plan plan) : plan_(std::move(plan)), calls_(subject.calls_) {
  const Shape& shape = subject.shape_;
  workspace_ = memoryOf(subject.device_,
                        int64_t(plan_.workspaceBytes(host::Plan::sizes(1, shape.rows, shape.features))));
  for (host::Call& call : calls_) call.workspace = bufferOf(workspace_);
}

void Subject::enqueue(int set) const { plan_(calls_[size_t(set)]); }

std::vector<RoofBuffers> Subject::roofBuffers() const {
  std::vector<RoofBuffers> all;
  for (size_t i = 0; i < sets_.size(); ++i)
    all.push_back(
        {output(int(i)).address(), sets_[i].x.address(), sets_[i].dy.address(), shape_.tensorBytes()});
  return all;
}

std::vector<std::vector<char>> Subject::outputs(int set) const {
  std::vector<std::vector<char>> all;
  for (const CudaMemory* memory : {&output(set), &dscale_, &dbias_, &state_}) {
    all.emplace_back(size_t(memory->bytes()));
    if (memory->bytes()) device_.download(all.back().data(), memory->address(), memory->bytes());
  }
  device_.synchronize();
  return all;
}

void Subject::poison(int set) const {
  for (const CudaMemory* memory : {&output(set), &dscale_, &dbias_})
    if (memory->bytes()) device_.fill(memory->address(), kPoison, memory->bytes());
}

void Subject::resetState() const {
  if (state_.bytes()) device_.upload(state_.address(), freshState_.data(), state_.bytes());
}

}  // namespace normc::gpu
