// The C API: checks arguments, calls the objects, and converts exceptions (e.g. of an allocation) to a
// status.
#include <memory>

#include "runtime/abi/Isa.h"
#include "runtime/api/Guard.h"
#include "runtime/api/Struct.h"
#include "runtime/core/Context.h"
#include "runtime/core/UncheckedEnum.h"
#include "runtime/package/Package.h"
#include "runtime/plan/Fields.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/State.h"

using namespace normc::runtime;

// A handle shares ownership of what later objects need, so handles may be destroyed in any order.
struct normc_context {
  std::shared_ptr<const Context> object;
};
struct normc_package {
  std::shared_ptr<const Context> context;
  std::shared_ptr<const Package> object;
};
struct normc_plan {
  std::unique_ptr<const Plan> object;
};
struct normc_state {
  std::unique_ptr<State> object;
};

namespace {

using Fields = std::vector<Field>;

int64_t alignmentOf(const Fields Kernel::* fields) {
  return fields == &Kernel::partial ? kPacked : kAlignment;
}

normc_status memoryBytes(const normc_plan* plan, const Fields Kernel::* fields, const normc_sizes* given,
                         size_t* bytes) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", given, "sizes", bytes, "bytes"));
    Sizes sizes;
    NORMC_TRY(plan->object->sizes(*given, sizes));
    const int64_t total = totalBytes(plan->object->kernel().*fields, sizes, alignmentOf(fields));
    if (total == kHuge) return fail(NORMC_INVALID_ARGUMENT, "the sizes are too large: no memory holds them");
    *bytes = total;
    return NORMC_OK;
  });
}

normc_status memoryField(const normc_plan* plan, const Fields Kernel::* fields, const normc_sizes* given,
                         size_t index, int access, normc_field* field) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", given, "sizes", field, "field"));
    Sizes sizes;
    NORMC_TRY(plan->object->sizes(*given, sizes));
    return describeField(plan->object->kernel().*fields, sizes, index, access, field, alignmentOf(fields));
  });
}

normc_status openPackage(normc_context* context, std::unique_ptr<ByteSource> source, std::string label,
                         normc_package** package) {
  std::shared_ptr<const Package> object;
  NORMC_TRY(Package::open(std::move(source), std::move(label), object));
  *package = new normc_package{context->object, std::move(object)};
  return NORMC_OK;
}

normc_status execute(const normc_plan* plan, const normc_args* args, const Part* part) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", args, "args"));
    if (args->struct_size == sizeof(normc_args)) [[likely]]
      return plan->object->execute(*args, part);
    normc_args read;
    NORMC_TRY(readStruct(args, read, "normc_args", offsetof(normc_args, state_in)));
    return plan->object->execute(read, part);
  });
}

}  // namespace

namespace normc::runtime {
const State& stateOf(const normc_state* handle) { return *handle->object; }
}  // namespace normc::runtime

