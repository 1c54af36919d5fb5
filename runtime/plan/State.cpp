#include "runtime/plan/State.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include "runtime/core/Error.h"
#include "runtime/plan/Fields.h"

namespace normc::runtime {
namespace {

template <typename T>
void scaleInto(void* memory, const float* values, int64_t count, double factor) {
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(memory)[i] = static_cast<T>(factor * values[i]);
}

}  // namespace

void State::Free::operator()(void* memory) const { std::free(memory); }

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
  const int64_t bytes = totalBytes(made->fields_, sizes);
  if (bytes == kHuge)
    return fail(NORMC_INVALID_ARGUMENT, "the sizes are too large: no memory holds the state");
  made->memory_.reset(std::aligned_alloc(kAlignment, bytes));
  if (!made->memory_) return fail(NORMC_RESOURCE_EXHAUSTED, "no memory for a state of ", bytes, " bytes");
  made->bytes_ = bytes;
  made->initialize();
  state = std::move(made);
  return NORMC_OK;
}

void State::initialize() { normc::runtime::initialize(fields_, sizes_, memory_.get()); }

normc_status State::checkFits(const KernelInfo& kernel, const std::string& normHash, int64_t features) const {
  if (normHash != normHash_ || fields_ != kernel.state)
    return fail(NORMC_INVALID_ARGUMENT, "the state is one of ", norm_, " (", signature(fields_),
                "); this plan is for ", kernel.parts.norm, kernel.state.empty() ? ", which has none" : " (",
                signature(kernel.state), kernel.state.empty() ? "" : ")");
  if (features != sizes_.features)
    return fail(NORMC_INVALID_ARGUMENT, "the state has ", sizes_.features, " features; the call has ",
                features);
  return NORMC_OK;
}

normc_status State::checkSame(const State& other) const {
  if (normHash_ != other.normHash_ || fields_ != other.fields_ || sizes_.features != other.sizes_.features)
    return fail(NORMC_INVALID_ARGUMENT, "the states differ: ", norm_, " (", signature(fields_), ") with ",
                sizes_.features, " features, and ", other.norm_, " (", signature(other.fields_), ") with ",
                other.sizes_.features, " features");
  return NORMC_OK;
}

normc_status State::field(const char* name, size_t bytes, void*& memory) const {
  std::array<int64_t, kMaxFields> offsets;
  layOut(fields_, sizes_, offsets.data());
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!name || fields_[i].name != name) continue;
    const int64_t size = fieldBytes(fields_[i], sizes_);
    if (static_cast<int64_t>(bytes) != size)
      return fail(NORMC_INVALID_ARGUMENT, "the field `", name, "` has ", size, " bytes, not ", bytes);
    memory = static_cast<char*>(memory_.get()) + offsets[i];
    return NORMC_OK;
  }
  return fail(NORMC_NOT_FOUND, "the state of ", norm_, " has no field `", name,
              "`; it has: ", signature(fields_));
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
  const bool wide = !fields_.empty() && fields_.back().type == ElementType::F64;
  const size_t vectorBytes = sizes_.features * (wide ? sizeof(double) : sizeof(float));
  void *step, *psi2, *nu;
  NORMC_TRY(field("step", sizeof(int64_t), step));
  NORMC_TRY(field("psi2", vectorBytes, psi2));
  NORMC_TRY(field("nu", vectorBytes, nu));
  const auto scale = wide ? scaleInto<double> : scaleInto<float>;
  scale(psi2, from.running_phi, sizes_.features, 1);
  scale(nu, from.ema_gz, sizes_.features, 1 - from.backward_decay);
  *static_cast<int64_t*>(step) = from.iters;
  return NORMC_OK;
}

}  // namespace normc::runtime
