// Stored bf16 values are the nearest ones, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codegen/Package.h"
#include "runtime/normc.hpp"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

constexpr int64_t kFeatures = 79;  // whole vectors, and a rest
constexpr DLDataType kBF16 = {kDLBfloat, 16, 1};

/// Returns numbers at and slightly off the midpoint of two neighbours, also at both ends of the range, and
/// values that are not finite.
std::vector<float> hostileBiases() {
  std::vector<float> values;
  for (uint32_t upper : {0x3f80u, 0x3f81u, 0x3fffu, 0x4000u, 0x0001u, 0x0002u, 0x007fu, 0x0080u, 0x7f7eu,
                         0x7f7fu, 0x7f80u, 0x7fc0u, 0x7fffu})
    for (uint32_t lower : {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      if (upper != 0x7f80 || lower == 0)  // beyond lie signalling NaN
        values.push_back(std::bit_cast<float>((values.size() % 3 ? 0 : 0x80000000u) | upper << 16 | lower));
  values.resize(kFeatures, std::bit_cast<float>(0x3f808000u));
  return values;
}

uint16_t nearest(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), lower = bits & 0xffff;
  const uint16_t upper = uint16_t(bits >> 16);
  return upper + (lower > 0x8000 || (lower == 0x8000 && (upper & 1)));
}

/// A row of equal values leaves its bias.
std::vector<uint16_t> stored(const codegen::TargetPtr& target, const std::vector<float>& bias,
                             normc_denormals denormals) {
  const std::string text = "layer_norm:forward@bf16[*x" + std::to_string(kFeatures) + "]";
  const std::string bytes =
      llvm::cantFail(codegen::buildPackage(codegen::defaultJobs(problemOf(text), target)));
  host::Context context;
  normc_request request{};
  request.denormals = denormals;
  host::Plan plan(host::Package(context, bytes.data(), bytes.size()), text, request);
  const normc_sizes sizes = host::Plan::sizes(1, 3, kFeatures);
  std::vector<uint16_t> x(3 * kFeatures), y(3 * kFeatures);
  std::vector<float> scale(kFeatures, 1), mutableBias = bias;
  std::vector<char> saved(plan.savedBytes(sizes)), workspace(plan.workspaceBytes(sizes));
  host::Call call;
  call.x = {x.data(), kBF16, {3, kFeatures}}, call.y = {y.data(), kBF16, {3, kFeatures}};
  call.scale = {scale.data(), {kFeatures}}, call.bias = {mutableBias.data(), {kFeatures}};
  call.saved = saved, call.workspace = workspace;
  plan(call);
  return y;
}

TEST(Rounding, OfBF16IsToTheNearestAndThenToEven) {
  const std::vector<float> bias = hostileBiases();
  if (hostIsa().name == "aarch64") GTEST_SKIP() << "an x86-64 processor is needed";
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    if (hostIsa().name < llvm::StringRef(name)) continue;
    const std::vector<uint16_t> y =
        stored(llvm::cantFail(codegen::findTarget(name)), bias, NORMC_DENORMALS_KEEP);
    for (size_t i = 0; i < y.size(); ++i) {
      const float wanted = bias[i % kFeatures];
      if (std::isnan(wanted)) {
        EXPECT_TRUE((y[i] & 0x7f80) == 0x7f80 && (y[i] & 0x7f))
            << name << ", NaN became " << std::hex << y[i];
      } else {
        EXPECT_EQ(y[i], nearest(wanted)) << name << ", of " << std::hex << std::bit_cast<uint32_t>(wanted);
      }
    }
  }
}

TEST(Rounding, OfBF16HasTheSameBitsWhateverInstructionsTheProcessorHas) {
  if (hostIsa().name == "aarch64") GTEST_SKIP() << "an x86-64 processor is needed";
  const std::vector<float> bias = hostileBiases();
  auto bits = [&](const char* target) {
    auto y = stored(llvm::cantFail(codegen::findTarget(target)), bias, NORMC_DENORMALS_FLUSH);
    for (uint16_t& v : y)
      if ((v & 0x7f80) == 0x7f80 && (v & 0x7f)) v = 0x7fc0;  // all NaNs count as equal
    return y;
  };
  EXPECT_EQ(bits("host"), bits("x86-64-v3"));
}

TEST(Rounding, ByAnInstructionThatFlushesIsRefusedWhereDenormalsAreKept) {
  const auto target = llvm::cantFail(codegen::findTarget("x86-64-v4-bf16"));
  if (hostIsa().name != target->name()) GTEST_SKIP() << "a processor with AVX512_BF16 is needed";
  normc_request keep{};
  keep.denormals = NORMC_DENORMALS_KEEP;
  for (const std::string text :
       {"layer_norm:forward@bf16[*x64]", "layer_norm:forward@f32[*x64]",
        "layer_norm:forward@f32[*x64]{y=bf16}", "rms_norm_residual:forward@f32[*x64]{stream=bf16}"}) {
    const std::string bytes =
        llvm::cantFail(codegen::buildPackage(codegen::defaultJobs(problemOf(text), target)));
    host::Context context;
    const host::Package package(context, bytes.data(), bytes.size());
    std::string error;
    try {
      host::Plan(package, text, keep);
    } catch (const std::exception& e) {
      error = e.what();
    }
    const bool refused =
        error.find(
            "rounds to bf16 by an instruction that takes denormals for zeros, and request.denormals keeps "
            "them; a kernel for x86-64-v4 would serve") != std::string::npos;
    EXPECT_EQ(refused, text.find("bf16") != text.npos) << text << ": " << error;
    EXPECT_EQ(error.ends_with("\ncompile the package with --target x86-64-v4 as well"), refused) << error;
  }
}

}  // namespace
}  // namespace normc
