#include "runtime/plan/State.h"

#include <array>
#include <limits>

#include "runtime/core/Error.h"
#include "runtime/plan/Fields.h"

namespace normc::runtime {
namespace {

/// `values` times `factor`, in the type of a field.
template <typename T>
std::vector<char> scaled(const float* values, int64_t count, double factor) {
  std::vector<char> result(count * sizeof(T));
  for (int64_t i = 0; i < count; ++i)
    reinterpret_cast<T*>(result.data())[i] = static_cast<T>(factor * values[i]);
  return result;
}

}  // namespace

normc_status State::create(const Plan& plan, int64_t features, std::unique_ptr<State>& state) {
  const normc_sizes asked = {sizeof asked, 1, 0, features};
  Sizes sizes;
  NORMC_TRY(plan.sizes(asked, sizes));
  if (plan.kernel().state.empty()) return fail(NORMC_FAILED_PRECONDITION, plan.problem(), " has no state");
  std::unique_ptr<State> made(new State());
  made->norm_ = plan.kernel().parts.norm;
  made->normHash_ = plan.normHash();
  made->fields_ = plan.kernel().state;
  made->sizes_ = sizes;
  made->place_ = plan.place();
  const int64_t bytes = totalBytes(made->fields_, sizes);
  if (bytes == kHuge)
    return fail(NORMC_INVALID_ARGUMENT, "the sizes are too large: no memory holds the state");
  NORMC_TRY(plan.backend().allocate(bytes, made->memory_));
  NORMC_TRY(made->initialize());
  state = std::move(made);
  return NORMC_OK;
}

normc_status State::initialize() {
  std::vector<char> fresh(bytes());
  normc::runtime::initialize(fields_, sizes_, fresh.data());
  return memory_->write(0, fresh.data(), fresh.size());
}

normc_status State::checkFits(const Plan& plan, int64_t features) const {
  const KernelInfo& kernel = plan.kernel();
  if (plan.normHash() != normHash_ || fields_ != kernel.state)
    return fail(NORMC_INVALID_ARGUMENT, "the state is one of ", norm_, " (", signature(fields_),
                "); this plan is for ", kernel.parts.norm, kernel.state.empty() ? ", which has none" : " (",
                signature(kernel.state), kernel.state.empty() ? "" : ")");
  if (features != sizes_.features)
    return fail(NORMC_INVALID_ARGUMENT, "the state has ", sizes_.features, " features; the call has ",
                features);
  if (!plan.place().sameDevice(place_))
    return fail(NORMC_INVALID_ARGUMENT, "the state lies on ", place_.name, "; this plan runs on ",
                plan.place().name, " (normc_state_copy brings it there)");
  if (plan.place().context != place_.context)
    return fail(NORMC_INVALID_ARGUMENT, "the state belongs to another context of ", place_.name,
                " than the plan (normc_state_copy brings it to a state that is made from this plan)");
  return NORMC_OK;
}

normc_status State::checkSame(const State& other) const {
  if (normHash_ != other.normHash_ || fields_ != other.fields_ || sizes_.features != other.sizes_.features)
    return fail(NORMC_INVALID_ARGUMENT, "the states differ: ", norm_, " (", signature(fields_), ") with ",
                sizes_.features, " features, and ", other.norm_, " (", signature(other.fields_), ") with ",
                other.sizes_.features, " features");
  return NORMC_OK;
}

normc_status State::find(const char* name, size_t bytes, size_t& offset) const {
  std::array<int64_t, kMaxFields> offsets;
  layOut(fields_, sizes_, offsets.data());
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!name || fields_[i].name != name) continue;
    const int64_t size = fieldBytes(fields_[i], sizes_);
    if (bytes != static_cast<uint64_t>(size))
      return fail(NORMC_INVALID_ARGUMENT, "the field `", name, "` has ", size, " bytes, not ", bytes);
    offset = offsets[i];
    return NORMC_OK;
  }
  return fail(NORMC_NOT_FOUND, "the state of ", norm_, " has no field `", name,
              "`; it has: ", signature(fields_));
}

normc_status State::get(const char* name, void* data, size_t bytes) const {
  size_t offset;
  NORMC_TRY(find(name, bytes, offset));
  return memory_->read(offset, data, bytes);
}

normc_status State::set(const char* name, const void* data, size_t bytes) {
  size_t offset;
  NORMC_TRY(find(name, bytes, offset));
  return memory_->write(offset, data, bytes);
}

normc_status State::copy(const State& from) {
  NORMC_TRY(checkSame(from));
  if (&from == this) return NORMC_OK;
  if (from.place_.onHost()) return memory_->write(0, from.data(), bytes());
  std::vector<char> onTheWay(bytes());
  NORMC_TRY(from.memory_->read(0, onTheWay.data(), onTheWay.size()));
  return memory_->write(0, onTheWay.data(), onTheWay.size());
}

normc_status State::importPowerNorm(const normc_power_norm_checkpoint& from) {
  if (from.features != sizes_.features)
    return fail(NORMC_INVALID_ARGUMENT, "the checkpoint has ", from.features, " features; the state has ",
                sizes_.features);
  if (!from.running_phi || !from.ema_gz)
    return fail(NORMC_INVALID_ARGUMENT, "the checkpoint's ", from.running_phi ? "ema_gz" : "running_phi",
                " is null");
  if (from.iters < 0)
    return fail(NORMC_INVALID_ARGUMENT, "the checkpoint's iters is ", from.iters, "; it counts steps");
  if (!(from.backward_decay >= 0 && from.backward_decay < 1))
    return fail(NORMC_INVALID_ARGUMENT, "the checkpoint's backward_decay is ", from.backward_decay,
                "; it must be at least 0 and less than 1 (0.9 in the released scripts)");
  for (int64_t f = 0; f < from.features; ++f)
    if (!(from.running_phi[f] >= 0 && from.running_phi[f] <= std::numeric_limits<float>::max()))
      return fail(NORMC_INVALID_ARGUMENT, "the checkpoint's running_phi is ", from.running_phi[f], " at feature ", f,
                  "; a mean of squares is finite and not negative");
  const bool wide = !fields_.empty() && fields_.back().type == DType::F64;
  const size_t vectorBytes = sizes_.features * (wide ? sizeof(double) : sizeof(float));
  size_t step, psi2, nu;
  NORMC_TRY(find("step", sizeof(int64_t), step));
  NORMC_TRY(find("psi2", vectorBytes, psi2));
  NORMC_TRY(find("nu", vectorBytes, nu));
  if (fields_.size() > 3)
    return fail(NORMC_INVALID_ARGUMENT, "a checkpoint of PowerNorm holds step, psi2 and nu; the state of ", norm_,
                " has more: ", signature(fields_));
  const auto scale = wide ? scaled<double> : scaled<float>;
  NORMC_TRY(memory_->write(psi2, scale(from.running_phi, sizes_.features, 1).data(), vectorBytes));
  NORMC_TRY(
      memory_->write(nu, scale(from.ema_gz, sizes_.features, 1 - from.backward_decay).data(), vectorBytes));
  NORMC_TRY(memory_->write(step, &from.iters, sizeof from.iters));
  return NORMC_OK;
}

}  // namespace normc::runtime
