// Packages that are damaged, foreign or newer, and writing them.
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/abi/PackageHeader.h"
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

using Json = nlohmann::ordered_json;

std::string refusedBytes(const std::string& bytes) {
  return refusal([&] { host::Package(context(), bytes.data(), bytes.size()); });
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Package, OpensFromFileAndMemory) {
  const std::string path = temporaryPath("opens.npk");
  const auto size = standardPackage().write(path);
  ASSERT_TRUE(size);
  const host::Package file(context(), path);
  EXPECT_EQ(file.manifest(), standard().manifest());
  file.verify();
  unlink(path.c_str());  // stays usable
  EXPECT_NO_THROW(Plan(file, "layer_norm:forward@f32[*x*]"));
  const Json manifest = Json::parse(file.manifest());
  EXPECT_EQ(manifest["schema"], 1);
  EXPECT_EQ(manifest["norms"].size(), 4u) << "equal norms are stored once";
  EXPECT_EQ(manifest["blobs"].size(), 1u) << "equal blobs are stored once";
  EXPECT_EQ(manifest["kernels"][0]["problem"], "layer_norm:forward@f32[*x*]");
}

TEST(Package, MayBeReplacedWhileOpen) {
  const std::string path = temporaryPath("replaced.npk");
  ASSERT_TRUE(standardPackage().write(path));
  const host::Package before(context(), path);
  ASSERT_TRUE(packageOf(layerNorm("forward")).write(path));
  EXPECT_NO_THROW(Plan(before, "power_norm:forward@f32[*x*]")) << "still the old one";
  EXPECT_NE(host::Package(context(), path).manifest(), before.manifest());
  unlink(path.c_str());
}

TEST(Package, OutlivesNoOneWhoNeedsIt) {
  std::unique_ptr<host::Context> context = std::make_unique<host::Context>(oneThread());
  auto package = std::make_unique<host::Package>(openInMemory(standardPackage(), *context));
  LayerNorm norm(4, 6, *package);
  package.reset();
  context.reset();
  EXPECT_EQ(refusal([&] { norm.forwardPlan(norm.forward()); }), "accepted");
}

TEST(Package, LoadsManyAndForgetsThem) {
  // dlopen knows objects by name: a name that came back would bring back old code.
  for (int i = 0; i < 20; ++i) {
    package::Kernel kernel = probe("features_last", false, false);
    kernel.scalars[0].value = i;
    const host::Package package = openInMemory(packageOf(kernel), context());
    const Plan plan(package, "probe:forward@f32[*x*]");
    float x = 1, y = 0;
    Call call;
    call.x = {&x, {1, 1}}, call.y = {&y, {1, 1}};
    plan(call);
    EXPECT_EQ(y, i);
  }
}

TEST(Package, ThatIsNoPackageIsRefused) {
  EXPECT_EQ(refusal([&] { host::Package(context(), "/nowhere/x.npk"); }),
            "NOT_FOUND: cannot open the package /nowhere/x.npk: No such file or directory");
  const std::string path = temporaryPath("text.npk");
  write(path, std::string(200, 'a'));
  EXPECT_EQ(refusal([&] { host::Package(context(), path); }),
            "DATA_LOSS: " + path + " is not a normc package: it does not begin with NORMCPK");
  write(path, "short");
  EXPECT_EQ(refusal([&] { host::Package(context(), path); }),
            "DATA_LOSS: " + path + " is not a normc package: it has 5 bytes, less than a header");
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refusal([&] { host::Package(context(), path); }),
            "DATA_LOSS: " + path + " is not a regular file");
  unlink(path.c_str());
  EXPECT_EQ(refusal([&] { host::Package(context(), "/"); }), "DATA_LOSS: / is not a regular file");
}

TEST(Package, OfANewerFormatIsRefused) {
  std::string bytes = standardPackage().bytes();
  bytes[8] = 2;
  EXPECT_EQ(refusedBytes(bytes),
            "FAILED_PRECONDITION: the package in memory has package format 2; this runtime (0.1.0) reads "
            "format 1; use a "
            "newer runtime");
}

