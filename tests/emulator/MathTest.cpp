// Intrinsics that compute.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// Returns the value of `expression` for %v, a float.
float f32(const std::string& expression, float v) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 1);
  x[0] = v;
  auto* y = fresh<float>(memory, "y", 1);
  Report report =
      run(kernel(kXY, kLoadX + "%r = " + expression + "\n store float %r, ptr addrspace(1) %py, align 4"), {},
          memory, {x, y});
  EXPECT_TRUE(report.ok()) << report.text();
  return y[0];
}

float f32Of(const std::string& intrinsic, float v) {
  return f32("call float @llvm.nvvm." + intrinsic + "(float %v)", v);
}

TEST(Math, FunctionsOfOneNumber) {
  EXPECT_FLOAT_EQ(f32Of("rsqrt.approx.f", 2), 1 / std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(f32Of("rsqrt.approx.ftz.f", 4), 0.5f);
  EXPECT_FLOAT_EQ(f32Of("ex2.approx.ftz.f32", 2.5f), std::exp2(2.5f));
  EXPECT_FLOAT_EQ(f32Of("ex2.approx.f32", -3), 0.125f);
  EXPECT_FLOAT_EQ(f32Of("lg2.approx.f", 10), std::log2(10.0f));
  EXPECT_FLOAT_EQ(f32Of("sqrt.rn.f", 2), std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(f32Of("sqrt.approx.ftz.f", 2), std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(f32Of("rcp.rn.f", 3), 1 / 3.0f);
  EXPECT_FLOAT_EQ(f32Of("saturate.f", 3), 1.0f);
  EXPECT_FLOAT_EQ(f32Of("floor.f", -1.5f), -2.0f);
  EXPECT_FLOAT_EQ(f32Of("fabs.f32", -1.5f), 1.5f);
}

TEST(Math, FunctionsOfSeveral) {
  EXPECT_EQ(f32("call float @llvm.nvvm.fma.rn.f(float %v, float 2.0, float 1.0)", 3), 7);
  EXPECT_EQ(f32("call float @llvm.nvvm.div.full(float %v, float 2.0)", 3), 1.5f);
  EXPECT_EQ(f32("call float @llvm.nvvm.div.approx.ftz.f(float %v, float 2.0)", 3), 1.5f);
  EXPECT_EQ(f32("call float @llvm.nvvm.mul.rn.f(float %v, float 2.0)", 3), 6);
  EXPECT_EQ(f32("call float @llvm.nvvm.add.rn.ftz.f(float %v, float 2.0)", 3), 5);
  EXPECT_EQ(f32("call float @llvm.nvvm.fmax.f(float %v, float 2.0)", NAN), 2);
  EXPECT_TRUE(std::isnan(f32("call float @llvm.nvvm.fmin.nan.f(float %v, float 2.0)", NAN)));
}

TEST(Math, FtzFlushesWhatComesAndWhatGoes) {
  EXPECT_EQ(f32Of("rsqrt.approx.ftz.f", 1e-40f), INFINITY);
  EXPECT_TRUE(std::isfinite(f32Of("rsqrt.approx.f", 1e-40f)));
  EXPECT_EQ(f32("call float @llvm.nvvm.mul.rn.ftz.f(float %v, float 0.125)", 2e-38f), 0.0f);
  EXPECT_TRUE(std::signbit(f32("call float @llvm.nvvm.mul.rn.ftz.f(float %v, float 0.125)", -2e-38f)));
}

TEST(Math, Bf16RoundsToNearestEven) {
  std::string ir = kernel(kXY, kLoadX + R"(
  %h = fptrunc float %v to bfloat
  %ph = getelementptr bfloat, ptr addrspace(1) %y, i64 %t
  store bfloat %h, ptr addrspace(1) %ph, align 2)");
  Memory memory;
  auto* x = iota<float>(memory, "x", 4);
  x[0] = 1.0f + 1.0f / 256, x[1] = 1.0f + 3.0f / 256, x[2] = NAN, x[3] = 3.4e38f;
  auto* y = fresh<uint16_t>(memory, "y", 4);
  Report report = run(ir, {.block = {4}}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[0], 0x3f80);
  EXPECT_EQ(y[1], 0x3f82);
  EXPECT_GT(y[2] & 0x7fff, 0x7f80);
  EXPECT_EQ(y[3], 0x7f80);
}

TEST(Math, TwoHalvesOfOneRegister) {
  std::string ir = kernel(kXY, kLoadX + R"(
  %h = call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float 2.0, float %v)
  store <2 x bfloat> %h, ptr addrspace(1) %y, align 4)");
  Memory memory;
  auto* x = iota<float>(memory, "x", 1);
  x[0] = 1;
  auto* y = fresh<uint16_t>(memory, "y", 2);
  ASSERT_TRUE(run(ir, {}, memory, {x, y}).ok());
  EXPECT_EQ(y[0], 0x3f80);
  EXPECT_EQ(y[1], 0x4000);
}

}  // namespace
}  // namespace normc::emulator
