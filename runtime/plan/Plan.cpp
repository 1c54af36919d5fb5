#include "runtime/plan/Plan.h"

#include <algorithm>
#include <charconv>

#include "runtime/api/Struct.h"
#include "runtime/core/UncheckedEnum.h"
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

normc_status checkRequest(const normc_request& request) {
  if (!request.problem)
    return fail(NORMC_INVALID_ARGUMENT, "request.problem is null; it names what to compute");
  const int denormals = uncheckedEnumValue(request.denormals);
  if (denormals != NORMC_DENORMALS_FLUSH && denormals != NORMC_DENORMALS_KEEP)
    return fail(NORMC_INVALID_ARGUMENT, "request.denormals is ", denormals,
                "; it must be 0 (flush) or 1 (keep)");
  if (request.max_threads < 0)
    return fail(NORMC_INVALID_ARGUMENT, "request.max_threads is ", request.max_threads,
                "; it must not be negative");
  if (request.steady != 0 && request.steady != 1)
    return fail(NORMC_INVALID_ARGUMENT, "request.steady is ", request.steady, "; it must be 0 or 1");
  if (request.output_reuse < NORMC_OUTPUT_REUSE_UNKNOWN || request.output_reuse > NORMC_OUTPUT_REUSE_LATE)
    return fail(NORMC_INVALID_ARGUMENT, "request.output_reuse is ", request.output_reuse,
                "; it must be 0 (unknown), 1 (soon) or 2 (late)");
  if (request.one_kernel != 0 && request.one_kernel != 1)
    return fail(NORMC_INVALID_ARGUMENT, "request.one_kernel is ", request.one_kernel, "; it must be 0 or 1");
  if (request.reserved != 0)
    return fail(NORMC_INVALID_ARGUMENT, "request.reserved is ", request.reserved, "; it must be 0");
  return NORMC_OK;
}

}  // namespace

normc_status Plan::create(std::shared_ptr<const Context> context, std::shared_ptr<const Package> package,
                          const normc_request& request, std::unique_ptr<Plan>& plan) {
  NORMC_TRY(checkRequest(request));
  std::unique_ptr<const Platform> platform;
  NORMC_TRY(platformOf(*context, request, platform));
  std::string why;
  std::optional<ProblemText> parts = parseProblemText(request.problem, &why);
  if (!parts) return fail(NORMC_INVALID_ARGUMENT, why);
  ProblemRequest wanted{request.problem, *std::move(parts)};
  Selection selection;
  NORMC_TRY(Selection::make(package->manifest(), wanted, *platform, selection));
  std::unique_ptr<Plan> made(new Plan());
  made->context_ = std::move(context);
  made->package_ = std::move(package);
  made->request_ = std::move(wanted);
  made->place_ = platform->place();
  NORMC_TRY(made->bind(*platform, selection, request));
  NORMC_TRY(made->bindNarrower(*platform, selection, request));
  made->description_ = made->describe(selection);
  plan = std::move(made);
  return NORMC_OK;
}

normc_status Plan::bind(const Platform& platform, Selection& selection, const normc_request& request) {
  std::unique_ptr<const BoundKernel> kernel;
  for (;;) {
    const normc_status status =
        BoundKernel::create(platform, *context_, *package_, selection.kernel(), request, nullptr, kernel);
    if (status == NORMC_OK) break;
    if (status != kUnfit) return status;
    if (selection.refuse(lastError())) continue;
    if (selection.count() == 1) return NORMC_FAILED_PRECONDITION;
    std::string lines = selection.refused();
    lines.pop_back();
    return fail(NORMC_FAILED_PRECONDITION, "no kernel of the package that serves ", request_.text,
                " can be loaded here:\n", lines);
  }
  kernels_.push_back(std::move(kernel));
  return NORMC_OK;
}

