#include "bench/gpu/Subject.h"

namespace normc::gpu {

using gate::CudaDevice;

int64_t Subject::footprint(const Shape& shape) {
  return (shape.entry == "backward" ? 3 : 2) * shape.tensorBytes();
}

Subject::Subject(const CudaDevice& device, const Kernels& kernels, const Shape& shape, int sets)
    : device_(device),
      problem_(kernels.problem(shape.problem())),
      buffers_(kernels.plan(shape.text()), problem_, {1, shape.rows, shape.features},
               {.sets = sets, .asInTraining = true}, &device),
      subject_(kernels.plan(shape.text()), buffers_) {
  const Held& state = buffers_.state();
  freshState_.resize(size_t(state.bytes()));
  if (state.bytes()) device.download(freshState_.data(), state.address(), state.bytes());
  device.synchronize();
  if (problem_.entry != Entry::Backward) return;
  Shape before = shape;
  before.entry = "forward";
  buffers_.saveFrom(kernels.plan(before.text()));
}

std::vector<const Held*> Subject::written(int set) const {
  std::vector<const Held*> all;
  for (const Tensor tensor : operandsOf(problem_))
    if (infoOf(tensor).written()) all.push_back(buffers_.tensors(set).memory[tensor].get());
  return all;
}

std::vector<std::vector<char>> Subject::outputs(int set) const {
  std::vector<const Held*> memory = written(set);
  memory.push_back(&buffers_.state());
  std::vector<std::vector<char>> all;
  for (const Held* each : memory) {
    all.emplace_back(size_t(each->bytes()));
    if (each->bytes()) device_.download(all.back().data(), each->address(), each->bytes());
  }
  device_.synchronize();
  return all;
}

void Subject::poison(int set) const {
  for (const Held* each : written(set)) device_.fill(each->address(), kPoison, each->bytes());
}

void Subject::resetState() const {
  const Held& state = buffers_.state();
  if (state.bytes()) device_.upload(state.address(), freshState_.data(), state.bytes());
}

}  // namespace normc::gpu
