// Accesses that are wrong by themselves: where they go, how they are aligned, what they read.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

using testing::Test;

const std::string kCopy = kernel(kXY, kLoadX + "store float %v, ptr addrspace(1) %py, align 4");

TEST(MemoryChecks, AReadPastTheEndOfARegion) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 40);
  auto* y = fresh<float>(memory, "y", 64);
  EXPECT_EQ(
      run(kCopy, {.grid = {2}, .block = {32}}, memory, {x, y}).text(),
      "out of bounds: @k, block (1, 0, 0) thread (8, 0, 0): reads 4 bytes at x + 160 (x has 160 bytes)\n"
      "  at ld.global.b32 %r6, [%rd5] (line 30)");
}

TEST(MemoryChecks, AWriteBeforeTheBeginningOfARegion) {
  std::string ir = kernel("ptr %y", R"(
  %p = getelementptr float, ptr %y, i64 -1
  store float 1.0, ptr %p, align 4)");
  Memory memory;
  auto* y = fresh<float>(memory, "y", 4);
  EXPECT_TRUE(has(run(ir, {}, memory, {y}).text(), "writes 4 bytes at y - 4 (y has 16 bytes)"));
}

TEST(MemoryChecks, AnAccessAcrossTheEnd) {
  std::string ir =
      kernel("ptr addrspace(1) %y", "store <4 x float> zeroinitializer, ptr addrspace(1) %y, align 16");
  Memory memory;
  auto* y = fresh<float>(memory, "y", 3);
  EXPECT_TRUE(has(run(ir, {}, memory, {y}).text(), "writes 16 bytes at y + 0 (y has 12 bytes)"));
}

TEST(MemoryChecks, AnAddressOfNoAllocation) {
  std::string ir = kernel("ptr addrspace(1) %y", "store float 1.0, ptr addrspace(1) %y, align 4");
  Memory memory;
  EXPECT_TRUE(
      has(run(ir, {}, memory, {nullptr}).text(), "writes 4 bytes at address 0x0, which is in no region"));
}

TEST(MemoryChecks, TheGapBetweenTwoRows) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 48);
  auto* y = fresh<float>(memory, "y", 48);
  llvm::cantFail(memory.forbid(x + 20, 4 * sizeof(float)));
  EXPECT_TRUE(has(run(kCopy, {.block = {32}}, memory, {x, y}).text(),
                  "reads 4 bytes at x + 80 (x has 192 bytes); byte 80 lies in a gap between rows"));
}

TEST(MemoryChecks, SharedVariablesHaveRedZones) {
  auto broken = [](const std::string& index) {
    Memory memory;
    auto* y = fresh<float>(memory, "y", 32);
    return run("@a = internal addrspace(3) global [8 x float] undef, align 4\n"
               "@b = internal addrspace(3) global [8 x float] undef, align 4\n" +
                   kernel("ptr addrspace(1) %y", R"(
  %pb = getelementptr float, ptr addrspace(3) @b, i64 0
  store float 1.0, ptr addrspace(3) %pb, align 4
  %pa = getelementptr float, ptr addrspace(3) @a, i64 )" +
                                                     index + R"(
  store float 1.0, ptr addrspace(3) %pa, align 4)"),
               {}, memory, {y})
        .text();
  };
  EXPECT_EQ(broken("7"), "ok");
  EXPECT_TRUE(has(broken("8"), "writes 4 bytes at @a + 32 (@a has 32 bytes)"));
  EXPECT_TRUE(has(broken("1000"), "writes 4 bytes at "));
}

TEST(MemoryChecks, DynamicSharedMemoryEndsWithTheLaunch) {
  std::string ir = "@dyn = external addrspace(3) global [0 x float], align 16\n" + kernel("", R"(
  %p = getelementptr float, ptr addrspace(3) @dyn, i64 %t
  store float 1.0, ptr addrspace(3) %p, align 4)");
  Memory memory;
  EXPECT_TRUE(run(ir, {.block = {32}, .sharedBytes = 128}, memory, {}).ok());
  EXPECT_TRUE(has(run(ir, {.block = {32}, .sharedBytes = 124}, memory, {}).text(),
                  "thread (31, 0, 0): writes 4 bytes at dynamic shared memory + 124 (dynamic shared memory "
                  "has 124 bytes)"));
}

