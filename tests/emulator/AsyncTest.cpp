// Copies that end later: cp.async and its groups, bulk copies and their mbarriers.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

const std::string kTile = "@tile = internal addrspace(3) global [256 x float] undef, align 128\n";

/// Each thread copies 16 bytes and then reads what thread tid ^ flip has copied.
std::string copies(const std::string& wait) {
  return kTile + kernel(kXY + ", i64 %flip", R"(
  %from = getelementptr <4 x float>, ptr addrspace(1) %x, i64 %t
  %to = getelementptr <4 x float>, ptr addrspace(3) @tile, i64 %t
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %from)
  call void @llvm.nvvm.cp.async.commit.group()
)" + wait + R"(
  %other = xor i64 %t, %flip
  %q = getelementptr <4 x float>, ptr addrspace(3) @tile, i64 %other
  %v = load <4 x float>, ptr addrspace(3) %q, align 16
  %py = getelementptr <4 x float>, ptr addrspace(1) %y, i64 %t
  store <4 x float> %v, ptr addrspace(1) %py, align 16)");
}

std::string runCopies(const std::string& wait, uint64_t flip) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 256, Access::ReadOnly);
  auto* y = fresh<float>(memory, "y", 256);
  Report report = run(copies(wait), {.block = {64}}, memory, {x, y, word(flip)});
  if (!report.ok()) return report.text();
  EXPECT_EQ(report.of("x").bytesCopied, 1024u);
  EXPECT_EQ(report.of("x").bytesLoaded, 1024u);
  return y[5] == float((1 ^ flip) * 4 + 1) ? "ok" : "wrong";
}

const std::string kWait = "  call void @llvm.nvvm.cp.async.wait.group(i32 0)\n";

TEST(CpAsync, IsThereAfterItsWait) {
  EXPECT_EQ(runCopies(kWait, 0), "ok");
  EXPECT_EQ(runCopies("  call void @llvm.nvvm.cp.async.wait.all()\n", 0), "ok");
  EXPECT_EQ(runCopies(kWait + kBarrier, 33), "ok");
}

TEST(CpAsync, IsNotThereBeforeItsWait) {
  EXPECT_TRUE(has(runCopies("", 0), "data race"));
  EXPECT_TRUE(has(runCopies("", 0),
                  "beside a copy begun by block (0, 0, 0) thread (0, 0, 0) at cp.async.cg.shared.global ["));
  EXPECT_TRUE(has(runCopies("  call void @llvm.nvvm.cp.async.wait.group(i32 1)\n", 0), "data race"));
}

TEST(CpAsync, OfOthersNeedsABarrierToo) {
  EXPECT_TRUE(has(runCopies(kWait, 1), "uninitialised"));
  EXPECT_TRUE(has(runCopies(kBarrier + kWait, 1), "data race"));
}

TEST(CpAsync, FillsWithZeros) {
  std::string ir = kTile + kernel(kXY, R"(
  call void @llvm.nvvm.cp.async.ca.shared.global.16.s(ptr addrspace(3) @tile, ptr addrspace(1) %x, i32 8)
  call void @llvm.nvvm.cp.async.wait.all()
  %v = load <4 x float>, ptr addrspace(3) @tile, align 16
  store <4 x float> %v, ptr addrspace(1) %y, align 16)");
  Memory memory;
  auto* x = iota<float>(memory, "x", 2);
  auto* y = fresh<float>(memory, "y", 4);
  Report report = run(ir, {}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], 0.0f);
}

//===-- Bulk copies -------------------------------------------------------------------===//

const std::string kBulkTile = kTile + "@bar = internal addrspace(3) global i64 undef, align 8\n";
const std::string kInit = R"(
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  br label %ready
ready:
)";
const std::string kBegin = R"(
  br i1 %is0, label %begin, label %wait
begin:
  %state = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bar, i32 1024)
  %to = addrspacecast ptr addrspace(3) @tile to ptr addrspace(7)
  call void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7) %to, ptr addrspace(3) @bar,
      ptr addrspace(1) %x, i32 1024, i16 0, i64 0, i1 false, i1 false)
  br label %wait
