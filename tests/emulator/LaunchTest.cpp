// Launches: the special registers of a kernel, and refusals.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

TEST(Launch, EachThreadKnowsItsPlace) {
  std::string body;
  const char* registers[] = {"tid.x",    "tid.y",    "ctaid.x", "ctaid.y", "ntid.x",   "ntid.y",
                             "nctaid.x", "nctaid.y", "laneid",  "warpid",  "warpsize", "lanemask.lt"};
  for (int i = 0; i < 12; ++i) {
    std::string n = std::to_string(i);
    body += "%r" + n + " = call i32 @llvm.nvvm.read.ptx.sreg." + registers[i] + "()\n";
  }
  body += R"(
  %linear0 = mul i32 %r3, %r6
  %blk = add i32 %linear0, %r2
  %area = mul i32 %r4, %r5
  %base = mul i32 %blk, %area
  %row = mul i32 %r1, %r4
  %in = add i32 %row, %r0
  %at = add i32 %base, %in
  %slot = mul i32 %at, 12
  %s = zext i32 %slot to i64
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %s
)";
  for (int i = 0; i < 12; ++i) {
    std::string n = std::to_string(i);
    body += "%p" + n + " = getelementptr i32, ptr addrspace(1) %p, i64 " + n + "\n store i32 %r" + n +
            ", ptr addrspace(1) %p" + n + ", align 4\n";
  }
  Memory memory;
  auto* y = fresh<int32_t>(memory, "y", 2 * 3 * 40 * 2 * 12);
  std::string ir = "define ptx_kernel void @k(ptr addrspace(1) %y) {" + body + "ret void\n}";
  Report report = run(ir, {.grid = {2, 3}, .block = {40, 2}}, memory, {y});
  ASSERT_TRUE(report.ok()) << report.text();
  const int32_t* last = y + ((2 * 2 + 1) * 80 + 79) * 12;
  std::vector<int32_t> expected{39, 1, 1, 2, 40, 2, 2, 3, 15, 2, 32, (1 << 15) - 1};
  EXPECT_EQ(std::vector<int32_t>(last, last + 12), expected);
}

TEST(Launch, ParametersAreWordsOfAnyKind) {
  std::string ir = R"(
define ptx_kernel void @k(ptr %y, i64 %n, double %s) {
  %f = sitofp i64 %n to double
  %v = fmul double %f, %s
  store double %v, ptr %y, align 8
  ret void
})";
  Memory memory;
  auto* y = fresh<double>(memory, "y", 1);
  Report report = run(ir, {}, memory, {y, word(uint64_t(6)), word(0.5)});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(*y, 3.0);
}

TEST(Launch, TablesOfTheModuleWork) {
  std::string ir = R"(
@table = addrspace(4) constant [4 x float] [float 1.0, float 2.0, float 4.0, float 8.0]
)" + kernel("ptr addrspace(1) %y", R"(
  %p = getelementptr [4 x float], ptr addrspace(4) @table, i64 0, i64 %t
  %v = load float, ptr addrspace(4) %p, align 4
  %py = getelementptr float, ptr addrspace(1) %y, i64 %t
  store float %v, ptr addrspace(1) %py, align 4)");
  Memory memory;
  auto* y = fresh<float>(memory, "y", 5);
  Program program = programOf(ir);
  ASSERT_TRUE(run(program, {.block = {4}}, memory, {y}).ok());
  EXPECT_EQ(y[3], 8.0f);
  EXPECT_NE(run(program, {.block = {5}}, memory, {y})
                .text()
                .find("reads 4 bytes at @table + 16 (@table has 16 bytes)"),
            std::string::npos);
}

TEST(Launch, OneProgramRunsAnyNumberOfTimes) {
  Program program = programOf(
      kernel(kXY, kLoadX + "%w = fadd float %v, 1.0\n store float %w, ptr addrspace(1) %py, align 4"));
  EXPECT_EQ(program.functions(), std::vector<std::string>{"k"});
  EXPECT_EQ(program.parameters("k"), 2u);
  Memory memory;
  auto* x = iota<float>(memory, "x", 64);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run(program, {.grid = {2}, .block = {32}}, memory, {x, x}).ok());
  EXPECT_EQ(x[63], 66.0f);
}

