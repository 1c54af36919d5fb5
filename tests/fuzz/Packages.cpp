// Packages: a manifest behind a right header and hash, or any other bytes. A package is refused as a whole,
// or every question about its kernels has an answer that a host can use. No kernel is executed: machine code
// is as its author made it.
//
// In a manifest, "@hash@", @offset@ and @bytes@ stand for the object of the runtime's tests, which lies
// behind it.
#include <cstring>

#include "runtime/abi/PackageHeader.h"
#include "runtime/normc.hpp"
#include "runtime/package/ManifestJson.h"
#include "runtime/package/Sha256.h"
#include "tests/fuzz/Target.h"
#include "tests/runtime/TestPackage.h"

namespace normc::fuzz {
namespace {

constexpr size_t kLeastObjectOffset = 1 << 14;

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string packageOf(std::string_view manifest) {
  static const std::string object = test::kernelObject(), hash = runtime::sha256(object);
  const size_t offset = std::max(kLeastObjectOffset, (manifest.size() + 255) / 64 * 64);
  std::string text = replaced(std::string(manifest), "@hash@", hash);
  text = replaced(text, "@offset@", std::to_string(offset));
  text = replaced(text, "@bytes@", std::to_string(object.size()));
  package::Header header;
  std::memcpy(header.magic, package::kMagic, sizeof header.magic);
  header.manifestBytes = text.size(), header.manifestHash = runtime::digestOf(text);
  std::string bytes(sizeof header, '\0');
  bytes += text;
  if (bytes.size() <= offset) bytes.resize(offset), bytes += object;
  header.fileBytes = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

normc_context* context() {
  static const host::Context context = [] {
    normc_context_options options = {};
    options.max_threads = 1;
    return host::Context(options);
  }();
  return context.get();
}

/// True if the status is NORMC_OK; a refusal has to have a reason.
bool accepted(normc_status status) {
  if (status == NORMC_OK) return true;
  require(*normc_last_error() != 0, "a refusal has a reason");
  return false;
}

using FieldQuery = normc_status (*)(const normc_plan*, const normc_sizes*, size_t, normc_field*);
using BytesQuery = normc_status (*)(const normc_plan*, const normc_sizes*, size_t*);

/// Checks that fields lie inside their buffer, one behind another.
void checkFields(const normc_plan* plan, const normc_sizes& sizes, BytesQuery bytesOf, FieldQuery fieldOf) {
  size_t bytes = 0, end = 0;
  if (!accepted(bytesOf(plan, &sizes, &bytes))) return;
  normc_field field = {};
  field.struct_size = sizeof field;
  for (size_t i = 0; i <= NORMC_MAX_FIELDS; ++i) {
    const normc_status status = fieldOf(plan, &sizes, i, &field);
    if (!accepted(status)) {
      require(status == NORMC_OUT_OF_RANGE, "fields end with their number");
      require(end <= bytes, "fields lie inside their buffer");
      return;
    }
    require(field.name && field.ndim >= 0 && field.ndim <= NORMC_MAX_FIELD_DIMS,
            "a field has name and shape");
    require(field.offset >= end && field.offset % 8 == 0, "a field lies behind the one before");
    uint64_t elements = 1;
    for (int i = 0; i < field.ndim; ++i) elements *= uint64_t(field.shape[i]);
    require(field.bytes == elements * field.dtype.bits / 8, "the bytes of a field are those of its elements");
    require(field.bytes <= bytes - field.offset, "a field lies inside its buffer");
    end = field.offset + field.bytes;
  }
  require(false, "fields end");
}

/// Checks that a state object gives and takes each field, and nothing of another size.
void checkState(normc_state* state, size_t bytes) {
  void* data = nullptr;
  size_t same = 0;
  require(normc_state_data(state, &data, &same) == NORMC_OK && same == bytes,
          "a state has the bytes that its plan says");
  normc_field field = {};
  field.struct_size = sizeof field;
  for (size_t i = 0; normc_state_field(state, i, &field) == NORMC_OK; ++i) {
    std::string value(field.bytes, '\0'), back(field.bytes, '\1');
    require(normc_state_get(state, field.name, value.data(), value.size()) == NORMC_OK, "a field is read");
    require(normc_state_set(state, field.name, value.data(), value.size()) == NORMC_OK, "a field is written");
    require(normc_state_get(state, field.name, back.data(), back.size()) == NORMC_OK && back == value,
            "a field is read as it was written");
    require(!accepted(normc_state_set(state, field.name, value.data(), value.size() + 1)),
            "a field of another size is refused");
  }
  require(normc_state_get(state, "?", data, 4) == NORMC_NOT_FOUND, "a state has only its fields");
  require(normc_state_copy(state, state) == NORMC_OK && normc_state_init(state) == NORMC_OK,
          "a state is copied and begins again");
}

/// Checks that the numbers of a plan are taken inside their range alone.
void checkNumbers(const normc_package* package, const std::string& problem, const normc_plan* plan) {
  normc_number_info info = {};
  info.struct_size = sizeof info;
  for (size_t i = 0; i < 4 && normc_plan_number_info(plan, i, &info) == NORMC_OK; ++i) {
    const double below = std::min(info.least, info.above) - 1;
    for (const double value : {info.value, below}) {
      const normc_number number = {info.name, value};
      normc_request request = {};
      request.struct_size = sizeof request, request.problem = problem.c_str();
      request.numbers = &number, request.number_count = 1;
      normc_plan* other = nullptr;
      const bool legal = accepted(normc_plan_create(package, &request, &other));
      require(!legal || value >= info.least, "a number below its range is refused");
      normc_plan_destroy(other);
    }
  }
}

void checkPlan(const normc_plan* plan, const package::Kernel& kernel) {
  const char* text = nullptr;
  require(normc_plan_describe(plan, &text) == NORMC_OK && text && *text, "a plan has a description");
  normc_number_info number = {};
  number.struct_size = sizeof number;
  size_t i = 0;
  for (; i < 1000 && accepted(normc_plan_number_info(plan, i, &number)); ++i) {
    double value = 0;
    require(number.name && normc_plan_number(plan, number.name, &value) == NORMC_OK, "a number has a value");
  }
  require(i < 1000, "numbers end");
  normc_tensor_info tensor = {};
  tensor.struct_size = sizeof tensor;
  for (i = 0; i < 1000 && accepted(normc_plan_tensor_info(plan, i, &tensor)); ++i)
    require(tensor.name && tensor.use >= 0 && tensor.dtype.lanes == 1, "a tensor has name, use and type");
  require(i < 1000, "tensors end");
  const int64_t features = kernel.parts.features.value_or(kernel.featuresMultiple);
  for (const normc_sizes& sizes :
       {normc_sizes{sizeof(normc_sizes), 2, 5, features}, normc_sizes{sizeof(normc_sizes), 1, 0, 0},
        normc_sizes{sizeof(normc_sizes), int64_t(1) << 40, int64_t(1) << 40, features},
        normc_sizes{sizeof(normc_sizes), -1, INT64_MIN, INT64_MAX}}) {
    checkFields(plan, sizes, normc_plan_state_bytes, normc_plan_state_field);
    checkFields(plan, sizes, normc_plan_saved_bytes, normc_plan_saved_field);
    checkFields(plan, sizes, normc_plan_partial_bytes, normc_plan_partial_field);
    size_t bytes = 0, index = 0;
    int32_t barriers = 0;
    accepted(normc_plan_workspace_bytes(plan, &sizes, &bytes));
    accepted(normc_plan_kernel(plan, &sizes, &index));
    if (accepted(normc_plan_barriers(plan, &sizes, &barriers)))
      require(barriers >= 0 && barriers < int32_t(package::kMaxPhases), "a phase has a barrier at most");
    if (normc_plan_state_bytes(plan, &sizes, &bytes) == NORMC_OK && bytes > 0 && bytes < 1 << 16) {
      std::string memory(bytes, '\x55');
      accepted(normc_plan_state_init(plan, &sizes, memory.data(), bytes));
      normc_state* state = nullptr;
      if (accepted(normc_state_create(plan, sizes.features, &state))) {
        checkState(state, bytes);
        normc_state_destroy(state);
      } else {
        require(state == nullptr, "a refused call gives nothing");
      }
    }
  }
}

/// Checks what a program that shows packages reads, beyond what the runtime does.
void checkForPeople(std::string_view json) {
  package::Manifest whole;
  try {
    whole = package::wholeManifest(json);
  } catch (const std::runtime_error& error) {
    require(*error.what() != 0, "a refusal has a reason");
    return;
  }
  const std::string written = package::writeManifest(whole);
  require(package::writeManifest(package::wholeManifest(written)) == written,
          "a manifest is read as it was written: " + written);
}

}  // namespace

void packages(std::string_view input) {
  const bool isManifest = input.starts_with("{");
  const std::string bytes = isManifest ? packageOf(input) : std::string(input);
  normc_package* package = nullptr;
  if (!accepted(normc_package_open_memory(context(), bytes.data(), bytes.size(), &package))) {
    require(package == nullptr, "a refused call gives nothing");
    return;
  }
  const char* json = nullptr;
  require(normc_package_manifest(package, &json) == NORMC_OK && json, "a package has its manifest");
  require(package::manifestTextOf(bytes) == json, "the manifest of a package is that of its bytes");
  accepted(normc_package_verify(package));
  package::Manifest manifest;
  const runtime::JsonFault fault = package::readManifest(json, bytes.size(), "this test", manifest);
  require(fault.status == NORMC_OK, "the manifest of an open package is legal: " + fault.text);
  checkForPeople(json);
  for (size_t i = 0; i < std::min<size_t>(manifest.kernels.size(), 4); ++i) {
    const package::Kernel& kernel = manifest.kernels[i];
    if (kernel.onCuda()) continue;  // opens a driver
    const std::string problem = kernel.parts.text();
    normc_request request = {};
    request.struct_size = sizeof request, request.problem = problem.c_str();
    normc_plan* plan = nullptr;
    if (accepted(normc_plan_create(package, &request, &plan))) {
      checkPlan(plan, kernel);
      checkNumbers(package, problem, plan);
      normc_plan_destroy(plan);
    } else {
      require(plan == nullptr, "a refused call gives nothing");
    }
  }
  normc_package_destroy(package);
}

std::vector<std::string> seedsOfPackages() {
  std::vector<std::string> seeds;
  const auto add = [&](package::Writer writer) {
    const std::string bytes = writer.bytes();
    package::Manifest manifest = package::wholeManifest(package::manifestTextOf(bytes));
    const std::string offset = "\"offset\":" + std::to_string(manifest.blobs[0].offset),
                      size = "\"bytes\":" + std::to_string(manifest.blobs[0].bytes);
    std::string text(package::manifestTextOf(bytes));
    text = replaced(text, manifest.blobs[0].sha256, "@hash@");
    text = replaced(text, offset, "\"offset\":@offset@");
    seeds.push_back(replaced(text, size, "\"bytes\":@bytes@"));
  };
  for (const char* entry : {"forward", "backward"}) {
    add(test::packageOf(test::layerNorm(entry)));
    add(test::packageOf(test::powerNorm(entry, 64)));
    add(test::packageOf(test::around(entry)));
    add(test::packageOf(test::warmup(entry)));
  }
  for (const char* entry : {"forward_reduce", "commit"}) add(test::packageOf(test::sums(entry)));
  add(test::packageOf(
      {test::probe("channels_first", true, true), test::probe("features_last", false, true)}));
  package::Kernel narrow = test::layerNorm("forward");
  narrow.limits = {.rowsMin = 1, .rowsMax = 8, .runMin = 1, .runMax = 4};
  narrow.parts.bindings["heads"] = 4;
  add(test::packageOf({narrow, test::layerNorm("forward")}));
  seeds.push_back(packageOf(R"({"schema":1,"abi":1,"blobs":[],"norms":[],"kernels":[]})").substr(0, 120));
  seeds.push_back(R"({"schema":2,"abi":1})");
  return seeds;
}

}  // namespace normc::fuzz