wait:
)";
const std::string kTryWait =
    R"(
  call void asm sideeffect "{\0A\09.reg .pred       P1; \0A\09LAB_WAIT: \0A\09)"
    R"(mbarrier.try_wait.parity.shared.b64 P1, [$0], $1, $2; \0A\09@P1 bra.uni DONE; \0A\09)"
    R"(bra.uni     LAB_WAIT; \0A\09DONE: \0A\09}", "r,r,r"(ptr addrspace(3) @bar, i32 0, i32 1000)
)";
const std::string kUse = R"(
  %i = sub i64 255, %t
  %q = getelementptr float, ptr addrspace(3) @tile, i64 %i
  %v = load float, ptr addrspace(3) %q, align 4
  %py = getelementptr float, ptr addrspace(1) %y, i64 %t
  store float %v, ptr addrspace(1) %py, align 4)";

Report runBulk(const std::string& body, std::vector<float>* result = nullptr,
               Order order = Order::Ascending) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 256, Access::ReadOnly);
  auto* y = fresh<float>(memory, "y", 256);
  Report report = run(kBulkTile + kernel(kXY, body), {.block = {256}}, memory, {x, y}, {.order = order});
  if (result) result->assign(y, y + 256);
  return report;
}

TEST(Bulk, ComesWithItsMbarrier) {
  for (Order order : {Order::Ascending, Order::Descending, Order::Random}) {
    std::vector<float> y;
    Report report = runBulk(kInit + kBarrier + kBegin + kTryWait + kUse, &y, order);
    ASSERT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(y[0], 255);
    EXPECT_EQ(y[255], 0);
    EXPECT_EQ(report.of("x").bytesLoaded, 1024u);
  }
  std::string intrinsic = R"(
  br label %again
again:
  %done = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 0)
  br i1 %done, label %use, label %again
use:)";
  EXPECT_EQ(runBulk(kInit + kBarrier + kBegin + intrinsic + kUse).text(), "ok");
}

TEST(Bulk, IsNotThereBeforeTheWait) {
  std::string text = runBulk(kInit + kBarrier + kBegin + kUse).text();
  EXPECT_TRUE(has(text, "data race") && has(text, "beside a bulk copy of block (0, 0, 0)")) << text;
  EXPECT_TRUE(has(runBulk(kInit + kBarrier + kBegin + kBarrier + kUse).text(), "data race"));
}

TEST(Bulk, OthersMustSeeTheMbarrierInitialised) {
  std::string text = runBulk(kInit + kBegin + kTryWait + kUse).text();
  EXPECT_TRUE(
      has(text, "data race") &&
      has(text, "uses the mbarrier at @bar + 0 (@bar has 8 bytes) that another thread has initialised"))
      << text;
}

TEST(Bulk, BytesThatNeverComeAreADeadlock) {
  std::string begin = kBegin;
  begin.replace(begin.find("i32 1024)"), 9, "i32 2048)");
  std::string text = runBulk(kInit + kBarrier + begin + kTryWait + kUse).text();
  EXPECT_TRUE(has(text, "deadlock: @k, block (0, 0, 0) thread (0, 0, 0): none of 256 threads can go on"))
      << text;
  EXPECT_TRUE(has(text, "waits for an mbarrier (phase 0: 0 of 1 arrivals and 1024 bytes to come)")) << text;
}

TEST(Bulk, SizesAndAddressesAreMultiplesOf16) {
  std::string begin = kBegin;
  begin.replace(begin.find("i32 1024, i16"), 13, "i32 1020, i16");
  EXPECT_TRUE(has(runBulk(kInit + kBarrier + begin + kTryWait + kUse).text(),
                  "copies 1020 bytes; a bulk copy needs a multiple of 16"));
}