extern "C" {

const char* normc_status_name(normc_status status) {
  switch (uncheckedEnumValue(status)) {
    case NORMC_OK:
      return "OK";
    case NORMC_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case NORMC_NOT_FOUND:
      return "NOT_FOUND";
    case NORMC_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case NORMC_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case NORMC_ABORTED:
      return "ABORTED";
    case NORMC_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case NORMC_INTERNAL:
      return "INTERNAL";
    case NORMC_DATA_LOSS:
      return "DATA_LOSS";
  }
  return "UNKNOWN";
}

const char* normc_last_error(void) { return lastError(); }

const char* normc_version(void) { return NORMC_VERSION_TEXT; }

const char* normc_cpu_isa(void) { return normc::cpuIsa() ? normc::cpuIsa()->name.data() : "none"; }

normc_status normc_context_create(const normc_context_options* options, normc_context** context) {
  return guarded([&] {
    NORMC_TRY(notNull(context, "context"));
    normc_context_options read = {};
    if (options) NORMC_TRY(readStruct(options, read, "normc_context_options", sizeof(size_t)));
    if (read.max_threads < 0)
      return fail(NORMC_INVALID_ARGUMENT, "options.max_threads is ", read.max_threads,
                  "; it must not be negative");
    *context = new normc_context{std::make_shared<const Context>(read)};
    return NORMC_OK;
  });
}

void normc_context_destroy(normc_context* context) { delete context; }

normc_status normc_cuda_device_count(normc_context* context, int32_t* count) {
  return guarded([&] {
    NORMC_TRY(notNull(context, "context", count, "count"));
    std::shared_ptr<const Driver> driver;
    NORMC_TRY(context->object->cuda().driver(driver));
    int devices = 0;
    NORMC_TRY(driver->count(devices));
    *count = devices;
    return NORMC_OK;
  });
}

normc_status normc_cuda_device_info(normc_context* context, int32_t index, normc_cuda_device* device) {
  return guarded([&] {
    NORMC_TRY(notNull(context, "context", device, "device"));
    normc_cuda_device info;
    NORMC_TRY(context->object->cuda().info(index, info));
    return writeStruct(info, device, "normc_cuda_device");
  });
}

normc_status normc_package_open(normc_context* context, const char* path, normc_package** package) {
  return guarded([&] {
    NORMC_TRY(notNull(context, "context", path, "path", package, "package"));
    std::unique_ptr<ByteSource> source;
    NORMC_TRY(ByteSource::open(path, source));
    return openPackage(context, std::move(source), path, package);
  });
}

normc_status normc_package_open_memory(normc_context* context, const void* data, size_t bytes,
                                       normc_package** package) {
  return guarded([&] {
    NORMC_TRY(notNull(context, "context", data, "data", package, "package"));
    return openPackage(context, ByteSource::copy(data, bytes), "the package in memory", package);
  });
}

void normc_package_destroy(normc_package* package) { delete package; }

normc_status normc_package_manifest(const normc_package* package, const char** json) {
  NORMC_TRY(notNull(package, "package", json, "json"));
  *json = package->object->json().c_str();
  return NORMC_OK;
}

normc_status normc_package_verify(const normc_package* package) {
  return guarded([&] {
    NORMC_TRY(notNull(package, "package"));
    for (size_t i = 0; i < package->object->manifest().blobs.size(); ++i)
      NORMC_TRY(package->object->verify(i));
    return NORMC_OK;
  });
}

normc_status normc_plan_create(const normc_package* package, const normc_request* request,
                               normc_plan** plan) {
  return guarded([&] {
    NORMC_TRY(notNull(package, "package", request, "request", plan, "plan"));
    normc_request read;
    NORMC_TRY(readStruct(request, read, "normc_request", offsetof(normc_request, isa_cap)));
    std::unique_ptr<Plan> object;
    NORMC_TRY(Plan::create(package->context, package->object, read, object));
    *plan = new normc_plan{std::move(object)};
    return NORMC_OK;
  });
}

void normc_plan_destroy(normc_plan* plan) { delete plan; }

normc_status normc_plan_describe(const normc_plan* plan, const char** text) {
  NORMC_TRY(notNull(plan, "plan", text, "text"));
  *text = plan->object->description().c_str();
  return NORMC_OK;
}

normc_status normc_plan_number(const normc_plan* plan, const char* name, double* value) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", name, "name", value, "value"));
    return plan->object->number(name, *value);
  });
}

normc_status normc_plan_number_info(const normc_plan* plan, size_t index, normc_number_info* info) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", info, "info"));
    return plan->object->describeNumber(index, info);
  });
}

normc_status normc_plan_tensor_info(const normc_plan* plan, size_t index, normc_tensor_info* info) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", info, "info"));
    return plan->object->describeTensor(index, info);
  });
}

normc_status normc_plan_kernel(const normc_plan* plan, const normc_sizes* given, size_t* index) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", index, "index"));
    Sizes sizes;
    if (given) NORMC_TRY(plan->object->sizes(*given, sizes));
    return plan->object->kernelIndex(given ? &sizes : nullptr, *index);
  });
}

normc_status normc_plan_state_bytes(const normc_plan* plan, const normc_sizes* sizes, size_t* bytes) {
  return memoryBytes(plan, &Kernel::state, sizes, bytes);
}

normc_status normc_plan_state_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                    normc_field* field) {
  return memoryField(plan, &Kernel::state, sizes, index, plan ? plan->object->stateAccess(index) : 0, field);
}