TEST(MemoryChecks, APointerToTheWrongSpace) {
  std::string ir = "@a = internal addrspace(3) global [8 x float] undef, align 4\n" + kernel("", R"(
  %g = addrspacecast ptr addrspace(3) @a to ptr
  %p = addrspacecast ptr %g to ptr addrspace(1)
  store float 1.0, ptr addrspace(1) %p, align 4)");
  Memory memory;
  EXPECT_TRUE(has(run(ir, {}, memory, {}).text(),
                  "out of bounds: @k, block (0, 0, 0) thread (0, 0, 0): writes 4 bytes at @a + 0"));
}

TEST(MemoryChecks, GenericPointersLeadAnywhereAndLocalVariablesWork) {
  std::string ir = "@a = internal addrspace(3) global [8 x float] undef, align 4\n" + kernel("ptr %y", R"(
  %local = alloca [4 x float], align 4
  %sel = icmp eq i32 %tid, 0
  %g = addrspacecast ptr addrspace(3) @a to ptr
  %p = select i1 %sel, ptr %local, ptr %g
  store float 3.0, ptr %p, align 4
  %v = load float, ptr %p, align 4
  %q = getelementptr float, ptr %y, i64 %t
  store float %v, ptr %q, align 4)");
  Memory memory;
  auto* y = fresh<float>(memory, "y", 2);
  Report report = run(ir, {.block = {2}}, memory, {y});
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[0] + y[1], 6.0f);
}

TEST(MemoryChecks, AnAddressThatIsNotAligned) {
  std::string ir = kernel(kXY, R"(
  %px = getelementptr float, ptr addrspace(1) %x, i64 %t
  %v = load <4 x float>, ptr addrspace(1) %px, align 16
  store <4 x float> %v, ptr addrspace(1) %y, align 4)");
  Memory memory;
  auto* x = iota<float>(memory, "x", 40);
  EXPECT_TRUE(
      has(run(ir, {.block = {2}}, memory, {x, x}).text(),
          "misaligned: @k, block (0, 0, 0) thread (1, 0, 0): reads 16 bytes at x + 4 (x has 160 bytes); the "
          "instruction promises a multiple of 16"));
}

TEST(MemoryChecks, MemoryIsNoBetterAlignedThanPromised) {
  Memory memory;
  for (size_t alignment : {16, 256})
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(reinterpret_cast<uintptr_t>(
                    memory.allocate(100, "x", Access::ReadWrite, Content::Initialised, alignment)) %
                    (2 * alignment),
                alignment);
  const Program shared = programOfPtx(ptxEntry("n", R"(.shared .align 4 .b8 a[16];
mov.b32 %r1, 0;
st.shared.v4.b32 [a], {%r1, %r1, %r1, %r1};)"));
  EXPECT_TRUE(has(run(shared, {}, memory, {word(uint64_t(0))}).text(), "misaligned"));
}

TEST(MemoryChecks, LocalMemoryIsTheThreadsOwn) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 4);
  const Program program = programOfPtx(ptxEntry("x", R"(ld.param.b64 %rd1, [k_param_0];
st.local.b32 [%rd1], 1;)"));
  EXPECT_TRUE(
      has(run(program, {}, memory, {x}).text(), "writes 4 bytes at x + 0 (x has 16 bytes): it is no local"));
}

TEST(MemoryChecks, ATrap) {
  Memory memory;
  EXPECT_TRUE(has(
      run("define ptx_kernel void @k() {\n call void @llvm.trap()\n unreachable\n}", {}, memory, {}).text(),
      "the kernel has reached a trap"));
}

TEST(MemoryChecks, AWriteToReadOnlyMemory) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 4);
  auto* y = iota<float>(memory, "y", 4, Access::ReadOnly);
  EXPECT_TRUE(has(run(kCopy, {.block = {4}}, memory, {x, y}).text(),
                  "read-only memory: @k, block (0, 0, 0) thread (0, 0, 0): writes 4 bytes at y + 0 (y has 16 "
                  "bytes), which is read-only"));
  auto* z = iota<float>(memory, "z", 4);
  EXPECT_TRUE(run(kCopy, {.block = {4}}, memory, {x, z}).ok());
}

