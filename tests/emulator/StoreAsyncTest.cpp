// Asynchronous stores into the shared memory of other blocks, which an mbarrier there counts.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// Two buffers with a number from each of two blocks, and two mbarriers.
const std::string kMemory =
    "@slots = internal addrspace(3) global [4 x float] undef, align 16\n"
    "@bars = internal addrspace(3) global [2 x i64] undef, align 8\n";

const std::string kSync =
    "  call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n"
    "  call void @llvm.nvvm.barrier.cluster.wait.aligned()\n";

const std::string kInit = R"(
  %rank = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %lane = and i32 %tid, 1
  %few = icmp ult i32 %tid, 2
  %bar0 = getelementptr i64, ptr addrspace(3) @bars, i64 0
  %bar1 = getelementptr i64, ptr addrspace(3) @bars, i64 1
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %init, label %ready
init:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar0, i32 1)
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar1, i32 1)
  br label %ready
ready:
)";

/// Options of a meeting.
struct Meeting {
  int bytes = 8;    ///< that are expected
  int buffer = -1;  ///< that it writes; by default the meeting's number mod 2
  bool waits = true;
  bool own = false;      ///< the mbarrier is the sender's own
  std::string before{};  ///< the threads send
};

/// Meeting `n`: the first two threads of each block send %v to block 0 and block 1, and all threads add up
/// what has come, %sumN.
std::string meet(int n, const Meeting& m = {}) {
  const std::string id = std::to_string(n), bar = "%bar" + std::to_string(n % 2),
                    first = std::to_string(2 * (m.buffer < 0 ? n % 2 : m.buffer));
  std::string code =
      m.before + "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n" + "  br i1 %is0, label %expect" + id +
      ", label %send" + id + "\nexpect" + id + ":\n  %state" + id +
      " = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) " + bar +
      ", i32 " + std::to_string(m.bytes) + ")\n  br label %send" + id + "\nsend" + id + ":\n  %index" + id +
      " = add i32 %rank, " + first + "\n  %place" + id +
      " = getelementptr float, ptr addrspace(3) @slots, i32 %index" + id + "\n  %to" + id +
      " = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %place" + id +
      ", i32 %lane)\n  %there" + id +
      " = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) " + bar + ", i32 " +
      (m.own ? "%rank" : "%lane") + ")\n  br i1 %few, label %store" + id + ", label %wait" + id + "\nstore" +
      id + ":\n" +
      R"(  call void asm sideeffect "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 )" +
      R"([$0], $1, [$2];", "l,f,l,~{memory}"(ptr addrspace(7) %to)" + id +
      ", float %v, ptr addrspace(7) %there" + id + ")\n  br label %wait" + id + "\nwait" + id + ":\n";
  if (m.waits)
    code += R"(  call void asm sideeffect "{\0A\09.reg .pred       P1; \0A\09LAB_WAIT: \0A\09)"
            R"(mbarrier.try_wait.parity.shared.b64 P1, [$0], $1, $2; \0A\09@P1 bra.uni DONE; \0A\09)"
            R"(bra.uni     LAB_WAIT; \0A\09DONE: \0A\09}", "r,r,r"(ptr addrspace(3) )" +
            bar + ", i32 " + std::to_string(n / 2 % 2) + ", i32 1000)\n";
  for (const char* part : {"0", "1"})
    code += "  %at" + id + part + " = getelementptr float, ptr addrspace(3) @slots, i32 " +
            std::to_string(std::stoi(first) + std::stoi(part)) + "\n  %part" + id + part +
            " = load float, ptr addrspace(3) %at" + id + part + ", align 4\n";
  return code + "  %sum" + id + " = fadd float %part" + id + "0, %part" + id + "1\n";
}

std::string store(int last) {
  return "  store float %sum" + std::to_string(last) + ", ptr addrspace(1) %py, align 4\n";
}

/// Two clusters of two blocks of a warp. Returns the report's text.
std::string textOf(const std::string& body, std::vector<float>* y = nullptr, Order order = Order::Ascending) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 132);
  auto* out = fresh<float>(memory, "y", 128);
  const Report report = run(kMemory + kernel(kXY, kLoadX + body),
                            {.grid = {4}, .block = {32}, .cluster = {2}}, memory, {x, out}, {.order = order});
  if (y) y->assign(out, out + 128);
  return report.text();
}

TEST(StoreAsync, ComesWithItsMbarrier) {
  for (Order order : {Order::Ascending, Order::Descending, Order::Random}) {
    std::vector<float> y;
    ASSERT_EQ(textOf(kInit + kSync + meet(0) + store(0), &y, order), "ok");
    EXPECT_EQ(y[0], 0 + 32) << "lane 0 of blocks 0 and 1";
    EXPECT_EQ(y[33], 1 + 33) << "lane 1 of them";
    EXPECT_EQ(y[64], 64 + 96);
  }
}

