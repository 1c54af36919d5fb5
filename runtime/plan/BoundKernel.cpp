#include "runtime/plan/BoundKernel.h"

#include <cfloat>
#include <cmath>

#include "runtime/core/Error.h"

namespace normc::runtime {
namespace {

/// Checks a value against the rules of the language, which the manifest holds.
normc_status checkRange(const Scalar& scalar, double value) {
  const auto refuse = [&](const char* rule, auto... limit) {
    return fail(NORMC_INVALID_ARGUMENT, "the number '", scalar.name, "' is ", value, "; it must be ", rule,
                limit...);
  };
  if (!(value >= scalar.legal.least)) return refuse("at least ", scalar.legal.least);
  if (!(value > scalar.legal.above)) return refuse("above ", scalar.legal.above);
  if (!(value < scalar.legal.below)) return refuse("below ", scalar.legal.below);
  if (scalar.legal.whole && value != std::floor(value)) return refuse("a whole number");
  if (scalar.legal.whole && value > kLargestWhole) return refuse("a whole number of at most 2^53");
  return NORMC_OK;
}

}  // namespace

normc_status BoundKernel::create(const Platform& platform, const Context& context, const Package& package,
                                 size_t index, const normc_request& request, const BoundKernel* general,
                                 std::unique_ptr<const BoundKernel>& kernel) {
  std::unique_ptr<BoundKernel> made(new BoundKernel(package.manifest().kernels[index], index));
  NORMC_TRY(made->bindNumbers(request, general));
  made->noteOperands();
  std::unique_ptr<Backend> backend;
  NORMC_TRY(platform.bind({context, package, made->info_, made->scalars_, request}, backend));
  made->backend_ = std::move(backend);
  kernel = std::move(made);
  return NORMC_OK;
}

normc_status BoundKernel::number(const char* name, double& value) const {
  const int index = indexOf(info_.scalars, name);
  if (index < 0) return refuseNumber(name);
  value = scalars_[index];
  return NORMC_OK;
}

normc_status BoundKernel::refuseNumber(const char* name) const {
  std::string names;
  for (const Scalar& scalar : info_.scalars) names += (names.empty() ? "" : ", ") + scalar.name;
  return fail(NORMC_NOT_FOUND, info_.problem, " has no number '", name,
              "'; it has: ", names.empty() ? std::string("none") : names);
}

normc_status BoundKernel::bindNumbers(const normc_request& request, const BoundKernel* general) {
  for (const Scalar& scalar : info_.scalars) scalars_.push_back(scalar.value);
  if (const int stream = indexOf(info_.scalars, kStreamNumber); stream >= 0) {
    if (request.output_reuse == NORMC_OUTPUT_REUSE_SOON) scalars_[stream] = kNeverBytes;
    if (request.output_reuse == NORMC_OUTPUT_REUSE_LATE) scalars_[stream] = 0;
  }
  if (request.number_count > 0 && !request.numbers)
    return fail(NORMC_INVALID_ARGUMENT, "request.numbers is null but number_count is ", request.number_count);
  for (size_t i = 0; i < request.number_count; ++i) {
    const normc_number& number = request.numbers[i];
    for (size_t j = 0; j < i && number.name; ++j)
      if (request.numbers[j].name && std::string_view(request.numbers[j].name) == number.name)
        return fail(NORMC_INVALID_ARGUMENT, "the number '", number.name, "' is given twice");
    const int index = number.name ? indexOf(info_.scalars, number.name) : -1;
    if (index < 0 && number.name && general && indexOf(general->info_.scalars, number.name) >= 0) continue;
    if (index < 0) return refuseNumber(number.name);
    if (std::isnan(number.value))
      return fail(NORMC_INVALID_ARGUMENT, "the number '", number.name, "' must not be NaN");
    NORMC_TRY(checkRange(info_.scalars[index], number.value));
    if (const double size = std::abs(number.value);
        size != 0 && !(size >= FLT_MIN && size <= FLT_MAX) && info_.parts.data != DType::F64) {
      const bool mayBeZero = checkRange(info_.scalars[index], 0) == NORMC_OK;
      return fail(NORMC_INVALID_ARGUMENT, "the number '", number.name, "' is ", number.value,
                  "; statistics are f32, so it must be ", mayBeZero ? "0 or " : "", "from 1.2e-38 to 3.4e38");
    }
    scalars_[index] = number.value;
  }
  return NORMC_OK;
}

void BoundKernel::noteOperands() {
  operandOf_.fill(kUnused);
  for (const std::string& name : *info_.ignored) ignores_[*tensorNamed(name)] = true;
  for (const auto& [of, other] : info_.same) same_[*tensorNamed(of)] = tensorNamed(other);
  stateAccess_.resize(info_.state.size());
  savedAccess_.resize(info_.saved.size());
  for (size_t i = 0; i < info_.operands.size(); ++i) {
    const Operand& operand = info_.operands[i];
    switch (operand.role) {
      case Role::Tensor:
        operandOf_[operand.tensor] = static_cast<int>(i);
        break;
      case Role::StateIn:
        readsState_ = true;
        stateAccess_[operand.field] |= NORMC_FIELD_READ;
        break;
      case Role::StateOut:
        stateAccess_[operand.field] |= NORMC_FIELD_WRITTEN;
        break;
      case Role::Saved:
        readsSaved_ |= !operand.written();
        savedAccess_[operand.field] |= operand.written() ? NORMC_FIELD_WRITTEN : NORMC_FIELD_READ;
        break;
      case Role::Workspace:
      case Role::Partial:
      case Role::Partials:
        break;
    }
  }
  for (size_t i = 0; i < stateAccess_.size(); ++i)
    if (!(stateAccess_[i] & NORMC_FIELD_WRITTEN)) copiedFields_.push_back(i);
  // A back end reads the step to leave out the phases of warmup.
  const bool fromSaved = info_.parts.readsSaved();
  const int step = indexOf(fromSaved ? info_.saved : info_.state, "step");
  for (const Phase& phase : info_.phases)
    if (step >= 0 && phase.when == When::Warmup)
      (fromSaved ? savedAccess_ : stateAccess_)[step] |= NORMC_FIELD_READ;
}

bool BoundKernel::takesTensorsOf(const BoundKernel& other) const {
  for (int i = 0; i < kTensorCount; ++i) {
    if ((operandOf_[i] == kUnused) != (other.operandOf_[i] == kUnused)) return false;
    if (operandOf_[i] == kUnused) continue;
    const Operand &ours = info_.operands[operandOf_[i]], &theirs = other.info_.operands[other.operandOf_[i]];
    if (ours.type != theirs.type || ours.written() != theirs.written() ||
        ours.tensorShape != theirs.tensorShape)
      return false;
  }
  return true;
}

}  // namespace normc::runtime