TEST(Package, ThatIsTruncatedIsRefused) {
  const std::string bytes = standardPackage().bytes();
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 997) {
    const std::string text = refusedBytes(bytes.substr(0, size));
    ASSERT_TRUE(text.starts_with("DATA_LOSS: the package in memory is ")) << size << ": " << text;
  }
  EXPECT_EQ(
      refusedBytes(bytes.substr(0, 1000)),
      "DATA_LOSS: the package in memory is truncated: it has 1000 bytes of " + std::to_string(bytes.size()));
  EXPECT_EQ(refusedBytes(bytes + "x"), "DATA_LOSS: the package in memory is too long: it has " +
                                           std::to_string(bytes.size() + 1) + " bytes of " +
                                           std::to_string(bytes.size()));
}

TEST(Package, ThatBecomesShorterWhileItIsOpenIsRefused) {
  const std::string path = temporaryPath("shorter.npk");
  ASSERT_TRUE(standardPackage().write(path));
  const host::Package package(context(), path);
  ASSERT_EQ(truncate(path.c_str(), 1000), 0);
  EXPECT_EQ(refusal([&] { package.verify(); }), "DATA_LOSS: " + path + " became shorter while it was open");
  unlink(path.c_str());
}

TEST(Package, WithAnyFlippedBitIsRefused) {
  const std::string bytes = packageOf(layerNorm("forward")).bytes();
  const auto usable = [&](const std::string& changed) {
    return refusal([&] {
      const host::Package package(context(), changed.data(), changed.size());
      package.verify();
      Plan(package, "layer_norm:forward@f32[*x*]");
    });
  };
  ASSERT_EQ(usable(bytes), "accepted");
  uint64_t manifestBytes;
  std::memcpy(&manifestBytes, bytes.data() + 16, sizeof manifestBytes);
  const size_t blob = (64 + manifestBytes + 63) / 64 * 64;
  const size_t blobEnd = blob + kernelObject().size();
  int flipped = 0;
  for (size_t at = 0; at < blobEnd; at += at < 64 ? 1 : 37) {
    if (at >= 64 + manifestBytes && at < blob) continue;  // padding between the two means nothing
    std::string changed = bytes;
    changed[at] ^= 1 << at % 8;
    const std::string text = usable(changed);
    ASSERT_TRUE(text.starts_with("DATA_LOSS: ") || text.starts_with("FAILED_PRECONDITION: "))
        << at << ": " << text;
    ++flipped;
  }
  EXPECT_GT(flipped, 100);
  std::string changed = bytes;
  changed[100] ^= 4;
  EXPECT_EQ(usable(changed),
            "DATA_LOSS: the package in memory is damaged: the hash of its manifest is wrong");
  changed = bytes;
  changed[blob + 100] ^= 4;
  EXPECT_EQ(usable(changed), "DATA_LOSS: the package in memory is damaged: the hash of blob 0 (elf, " +
                                 hostIsa() + ") is wrong");
  changed = bytes;
  changed[12] = 1;
  EXPECT_EQ(usable(changed), "DATA_LOSS: the package in memory is damaged: its header contradicts itself");
}

TEST(Package, WithCodeForAnotherProcessorIsRefused) {
  std::string elf = kernelObject();
  elf[18] = 22;  // IBM S/390
  elf[19] = 0;
  package::Writer writer({});
  package::Kernel kernel = layerNorm("forward");
  kernel.norm = writer.addNorm("layer_norm", "hash", "");
  kernel.blob = writer.addBlob(elf, "elf", hostIsa());
  writer.addKernel(kernel);
  const host::Package package = openInMemory(writer, context());
  const std::string text = refusal([&] { Plan(package, "layer_norm:forward@f32[*x*]"); });
  EXPECT_TRUE(text.starts_with(
      "FAILED_PRECONDITION: blob 0 of the package in memory is code for another processor (ELF "
      "machine 22, this one is "))
      << text;
}

