// Clusters: blocks that run together, their barrier, and each other's shared memory.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

const std::string kSlot = "@slot = internal addrspace(3) global [64 x float] undef, align 16\n";
const std::string kSync =
    "  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n  call void "
    "@llvm.nvvm.barrier.cluster.wait.aligned()\n";

/// y[t] = what thread tid of the next block of the cluster has stored in its shared memory.
std::string neighbour(const std::string& before, const std::string& after) {
  return kSlot + kernel(kXY, kLoadX + R"(
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %ranks = call i32 @llvm.nvvm.read.ptx.sreg.cluster.nctarank()
  %up = add i32 %rank, 1
  %next = urem i32 %up, %ranks
  %i = zext i32 %tid to i64
  %mine = getelementptr float, ptr addrspace(3) @slot, i64 %i
  store float %v, ptr addrspace(3) %mine, align 4
)" + before + R"(
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 %next)
  %w = load float, ptr addrspace(7) %theirs, align 4
  store float %w, ptr addrspace(1) %py, align 4
)" + after);
}

Report runNeighbour(const std::string& ir, Order order, std::vector<float>* result = nullptr) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 4 * 48);
  auto* y = fresh<float>(memory, "y", 4 * 48);
  Report report = run(ir, {.grid = {4}, .block = {48}, .cluster = {2}}, memory, {x, y}, {.order = order});
  if (result) result->assign(y, y + 4 * 48);
  return report;
}

TEST(Cluster, BlocksReadEachOthersSharedMemory) {
  for (Order order : {Order::Ascending, Order::Descending, Order::Random}) {
    std::vector<float> y;
    Report report = runNeighbour(neighbour(kSync, kSync), order, &y);
    ASSERT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(y[0], 48);
    EXPECT_EQ(y[50], 2);
    EXPECT_EQ(y[100], 148);
    EXPECT_EQ(report.clusterBarriers, 4u);
  }
}

/// All threads read what the first of each cluster then stores over: one place for every `share` blocks.
std::string textOfReadThenStore(const std::string& between, int share) {
  const std::string ir = kernel(kXY, R"(
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %place = udiv i32 %ctaid, )" + std::to_string(share) +
                                         R"(
  %p = getelementptr float, ptr addrspace(1) %x, i32 %place
  %v = load float, ptr addrspace(1) %p, align 4
)" + between + firstOfClusterStores("%v", "%p"));
  Memory memory;
  auto* x = iota<float>(memory, "x", 8);
  return run(ir, {.grid = {6}, .block = {64}, .cluster = {2}}, memory, {x, x}).text();
}

TEST(Cluster, ItsBarrierOrdersWhatAllItsBlocksHaveRead) {
  EXPECT_EQ(textOfReadThenStore(kSync, 2), "ok");
  EXPECT_TRUE(has(textOfReadThenStore("", 2), "nothing orders the two"));
  EXPECT_TRUE(has(textOfReadThenStore(kSync, 4), "nothing orders the two")) << "another cluster has it too";
}

/// One block has met itself more often than the other, and the reads between still count.
TEST(Cluster, ItsBarrierOrdersBlocksThatCountedDifferently) {
  const std::string uneven = R"(
  %second = icmp eq i32 %rank, 1
  br i1 %second, label %more, label %on
more:
)" + kBarrier + kBarrier + R"(
  %again = load float, ptr addrspace(1) %p, align 4
)" + keep("float", "%again") +
                             R"(
  br label %on
on:
)";
  EXPECT_EQ(textOfReadThenStore(uneven + kSync, 2), "ok");
  EXPECT_TRUE(has(textOfReadThenStore(kSync + uneven, 2), "nothing orders the two"));
}

TEST(Cluster, TheFirstBarrierIsNeeded) {
  EXPECT_TRUE(
      has(runNeighbour(neighbour("", kSync), Order::Ascending).text(),
          "touches @slot + 0 of block (1, 0, 0) (@slot has 256 bytes) before the first cluster barrier: that "
          "block may not have begun"));
}

TEST(Cluster, ABarrierOfTheBlockIsNotEnough) {
  std::string first = neighbour(kBarrier, kSync);
  size_t store = first.find("  store float %v");
  first.insert(store, kSync);
  for (Order order : {Order::Ascending, Order::Descending})
    EXPECT_TRUE(has(runNeighbour(first, order).text(), "data race"));
}

const std::string kArrive = "  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n",
                  kWait = "  call void @llvm.nvvm.barrier.cluster.wait.aligned()\n";

/// Both blocks arrive, the first one stores before that or after it, and the second one reads it.
std::string textOfSplitBarrier(const std::string& before, const std::string& after,
                               const std::string& beforeTheRead, Order order) {
  const std::string ir = kSlot + kernel("", R"(
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %isFirst = icmp eq i32 %rank, 0
  %i = zext i32 %tid to i64
  %mine = getelementptr float, ptr addrspace(3) @slot, i64 %i
  br i1 %isFirst, label %one, label %other
one:
)" + before + kArrive + after + kWait + R"(
  br label %end
other:
)" + kArrive + beforeTheRead + R"(
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %mine, i32 0)
  %w = load float, ptr addrspace(7) %theirs, align 4
)" + keep("float", "%w") + (beforeTheRead == kWait ? "" : kWait) +
                                                R"(
  br label %end
