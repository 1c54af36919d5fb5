// The boundary itself: names, structs of other versions, null arguments, messages per thread.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "runtime/abi/DlType.h"
#include "tests/runtime/Support.h"

extern "C" int normc_test_from_c(void);

// DLPack's layout, which hosts share with us: LP64.
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, data) == 0 && offsetof(DLTensor, device) == 8 &&
              offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
              offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
              offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLDataType) == 4 && offsetof(DLDataType, bits) == 1 && offsetof(DLDataType, lanes) == 2);
static_assert(sizeof(DLDevice) == 8 && offsetof(DLDevice, device_id) == 4);

namespace normc::test {
namespace {

std::string output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) text += buffer;
  if (pipe) pclose(pipe);
  return text;
}

TEST(Types, AreFoundByTheirNames) {
  for (const TypeInfo& each : kTypeTable) EXPECT_EQ(typeNamed(each.name), each.type);
  EXPECT_EQ(typeNamed("f8"), std::nullopt);
  EXPECT_EQ(typeNamed(""), std::nullopt);
}

TEST(Types, AreFoundByWhatDlpackSays) {
  for (const TypeInfo& each : kTypeTable) {
    const DLDataType type = dlType(each.type);
    EXPECT_EQ(typeOfDlpack(type), each.type) << each.name;
    EXPECT_EQ(type.bits, 8 * each.bytes) << each.name;
    EXPECT_EQ(typeOfDlpack(DLDataType{type.code, type.bits, 4}), std::nullopt) << each.name;
  }
  EXPECT_EQ(dlType(DType::F16).code, kDLFloat);
  EXPECT_EQ(dlType(DType::BF16).code, kDLBfloat);
  EXPECT_EQ(dlType(DType::I64).code, kDLInt);
  EXPECT_EQ(dlType(DType::U8).code, kDLUInt);
  EXPECT_EQ(typeOfDlpack(DLDataType{kDLInt, 32, 1}), std::nullopt);
}

TEST(Types, BoolOfDlpackIsAMask) {
  EXPECT_EQ(typeOfDlpack(DLDataType{kDLBool, 8, 1}), DType::U8);
  EXPECT_EQ(typeOfDlpack(DLDataType{kDLBool, 32, 1}), std::nullopt);
}

TEST(Types, OfFieldsAreThoseOfTheCApi) {
  EXPECT_EQ(typeOfField(NORMC_F32), DType::F32);
  EXPECT_EQ(typeOfField(NORMC_F64), DType::F64);
  EXPECT_EQ(typeOfField(NORMC_I64), DType::I64);
  EXPECT_LT(infoOf(DType::BF16).field, 0);
}

TEST(Types, OfTensorsAreFloating) {
  for (const TypeInfo& each : kTypeTable)
    EXPECT_EQ(isFloat(each.type), each.name.find('f') != std::string_view::npos) << each.name;
}

TEST(Abi, ExportsNothingButItsOwnNames) {
  std::string symbols = output("nm -D --defined-only " NORMC_RUNTIME_LIBRARY);
  ASSERT_TRUE(symbols.find("normc_execute") != std::string::npos) << symbols;
  std::istringstream lines(symbols);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(std::regex_search(line, std::regex(" T normc_[a-z0-9_]+$"))) << line;
}

#if !defined(NORMC_SANITIZED)  // a sanitizer adds names of its own
TEST(Abi, ExportsWhatExportedTxtLists) {
  // Hosts that were linked against an older library need each of its names: none may go. A new one is added
  // there.
  const auto namesIn = [](std::istream&& lines) {
    std::set<std::string> names;
    for (std::string line; std::getline(lines, line);) names.insert(line.substr(line.rfind(' ') + 1));
    return names;
  };
  EXPECT_EQ(namesIn(std::istringstream(output("nm -D --defined-only " NORMC_RUNTIME_LIBRARY))),
            namesIn(std::ifstream(NORMC_EXPORTED)));
}

TEST(Abi, AStaticLibraryDefinesNothingButItsOwnNames) {
  std::istringstream lines(output("nm --extern-only --defined-only " NORMC_STATIC_LIBRARY));
  int functions = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.ends_with(":")) continue;  // the name of a member
    EXPECT_TRUE(std::regex_search(line, std::regex(" T normc_[a-z0-9_]+$"))) << line;
    ++functions;
  }
  EXPECT_GT(functions, 30);
  const std::string needed = output("nm --undefined-only " NORMC_STATIC_LIBRARY);
  EXPECT_EQ(needed.find(" U normc"), needed.npos);
}
#endif