TEST(StoreAsync, MayBeOfVectors) {
  const std::string code = R"(
  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @bars, i32 16)
  %other = xor i32 %rank, 1
  %to = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @slots, i32 %other)
  %there = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @bars, i32 %other)
  call void asm sideeffect "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$0], {$1, $2, $3, $4}, [$5];", "l,f,f,f,f,l,~{memory}"(ptr addrspace(7) %to, float %v, float 1.0, float 2.0, float %v, ptr addrspace(7) %there)
  call void asm sideeffect "{\0A\09.reg .pred       P1; \0A\09LAB_WAIT: \0A\09mbarrier.try_wait.parity.shared.b64 P1, [$0], $1, $2; \0A\09@P1 bra.uni DONE; \0A\09bra.uni     LAB_WAIT; \0A\09DONE: \0A\09}", "r,r,r"(ptr addrspace(3) @bars, i32 0, i32 1000)
  %p = getelementptr float, ptr addrspace(3) @slots, i64 3
  %sum0 = load float, ptr addrspace(3) %p, align 4
)";
  Memory memory;
  auto* x = iota<float>(memory, "x", 2);
  auto* y = fresh<float>(memory, "y", 2);
  const Report report = run(kMemory + kernel(kXY, kLoadX + kInit + kSync + code + store(0)),
                            {.grid = {2}, .block = {1}, .cluster = {2}}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
}

TEST(StoreAsync, IsNotThereBeforeTheWait) {
  const std::string text = textOf(kInit + kSync + meet(0, {.waits = false}) + store(0));
  EXPECT_TRUE(has(text, "data race") || has(text, "uninitialised")) << text;
}

TEST(StoreAsync, OtherBlocksMustSeeTheMbarrierInitialised) {
  const std::string text = textOf(kInit + kBarrier + meet(0) + store(0));
  EXPECT_TRUE(has(text, "that another thread has initialised; nothing orders the two") ||
              has(text, "no mbarrier has been initialised"))
      << text;
}

TEST(StoreAsync, BytesThatNeverComeAreADeadlock) {
  EXPECT_TRUE(has(textOf(kInit + kSync + meet(0, {.bytes = 12}) + store(0)), "deadlock"));
}

TEST(StoreAsync, IsCountedByTheBlockThatItGoesTo) {
  EXPECT_TRUE(
      has(textOf(kInit + kSync + meet(0, {.own = true}) + store(0)), "and the mbarrier is of another block"));
}

TEST(StoreAsync, ABufferIsWrittenAgainAfterAMeetingInBetween) {
  for (Order order : {Order::Ascending, Order::Descending, Order::Random})
    EXPECT_EQ(
        textOf(kInit + kSync + meet(0) + meet(1) + meet(2) + meet(3) + meet(4) + store(4), nullptr, order),
        "ok");
  EXPECT_TRUE(has(textOf(kInit + kSync + meet(0) + meet(1, {.buffer = 0}) + store(1)), "data race"))
      << "the other block may still read";
}

TEST(StoreAsync, TellsWhatItsSendersHaveReadButNotWhatTheyHaveStored) {
  // All threads read a number of their cluster, behind those of %v; block 0 stores over it after the meeting.
  const std::string read = R"(
  %cluster = and i32 %ctaid, 2
  %place = add i32 %cluster, 128
  %shared = getelementptr float, ptr addrspace(1) %x, i32 %place
  %r = load float, ptr addrspace(1) %shared, align 4
)" + keep("float", "%r");
  const std::string over = firstOfClusterStores("%sum0", "%shared");
  EXPECT_EQ(textOf(kInit + kSync + meet(0, {.before = read}) + over), "ok");
  EXPECT_TRUE(has(textOf(kInit + kSync + meet(0) + read + over), "data race"));
  // Each thread stores to y before the meeting, and reads afterwards what the other block has stored.
  const std::string stored = "  store float %v, ptr addrspace(1) %py, align 4\n";
  const std::string theirs = R"(
  %other = xor i64 %t, 32
  %q = getelementptr float, ptr addrspace(1) %y, i64 %other
  %w = load float, ptr addrspace(1) %q, align 4
)" + keep("float", "%w");
  EXPECT_TRUE(has(textOf(kInit + kSync + meet(0, {.before = stored}) + theirs), "data race"));
}

}  // namespace
}  // namespace normc::emulator