end:
)" + kSync);
  Memory memory;
  return run(ir, {.grid = {2}, .block = {48}, .cluster = {2}}, memory, {}, {.order = order}).text();
}

TEST(Cluster, ItsBarrierOrdersWhatCameBeforeTheArrival) {
  const std::string store = "  store float 1.0, ptr addrspace(3) %mine, align 4\n";
  for (Order order : {Order::Ascending, Order::Descending, Order::Random})
    EXPECT_EQ(textOfSplitBarrier(store, "", kWait, order), "ok");
  EXPECT_TRUE(has(textOfSplitBarrier("", store, kWait, Order::Ascending), "data race"));
}

TEST(Cluster, ABarrierWithoutAWaitOrdersNothing) {
  const std::string store = "  store float 1.0, ptr addrspace(3) %mine, align 4\n";
  EXPECT_TRUE(
      has(textOfSplitBarrier(store, "", kBarrier, Order::Ascending),
          "touches @slot + 0 of block (0, 0, 0) (@slot has 256 bytes) before the first cluster barrier"));
}

TEST(Cluster, ARelaxedArrivalOrdersNothing) {
  std::string relaxed =
      "  call void @llvm.nvvm.barrier.cluster.arrive.relaxed.aligned()\n  call void "
      "@llvm.nvvm.barrier.cluster.wait.aligned()\n";
  EXPECT_TRUE(has(runNeighbour(neighbour(relaxed, kSync), Order::Ascending).text(), "data race"));
}

TEST(Cluster, ABlockThatHasExitedHasNoSharedMemory) {
  // Block 0 leaves at once after the barrier; block 1 reads it then.
  std::string ir = kSlot + kernel("", R"(
  store float 1.0, ptr addrspace(3) @slot, align 4
)" + kSync + R"(
  %is0 = icmp eq i32 %ctaid, 0
  br i1 %is0, label %out, label %read
read:
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @slot, i32 0)
  %w = load float, ptr addrspace(7) %theirs, align 4
)" + keep("float", "%w") + R"(
  br label %out
out:)");
  Memory memory;
  Shape shape{.grid = {2}, .cluster = {2}};
  EXPECT_TRUE(has(
      run(ir, shape, memory, {}, {.order = Order::Descending}).text(),
      "reads 4 bytes at @slot + 0 of block (0, 0, 0) (@slot has 256 bytes), of which threads have already "
      "exited: the memory may be gone"));
  // The other way round block 1 is in time, by chance.
  EXPECT_TRUE(
      has(run(ir, shape, memory, {}).text(),
          "data race: @k, block (0, 0, 0) thread (0, 0, 0): its block ends, and with it @slot, which another "
          "block reads; nothing orders the two\n  at the end of the kernel\n  beside block (1, 0, 0)"));
}

TEST(Cluster, MisusesOfItsBarrier) {
  Memory memory;
  auto text = [&](const std::string& body) {
    return run(kSlot + kernel("", body), {.grid = {2}, .block = {32}, .cluster = {2}}, memory, {}).text();
  };
  EXPECT_TRUE(has(text("call void @llvm.nvvm.barrier.cluster.wait()"),
                  "waits at the cluster barrier without having arrived"));
  EXPECT_TRUE(has(
      text("call void @llvm.nvvm.barrier.cluster.arrive()\n call void @llvm.nvvm.barrier.cluster.arrive()"),
      "arrives at the cluster barrier twice without a wait between"));
  EXPECT_TRUE(has(text(R"(
  %is0 = icmp eq i32 %t32, 0
  br i1 %is0, label %other, label %go
other:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %go
go:
)" + kSync),
                  "1 of 32 threads wait at a barrier that the others do not reach"));
}

/// LLVM may map an address before the condition under which it is used.
TEST(Cluster, ARankThatNoBlockHasMapsToNoMemory) {
  const auto runMapped = [](const std::string& use) {
    Memory memory;
    return run(kSlot + kernel("",
                              "%p = call ptr addrspace(7) "
                              "@llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @slot, i32 2)\n" +
                                  use),
               {.grid = {2}, .block = {1}, .cluster = {2}}, memory, {});
  };
  EXPECT_TRUE(runMapped("").ok());
  EXPECT_TRUE(has(runMapped("store i32 1, ptr addrspace(7) %p").text(), "out of bounds"));
}

TEST(Cluster, ThreadsThatExitNeedNotArrive) {
  Memory memory;
  Report report = run(kernel("", R"(
  %early = icmp ult i32 %tid, 8
  br i1 %early, label %out, label %go
go:
)" + kSync + R"(
  br label %out
out:)"),
                      {.grid = {2}, .block = {32}, .cluster = {2}}, memory, {}, {.order = Order::Descending});
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace
}  // namespace normc::emulator
