// Operations of all lanes of a warp, and the faults if a lane is missing.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// y[t] = what `instruction` makes of %v = t, an i32.
std::vector<int32_t> lanes(const std::string& instruction, uint32_t threads = 32,
                           const Options& options = {}) {
  Memory memory;
  auto* y = fresh<int32_t>(memory, "y", threads);
  Report report = run(kernel("ptr addrspace(1) %y", R"(
  %v = add i32 %tid, 0
  )" + instruction + R"(
  %py = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %r, ptr addrspace(1) %py, align 4)"),
                      {.block = {threads}}, memory, {y}, options);
  EXPECT_TRUE(report.ok()) << report.text();
  return {y, y + threads};
}

std::string shuffle(const std::string& mode, int b, int c) {
  return "%r = call i32 @llvm.nvvm.shfl.sync." + mode + ".i32(i32 -1, i32 %v, i32 " + std::to_string(b) +
         ", i32 " + std::to_string(c) + ")";
}

TEST(Warp, ShufflesMoveValuesBetweenLanes) {
  auto butterfly = lanes(shuffle("bfly", 5, 31)), down = lanes(shuffle("down", 3, 31)),
       up = lanes(shuffle("up", 3, 0)), index = lanes(shuffle("idx", 7, 31));
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(butterfly[lane], lane ^ 5);
    EXPECT_EQ(down[lane], lane + 3 < 32 ? lane + 3 : lane);
    EXPECT_EQ(up[lane], lane >= 3 ? lane - 3 : lane);
    EXPECT_EQ(index[lane], 7);
  }
}

TEST(Warp, ShufflesStayInTheirSegment) {
  // c = 0x181f: segments of 8 lanes.
  auto down = lanes(shuffle("down", 3, 0x181f)), index = lanes(shuffle("idx", 2, 0x181f));
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(down[lane], lane % 8 + 3 < 8 ? lane + 3 : lane);
    EXPECT_EQ(index[lane], lane / 8 * 8 + 2);
  }
}

TEST(Warp, AShuffleTellsWhetherItsLaneIsInRange) {
  auto in = lanes(R"(
  %pair = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %v, i32 30, i32 31)
  %bit = extractvalue { i32, i1 } %pair, 1
  %r = zext i1 %bit to i32)");
  EXPECT_EQ(in[0], 1);
  EXPECT_EQ(in[1], 1);
  EXPECT_EQ(in[2], 0);
}

TEST(Warp, HalvesOfAWarpShuffleByThemselves) {
  auto sum = lanes(R"(
  %half = lshr i32 %tid, 4
  %shift = shl i32 %half, 4
  %mask = shl i32 65535, %shift
  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 %mask))");
  EXPECT_EQ(sum[3], 15 * 16 / 2);
  EXPECT_EQ(sum[20], 15 * 16 / 2 + 16 * 16);
}

TEST(Warp, VotesAndMatches) {
  auto odd = "%low = and i32 %v, 1\n %odd = trunc i32 %low to i1\n";
  auto zext = "\n %r = zext i1 %b to i32";
  EXPECT_EQ(
      uint32_t(lanes(std::string(odd) + "%r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)")[9]),
      0xaaaaaaaau);
  EXPECT_EQ(lanes(std::string(odd) + "%b = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %odd)" + zext)[0], 0);
  EXPECT_EQ(lanes(std::string(odd) + "%b = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)" + zext)[0], 1);
  EXPECT_EQ(lanes(std::string(odd) + "%b = call i1 @llvm.nvvm.vote.uni.sync(i32 -1, i1 %odd)" + zext)[0], 0);
  auto match = lanes("%key = urem i32 %v, 3\n %r = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %key)");
  EXPECT_EQ(uint32_t(match[4]), 0x92492492u);
  auto leader = lanes(R"(%p = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)
  %b = extractvalue { i32, i1 } %p, 1)" +
                      std::string(zext));
  EXPECT_EQ(leader[0], 1);
  EXPECT_EQ(leader[1], 0);
}

TEST(Warp, ReductionsOverLanes) {
  auto reduce = [](const std::string& op) {
    return lanes("%r = call i32 @llvm.nvvm.redux.sync." + op + "(i32 %v, i32 -1)")[11];
  };
  EXPECT_EQ(reduce("add"), 31 * 16);
  EXPECT_EQ(reduce("max"), 31);
  EXPECT_EQ(reduce("umin"), 0);
  EXPECT_EQ(reduce("or"), 31);
  EXPECT_EQ(reduce("xor"), 0);
}

