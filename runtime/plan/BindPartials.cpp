// The partials of a call: sums that it writes for the caller, or that the caller gives to be added up.
#include <algorithm>

#include "runtime/core/Error.h"
#include "runtime/plan/Fields.h"
#include "runtime/plan/Plan.h"

namespace normc::runtime {
namespace {

normc_status checkAddress(std::string_view name, const void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) % kPacked == 0) return NORMC_OK;
  return fail(NORMC_INVALID_ARGUMENT, name, " is not aligned to 8 bytes");
}

normc_status checkBytes(std::string_view name, uint64_t given, int64_t wanted) {
  if (given == static_cast<uint64_t>(wanted)) return NORMC_OK;
  return fail(NORMC_INVALID_ARGUMENT, name, " has ", given, " bytes; with these sizes it has ", wanted);
}

}  // namespace

// A call without tensors has as many features as its partials. The rows of a request do not matter to it.
normc_status Plan::sizesOfPartials(Call& call) const {
  const ProblemText& parts = request_.parts;
  call.sizes = {parts.segments.value_or(1), parts.rows.value_or(0), parts.features.value_or(0)};
  if (parts.features) return NORMC_OK;
  const normc_args& args = call.args;
  int64_t scalars = 0, vectors = 0;
  for (const Field& field : kernel().partial) ++(field.shape.empty() ? scalars : vectors);
  const auto elements = int64_t(std::min<uint64_t>(args.partials_bytes, kHuge) / kPacked /
                                std::max<uint64_t>(args.partial_count, 1));
  call.sizes.features = vectors ? std::max<int64_t>(elements - scalars, 0) / vectors : 0;
  if (call.sizes.features == 0)
    return fail(NORMC_INVALID_ARGUMENT, "partials has ", args.partials_bytes, " bytes for ",
                args.partial_count, " partials; ", request_.text,
                " takes at least one partial of at least one feature");
  return checkSizes(call.sizes);
}

normc_status Plan::bindPartials(const Kernel& kernel, Call& call) const {
  const normc_args& args = call.args;
  const bool writes = kernel.parts.writesPartial(), adds = kernel.parts.addsPartials();
  const auto refuse = [&](std::string_view name, std::string_view does) {
    return fail(NORMC_INVALID_ARGUMENT, name, " is given, but ", request_.text, " does not ", does,
                "; leave it null");
  };
  if (args.partial && !writes) return refuse("partial", "write one");
  if (args.partials && !adds) return refuse("partials", "add any up");
  if (!writes && !adds) return NORMC_OK;
  std::array<int64_t, kMaxFields> offsets;
  const int64_t bytes = layOut(kernel.partial, call.sizes, offsets.data(), kPacked);
  char* const memory = static_cast<char*>(writes ? args.partial : const_cast<void*>(args.partials));
  const std::string_view name = writes ? "partial" : "partials";
  int64_t all = bytes;
  if (adds) {
    call.partialCount = int64_t(std::min<uint64_t>(args.partial_count, kHuge));
    call.partialStride = bytes / kPacked;
    all = multiply(bytes, call.partialCount);
    if (memory && call.partialCount == 0)
      return fail(NORMC_INVALID_ARGUMENT, "partial_count is 0; it must be 1 or more");
  }
  if (!memory && bytes > 0)
    return fail(NORMC_INVALID_ARGUMENT, name, " is null; ", request_.text,
                writes ? " writes the sums of the call there" : " adds them up");
  NORMC_TRY(checkBytes(name, writes ? args.partial_bytes : args.partials_bytes, all));
  NORMC_TRY(checkAddress(name, memory));
  for (size_t i = 0; i < kernel.partial.size(); ++i) call.partial[i] = memory + offsets[i];
  if (memory) call.regions.add(Region::of(name, memory, all, writes));
  return NORMC_OK;
}

}  // namespace normc::runtime
