// Barriers of a block: what they order, and threads that do not reach them.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

const std::string kTile = "@tile = internal addrspace(3) global [256 x float] undef, align 16\n";

/// y[t] = x[n - 1 - t], through shared memory.
std::string reverse(const std::string& barrier = kBarrier) {
  return kTile + kernel(kXY, kLoadX + R"(
  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %t
  store float %v, ptr addrspace(3) %mine, align 4
)" + barrier + R"(
  %up = sub i32 %ntid, %tid
  %other32 = sub i32 %up, 1
  %other = zext i32 %other32 to i64
  %theirs = getelementptr float, ptr addrspace(3) @tile, i64 %other
  %w = load float, ptr addrspace(3) %theirs, align 4
  store float %w, ptr addrspace(1) %py, align 4)");
}

TEST(Barrier, OrdersSharedMemoryWhateverRunsFirst) {
  for (Order order : {Order::Ascending, Order::Descending, Order::Random})
    for (uint64_t seed : {1, 2, 3}) {
      Memory memory;
      auto* x = iota<float>(memory, "x", 100, Access::ReadOnly);
      auto* y = fresh<float>(memory, "y", 100);
      Report report = run(reverse(), {.block = {100}}, memory, {x, y}, {.order = order, .seed = seed});
      ASSERT_TRUE(report.ok()) << report.text();
      for (int i = 0; i < 100; ++i) ASSERT_EQ(y[i], 99 - i);
      EXPECT_EQ(report.barriers, 1u);
    }
}

TEST(Barrier, NamedOnesTakeAPartOfTheBlock) {
  // Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2.
  std::string part = R"(
  %pair = lshr i32 %tid, 6
  %id = add i32 %pair, 1
  call void @llvm.nvvm.barrier.cta.sync.count(i32 %id, i32 64)
  %half = shl i32 %pair, 6
  %in = sub i32 %tid, %half
  %up0 = sub i32 63, %in
  %up1 = add i32 %up0, %half
  %other = zext i32 %up1 to i64
  %theirs = getelementptr float, ptr addrspace(3) @tile, i64 %other
  %w = load float, ptr addrspace(3) %theirs, align 4
  store float %w, ptr addrspace(1) %py, align 4)";
  std::string ir = kTile + kernel(kXY, kLoadX + R"(
  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %t
  store float %v, ptr addrspace(3) %mine, align 4)" +
                                           part);
  Memory memory;
  auto* x = iota<float>(memory, "x", 128);
  auto* y = fresh<float>(memory, "y", 128);
  Report report = run(ir, {.block = {128}}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[0], 63);
  EXPECT_EQ(y[100], 91);
}

TEST(Barrier, ProducersArriveAndConsumersWait) {
  std::string ir = kTile + kernel(kXY, kLoadX + R"(
  %producer = icmp ult i32 %tid, 32
  br i1 %producer, label %give, label %take
give:
  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %t
  store float %v, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.barrier.cta.arrive.count(i32 3, i32 64)
  br label %out
take:
  call void @llvm.nvvm.barrier.cta.sync.count(i32 3, i32 64)
  %from = sub i64 %t, 32
  %theirs = getelementptr float, ptr addrspace(3) @tile, i64 %from
  %w = load float, ptr addrspace(3) %theirs, align 4
  store float %w, ptr addrspace(1) %py, align 4
  br label %out
out:)");
  Memory memory;
  auto* x = iota<float>(memory, "x", 64);
  auto* y = fresh<float>(memory, "y", 64);
  Report report = run(ir, {.block = {64}}, memory, {x, y}, {.order = Order::Descending});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[40], 8);
}

TEST(Barrier, CountsAndCombinesPredicates) {
  std::string ir = kernel("ptr addrspace(1) %y", R"(
  %few = icmp ult i32 %tid, 5
  %n = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %few)
  %all = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %few)
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 %few)
  %a = select i1 %all, i32 100, i32 0
  %o = select i1 %any, i32 1000, i32 0
  %s = add i32 %n, %a
  %r = add i32 %s, %o
  %py = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %r, ptr addrspace(1) %py, align 4)");
  Memory memory;
  auto* y = fresh<int32_t>(memory, "y", 64);
  ASSERT_TRUE(run(ir, {.block = {64}}, memory, {y}).ok());
  EXPECT_EQ(y[33], 1005);
}

//===-- Broken ------------------------------------------------------------------------===//

std::string broken(const std::string& body, uint32_t threads = 64, const Options& options = {}) {
  Memory memory;
  return run(kernel("", body), {.block = {threads}}, memory, {}, options).text();
}

TEST(BarrierChecks, AThreadThatHasExited) {
  EXPECT_EQ(broken(R"(
  %early = icmp eq i32 %tid, 40
  br i1 %early, label %out, label %go
go:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %out
out:)"),
            "divergence: @k, block (0, 0, 0) thread (0, 0, 0): 63 of 64 threads wait at a barrier that the "
            "others do not reach\n"
            "  at bar.sync 0 (line 21)\n"
            "  beside block (0, 0, 0) thread (40, 0, 0) has exited");
}

