// The legal manifest of a kernel for a CUDA device.
#include <nlohmann/json.hpp>

#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using Json = nlohmann::ordered_json;

package::Kernel good() {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  kernel.cubin = 0;  // cudaPackage makes one
  return kernel;
}

/// Returns the result of opening a package after `change` to the kernel, whose blobs are valid.
template <typename Change>
std::string refused(Change change) {
  package::Kernel kernel = good();
  package::Writer writer({});
  kernel.norm = writer.addNorm("layer_norm", "hash", "text");
  kernel.blob = writer.addBlob(ptxOf(kernel), "ptx", kernel.isa);
  kernel.cubin = writer.addBlob(cubinOf(kernel), "cubin", kernel.isa);
  writer.addBlob("other", "elf", "x86-64-v3");
  change(kernel);
  writer.addKernel(kernel);
  const std::string text = refusal([&] { openInMemory(writer, host::Context(oneThread())); });
  const std::string start = "DATA_LOSS: the manifest of the package is not valid: kernels[0].";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

TEST(CudaManifest, IsWrittenAsTheFormatSays) {
  package::Kernel kernel = good();
  kernel.phases[0].launch = package::Launch{.threads = 256, .columns = 64, .cluster = 2, .shared = 1024};
  package::Kernel ptxOnly = forCuda(layerNorm("backward"), "sm_80");
  ptxOnly.phases[0].unaligned.reset();
  const host::Package package =
      openInMemory(cudaPackage({kernel, ptxOnly, layerNorm("forward")}), host::Context(oneThread()));
  const Json manifest = Json::parse(package.manifest());
  const Json& first = manifest["kernels"][0];
  EXPECT_EQ(first["device"], "cuda");
  EXPECT_EQ(first["isa"], "sm_90");
  EXPECT_EQ(first["alignment"], 16);
  EXPECT_EQ(manifest["blobs"][size_t(first["blob"])]["kind"], "ptx");
  EXPECT_EQ(manifest["blobs"][size_t(first["cubin"])]["kind"], "cubin");
  EXPECT_EQ(
      first["phases"][0]["launch"].dump(),
      R"({"threads":256,"columns":64,"cluster":2,"cooperative":1,"shared":1024,"least":0,"dependent":false})");
  EXPECT_EQ(first["phases"][0]["unaligned"], "layer_norm_forward_any");
  EXPECT_TRUE(manifest["kernels"][1]["cubin"].is_null());
  EXPECT_TRUE(manifest["kernels"][1]["phases"][0]["unaligned"].is_null());
  for (const char* key : {"cubin", "alignment"}) EXPECT_FALSE(manifest["kernels"][2].contains(key)) << key;
  EXPECT_FALSE(manifest["kernels"][2]["phases"][0].contains("launch"));
}

TEST(CudaManifest, IsCheckedFieldByField) {
  EXPECT_EQ(refused([](auto&) {}), "accepted");
  const auto launch = [](auto change) { return refused([&](auto& k) { change(*k.phases[0].launch); }); };
  EXPECT_EQ(launch([](auto& l) { l.threads = 0; }), "phases[0].launch.threads is 0; it must be at least 1");
  EXPECT_EQ(launch([](auto& l) { l.threads = 1025; }),
            "phases[0].launch.threads is 1025; it must be at most 1024");
  EXPECT_EQ(launch([](auto& l) { l.threads = 1024; }), "accepted");
  EXPECT_EQ(launch([](auto& l) { l.columns = -1; }), "phases[0].launch.columns is -1; it must be at least 0");
  EXPECT_EQ(launch([](auto& l) { l.columns = INT64_MAX; }),
            "phases[0].launch.columns is 9223372036854775807; it must be at most 1073741824");
  EXPECT_EQ(launch([](auto& l) { l.cluster = 0; }), "phases[0].launch.cluster is 0; it must be at least 1");
  EXPECT_EQ(launch([](auto& l) { l.cluster = 17; }), "phases[0].launch.cluster is 17; it must be at most 16");
  EXPECT_EQ(launch([](auto& l) { l.cooperative = 0; }),
            "phases[0].launch.cooperative is 0; it must be at least 1");
  EXPECT_EQ(launch([](auto& l) { l.cooperative = 65537; }),
            "phases[0].launch.cooperative is 65537; it must be at most 65536");
  EXPECT_EQ(launch([](auto& l) { l.cooperative = 65536; }), "accepted");
  EXPECT_EQ(launch([](auto& l) { l.cluster = l.cooperative = 2; }),
            "phases[0].launch.cooperative is 2; the blocks of a chunk are a cluster already");
  EXPECT_EQ(launch([](auto& l) { l.least = -1; }), "phases[0].launch.least is -1; it must be at least 0");
  EXPECT_EQ(launch([](auto& l) { l.least = 65537; }),
            "phases[0].launch.least is 65537; it must be at most 65536");
  EXPECT_EQ(launch([](auto& l) { l.shared = -1; }), "phases[0].launch.shared is -1; it must be at least 0");
  EXPECT_EQ(launch([](auto& l) { l.shared = 232449; }),
            "phases[0].launch.shared is 232449; it must be at most 232448");
  EXPECT_EQ(launch([](auto& l) { l.shared = 232448; }), "accepted") << "227 KiB";
  EXPECT_EQ(launch([](auto& l) { l.dependent = true; }), "accepted");
  EXPECT_EQ(refused([](auto& k) { k.phases[0].launch.reset(); }), "phases[0].launch is missing");

  const auto alignment = [](int64_t value) { return refused([&](auto& k) { k.alignment = value; }); };
  for (const int64_t legal : {0, 1, 8, 16, 32, 64}) EXPECT_EQ(alignment(legal), "accepted") << legal;
  EXPECT_EQ(alignment(24), "alignment is 24; it must be a power of two, or 0");
  EXPECT_EQ(alignment(128), "alignment is 128; it must be at most 64");
  EXPECT_EQ(alignment(-16), "alignment is -16; it must be at least 0");
}

TEST(CudaManifest, HasDependentLaunchesFromSm90On) {
  package::Kernel kernel = forCuda(layerNorm("forward"), "sm_80");
  kernel.phases[0].launch->dependent = true;
  EXPECT_EQ(
      refusal([&] { openInMemory(cudaPackage({kernel}), host::Context(oneThread())); }),
      "DATA_LOSS: the manifest of the package is not valid: kernels[0].phases[0].launch.dependent is true; a "
      "launch depends on another from sm_90 on");
}

TEST(CudaManifest, NamesArchitecturesAsSmNumbers) {
  for (const char* bad :
       {"sm_", "sm90", "sm_9", "sm_9x", "sm_090", "sm_-90", "sm_1000", "sm_90b", "x86-64-v3", ""})
    EXPECT_EQ(refused([&](auto& k) { k.isa = bad; }),
              "isa is \"" + std::string(bad) + "\"; a kernel for cuda is for sm_NN, e.g. sm_90");
}

TEST(CudaManifest, KeepsBlobsAndKernelsTogether) {
  EXPECT_EQ(refused([](auto& k) { k.blob = 1; }), "blob is 1; it must be a blob of kind ptx for sm_90");
  EXPECT_EQ(refused([](auto& k) { k.blob = 2; }), "blob is 2; it must be a blob of kind ptx for sm_90");
  EXPECT_EQ(refused([](auto& k) { k.blob = 3; }), "blob is 3; it must be at most 2");
  EXPECT_EQ(refused([](auto& k) { k.cubin = 0; }), "cubin is 0; it must be a blob of kind cubin for sm_90");
  EXPECT_EQ(refused([](auto& k) { k.cubin = 3; }), "cubin is 3; it must be at most 2");
  EXPECT_EQ(refused([](auto& k) { k.isa = "sm_80"; }), "blob is 0; it must be a blob of kind ptx for sm_80");
  EXPECT_EQ(refused([](auto& k) { k.cubin.reset(); }), "accepted") << "PTX alone will do";
}

}  // namespace
}  // namespace normc::test
