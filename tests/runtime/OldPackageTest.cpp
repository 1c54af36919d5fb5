// Packages that older versions wrote, in tests/runtime/old: each is read as it was. A file is added where a
// version writes another format or other keys, and none is made again.
#include <cmath>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

host::Package opened(const char* name) {
  return host::Package(context(), std::string(NORMC_OLD_PACKAGES) + "/" + name);
}

/// The kernels are of AVX2.
bool runsHere() {
  const std::string isa = normc_cpu_isa();
  return isa.starts_with("x86-64-v3") || isa.starts_with("x86-64-v4");
}

TEST(OldPackage, OfFormat1IsWhole) {
  const host::Package package = opened("format1.npk");
  EXPECT_EQ(refusal(normc_package_verify(package.get())), "accepted");
  const char* manifest = nullptr;
  ASSERT_EQ(normc_package_manifest(package.get(), &manifest), NORMC_OK);
  for (const char* problem : {"rms_norm:infer@f32[*x8]", "power_norm:forward@f32[*x8]"})
    EXPECT_TRUE(has(manifest, problem)) << problem;
}

TEST(OldPackage, OfFormat1Runs) {
  if (!runsHere()) GTEST_SKIP() << "its kernels are for x86-64-v3";
  const host::Package package = opened("format1.npk");
  const Plan plan(package, "rms_norm:infer@f32[*x8]");
  std::vector<float> x = numbers(5 * 8), scale = numbers(8, 2), y(x.size());
  Call call;
  call.x = {x.data(), {5, 8}}, call.y = {y.data(), {5, 8}}, call.scale = {scale.data(), {8}};
  plan(call);
  for (size_t row = 0; row < 5; ++row) {
    double squares = 0;
    for (size_t f = 0; f < 8; ++f) squares += double(x[row * 8 + f]) * x[row * 8 + f];
    const double rstd = 1 / std::sqrt(squares / 8 + 1e-6);
    for (size_t f = 0; f < 8; ++f) EXPECT_NEAR(y[row * 8 + f], x[row * 8 + f] * rstd * scale[f], 1e-6);
  }
}

TEST(OldPackage, OfFormat1HasItsState) {
  if (!runsHere()) GTEST_SKIP() << "its kernels are for x86-64-v3";
  const Plan plan(opened("format1.npk"), "power_norm:forward@f32[*x8]");
  const normc_sizes sizes = {sizeof sizes, 1, 5, 8};
  std::string fields;
  normc_field field = {};
  field.struct_size = sizeof field;
  for (size_t i = 0; normc_plan_state_field(plan.get(), &sizes, i, &field) == NORMC_OK; ++i)
    fields += std::string(field.name) + " at " + std::to_string(field.offset) + ", ";
  EXPECT_EQ(fields, "step at 0, psi2 at 64, nu at 128, ");
}

}  // namespace
}  // namespace normc::test