TEST(Abi, AHostOfTheStaticLibraryExportsNothing) {
  const std::string symbols = output("readelf --wide --syms " NORMC_STATIC_LIBRARY);
  EXPECT_TRUE(std::regex_search(symbols, std::regex("GLOBAL HIDDEN +[0-9]+ normc_execute")));
  EXPECT_FALSE(std::regex_search(symbols, std::regex("GLOBAL DEFAULT +[0-9]+ normc_")));
  EXPECT_EQ(output("nm -D --defined-only " NORMC_STATIC_HOST).find("normc_"), std::string::npos);
  EXPECT_EQ(output("readelf -d " NORMC_STATIC_HOST).find("libnormc_runtime"), std::string::npos);
}

TEST(Abi, NeedsNeitherACompilerNorACppLibrary) {
  const std::string needed = output("readelf -d " NORMC_RUNTIME_LIBRARY);
  EXPECT_NE(needed.find("libnormc_runtime.so.0"), std::string::npos) << needed;
  for (const char* library : {"LLVM", "MLIR", "libtbb", "libcrypto", "libgomp", "libcuda"})
    EXPECT_EQ(needed.find(library), std::string::npos) << library;
#if !defined(NORMC_SANITIZED)
  EXPECT_EQ(needed.find("libstdc++"), std::string::npos);
#endif
}

TEST(Abi, IsC) { EXPECT_EQ(normc_test_from_c(), 1); }

TEST(Abi, NamesItsStatuses) {
  EXPECT_STREQ(normc_status_name(NORMC_DATA_LOSS), "DATA_LOSS");
  EXPECT_STREQ(normc_status_name(static_cast<normc_status>(77)), "UNKNOWN");
  EXPECT_STREQ(normc_version(), "0.1.0");
  EXPECT_EQ(std::to_string(NORMC_VERSION_MAJOR) + "." + std::to_string(NORMC_VERSION_MINOR) + "." +
                std::to_string(NORMC_VERSION_PATCH),
            normc_version())
      << "the header's";
}

TEST(Abi, AcceptsStructsOfAnOlderHeader) {
  LayerNorm norm;
  norm.forwardPlan(norm.forward());
  const std::vector<float> expected = norm.y;
  Tensor tx = norm.matrix(norm.x), ty = norm.matrix(norm.y), ts = norm.vector(norm.scale),
         tb = norm.vector(norm.bias);
  DLTensor vx = tx.dlpack(), vy = ty.dlpack(), vs = ts.dlpack(), vb = tb.dlpack();
  normc_args args = {};
  args.x = &vx, args.y = &vy, args.scale = &vs, args.bias = &vb;
  args.saved = norm.saved.data(), args.saved_bytes = norm.saved.size();
  // As from a header without workspace and the later fields: memory beyond is not read.
  args.struct_size = offsetof(normc_args, workspace);
  args.stream = &args;
  norm.y.assign(norm.y.size(), 0);
  EXPECT_EQ(refusal(normc_execute(norm.forwardPlan.get(), &args)), "accepted");
  EXPECT_EQ(norm.y, expected);

  normc_field field;
  std::memset(&field, 0x55, sizeof field);
  field.struct_size = offsetof(normc_field, offset);
  const normc_sizes sizes = norm.sizes();
  EXPECT_EQ(refusal(normc_plan_saved_field(norm.forwardPlan.get(), &sizes, 0, &field)), "accepted");
  EXPECT_STREQ(field.name, "mean");
  EXPECT_EQ(field.offset, 0x5555555555555555u) << "beyond what the caller's header knows";
}

TEST(Abi, AcceptsStructsOfANewerHeaderUnlessTheyAskForMore) {
  struct Newer {
    normc_request request;
    void* unknown;
  } newer = {};
  newer.request.struct_size = sizeof newer;
  newer.request.problem = "layer_norm:forward@f32[*x*]";
  normc_plan* plan = nullptr;
  EXPECT_EQ(refusal(normc_plan_create(standard().get(), &newer.request, &plan)), "accepted");
  normc_plan_destroy(plan);
  newer.unknown = &newer;
  EXPECT_EQ(refusal(normc_plan_create(standard().get(), &newer.request, &plan)),
            "FAILED_PRECONDITION: normc_request sets a field that this library (0.1.0) does not know; use a "
            "newer library");

  struct NewerField {
    normc_field field;
    double unknown = 5;
  } field;
  field.field.struct_size = sizeof field;
  LayerNorm norm;
  const normc_sizes sizes = norm.sizes();
  EXPECT_EQ(refusal(normc_plan_saved_field(norm.forwardPlan.get(), &sizes, 1, &field.field)), "accepted");
  EXPECT_STREQ(field.field.name, "rstd");
  EXPECT_EQ(field.unknown, 0);
}