TEST(Package, WithBadCodeIsRefused) {
  const auto with = [&](const std::string& code, const char* kind, const char* symbol) {
    package::Writer writer({});
    package::Kernel kernel = layerNorm("forward");
    kernel.phases[0].symbol = symbol;
    kernel.norm = writer.addNorm("layer_norm", "hash", "");
    kernel.blob = writer.addBlob(code, kind, hostIsa());
    writer.addKernel(kernel);
    const host::Package package = openInMemory(writer, context());
    return refusal([&] { Plan(package, "layer_norm:forward@f32[*x*]"); });
  };
  EXPECT_EQ(with("abc", "elf", "f"),
            "DATA_LOSS: blob 0 of the package in memory is too short to be a shared object");
  EXPECT_EQ(with(std::string(500, 'a'), "elf", "f"),
            "DATA_LOSS: blob 0 of the package in memory is not a 64-bit shared object");
  for (size_t size : {size_t{100}, size_t{700}, kernelObject().size() / 2})
    EXPECT_EQ(with(kernelObject().substr(0, size), "elf", "f"),
              "DATA_LOSS: blob 0 of the package in memory is a shared object with parts missing");
  std::string odd = kernelObject();
  odd[20] = 9;  // the version of ELF
  EXPECT_TRUE(
      with(odd, "elf", "f")
          .starts_with("FAILED_PRECONDITION: cannot load blob 0 of the package in memory: /proc/self/fd/"));
  EXPECT_EQ(with(kernelObject(), "elf", "no_such_function"),
            "DATA_LOSS: the package in memory is damaged: blob 0 has no function 'no_such_function', which "
            "layer_norm:forward@f32[*x*] needs");
  EXPECT_EQ(with(kernelObject(), "ptx", "f"),
            "FAILED_PRECONDITION: blob 0 of the package in memory is of kind 'ptx'; a CPU loads 'elf'");
}

/// Returns the result of opening the same package with a word of the manifest replaced by one of the same
/// length.
std::string refusedText(const std::string& word, const std::string& other) {
  std::string bytes = packageOf(layerNorm("backward")).bytes();
  package::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.replace(bytes.find(word), word.size(), other);
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()) + sizeof header, header.manifestBytes,
         header.manifestHash.data());
  std::memcpy(bytes.data(), &header, sizeof header);
  return refusedBytes(bytes);
}

constexpr const char* kInvalid = "DATA_LOSS: the manifest of the package is not valid: ";

struct WrongWord {
  const char* name;
  const char *word, *other;
  const char* said;  ///< behind `kernels[0].`
};
constexpr WrongWord kWrongWords[] = {
    {"UnknownEntry", R"("backward","data")", R"("forwards","data")",
     "entry is \"forwards\"; it must be one of forward, backward, infer, infer_backward, forward_reduce, "
     "forward_apply, backward_reduce, backward_apply, commit"},
    {"UnknownDataType", R"("data":"f32")", R"("data":"f8" )",
     "data is \"f8\"; it must be one of f32, f64, bf16, f16"},
    {"MaskThatIsANumber", R"("mask":false)", R"("mask":    0)", "mask is 0; it must be true or false"},
    {"UnknownWhen", R"("max_chunks":4,"when":"always")", R"("max_chunks":4,"when":"never" )",
     "phases[1].when is \"never\"; it must be one of always, warmup"},
    {"UnknownRole", R"("operands":[{"role":"tensor")", R"("operands":[{"role":"Tensor")",
     "operands[0].role is \"Tensor\"; it must be one of tensor, state_in, state_out, saved, workspace, "
     "partial, partials"},
};

class ManifestWord : public testing::TestWithParam<WrongWord> {};

