#include "runtime/plan/Plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/api/Struct.h"
#include "runtime/core/RawEnum.h"
#include "runtime/plan/Fields.h"
#include "runtime/plan/Select.h"
#include "runtime/plan/Workspace.h"

namespace normc::runtime {
namespace {

std::string text(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  return {digits, end.ptr};
}

/// The scalar from which on a CPU kernel's outputs go past the caches, and a value that no tensor reaches.
constexpr const char* kStreamNumber = "stream_bytes";
constexpr double kNeverBytes = double(int64_t(1) << 62);

normc_status checkRequest(const normc_request& request) {
  if (!request.problem)
    return fail(NORMC_INVALID_ARGUMENT, "request.problem is null; it names what to compute");
  const int denormals = rawEnum(request.denormals);
  if (denormals != NORMC_DENORMALS_FLUSH && denormals != NORMC_DENORMALS_KEEP)
    return fail(NORMC_INVALID_ARGUMENT, "request.denormals is ", denormals, "; it must be 0 (flush) or 1 (keep)");
  if (request.max_threads < 0)
    return fail(NORMC_INVALID_ARGUMENT, "request.max_threads is ", request.max_threads,
                "; it must not be negative");
  if (request.steady != 0 && request.steady != 1)
    return fail(NORMC_INVALID_ARGUMENT, "request.steady is ", request.steady, "; it must be 0 or 1");
  if (request.output_reuse < NORMC_OUTPUT_REUSE_UNKNOWN || request.output_reuse > NORMC_OUTPUT_REUSE_LATE)
    return fail(NORMC_INVALID_ARGUMENT, "request.output_reuse is ", request.output_reuse,
                "; it must be 0 (unknown), 1 (soon) or 2 (late)");
  return NORMC_OK;
}

/// The rules of the language that the manifest hands on.
normc_status checkRange(const Scalar& scalar, double value) {
  const auto refuse = [&](const char* rule, auto... limit) {
    return fail(NORMC_INVALID_ARGUMENT, "the number `", scalar.name, "` is ", value, "; it must be ", rule, limit...);
  };
  if (!(value >= scalar.least)) return refuse("at least ", scalar.least);
  if (!(value > scalar.above)) return refuse("above ", scalar.above);
  if (!(value < scalar.below)) return refuse("below ", scalar.below);
  if (scalar.whole && value != std::floor(value)) return refuse("a whole number");
  return NORMC_OK;
}

}  // namespace

normc_status Plan::create(std::shared_ptr<const Context> context, std::shared_ptr<const Package> package,
                          const normc_request& request, std::unique_ptr<Plan>& plan) {
  NORMC_TRY(checkRequest(request));
  std::unique_ptr<const Platform> platform;
  NORMC_TRY(platformOf(*context, request, platform));
  ProblemRequest wanted;
  NORMC_TRY(parseProblemText(request.problem, wanted));
  Selection selection;
  NORMC_TRY(Selection::make(package->manifest(), wanted, *platform, selection));
  for (;;) {
    std::unique_ptr<Plan> made(new Plan());
    made->context_ = context;
    made->package_ = package;
    made->request_ = wanted;
    const normc_status status = made->bind(*platform, selection.kernel(), request);
    if (status == NORMC_OK) {
      made->description_ = made->describe(selection);
      plan = std::move(made);
      return NORMC_OK;
    }
    // What this device, or its driver, does not take; anything else is final.
    if (status != NORMC_FAILED_PRECONDITION) return status;
    if (selection.refuse(lastError())) continue;
    if (selection.count() == 1) return status;
    std::string lines = selection.refused();
    lines.pop_back();
    return fail(status, "no kernel of the package that serves ", wanted.text, " can be loaded here:\n", lines);
  }
}

normc_status Plan::bind(const Platform& platform, size_t kernel, const normc_request& request) {
  place_ = platform.place();
  kernelIndex_ = kernel;
  kernel_ = &package_->manifest().kernels[kernel];
  NORMC_TRY(bindNumbers(request));
  noteOperands();
  std::unique_ptr<Backend> backend;
  NORMC_TRY(platform.bind({*context_, *package_, *kernel_, scalars_, request}, backend));
  backend_ = std::move(backend);
  return NORMC_OK;
}

normc_status Plan::bindNumbers(const normc_request& request) {
  for (const Scalar& scalar : kernel_->scalars) scalars_.push_back(scalar.value);
  if (const int stream = indexOf(kernel_->scalars, kStreamNumber); stream >= 0) {
    if (request.output_reuse == NORMC_OUTPUT_REUSE_SOON) scalars_[stream] = kNeverBytes;
    if (request.output_reuse == NORMC_OUTPUT_REUSE_LATE) scalars_[stream] = 0;
  }
  if (request.number_count > 0 && !request.numbers)
    return fail(NORMC_INVALID_ARGUMENT, "request.numbers is null but number_count is ", request.number_count);
  for (size_t i = 0; i < request.number_count; ++i) {
    const normc_number& number = request.numbers[i];
    const int index = number.name ? indexOf(kernel_->scalars, number.name) : -1;
    if (index < 0) {
      std::string names;
      for (const Scalar& scalar : kernel_->scalars) names += (names.empty() ? "" : ", ") + scalar.name;
      return fail(NORMC_NOT_FOUND, kernel_->problem, " has no number `", number.name,
                  "`; it has: ", names.empty() ? std::string("none") : names);
    }
    if (number.value != number.value)
      return fail(NORMC_INVALID_ARGUMENT, "the number `", number.name, "` must not be NaN");
    NORMC_TRY(checkRange(kernel_->scalars[index], number.value));
    scalars_[index] = number.value;
  }
  return NORMC_OK;
}

void Plan::noteOperands() {
  operandOf_.fill(kUnused);
  std::vector<bool> written(kernel_->state.size());
  for (size_t i = 0; i < kernel_->operands.size(); ++i) {
    const Operand& operand = kernel_->operands[i];
    switch (operand.role) {
      case Role::Tensor:
        operandOf_[operand.tensor] = static_cast<int>(i);
        break;
      case Role::StateIn:
        readsState_ = true;
        break;
      case Role::StateOut:
        written[operand.field] = true;
        break;
      case Role::Saved:
        (operand.written ? writesSaved_ : readsSaved_) = true;
        break;
      case Role::Workspace:
        break;
    }
  }
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i]) copiedFields_.push_back(i);
}