normc_status normc_plan_state_init(const normc_plan* plan, const normc_sizes* given, void* memory,
                                   size_t bytes) {
  size_t wanted;
  NORMC_TRY(memoryBytes(plan, &Kernel::state, given, &wanted));
  if (bytes != wanted)
    return fail(NORMC_INVALID_ARGUMENT, "memory has ", bytes, " bytes; the state has ", wanted);
  if (wanted == 0) return NORMC_OK;
  NORMC_TRY(notNull(memory, "memory"));
  if (reinterpret_cast<uintptr_t>(memory) % 8 != 0)
    return fail(NORMC_INVALID_ARGUMENT, "memory is not aligned to 8 bytes");
  return guarded([&] {
    Sizes sizes;
    NORMC_TRY(plan->object->sizes(*given, sizes));
    std::vector<char> fresh(bytes);
    initialize(plan->object->kernel().state, sizes, fresh.data());
    return plan->object->backend().write(memory, fresh.data(), bytes);
  });
}

normc_status normc_plan_saved_bytes(const normc_plan* plan, const normc_sizes* sizes, size_t* bytes) {
  return memoryBytes(plan, &Kernel::saved, sizes, bytes);
}

normc_status normc_plan_saved_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                    normc_field* field) {
  return memoryField(plan, &Kernel::saved, sizes, index, plan ? plan->object->savedAccess(index) : 0, field);
}

normc_status normc_plan_partial_bytes(const normc_plan* plan, const normc_sizes* sizes, size_t* bytes) {
  return memoryBytes(plan, &Kernel::partial, sizes, bytes);
}

normc_status normc_plan_partial_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                      normc_field* field) {
  return memoryField(plan, &Kernel::partial, sizes, index, plan ? plan->object->partialAccess(index) : 0,
                     field);
}

normc_status normc_plan_workspace_bytes(const normc_plan* plan, const normc_sizes* given, size_t* bytes) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", given, "sizes", bytes, "bytes"));
    Sizes sizes;
    NORMC_TRY(plan->object->sizes(*given, sizes));
    return plan->object->workspaceBytes(sizes, *bytes);
  });
}

normc_status normc_plan_barriers(const normc_plan* plan, const normc_sizes* given, int32_t* count) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", given, "sizes", count, "count"));
    Sizes sizes;
    NORMC_TRY(plan->object->sizes(*given, sizes));
    return plan->object->barriers(sizes, *count);
  });
}

normc_status normc_execute(const normc_plan* plan, const normc_args* args) {
  return execute(plan, args, nullptr);
}

normc_status normc_execute_part(const normc_plan* plan, const normc_args* args, int32_t ith, int32_t nth,
                                normc_barrier barrier, void* ctx) {
  const Part part = {ith, nth, barrier, ctx};
  return execute(plan, args, &part);
}

normc_status normc_state_create(const normc_plan* plan, int64_t features, normc_state** state) {
  return guarded([&] {
    NORMC_TRY(notNull(plan, "plan", state, "state"));
    std::unique_ptr<State> object;
    NORMC_TRY(State::create(*plan->object, features, object));
    *state = new normc_state{std::move(object)};
    return NORMC_OK;
  });
}

void normc_state_destroy(normc_state* state) { delete state; }

normc_status normc_state_init(normc_state* state) {
  return guarded([&] {
    NORMC_TRY(notNull(state, "state"));
    return state->object->initialize();
  });
}

normc_status normc_state_data(normc_state* state, void** data, size_t* bytes) {
  NORMC_TRY(notNull(state, "state", data, "data", bytes, "bytes"));
  *data = state->object->data();
  *bytes = state->object->bytes();
  return NORMC_OK;
}

normc_status normc_state_field(const normc_state* state, size_t index, normc_field* field) {
  return guarded([&] {
    NORMC_TRY(notNull(state, "state", field, "field"));
    return describeField(state->object->fields(), state->object->sizes(), index, 0, field);
  });
}

normc_status normc_state_get(const normc_state* state, const char* field, void* data, size_t bytes) {
  return guarded([&] {
    NORMC_TRY(notNull(state, "state", field, "field", data, "data"));
    return state->object->get(field, data, bytes);
  });
}

normc_status normc_state_set(normc_state* state, const char* field, const void* data, size_t bytes) {
  return guarded([&] {
    NORMC_TRY(notNull(state, "state", field, "field", data, "data"));
    return state->object->set(field, data, bytes);
  });
}

normc_status normc_state_copy(normc_state* to, const normc_state* from) {
  return guarded([&] {
    NORMC_TRY(notNull(to, "to", from, "from"));
    return to->object->copy(*from->object);
  });
}

}  // extern "C"