TEST(MemoryChecks, AReadOfGlobalMemoryThatWasNotWritten) {
  Memory memory;
  auto* x = fresh<float>(memory, "x", 4);
  auto* y = fresh<float>(memory, "y", 4);
  EXPECT_TRUE(has(run(kCopy, {.block = {4}}, memory, {x, y}).text(),
                  "uninitialised: @k, block (0, 0, 0) thread (0, 0, 0): reads 4 bytes at x + 0 (x has 16 "
                  "bytes), which nothing has written"));
  llvm::cantFail(memory.markInitialised(x, 12));
  EXPECT_TRUE(
      has(run(kCopy, {.block = {4}}, memory, {x, y}).text(), "thread (3, 0, 0): reads 4 bytes at x + 12"));
  // A launch may read what the one before has written.
  auto* z = iota<float>(memory, "z", 4);
  EXPECT_TRUE(run(kCopy, {.block = {4}}, memory, {z, x}).ok());
  EXPECT_TRUE(run(kCopy, {.block = {4}}, memory, {x, y}).ok());
}

TEST(MemoryChecks, AReadOfSharedMemoryThatNobodyWrote) {
  std::string ir =
      "@a = internal addrspace(3) global [64 x float] undef, align 4\n" + kernel("ptr addrspace(1) %y", R"(
  %p = getelementptr float, ptr addrspace(3) @a, i64 %t
  %isFirst = icmp eq i32 %ctaid, 0
  br i1 %isFirst, label %write, label %read
write:
  store float 1.0, ptr addrspace(3) %p, align 4
  br label %read
read:
  %v = load float, ptr addrspace(3) %p, align 4
)" + keep("float", "%v"));
  // The second block does not see what the first one left there.
  Memory memory;
  EXPECT_TRUE(
      has(run(ir, {.grid = {2}, .block = {1}}, memory, {word(uint64_t(0))}).text(),
          "uninitialised: @k, block (1, 0, 0) thread (0, 0, 0): reads 4 bytes at @a + 4 (@a has 256 bytes), "
          "which no thread of the block has written"));
}

TEST(MemoryChecks, MaskedAccessesAreCheckedLaneByLane) {
  std::string ir = kernel(kXY, R"(
  %v = call <4 x float> @llvm.masked.load.v4f32.p1(ptr addrspace(1) align 4 %x,
      <4 x i1> <i1 1, i1 1, i1 0, i1 0>, <4 x float> zeroinitializer)
  call void @llvm.masked.store.v4f32.p1(<4 x float> %v, ptr addrspace(1) align 4 %y,
      <4 x i1> <i1 1, i1 1, i1 1, i1 0>))");
  Memory memory;
  auto* x = iota<float>(memory, "x", 2);
  auto* y = fresh<float>(memory, "y", 2);
  EXPECT_TRUE(has(run(ir, {}, memory, {x, y}).text(), "writes 4 bytes at y + 8 (y has 8 bytes)"));
  EXPECT_EQ(y[1], 1.0f);
}

TEST(MemoryChecks, CanBeTurnedOffOneByOne) {
  // A race, no more: found with all checks, not with those of single accesses.
  std::string ir = kernel("ptr addrspace(1) %y", "store i32 %tid, ptr addrspace(1) %y, align 4");
  Memory memory;
  auto* y = fresh<int32_t>(memory, "y", 1);
  EXPECT_FALSE(run(ir, {.block = {2}}, memory, {y}, {.checks = Checks::All}).ok());
  EXPECT_TRUE(run(ir, {.block = {2}}, memory, {y}, {.checks = Checks::Bounds}).ok());
  EXPECT_FALSE(run(ir, {.block = {2}}, memory, {y - 1}, {.checks = Checks::Bounds}).ok());
  EXPECT_TRUE(run(ir, {.block = {2}}, memory, {y}, {.checks = Checks::None}).ok());
}

TEST(Regions, AreCheckedWhenTheyAreRegistered) {
  Memory memory;
  std::vector<float> data(100);
  llvm::cantFail(memory.add(data.data(), 200, "x"));
  EXPECT_EQ(llvm::toString(memory.add(data.data() + 49, 100, "y")), "region 'y' overlaps region 'x'");
  EXPECT_EQ(llvm::toString(memory.add(data.data() + 60, 0, "y")), "region 'y' is empty");
  EXPECT_EQ(memory.describe(data.data() + 4), "x + 16");
  EXPECT_TRUE(has(llvm::toString(memory.forbid(data.data() + 45, 24)), "no region holds the 24 bytes at 0x"));
  EXPECT_TRUE(
      has(llvm::toString(memory.markInitialised(data.data() + 60, 4)), "no region holds the 4 bytes at 0x"));
  EXPECT_TRUE(has(llvm::toString(memory.remove(data.data() + 1)), "no region holds the 1 bytes at 0x"));
  llvm::cantFail(memory.remove(data.data()));
  llvm::cantFail(memory.add(data.data() + 49, 100, "y"));
}

}  // namespace
}  // namespace normc::emulator