TEST(Warp, APartialWarpAtTheEndOfABlock) {
  auto sum = lanes(R"(
  %last = icmp ugt i32 %tid, 31
  %mask = select i1 %last, i32 255, i32 -1
  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 %mask))",
                   40);
  EXPECT_EQ(sum[31], 31 * 16);
  EXPECT_EQ(sum[32], 8 * 32 + 7 * 4);
}

TEST(Warp, AWarpBarrierOrdersSharedMemory) {
  std::string ir =
      "@tile = internal addrspace(3) global [32 x i32] undef, align 4\n" + kernel("ptr addrspace(1) %y", R"(
  %mine = getelementptr i32, ptr addrspace(3) @tile, i64 %t
  store i32 %tid, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %next32 = xor i32 %tid, 1
  %next = zext i32 %next32 to i64
  %theirs = getelementptr i32, ptr addrspace(3) @tile, i64 %next
  %v = load i32, ptr addrspace(3) %theirs, align 4
  %py = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %v, ptr addrspace(1) %py, align 4)");
  for (Order order : {Order::Ascending, Order::Descending, Order::Random}) {
    Memory memory;
    auto* y = fresh<int32_t>(memory, "y", 32);
    Report report = run(ir, {.block = {32}}, memory, {y}, {.order = order});
    ASSERT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(y[6], 7);
  }
}

//===-- Broken ------------------------------------------------------------------------===//

std::string broken(const std::string& body, uint32_t threads = 32) {
  Memory memory;
  return run(kernel("", body), {.block = {threads}}, memory, {}).text();
}

TEST(WarpChecks, AMaskThatNamesAThreadThatDoesNotExist) {
  EXPECT_EQ(broken("%r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)", 16),
            "divergence: @k, block (0, 0, 0) thread (0, 0, 0): mask 0xffffffff names lane 16, but the warp "
            "has only 16 threads\n"
            "  at shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1 (line 16)");
}

TEST(WarpChecks, AMaskThatNamesALaneThatHasExited) {
  EXPECT_NE(broken(R"(
  %early = icmp eq i32 %tid, 2
  br i1 %early, label %out, label %go
out:
  ret void
go:
  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31))")
                .find("mask 0xffffffff names lane 2, which has exited"),
            std::string::npos);
}

TEST(WarpChecks, ALaneThatWaitsElsewhere) {
  std::string text = broken(R"(
  %low = icmp ult i32 %tid, 16
  br i1 %low, label %a, label %b
a:
  %r = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)
  br label %out
b:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %out
out:)");
  EXPECT_EQ(text,
            "divergence: @k, block (0, 0, 0) thread (0, 0, 0): the mask names lane 16, which does not come\n"
            "  at shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1 (line 21)\n"
            "  beside block (0, 0, 0) thread (16, 0, 0) waits at a barrier at bar.sync 0 (line 24)");
}

TEST(WarpChecks, AMaskThatDoesNotNameWhoExecutesIt) {
  EXPECT_NE(broken("%r = call i32 @llvm.nvvm.redux.sync.add(i32 %tid, i32 65535)")
                .find("mask 0x0000ffff does not name lane 16, which executes it"),
            std::string::npos);
}

TEST(WarpChecks, LanesWithDifferentMasks) {
  EXPECT_NE(broken(R"(
  %low = icmp ult i32 %tid, 16
  %mask = select i1 %low, i32 -1, i32 -65536
  %r = call i32 @llvm.nvvm.redux.sync.add(i32 %tid, i32 %mask))")
                .find("the mask names lane 16, which "),
            std::string::npos);
}

TEST(WarpChecks, AValueOfALaneThatIsNotNamed) {
  EXPECT_NE(broken(R"(
  %low = icmp ult i32 %tid, 16
  br i1 %low, label %a, label %out
a:
  %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %tid, i32 20, i32 31)
  br label %out
out:)")
                .find("reads the value of lane 20, which mask 0x0000ffff does not name"),
            std::string::npos);
}

}  // namespace
}  // namespace normc::emulator
