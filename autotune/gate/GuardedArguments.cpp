#include "autotune/gate/GuardedArguments.h"

namespace normc::gate {

std::optional<double> FieldBuffer::scalar(const std::string& field) const {
  for (const normc_field& each : fields)
    if (field == each.name && each.ndim == 0) return memory.getField(typeOfField(each.type), each.offset, 0);
  return std::nullopt;
}

GuardedArguments::GuardedArguments(Arguments arguments, const Placement& placement, size_t count)
    : Arguments(std::move(arguments)), placement_(placement) {
  const auto storage = [&](size_t bytes, int64_t offset = 0) {
    return Storage(int64_t(bytes), offset, where(), placement.guardPages);
  };
  for (const auto& [tensor, layout] : layouts()) {
    const int64_t off = placement.misalign + (infoOf(tensor).written(entry()) ? placement.skew : 0);
    tensors_[tensor] = storage(layout.bytes(), off * bytes(layout.type));
  }
  for (const auto& [tensor, memory] : tensors_)
    bind(tensor, placement.leavesOut(name(tensor)) ? nullptr : tensors_.at(memoryOf(tensor)).address());
  state = {stateFields(), storage(stateBytes())};
  stateOut = {stateFields(), storage(stateBytes())};
  saved = {savedFields(), storage(savedBytes())};
  // A partial begins at any double.
  partials = {partialFields(), storage(count * partialBytes(), (placement.misalign + 1) * sizeof(double))};
  workspace = storage(workspaceBytes());
  bindState(state.memory.address(), placement.leavesOut("state_out") ? nullptr
                                    : placement.stateInPlace         ? state.memory.address()
                                                                     : stateOut.memory.address());
  bindSaved(placement.leavesOut("saved") ? nullptr : saved.memory.address());
  bindPartials(partials.memory.address(), count);
  bindWorkspace(workspace.address(), workspaceBytes());
}

Tensor GuardedArguments::memoryOf(Tensor tensor) const {
  const std::optional<Tensor> other = mayShare(tensor, layouts().contains(kRopeCos));
  const bool shares = placement_.inPlace && infoOf(tensor).written(entry()) && other;
  const Tensor shared = shares ? *other : tensor;
  return layouts().at(shared).type == layouts().at(tensor).type ? shared : tensor;
}

bool GuardedArguments::staysAsGiven(Tensor tensor) const {
  if (infoOf(tensor).written(entry())) return false;
  for (const auto& [other, layout] : layouts())
    if (infoOf(other).written(entry()) && memoryOf(other) == tensor) return false;
  return true;
}

std::vector<Storage*> GuardedArguments::storages() {
  std::vector<Storage*> all = {&state.memory, &stateOut.memory, &saved.memory, &partials.memory, &workspace};
  for (auto& [tensor, memory] : tensors_) all.push_back(&memory);
  return all;
}

void GuardedArguments::upload() {
  for (Storage* each : storages()) each->upload();
}

void GuardedArguments::download() {
  if (!where()) return;
  for (Storage* each : storages()) each->download();
  where()->synchronize();
}

}  // namespace normc::gate