TEST(Bulk, GoesToAnotherBlockOfTheCluster) {
  std::string sync =
      "  call void @llvm.nvvm.barrier.cluster.arrive()\n  call void @llvm.nvvm.barrier.cluster.wait()\n";
  std::string begin = kBegin;
  begin.replace(begin.find("i16 0, i64 0, i1 false"), 22, "i16 3, i64 0, i1 true");
  // Block 0 copies for both; each waits for what comes to itself.
  size_t at = begin.find("  %to =");
  begin.insert(at, "  %isFirst = icmp eq i32 %ctaid, 0\n  br i1 %isFirst, label %copy, label %wait\ncopy:\n");
  std::string use = kUse;
  use.replace(use.find("%t\n"), 2, "%tid64");
  use = "  %tid64 = zext i32 %tid to i64\n" + use;
  std::string ir = kBulkTile + kernel(kXY, kInit + sync + begin + kTryWait + use + "\n" + sync);
  Memory memory;
  auto* x = iota<float>(memory, "x", 256, Access::ReadOnly);
  auto* y = fresh<float>(memory, "y", 512);
  Report report = run(ir, {.grid = {2}, .block = {256}, .cluster = {2}}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[256], 255);
  EXPECT_EQ(report.of("x").bytesLoaded, 1024u);
}

TEST(Mbarrier, CountsArrivalsPhaseAfterPhase) {
  std::string ir = kBulkTile + kernel("ptr addrspace(1) %y", R"(
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 64)
  br label %ready
ready:
)" + kBarrier + R"(
  br label %round
round:
  %r = phi i32 [ 0, %ready ], [ %r1, %round ]
  %mine = getelementptr float, ptr addrspace(3) @tile, i64 %t
  %f = uitofp i32 %r to float
  store float %f, ptr addrspace(3) %mine, align 4
  %s = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @bar)
  %p = and i32 %r, 1
  %done = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @bar, i32 %p)
  %o = xor i64 %t, 63
  %theirs = getelementptr float, ptr addrspace(3) @tile, i64 %o
  %v = load float, ptr addrspace(3) %theirs, align 4
  %s2 = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @bar)
  %done2 = call i1 @llvm.nvvm.mbarrier.try.wait.scope.cta.space.cta(ptr addrspace(3) @bar, i64 %s2)
  %r1 = add i32 %r, 2
  %more = icmp ult i32 %r1, 6
  br i1 %more, label %round, label %out
out:
  %py = getelementptr float, ptr addrspace(1) %y, i64 %t
  store float %v, ptr addrspace(1) %py, align 4)");
  Memory memory;
  auto* y = fresh<float>(memory, "y", 64);
  Report report = run(ir, {.block = {64}}, memory, {y}, {.order = Order::Random, .seed = 3});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[7], 4.0f);
}

TEST(Mbarrier, Misuses) {
  auto text = [](const std::string& body) {
    Memory memory;
    return run(kBulkTile + kernel("", body), {}, memory, {}).text();
  };
  std::string init = "call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 1)\n";
  std::string arrive = " = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) @bar)\n";
  EXPECT_TRUE(has(text("%s" + arrive), "uninitialised"));
  EXPECT_TRUE(has(text("store i64 0, ptr addrspace(3) @bar, align 8\n %s" + arrive),
                  "no mbarrier has been initialised at @bar + 0"));
  EXPECT_TRUE(has(text(init + init),
                  "initialises the mbarrier at @bar + 0 (@bar has 8 bytes) again without invalidating it"));
  EXPECT_TRUE(has(text("call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @bar, i32 0)"),
                  "initialises an mbarrier for 0 arrivals"));
  EXPECT_TRUE(
      has(text(init +
               "%s = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) @bar, i32 2)"),
          "arrives at an mbarrier at which all 1 expected arrivals of this phase have been"));
  EXPECT_EQ(text(init + "call void @llvm.nvvm.mbarrier.inval.shared(ptr addrspace(3) @bar)\n" + init), "ok");
}

}  // namespace
}  // namespace normc::emulator
