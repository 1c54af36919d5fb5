#include "autotune/measure/Buffers.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "dsl/HardInputs.h"
#include "runtime/abi/DlType.h"

namespace normc::measure {
namespace {

/// Past every warmup.
constexpr int64_t kSteps = 10000;

Memory filled(DType type, int64_t count, uint64_t seed, float mean, float sigma) {
  Memory memory(count * bytes(type));
  fill(memory, type, count, seed, mean, sigma);
  return memory;
}

host::Buffer bufferOf(const Held& memory) {
  return memory.bytes() ? host::Buffer(memory.data(), size_t(memory.bytes())) : host::Buffer();
}

}  // namespace

int64_t Buffers::bytesOfSet(const Problem& problem, const Extents& e) {
  return (problem.entry == Entry::Backward ? 3 : 2) * e.totalRows() * e.features * bytes(problem.data);
}

Held::Held(Memory host, const gate::CudaDevice* device) {
  if (!device || host.bytes() == 0) {
    host_ = std::move(host);
    return;
  }
  device_ = gate::CudaMemory(*device, host.bytes());
  device->upload(device_.address(), host.data(), host.bytes());
  device->synchronize();
}

Held::Held(const Memory& pattern, int64_t bytes, const gate::CudaDevice& device) : device_(device, bytes) {
  const int64_t have = std::min(bytes, pattern.bytes());
  device.upload(device_.address(), pattern.data(), have);
  device.repeat(device_.address(), have, bytes);
  device.synchronize();
}

Held Buffers::held(Memory memory) const {
  return Held(scatter_ && !device_ ? scattered(memory, scatter_) : std::move(memory), device_);
}

/// X-sized, about N(0,1). What repeats on a device is no whole number of rows.
Held Buffers::tensor(uint64_t seed) const {
  constexpr int64_t kPattern = (1 << 20) - 3;
  const int64_t elements = extents_.totalRows() * extents_.features;
  if (!device_ || elements <= kPattern) return held(filled(problem_.data, elements, seed, 0, 1));
  return Held(filled(problem_.data, kPattern, seed, 0, 1), elements * bytes(problem_.data), *device_);
}

Buffers::Buffers(const host::Plan& plan, const Problem& problem, const Extents& extents, int sets,
                 const gate::CudaDevice* device, uint64_t scatter)
    : problem_(problem), extents_(extents), device_(device), scatter_(scatter) {
  const int64_t elements = extents.totalRows() * extents.features;
  const bool backward = problem.entry == Entry::Backward;
  for (int i = 0; i < sets; ++i) {
    Set set;
    set.x = tensor(1 + uint64_t(i));
    if (backward) set.dy = tensor(1000 + uint64_t(i));
    set.out = device ? tensor(2000) : held(Memory(elements * bytes(problem.data)));
    sets_.push_back(std::move(set));
  }
  const int64_t narrowBytes = extents.features * bytes(problem.params);
  scale_ = held(filled(problem.params, extents.features, 3, 1, 0.1f));
  bias_ = held(filled(problem.params, extents.features, 4, 0, 0.1f));
  if (backward) dscale_ = held(Memory(narrowBytes)), dbias_ = held(Memory(narrowBytes));
  if (problem.mask) {
    const std::vector<uint8_t> rows = hardMask(HardMask::Tails, extents);
    Memory mask{int64_t(rows.size())};
    std::copy(rows.begin(), rows.end(), static_cast<uint8_t*>(mask.data()));
    mask_ = held(std::move(mask));
  }
  const normc_sizes sizes = host::Plan::sizes(extents.segments, extents.rows, extents.features);
  if (const size_t size = plan.stateBytes(extents.features)) {
    stateIn_ = held(Memory(int64_t(size))), stateOut_ = held(Memory(int64_t(size)));
    host::check(normc_plan_state_init(plan.get(), &sizes, stateIn_.data(), size));
    for (const normc_field& field : plan.stateFields(extents.features)) {
      if (std::string_view(field.name) != "step") continue;
      if (device)
        device->upload(reinterpret_cast<gate::DeviceAddress>(stateIn_.data()) + field.offset, &kSteps,
                       sizeof kSteps),
            device->synchronize();
      else
        std::memcpy(static_cast<char*>(stateIn_.data()) + field.offset, &kSteps, sizeof kSteps);
    }
  }
  if (problem.entry == Entry::Infer) return;
  if (const size_t size = plan.savedBytes(sizes)) {
    Memory saved{int64_t(size)};
    fillFields(saved, plan.savedFields(sizes));
    saved_ = held(std::move(saved));
  }
}

/// Means about 0, all else about 1: what a forward of such data would have saved.
void Buffers::fillFields(Memory& memory, const std::vector<normc_field>& fields) const {
  for (const normc_field& field : fields) {
    const std::string_view name = field.name;
    char* const at = static_cast<char*>(memory.data()) + field.offset;
    const int64_t whole = name == "step" ? kSteps : extents_.totalRows();
    const float centre = name.find("mean") != name.npos ? 0.01f : name == "count" ? float(whole) : 1.0f;
    const size_t size = size_t(bytes(typeOfField(field.type)));
    for (size_t done = 0; done + size <= field.bytes; done += size) {
      const double wide = centre;
      if (field.type == NORMC_I64) std::memcpy(at + done, &whole, sizeof whole);
      if (field.type == NORMC_F32) std::memcpy(at + done, &centre, sizeof centre);
      if (field.type == NORMC_F64) std::memcpy(at + done, &wide, sizeof wide);
    }
  }
}

host::Tensor Buffers::placed(host::Tensor tensor) const {
  return device_ ? tensor.onCuda(device_->index()) : tensor;
}

host::Tensor Buffers::wide(const Held& memory) const {
  const bool last = problem_.layout == Layout::FeaturesLast;
  const int64_t outer = last ? extents_.rows : extents_.features,
                inner = last ? extents_.features : extents_.rows;
  if (!problem_.segmented) return placed(host::Tensor(memory.data(), dlType(problem_.data), {outer, inner}));
  return placed(host::Tensor(memory.data(), dlType(problem_.data), {extents_.segments, outer, inner}));
}

host::Tensor Buffers::narrow(const Held& memory) const {
  return placed(host::Tensor(memory.data(), dlType(problem_.params), {extents_.features}));
}

host::Call Buffers::call(int index) const {
  const Set& set = sets_[size_t(index)];
  const Spec& spec = *problem_.spec;
  host::Call call;
  call.x = wide(set.x);
  if (spec.scale) call.scale = narrow(scale_);
  if (problem_.entry == Entry::Backward) {
    call.dy = wide(set.dy), call.dx = wide(set.out);
    if (spec.scale) call.dscale = narrow(dscale_);
    if (spec.bias) call.dbias = narrow(dbias_);
  } else {
    call.y = wide(set.out);
    if (spec.bias) call.bias = narrow(bias_);
  }
  if (problem_.mask) {
    const auto* rows = static_cast<const uint8_t*>(mask_.data());
    call.mask = placed(problem_.segmented ? host::Tensor(rows, {extents_.segments, extents_.rows})
                                          : host::Tensor(rows, {extents_.rows}));
  }
  call.saved = bufferOf(saved_);
  call.stateIn = bufferOf(stateIn_);
  if (problem_.entry != Entry::Infer) call.stateOut = bufferOf(stateOut_);
  if (device_) call.stream = device_->stream();
  return call;
}

}  // namespace normc::measure