TEST(Launch, IsRefusedWithTheRule) {
  std::string attributes = R"( "nvvm.maxntid"="128,1,1" "nvvm.cluster_dim"="2,1,1" )";
  Program bounded = programOf("define ptx_kernel void @k(ptr %y)" + attributes + "{\n ret void\n}");
  Program exact = programOf("define ptx_kernel void @k() \"nvvm.reqntid\"=\"64\" {\n ret void\n}");
  Program any = programOf("define ptx_kernel void @k() {\n ret void\n}");
  Memory memory;
  const void* p = &memory;
  EXPECT_EQ(refusal(bounded, {.block = {256}, .cluster = {2}}, memory, {p}),
            "launch of 'k' refused: a block of 256 threads; the kernel's limit is 128");
  EXPECT_EQ(refusal(bounded, {.block = {32}, .cluster = {2}}, memory, {}),
            "launch of 'k' refused: 0 parameters given, the kernel takes 1");
  EXPECT_EQ(refusal(bounded, {.grid = {3}, .block = {32}, .cluster = {2}}, memory, {p}),
            "launch of 'k' refused: grid (3, 1, 1) is not a multiple of the cluster (2, 1, 1)");
  EXPECT_EQ(refusal(bounded, {.block = {32}}, memory, {p}),
            "launch of 'k' refused: cluster (1, 1, 1); the kernel requires (2, 1, 1)");
  EXPECT_EQ(refusal(exact, {.block = {32}}, memory, {}),
            "launch of 'k' refused: block (32, 1, 1); the kernel requires (64, 1, 1)");
  EXPECT_EQ(refusal(any, {.block = {32, 0}}, memory, {}),
            "launch of 'k' refused: grid (1, 1, 1), block (32, 0, 1), cluster (1, 1, 1); none of their sides "
            "may be 0");
  EXPECT_EQ(refusal(any, {.sharedBytes = 300000}, memory, {}),
            "launch of 'k' refused: 300000 bytes of shared memory; the limit is 232448");
  EXPECT_EQ(refusal(any, {.sharedBytes = 102400, .mostShared = limits::sharedOfBlock(86)}, memory, {}),
            "launch of 'k' refused: 102400 bytes of shared memory; the limit is 101376");
  EXPECT_EQ(refusal(any, {.grid = {32}, .cluster = {32}}, memory, {}),
            "launch of 'k' refused: a cluster of 32 blocks; the limit is 16");
  EXPECT_EQ(refusal(any, {.grid = {1, 70000}}, memory, {}),
            "launch of 'k' refused: grid (1, 70000, 1); y and z end at 65535");
  EXPECT_EQ(refusal(any, {.grid = {1u << 30}, .block = {1024}}, memory, {}),
            "launch of 'k' refused: 1099511627776 threads are more than can be emulated");
  auto unknown = any.run({.function = "other"}, memory);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(llvm::toString(unknown.takeError()), "the program has no entry function 'other'");
}

TEST(Launch, TrafficIsCountedByRegionAndWidth) {
  const Program program = programOfPtx(ptxEntry("x, y", R"(ld.param.b64 %rd1, [k_param_0];
ld.param.b64 %rd2, [k_param_1];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r1, 32, %r2;
mad.wide.u32 %rd3, %r3, 16, %rd1;
mad.wide.u32 %rd4, %r3, 2, %rd2;
ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd3];
ld.global.b32 %r4, [%rd3];
ld.global.b32 %r5, [%rd3+4];
ld.global.b32 %r6, [%rd3+8];
ld.global.b32 %r7, [%rd3+12];
cvt.rn.f16.f32 %rs1, %r5;
st.global.b16 [%rd4], %rs1;)"));
  Memory memory;
  auto* x = iota<float>(memory, "x", 256, Access::ReadOnly);
  auto* y = fresh<uint16_t>(memory, "y", 64);
  fresh<float>(memory, "z", 4);
  Report report = run(program, {.grid = {2}, .block = {32}}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  Traffic of = report.of("x");
  EXPECT_EQ(of.bytesLoaded, 2048u);
  EXPECT_EQ(of.bytesStored, 0u);
  EXPECT_EQ(of.loads, (std::array<uint64_t, 6>{0, 0, 256, 0, 64, 0}));
  EXPECT_EQ(report.of("y").stores, (std::array<uint64_t, 6>{0, 64, 0, 0, 0, 0}));
  EXPECT_EQ(report.of("y").bytesStored, 128u);
  EXPECT_EQ(report.traffic.size(), 2u);  // z was not touched
}

TEST(Launch, DenormalsAreFlushedWhereTheKernelSaysSo) {
  std::string body =
      kLoadX + "%w = fmul float %v, 0.5\n store float %w, ptr addrspace(1) %py, align 4\n ret void\n}";
  std::string flush = "define ptx_kernel void @k(" + kXY +
                      ") \"denormal-fp-math\"=\"preserve-sign,preserve-sign\" {" + kWhoAmI + body;
  std::string keep = "define ptx_kernel void @k(" + kXY + ") {" + kWhoAmI + body;
  Memory memory;
  auto* x = iota<float>(memory, "x", 1);
  auto* y = fresh<float>(memory, "y", 1);
  x[0] = 1.5e-38f;
  ASSERT_TRUE(run(keep, {}, memory, {x, y}).ok());
  EXPECT_GT(y[0], 0.0f);
  ASSERT_TRUE(run(flush, {}, memory, {x, y}).ok());
  EXPECT_EQ(y[0], 0.0f);
}

}  // namespace
}  // namespace normc::emulator
