#include "autotune/measure/Buffers.h"

#include <cstring>
#include <string_view>

#include "autotune/gate/Trials.h"

namespace normc::measure {
namespace {

std::vector<TensorSet> setsOf(const TensorMaker& maker, int count) {
  std::vector<TensorSet> sets;
  for (int i = 0; i < count; ++i) sets.push_back(maker.make(i, sets.empty() ? TensorSet{} : sets.front()));
  return sets;
}

/// Fills saved statistics with values that a forward would save for such data: means about 0, all others
/// about 1.
void fillFields(Memory& memory, const std::vector<normc_field>& fields, const Extents& extents,
                int64_t steps) {
  for (const normc_field& field : fields) {
    const std::string_view name = field.name;
    char* const at = static_cast<char*>(memory.data()) + field.offset;
    const int64_t whole = name == "step" ? steps : extents.totalRows();
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

}  // namespace

int64_t Buffers::bytesOfSet(const Problem& problem, const Extents& e) {
  int64_t ofElement = 0;
  for (const Tensor tensor : operandsOf(problem))
    if (isXSized(tensor, hasOf(problem))) ofElement += bytes(typeOf(tensor, problem.types()));
  return ofElement * e.totalRows() * e.features;
}

Traffic Buffers::leastTraffic(const Problem& problem) {
  Traffic traffic{.reads = 0, .writes = 0};
  for (const Tensor tensor : operandsOf(problem))
    if (isXSized(tensor, hasOf(problem)))
      ++(infoOf(tensor).written(problem.entry) ? traffic.writes : traffic.reads);
  return traffic;
}

int64_t Buffers::bytesOfTransfer(const Problem& problem, const Extents& e) {
  return bytesOfSet(problem, e) / leastTraffic(problem).total();
}

Buffers::Buffers(const host::Plan& plan, const Problem& problem, const Extents& extents,
                 const BufferOptions& options, const gate::CudaDevice* device)
    : Buffers(plan, problem, extents, device, options.scatter,
              setsOf({problem.types(), extents, hasOf(problem), isBackward(problem.entry), device,
                      options.scatter},
                     options.sets),
              options.asInTraining) {}

Buffers::Buffers(const host::Plan& plan, const Problem& problem, const Extents& extents,
                 const TensorSet& tensors)
    : Buffers(plan, problem, extents, nullptr, 0, {tensors}, true) {}

Buffers::Buffers(const host::Plan& plan, const Problem& problem, const Extents& extents,
                 const gate::CudaDevice* device, uint64_t scatter, std::vector<TensorSet> sets,
                 bool asInTraining)
    : problem_(problem), extents_(extents), device_(device), scatter_(scatter), sets_(std::move(sets)) {
  for (const TensorSet& set : sets_) {
    gate::Arguments& arguments = arguments_.emplace_back(plan.get(), problem, extents, device);
    for (const auto& [tensor, layout] : arguments.layouts()) arguments.bind(tensor, set[tensor]);
  }
  makeState(plan, asInTraining);
  makeSaved(asInTraining);
}

Held Buffers::placed(Memory memory) const {
  return Held::of(scatter_ && !device_ ? scattered(memory, scatter_) : std::move(memory), device_);
}

void Buffers::makeState(const host::Plan& plan, bool inPlace) {
  const gate::Arguments& any = arguments_.front();
  const auto size = int64_t(any.stateBytes());
  if (size == 0) return;
  state_ = placed(Memory(size));
  if (!inPlace) stateOut_ = placed(Memory(size));
  host::check(normc_plan_state_init(plan.get(), &any.sizes(), state_.data(), any.stateBytes()));
  const int64_t steps = gate::stepsBehindLimits(problem_);
  for (const normc_field& field : any.stateFields()) {
    if (std::string_view(field.name) != "step") continue;
    if (!device_) std::memcpy(static_cast<char*>(state_.data()) + field.offset, &steps, sizeof steps);
    if (device_) device_->upload(state_.address() + field.offset, &steps, sizeof steps);
  }
  if (device_) device_->synchronize();
  for (gate::Arguments& each : arguments_)
    each.bindState(state_.data(), (inPlace ? state_ : stateOut_).data());
}

void Buffers::makeSaved(bool ofEachSet) {
  const auto size = int64_t(arguments_.front().savedBytes());
  if (size == 0 || !usesSaved(problem_.entry)) return;
  Memory made(size);
  fillFields(made, arguments_.front().savedFields(), extents_, gate::stepsBehindLimits(problem_));
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (i == 0 || ofEachSet) {
      Memory copy(size);
      std::memcpy(copy.data(), made.data(), size_t(size));
      saved_.push_back(placed(std::move(copy)));
    }
    arguments_[i].bindSaved(saved_.back().data());
  }
}

void Buffers::saveFrom(const host::Plan& plan) {
  Problem forward = problem_;
  forward.entry = Entry::Forward;
  for (size_t i = 0; i < sets_.size(); ++i) {
    gate::Arguments arguments(plan.get(), forward, extents_, device_);
    for (const auto& [tensor, layout] : arguments.layouts()) {
      void* const memory = sets_[i][tensor];  // of an output, if the backward reads it
      arguments.bind(tensor, memory ? memory : output(int(i)).data());
    }
    const Held workspace = Held::ofBytes(int64_t(arguments.workspaceBytes()), device_);
    arguments.bindState(state_.data(), arguments_[i].args().state_out);
    arguments.bindSaved(arguments_[i].args().saved);
    arguments.bindWorkspace(workspace.data(), arguments.workspaceBytes());
    host::check(normc_execute(plan.get(), &arguments.args()));
    if (device_) device_->synchronize();
  }
}

std::vector<RoofBuffers> Buffers::roofBuffers() const {
  const auto address = [](const void* memory) { return reinterpret_cast<gate::DeviceAddress>(memory); };
  std::vector<RoofBuffers> all;
  for (const TensorSet& set : sets_) {
    const std::vector<const void*> from = set.inputs();
    all.push_back(
        {set.output().address(), address(from[0]), from.size() > 1 ? address(from[1]) : 0, set.leastBytes()});
  }
  return all;
}

}  // namespace normc::measure
