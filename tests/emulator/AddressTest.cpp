// Questions about addresses, arrivals from afar, and the other ways to copy.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

const std::string kShared =
    "@tile = internal addrspace(3) global [64 x float] undef, align 128\n"
    "@bar = internal addrspace(3) global i64 undef, align 8\n";
const std::string kSync =
    "  call void @llvm.nvvm.barrier.cluster.arrive()\n  call void @llvm.nvvm.barrier.cluster.wait()\n";

std::string text(const std::string& body, const Shape& shape = {}) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 64);
  auto* y = fresh<float>(memory, "y", 64);
  return run(kShared + kernel("ptr %x, ptr %y", body), shape, memory, {x, y}).text();
}

TEST(Address, KnowsItsSpace) {
  EXPECT_EQ(text(R"(
  %local = alloca float, align 4
  %s = addrspacecast ptr addrspace(3) @tile to ptr
  %a = call i1 @llvm.nvvm.isspacep.global(ptr %x)
  %b = call i1 @llvm.nvvm.isspacep.shared(ptr %s)
  %c = call i1 @llvm.nvvm.isspacep.local(ptr %local)
  %d = call i1 @llvm.nvvm.isspacep.shared(ptr %x)
  %nd = xor i1 %d, true
  %ab = and i1 %a, %b
  %cd = and i1 %c, %nd
  %all = and i1 %ab, %cd
  call void asm sideeffect "@!$0 trap;", "b"(i1 %all))"),
            "ok");
}

TEST(Address, KnowsItsBlock) {
  std::string body = R"(
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %other = xor i32 %rank, 1
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @tile, i32 %other)
  %g = addrspacecast ptr addrspace(7) %theirs to ptr
  %got = call i32 @llvm.nvvm.getctarank(ptr %g)
  %right = icmp eq i32 %got, %other
  call void asm sideeffect "@!$0 trap;", "b"(i1 %right))";
  EXPECT_EQ(text(body, {.grid = {2}, .cluster = {2}}), "ok");
  EXPECT_TRUE(
      has(text("%r = call i32 @llvm.nvvm.getctarank(ptr %x)\n" + keep("i32", "%r")),
          "misuse: @k, block (0, 0, 0) thread (0, 0, 0): asks for the block of x + 0 (x has 256 bytes), "
          "which is not shared memory"));
  EXPECT_TRUE(has(text("%r = call ptr @llvm.nvvm.mapa(ptr %x, i32 0)\n" + keep("ptr", "%r")),
                  "maps x + 0 (x has 256 bytes), which is not"));
}

TEST(Address, OfAnotherBlockNeedsADistributedPointer) {
  std::string body = kSync + R"(
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %other = xor i32 %rank, 1
  %theirs = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @tile, i32 %other)
  %g = addrspacecast ptr addrspace(7) %theirs to ptr
  %p = addrspacecast ptr %g to ptr addrspace(3)
  store float 1.0, ptr addrspace(3) %p, align 4)" +
                     kSync;
  EXPECT_TRUE(has(text(body, {.grid = {2}, .cluster = {2}}),
                  ", which is another block's: the pointer is not a distributed one"));
}

TEST(Address, AnMbarrierIsInSharedMemory) {
  EXPECT_TRUE(has(text("call void @llvm.nvvm.mbarrier.init(ptr %x, i32 1)"),
                  "initialises an mbarrier at x + 0 (x has 256 bytes), which is not in shared memory"));
}

TEST(Copies, AnMbarrierCountsCopiesOfThreads) {
  std::string body = R"(
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 16)
  br label %ready
ready:
)" + kBarrier + R"(
  %i = mul i64 %t, 4
  %from = getelementptr float, ptr %x, i64 %i
  %gfrom = addrspacecast ptr %from to ptr addrspace(1)
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i
  call void @llvm.nvvm.cp.async.ca.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %gfrom)
  call void @llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared(ptr addrspace(3) @bar)
  %done = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)
  %o = xor i64 %i, 60
  %q = getelementptr float, ptr addrspace(3) @tile, i64 %o
  %v = load <4 x float>, ptr addrspace(3) %q, align 16
  %py = getelementptr float, ptr %y, i64 %i
  store <4 x float> %v, ptr %py, align 16)";
  EXPECT_EQ(text(body, {.block = {16}}), "ok");
}

TEST(Copies, BulkStoresAreChecked) {
  std::string body = R"(
  store <4 x float> splat (float 2.0), ptr addrspace(3) @tile, align 16
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  %to = addrspacecast ptr %y to ptr addrspace(1)
  call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %to, ptr addrspace(3) @tile, i32 BYTES,
      i64 0, i1 false)
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0))";
  auto of = [&](const std::string& bytes) {
    std::string ir = body;
    return text(ir.replace(ir.find("BYTES"), 5, bytes));
  };
  EXPECT_EQ(of("16"), "ok");
  EXPECT_TRUE(has(of("32"), "uninitialised"));
  EXPECT_TRUE(has(of("512"), "reads 512 bytes at @tile + 0 (@tile has 256 bytes)"));
  EXPECT_TRUE(has(of("20"), "copies 20 bytes; a bulk copy needs a multiple of 16"));
}

TEST(Copies, TakeNoMoreThanTheyMove) {
  EXPECT_TRUE(has(text(R"(
  %from = addrspacecast ptr %x to ptr addrspace(1)
  call void @llvm.nvvm.cp.async.ca.shared.global.4.s(ptr addrspace(3) @tile, ptr addrspace(1) %from, i32 8))"),
                  "takes 8 bytes for a copy of 4"));
}

TEST(Mbarrier, IsArrivedAtFromAnotherBlock) {
  // Block 1 writes into block 0 and arrives at its mbarrier; block 0 waits for that.
  std::string ir = kShared + kernel("ptr %x, ptr %y", R"(
  %is0 = icmp eq i32 %ctaid, 0
  br i1 %is0, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()
  br label %ready
ready:
)" + kSync + R"(
  br i1 %is0, label %wait, label %give
give:
  %to = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @tile, i32 0)
  %at = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @bar, i32 0)
  store float 5.0, ptr addrspace(7) %to, align 4
  call void @llvm.nvvm.mbarrier.arrive.scope.cluster.space.cluster(ptr addrspace(7) %at, i32 1)
  br label %end
wait:
  %done = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3) @bar, i32 0)
  %v = load float, ptr addrspace(3) @tile, align 4
  store float %v, ptr %y, align 4
  br label %end
end:
)" + kSync);
  for (Order order : {Order::Ascending, Order::Descending}) {
    Memory memory;
    auto* y = fresh<float>(memory, "y", 1);
    Report report = run(ir, {.grid = {2}, .cluster = {2}}, memory, {y, y}, {.order = order});
    ASSERT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(*y, 5.0f);
  }
}

TEST(Waiting, HintsAndPausesDoNothingElse) {
  EXPECT_EQ(text(R"(
  call void @llvm.nvvm.griddepcontrol.wait()
  call void @llvm.nvvm.griddepcontrol.launch.dependents()
  %g = addrspacecast ptr %x to ptr addrspace(1)
  call void @llvm.nvvm.prefetch.global.L2(ptr addrspace(1) %g)
  call void asm sideeffect "griddepcontrol.wait;", "~{memory}"()
  call void asm sideeffect "prefetch.global.L2 [$0];", "l"(ptr %x)
  call void asm sideeffect "nanosleep.u32 $0;", "r"(i32 20))",
                 {.block = {64}}),
            "ok");
}

}  // namespace
}  // namespace normc::emulator