TEST(Abi, RefusesStructsWithoutTheirSize) {
  normc_request request = {};
  request.problem = "layer_norm:forward@f32[*x*]";
  normc_plan* plan;
  EXPECT_EQ(refusal(normc_plan_create(standard().get(), &request, &plan)),
            "INVALID_ARGUMENT: normc_request.struct_size is 0; set it to sizeof(normc_request), 72 with this "
            "header");
  normc_context_options options = {};
  options.struct_size = 0x12345678;
  normc_context* context;
  EXPECT_EQ(refusal(normc_context_create(&options, &context)),
            "INVALID_ARGUMENT: normc_context_options.struct_size is 305419896; set it to "
            "sizeof(normc_context_options), 56 "
            "with this header");
  LayerNorm norm;
  normc_args args = {};
  EXPECT_EQ(
      refusal(normc_execute(norm.forwardPlan.get(), &args)),
      "INVALID_ARGUMENT: normc_args.struct_size is 0; set it to sizeof(normc_args), 360 with this header");
  normc_field field = {};
  const normc_sizes sizes = norm.sizes();
  EXPECT_EQ(
      refusal(normc_plan_saved_field(norm.forwardPlan.get(), &sizes, 0, &field)),
      "INVALID_ARGUMENT: normc_field.struct_size is 0; set it to sizeof(normc_field), 104 with this header");
}

TEST(Abi, RefusesNull) {
  LayerNorm norm;
  EXPECT_EQ(refusal(normc_context_create(nullptr, nullptr)), "INVALID_ARGUMENT: context is null");
  normc_context* context;
  ASSERT_EQ(normc_context_create(nullptr, &context), NORMC_OK) << "options may be null";
  EXPECT_EQ(refusal(normc_package_open(context, nullptr, nullptr)), "INVALID_ARGUMENT: path is null");
  EXPECT_EQ(refusal(normc_package_open_memory(context, nullptr, 5, nullptr)),
            "INVALID_ARGUMENT: data is null");
  EXPECT_EQ(refusal(normc_plan_create(nullptr, nullptr, nullptr)), "INVALID_ARGUMENT: package is null");
  EXPECT_EQ(refusal(normc_execute(nullptr, nullptr)), "INVALID_ARGUMENT: plan is null");
  EXPECT_EQ(refusal(normc_execute(norm.forwardPlan.get(), nullptr)), "INVALID_ARGUMENT: args is null");
  EXPECT_EQ(refusal(normc_plan_describe(norm.forwardPlan.get(), nullptr)), "INVALID_ARGUMENT: text is null");
  double value;
  EXPECT_EQ(refusal(normc_plan_number(nullptr, "epsilon", &value)), "INVALID_ARGUMENT: plan is null");
  EXPECT_EQ(refusal(normc_plan_number(norm.forwardPlan.get(), nullptr, &value)),
            "INVALID_ARGUMENT: name is null");
  EXPECT_EQ(refusal(normc_plan_number(norm.forwardPlan.get(), "epsilon", nullptr)),
            "INVALID_ARGUMENT: value is null");
  EXPECT_EQ(refusal(normc_plan_saved_bytes(norm.forwardPlan.get(), nullptr, nullptr)),
            "INVALID_ARGUMENT: sizes is null");
  EXPECT_EQ(refusal(normc_state_init(nullptr)), "INVALID_ARGUMENT: state is null");
  normc_context_destroy(context);
  normc_context_options options = {};
  options.struct_size = sizeof options;
  options.max_threads = -3;
  EXPECT_EQ(refusal(normc_context_create(&options, &context)),
            "INVALID_ARGUMENT: options.max_threads is -3; it must not be negative");
  normc_context_destroy(nullptr);
  normc_package_destroy(nullptr);
  normc_plan_destroy(nullptr);
  normc_state_destroy(nullptr);
}

#if !defined(NORMC_SANITIZED)  // a sanitizer's allocator ends the program instead
TEST(Abi, LetsNoExceptionOut) {
  const host::Context context;
  normc_package* package;
  EXPECT_EQ(refusal(normc_package_open_memory(context.get(), "", size_t{1} << 50, &package)),
            "RESOURCE_EXHAUSTED: no memory left");
  EXPECT_EQ(refusal(normc_package_open_memory(context.get(), "", SIZE_MAX, &package)),
            "RESOURCE_EXHAUSTED: no memory holds that many bytes");
}
#endif

TEST(Abi, KeepsMessagesPerThread) {
  normc_execute(nullptr, nullptr);
  std::thread([] {
    EXPECT_STREQ(normc_last_error(), "");
    normc_state_init(nullptr);
    EXPECT_STREQ(normc_last_error(), "state is null");
  }).join();
  EXPECT_STREQ(normc_last_error(), "plan is null");
}

TEST(Abi, CutsOffEndlessMessages) {
  const std::string problem = "n" + std::string(10000, 'x');
  const std::string text = refusal([&] { Plan(standard(), problem); });
  EXPECT_TRUE(text.ends_with("xxx...")) << text.size();
  EXPECT_LT(text.size(), 4200u);
}

}  // namespace
}  // namespace normc::test
