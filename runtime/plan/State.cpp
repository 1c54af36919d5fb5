#include "runtime/plan/State.h"

#include <array>

#include "runtime/core/Error.h"
#include "runtime/plan/Fields.h"

namespace normc::runtime {
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
  const Kernel& kernel = plan.kernel();
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
    if (fields_[i].name != name) continue;
    const int64_t size = fieldBytes(fields_[i], sizes_);
    if (bytes != static_cast<uint64_t>(size))
      return fail(NORMC_INVALID_ARGUMENT, "the field '", name, "' has ", size, " bytes, not ", bytes);
    offset = offsets[i];
    return NORMC_OK;
  }
  return fail(NORMC_NOT_FOUND, "the state of ", norm_, " has no field '", name,
              "'; it has: ", signature(fields_));
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

}  // namespace normc::runtime