std::string Plan::describe(const Selection& selection) const {
  std::string result = request_.text + "\n";
  result += "kernel: " + std::to_string(kernelIndex_) + " of " + package_->label() + ": " + kernel_->problem +
            ", " + kernel_->isa + ", by " + kernel_->generator + "\n";
  result += "schedule: " + kernel_->schedule + " (" + kernel_->origin + ")\n";
  result += "chosen because: " + selection.reason() + "\n";
  result += backend_->describe();
  for (size_t i = 0; i < scalars_.size(); ++i) {
    const Scalar& scalar = kernel_->scalars[i];
    result += "number: " + scalar.name + " = " + text(scalars_[i]);
    if (scalars_[i] != scalar.value) result += " (default " + text(scalar.value) + ")";
    result += "\n";
  }
  if (const std::string rejected = selection.rejected(); !rejected.empty()) result += "rejected:\n" + rejected;
  return result;
}

normc_status Plan::checkSizes(const Sizes& sizes) const {
  const auto mismatch = [&](std::string_view what, int64_t has, int64_t wants) {
    return fail(NORMC_FAILED_PRECONDITION, "the call has ", has, " ", what, "; this plan (", request_.text,
                ") is for ", wants);
  };
  if (request_.parts.features && sizes.features != *request_.parts.features)
    return mismatch("features", sizes.features, *request_.parts.features);
  if (request_.rows && sizes.rows != *request_.rows) return mismatch("rows", sizes.rows, *request_.rows);
  if (request_.segments && sizes.segments != *request_.segments)
    return mismatch("segments", sizes.segments, *request_.segments);
  return NORMC_OK;  // limits of the kernel hold for numbers that are fixed, or it would not have been selected
}

normc_status Plan::sizes(const normc_sizes& given, Sizes& sizes) const {
  normc_sizes read;
  NORMC_TRY(readStruct(&given, read, "normc_sizes", sizeof(normc_sizes)));
  if (read.segments < 0 || read.rows < 0 || read.features < 0)
    return fail(NORMC_INVALID_ARGUMENT, "sizes must not be negative: segments ", read.segments, ", rows ",
                read.rows, ", features ", read.features);
  if (read.features == 0 && !request_.parts.features)
    return fail(NORMC_INVALID_ARGUMENT, "sizes.features is 0 and ", request_.text,
                " leaves the features open");
  if (request_.parts.features && read.features && read.features != *request_.parts.features)
    return fail(NORMC_FAILED_PRECONDITION, "sizes.features is ", read.features, "; ", request_.text, " has ",
                *request_.parts.features);
  sizes = {request_.parts.segmented ? read.segments : 1, read.rows,
           read.features ? read.features : *request_.parts.features};
  return NORMC_OK;
}

normc_status Plan::workspaceBytes(const Sizes& sizes, size_t& bytes) const {
  NORMC_TRY(checkSizes(sizes));
  std::array<normc_cut, kMaxPhases> cuts;
  std::array<Scratch, kMaxOperands> scratch;
  int64_t used = kHuge;
  if (computeCuts(*kernel_, sizes, cuts.data()))
    used = layOutWorkspace(*kernel_, sizes, cuts.data(), LeftOut::everything(), scratch.data());
  if (used >= kHuge - kPage)
    return fail(NORMC_INVALID_ARGUMENT, "the sizes are too large: no memory holds them");
  bytes = used == 0 ? 0 : used + spareBytes(*kernel_, used);
  return NORMC_OK;
}

}  // namespace normc::runtime