TEST_P(ManifestWord, IsRefusedIfItIsWrong) {
  EXPECT_EQ(refusedText(GetParam().word, GetParam().other),
            std::string(kInvalid) + "kernels[0]." + GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(Words, ManifestWord, testing::ValuesIn(kWrongWords),
                         [](const auto& info) { return std::string(info.param.name); });

struct WrongKernel {
  const char* name;
  void (*change)(package::Kernel& k);
  const char* said;  ///< behind `kernels[0].`
};
constexpr WrongKernel kWrongKernels[] = {
    {"NoFeatures", [](auto& k) { k.parts.features = 0; }, "features is 0; it must be at least 1"},
    {"FeaturesOfMultipleZero", [](auto& k) { k.featuresMultiple = 0; },
     "features_multiple is 0; it must be at least 1"},
    {"NegativeBinding", [](auto& k) { k.parts.bindings["heads"] = -1; },
     "bindings.heads is -1; it must be at least 1"},
    {"ChannelsFirstWithoutSegments", [](auto& k) { k.parts.layout = Layout::ChannelsFirst; },
     "segmented is false; channels_first has three dimensions"},
    {"RowsMaxBelowRowsMin", [](auto& k) { k.limits = {.rowsMin = 4, .rowsMax = 3}; },
     "limits.rows_max is 3; it must be at least 4"},
    {"NegativeRunMin", [](auto& k) { k.limits.runMin = -1; }, "limits.run_min is -1; it must be at least 0"},
    {"RunMaxBelowRunMin", [](auto& k) { k.limits = {.runMin = 4, .runMax = 3}; },
     "limits.run_max is 3; it must be at least 4"},
    {"SavedFieldTwice",
     [](auto& k) {
       k.operands.push_back(*std::ranges::find(k.operands, package::Role::Saved, &package::Operand::role));
     },
     "operands[10].name is \"mean\"; another operand is this field"},
    {"NoPhases", [](auto& k) { k.phases.clear(); }, "phases is []; a kernel has at least one phase"},
    {"NoUnits", [](auto& k) { k.phases[0].minUnits = 0; }, "phases[0].min_units is 0; it must be at least 1"},
    {"EnoughUnitsBelowMinUnits", [](auto& k) { k.phases[0].enoughUnits = 3; },
     "phases[0].enough_units is 3; it must be at least 4"},
    {"GroupOfOne", [](auto& k) { k.phases[0].group = 1; }, "phases[0].group is 1; it must be at least 2"},
    {"WeightOfLaterChunks", [](auto& k) { k.phases[0].weight = {package::chunksOf(0)}; },
     "phases[0].weight[0] is \"chunks.0\"; it is no size that is known here"},
    {"TooManyChunks", [](auto& k) { k.phases[0].maxChunks = 2000000000; },
     "phases[0].max_chunks is 2000000000; it must be at most 1073741824"},
    {"UnitsOfLaterChunks", [](auto& k) { k.phases[0].units = {package::chunksOf(0)}; },
     "phases[0].units[0] is \"chunks.0\"; it is no size that is known here"},
    {"TooManyPhases", [](auto& k) { k.phases.resize(17, k.phases[0]); },
     "phases has 17 elements; at most 16 are allowed"},
    {"InputOfAnotherType", [](auto& k) { k.operands[0].type = DType::F16; },
     "operands[0].type is \"f16\"; it must be f32"},
    {"WrittenInput", [](auto& k) { k.operands[0].access = package::Access::Write; },
     "operands[0].access is \"write\"; this operand is only read"},
    {"ReadOutput", [](auto& k) { k.operands[5].access = package::Access::Read; },
     "operands[5].access is \"read\"; this operand is written"},
    {"WrittenWorkspace", [](auto& k) { k.operands[8].access = package::Access::Write; },
     "operands[8].access is \"write\"; 'both' and 'zeroed' are the accesses of workspace alone"},
    {"ZeroedInput", [](auto& k) { k.operands[0].access = package::Access::Zeroed; },
     "operands[0].access is \"zeroed\"; this operand is only read"},
    {"ZeroedWorkspaceOnACpu", [](auto& k) { k.operands[8].access = package::Access::Zeroed; },
     "operands[8].access is \"zeroed\"; only a kernel for cuda has workspace that is zero"},
    {"TensorTwice", [](auto& k) { k.operands[1] = k.operands[0]; },
     "operands[1].name is \"x\"; another operand has this name"},
    {"UnknownField", [](auto& k) { k.operands[3].name = "variance"; },
     "operands[3].name is \"variance\"; there is no field of this name"},
    {"FieldOfAnotherType", [](auto& k) { k.operands[3].type = DType::F64; },
     "operands[3].type is \"f64\"; the field has another type"},
    {"WorkspaceOfLaterChunks",
     [](auto& k) { k.operands[8].shape = {package::chunksOf(2), package::kFeatures}; },
     "operands[8].shape[0] is \"chunks.2\"; it is no size that is known here"},
    {"WorkspaceWithoutElements", [](auto& k) { k.operands[8].shape = {{package::Factor::Fixed, 0}}; },
     "operands[8].shape[0] is 0; it must be at least 1"},
    {"NoOperands", [](auto& k) { k.operands.clear(); }, "operands is []; one of x, dy must be among them"},
    {"FieldNameTwice", [](auto& k) { k.saved.push_back(k.saved[0]); },
     "saved[2].name is \"mean\"; another field has this name"},
    {"FieldOfANarrowType", [](auto& k) { k.saved[0].type = DType::BF16; },
     "saved[0].type is \"bf16\"; it must be one of f32, f64, i64"},
    {"StateOfRows", [](auto& k) { k.state = {{"psi2", DType::F32, {package::kRows}}}; },
     "state[0].shape[0] is \"rows\"; it is no size that is known here"},
    {"ScalarThatIsNoNumber", [](auto& k) { k.scalars[0].value = INFINITY; },
     "scalars[0].value is null; it must be a number"},
    {"ZeroByteInAText", [](auto& k) { k.device = std::string("a\0b", 3); },
     "device is \"a\\u0000b\"; it must not contain a zero byte"},
};

class ManifestKernel : public testing::TestWithParam<WrongKernel> {};

TEST_P(ManifestKernel, IsRefusedIfAFieldIsWrong) {
  package::Kernel kernel = layerNorm("backward");
  GetParam().change(kernel);
  EXPECT_EQ(refusedBytes(packageOf(kernel).bytes()), std::string(kInvalid) + "kernels[0]." + GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ManifestKernel, testing::ValuesIn(kWrongKernels),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Manifest, GivesTheShapesThatANormDecides) {
  const auto says = [](const std::string& text) { return kInvalid + ("kernels[0]." + text); };
  const auto refused = [](auto change) {
    package::Kernel kernel = around("backward");
    change(kernel);
    return refusedBytes(packageOf(kernel).bytes());
  };
  EXPECT_EQ(refused([](auto&) {}), "accepted");
  const Json operands = Json::parse(
      openInMemory(packageOf(around("backward")), context()).manifest())["kernels"][0]["operands"];
  EXPECT_EQ(operands[2].dump(),
            R"({"role":"tensor","name":"gate","type":"f32","access":"read","shape":["features"]})");
  EXPECT_EQ(operands[3]["shape"].dump(), R"(["segments","features"])");
  EXPECT_FALSE(operands[0].contains("shape")) << "dy has one shape in all norms";
  EXPECT_EQ(
      refused([](auto& k) { k.operands[2].shape = {package::kRows, package::kFeatures}; }),
      says("operands[2].shape is [\"rows\",\"features\"]; it must be [features], [segments, features] or "
           "[segments, rows, features]"));
  EXPECT_EQ(refused([](auto& k) { k.operands[2].shape = {}; }),
            says("operands[2].shape is []; it must be [features], [segments, features] or [segments, rows, "
                 "features]"));
  EXPECT_EQ(refused([](auto& k) { k.operands[7].shape = package::factorsOf(TensorShape::Elements); }),
            says("operands[7].shape is [\"segments\",\"rows\",\"features\"]; it must be that of gate"));
  EXPECT_EQ(refused([](auto& k) { k.operands[9].shape = {package::kFeatures}; }),
            says("operands[9].shape is [\"features\"]; it must be that of mod_scale"));
}

TEST(Manifest, ListsTheTensorsThatAreNoOperands) {
  const auto says = [](const std::string& text) { return kInvalid + ("kernels[0]." + text); };
  const auto refused = [](auto change, const char* entry = "backward") {
    package::Kernel kernel = around(entry);
    change(kernel);
    return refusedBytes(packageOf(kernel).bytes());
  };
  const std::string ignored =
      "; it must be an input of a backward, one of x, scale, bias, residual, residual_out, gate, mod_scale, "
      "mod_shift, and no operand";
  EXPECT_EQ(refused([](auto& k) { k.ignored = {"x", "weight"}; }),
            says("ignored[1] is \"weight\"" + ignored));
  EXPECT_EQ(refused([](auto& k) { k.ignored = {"dy"}; }), says("ignored[0] is \"dy\"" + ignored));
  EXPECT_EQ(refused([](auto& k) { k.ignored = {"gate"}; }), says("ignored[0] is \"gate\"" + ignored));
  EXPECT_EQ(refused([](auto& k) { k.ignored = {"scale"}; }, "forward"),
            says("ignored[0] is \"scale\"" + ignored));
  EXPECT_EQ(refused([](auto& k) { k.same = {{"dresidual", "x"}}; }),
            says("same is {\"dresidual\":\"x\"}; a tensor that is no operand equals one that is"));
  EXPECT_EQ(refused([](auto& k) { k.same = {{"dx", "dy"}}; }),
            says("same is {\"dx\":\"dy\"}; a tensor that is no operand equals one that is"));
}

TEST(Manifest, WithoutAListIgnoresWhatOlderPackagesDo) {
  package::Kernel kernel = around("backward");
  kernel.ignored = std::nullopt;
  const host::Package package = openInMemory(packageOf(kernel), context());
  EXPECT_FALSE(Json::parse(package.manifest())["kernels"][0].contains("ignored"));
  std::string ignored;
  for (const normc_tensor_info& info : Plan(package, "around:backward@f32[*x*x*]").tensors())
    if (info.use == NORMC_TENSOR_IGNORED) ignored += std::string(info.name) + " ";
  EXPECT_EQ(ignored, "x scale bias ");
}

/// A package without blobs whose manifest is this text, right in all else.
std::string withManifest(const std::string& text) {
  std::string bytes("NORMCPK\0\1\0\0\0\0\0\0\0", 16);
  const auto put = [&](uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  put(text.size());
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash);
  bytes.append(reinterpret_cast<const char*>(hash), sizeof hash);
  put(64 + text.size());
  return bytes + text;
}

TEST(Manifest, IsJsonOfLimitedDepth) {
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 1, "abi": 1, "blobs": [], "norms": [], "kernels": []})")),
            "accepted");
  EXPECT_EQ(refusedBytes(withManifest("{\"schema\": 1,")),
            "DATA_LOSS: the manifest of the package is not JSON");
  EXPECT_EQ(refusedBytes(withManifest("\xff")), "DATA_LOSS: the manifest of the package is not JSON");
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 1, "abi": 1, "blobs": [], "norms": [], "kernels": []})" +
                                      std::string("\0 more", 6))),
            "DATA_LOSS: the manifest of the package is not JSON");
  EXPECT_EQ(refusedBytes(withManifest(std::string(100000, '['))),
            "DATA_LOSS: the manifest of the package is nested 100000 levels deep; at most 16 are allowed");
  EXPECT_EQ(refusedBytes(withManifest("[1]")), kInvalid + std::string("schema is missing"));
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 1, "abi": 1, "blobs": [], "norms": 3, "kernels": []})")),
            kInvalid + std::string("norms is 3; it must be an array"));
  EXPECT_EQ(
      refusedBytes(withManifest(R"({"schema": 1, "abi": 1, "blobs": [], "norms": [], "kernels": [{}]})")),
      kInvalid + std::string("kernels[0].problem is missing"));
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 1.5, "abi": 1})")),
            kInvalid + std::string("schema is 1.5; it must be an integer of 64 bits"));
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 1, "abi": 18446744073709551615})")),
            kInvalid + std::string("abi is 18446744073709551615; it must be an integer of 64 bits"));
}