normc_status Plan::bindNarrower(const Platform& platform, Selection& selection,
                                const normc_request& request) {
  for (const size_t index : selection.narrower()) {
    if (request.one_kernel) {
      selection.leaveOut(index, "the request asks for one kernel");
      continue;
    }
    std::unique_ptr<const BoundKernel> kernel;
    const normc_status status =
        BoundKernel::create(platform, *context_, *package_, index, request, kernels_.back().get(), kernel);
    if (status == kUnfit) {
      selection.leaveOut(index, lastError());
    } else if (status != NORMC_OK) {
      return status;
    } else if (!kernel->takesTensorsOf(*kernels_.back())) {
      selection.leaveOut(index, "takes other tensors than kernel " + std::to_string(selection.kernel()));
    } else {
      kernels_.insert(kernels_.end() - 1, std::move(kernel));
    }
  }
  return NORMC_OK;
}

std::string Plan::describe(const Selection& selection) const {
  const BoundKernel& general = *kernels_.back();
  const Kernel& info = general.info();
  std::string result = request_.text + "\n";
  result += "kernel: " + std::to_string(general.index()) + " of " + package_->label() + ": " + info.problem +
            ", " + info.target() + ", by " + info.generator + "\n";
  result += "schedule: " + info.schedule + " (" + info.origin + ")\n";
  result += "chosen because: " + selection.reason() + "\n";
  if (!request_.parts.features && info.featuresMultiple > 1)
    result += "features: multiples of " + std::to_string(info.featuresMultiple) + "\n";
  for (size_t i = 0; i + 1 < kernels_.size(); ++i) {
    const Kernel& narrower = kernels_[i]->info();
    result += "but for " + limitsText(narrower) + ": kernel " + std::to_string(kernels_[i]->index()) + ", " +
              narrower.target() + ", by " + narrower.generator + ", " + narrower.schedule + " (" +
              narrower.origin + ")\n";
  }
  result += general.backend().describe();
  for (size_t i = 0; i < info.scalars.size(); ++i) {
    const Scalar& scalar = info.scalars[i];
    const double value = general.scalars()[i];
    result += "number: " + scalar.name + " = " + text(value);
    if (value != scalar.value) result += " (default " + text(scalar.value) + ")";
    result += "\n";
  }
  if (const std::string rejected = selection.rejected(); !rejected.empty())
    result += "rejected:\n" + rejected;
  return result;
}

normc_status Plan::checkGroups(int64_t features) const {
  if (kernel().divides(features)) return NORMC_OK;
  return fail(NORMC_INVALID_ARGUMENT, features, " features are no multiple of ", kernel().featuresMultiple,
              ", which the groups, pairs or blocks of ", request_.text, " need");
}

normc_status Plan::checkSizes(const Sizes& sizes) const {
  const auto mismatch = [&](std::string_view what, int64_t has, int64_t wants) {
    return fail(NORMC_FAILED_PRECONDITION, "the call has ", has, " ", what, "; this plan (", request_.text,
                ") is for ", wants);
  };
  if (request_.parts.features && sizes.features != *request_.parts.features)
    return mismatch("features", sizes.features, *request_.parts.features);
  if (request_.parts.rows && sizes.rows != *request_.parts.rows)
    return mismatch("rows", sizes.rows, *request_.parts.rows);
  if (request_.parts.segments && sizes.segments != *request_.parts.segments)
    return mismatch("segments", sizes.segments, *request_.parts.segments);
  return checkGroups(sizes.features);
}

const BoundKernel& Plan::kernelFor(const Sizes& sizes) const {
  for (size_t i = 0; i + 1 < kernels_.size(); ++i)
    if (kernels_[i]->info().serves(sizes)) return *kernels_[i];
  return *kernels_.back();
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
  return checkGroups(sizes.features);
}

normc_status Plan::kernelIndex(const Sizes* sizes, size_t& index) const {
  if (sizes) NORMC_TRY(checkSizes(*sizes));
  index = (sizes ? kernelFor(*sizes) : *kernels_.back()).index();
  return NORMC_OK;
}

normc_status Plan::workspaceBytes(const Sizes& sizes, size_t& bytes) const {
  NORMC_TRY(checkSizes(sizes));
  int64_t enough = 0;
  for (const auto& kernel : kernels_) enough = std::max(enough, enoughWorkspace(kernel->info(), sizes));
  if (enough == kHuge) return fail(NORMC_INVALID_ARGUMENT, "the sizes are too large: no memory holds them");
  bytes = enough;
  return NORMC_OK;
}

}  // namespace normc::runtime