TEST(BarrierChecks, ThreadsAtDifferentBarriers) {
  EXPECT_NE(broken(R"(
  %low = icmp ult i32 %tid, 32
  br i1 %low, label %a, label %b
a:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %out
b:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %out
out:)")
                .find("is at this barrier, while other threads of the block wait at another one"),
            std::string::npos);
  EXPECT_NE(broken(R"(
  %low = icmp ult i32 %tid, 32
  %id = zext i1 %low to i32
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 %id))")
                .find("32 of 64 threads wait at a barrier that the others do not reach"),
            std::string::npos);
}

TEST(BarrierChecks, NumbersThatAreNotLegal) {
  EXPECT_NE(
      broken("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 16)").find("barrier 16; a block has 16"),
      std::string::npos);
  EXPECT_NE(broken("call void @llvm.nvvm.barrier.cta.sync.count(i32 1, i32 40)")
                .find("a barrier of 40 threads; it has to be a multiple of 32"),
            std::string::npos);
  EXPECT_NE(
      broken("call void @llvm.nvvm.barrier.cta.sync.count(i32 1, i32 96)")
          .find("deadlock: @k, block (0, 0, 0) thread (0, 0, 0): a barrier of 96 threads in a block of 64"),
      std::string::npos);
  EXPECT_NE(broken(R"(
  %low = icmp ult i32 %tid, 32
  %n = select i1 %low, i32 64, i32 32
  call void @llvm.nvvm.barrier.cta.sync.count(i32 1, i32 %n))")
                .find("waits at barrier 1 for 32 threads, where others wait for 64"),
            std::string::npos);
}

TEST(BarrierChecks, AMissingBarrierIsARace) {
  // In ascending order thread 0 reads before any write; in descending order the last thread does.
  for (Order order : {Order::Ascending, Order::Descending}) {
    Memory memory;
    auto* x = iota<float>(memory, "x", 64);
    auto* y = fresh<float>(memory, "y", 64);
    Report report = run(reverse(""), {.block = {64}}, memory, {x, y}, {.order = order});
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.finding->fault, Fault::Uninitialised) << report.text();
  }
  // Each thread meets one whose number differs in the last bit, which has written before it.
  std::string ir = kTile + kernel(kXY, kLoadX + R"(
  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %t
  store float %v, ptr addrspace(3) %mine, align 4
  %odd = and i32 %tid, 1
  %isOdd = trunc i32 %odd to i1
  br i1 %isOdd, label %read, label %out
read:
  %before = getelementptr float, ptr addrspace(3) %mine, i64 -1
  %w = load float, ptr addrspace(3) %before, align 4
  store float %w, ptr addrspace(1) %py, align 4
  br label %out
out:)");
  Memory memory;
  auto* x = iota<float>(memory, "x", 64);
  auto* y = fresh<float>(memory, "y", 64);
  EXPECT_EQ(run(ir, {.block = {64}}, memory, {x, y}).text(),
            "data race: @k, block (0, 0, 0) thread (1, 0, 0): reads 4 bytes at @tile + 0 (@tile has 1024 "
            "bytes), which "
            "another thread has written; nothing orders the two\n"
            "  at ld.shared.b32 %r8, [%rd2+-4] (line 43)\n"
            "  beside block (0, 0, 0) thread (0, 0, 0) at st.shared.b32 [%rd2], %r6 (line 36)");
}

TEST(BarrierChecks, AMissingSecondBarrierIsARaceOfWriteAfterRead) {
  std::string again = R"(
  %all = getelementptr float, ptr addrspace(3) @tile, i64 0
  %w = load float, ptr addrspace(3) %all, align 4
)" + keep("float", "%w") +
                      R"(
  %is0 = icmp eq i32 %tid, 63
  br i1 %is0, label %write, label %out
write:
  store float 7.0, ptr addrspace(3) %all, align 4
  br label %out
out:)";
  std::string ir = kTile + kernel(kXY, kLoadX + R"(
  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %t
  store float %v, ptr addrspace(3) %mine, align 4
)" + kBarrier + again);
  Memory memory;
  auto* x = iota<float>(memory, "x", 64);
  auto* y = fresh<float>(memory, "y", 64);
  EXPECT_NE(run(ir, {.block = {64}}, memory, {x, y})
                .text()
                .find("writes 4 bytes at @tile + 0 (@tile has 1024 bytes), "
                      "which another thread has read; nothing orders the two"),
            std::string::npos);
}

TEST(BarrierChecks, ALoopWithoutEndIsARunaway) {
  std::string loop = R"(
  br label %again
again:
  %i = phi i32 [ 0, %0 ], [ %n, %again ]
  %n = add i32 %i, 1
  %more = icmp ne i32 %n, -1
  br i1 %more, label %again, label %out
out:)";
  EXPECT_NE(broken(loop, 32, {.maxSteps = 1000})
                .find("runaway: @k, block (0, 0, 0) thread (0, 0, 0): the launch has made 1000 steps and is "
                      "not done"),
            std::string::npos);
}

}  // namespace
}  // namespace normc::emulator