TEST(Manifest, OfANewerSchemaOrAbiIsRefused) {
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 2, "abi": 1, "kernels": "in another way"})")),
            "FAILED_PRECONDITION: the package has manifest schema 2; this runtime (0.1.0) reads schema 1; "
            "use a newer "
            "runtime");
  EXPECT_EQ(refusedBytes(withManifest(R"({"schema": 1, "abi": 2})")),
            "FAILED_PRECONDITION: the kernels of the package have ABI 2; this runtime (0.1.0) calls ABI 1; "
            "compile the "
            "package again or use another runtime");
}

TEST(Manifest, KeepsBlobsInsideTheFile) {
  const auto withBlob = [](const char* offset, const char* bytes,
                           const std::string& hash = std::string(64, 'a')) {
    std::string text = R"({"schema": 1, "abi": 1, "norms": [], "kernels": [], "blobs": [{"sha256": ")" +
                       hash + R"(", "offset": )" + offset + R"(, "bytes": )" + bytes +
                       R"(, "kind": "elf", "isa": "x86-64-v3"}]})";
    text.resize(512 - 64, ' ');  // a file of 512 bytes
    return refusedBytes(withManifest(text));
  };
  const auto says = [](const std::string& text) { return kInvalid + text; };
  EXPECT_EQ(withBlob("64", "1"), "accepted");
  EXPECT_EQ(withBlob("64", "448"), "accepted");
  EXPECT_EQ(withBlob("64", "449"),
            says("blobs[0].offset is 64; the blob would end past the end of the file"));
  EXPECT_EQ(withBlob("576", "1"),
            says("blobs[0].offset is 576; the blob would end past the end of the file"));
  EXPECT_EQ(withBlob("0", "1"), says("blobs[0].offset is 0; it must be at least 64"));
  EXPECT_EQ(withBlob("65", "1"), says("blobs[0].offset is 65; it must be a multiple of 64"));
  EXPECT_EQ(withBlob("64", "9223372036854775807"),
            says("blobs[0].offset is 64; the blob would end past the end of the file"));
  EXPECT_EQ(withBlob("64", "1", "../etc"),
            says("blobs[0].sha256 is \"../etc\"; it must be 64 hexadecimal digits in lower case"));
}

TEST(Writer, LeavesNothingBehindWhenItFails) {
  const auto failed = standardPackage().write("/nowhere/x.npk");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.errors()[0].message, "cannot write the package /nowhere/x.npk: No such file or directory");
  const std::string folder = temporaryPath("folder");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const auto isFolder = standardPackage().write(folder);  // renaming onto a folder fails after all is written
  ASSERT_FALSE(isFolder);
  EXPECT_EQ(isFolder.errors()[0].message, "cannot write the package " + folder + ": Is a directory");
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "still there, still empty";
  EXPECT_NE(access((folder + ".tmp" + std::to_string(getpid()) + ".0").c_str(), F_OK), 0);
}

TEST(Writer, AlignsBlobs) {
  package::Writer writer({});
  for (int i = 0; i < 3; ++i) writer.addBlob(std::string(10 + i, char('a' + i)), "elf", "x86-64-v3");
  EXPECT_EQ(writer.addBlob(std::string(10, 'a'), "elf", "x86-64-v3"), 0u);
  const std::string bytes = writer.bytes();
  EXPECT_EQ(bytes.size() % 64, 0u);
  const Json manifest = Json::parse(host::Package(context(), bytes.data(), bytes.size()).manifest());
  for (int i = 0; i < 3; ++i) {
    const size_t offset = manifest["blobs"][i]["offset"];
    EXPECT_EQ(offset % 64, 0u);
    EXPECT_EQ(bytes.substr(offset, 10 + i), std::string(10 + i, char('a' + i)));
  }
}

}  // namespace
}  // namespace normc::test
