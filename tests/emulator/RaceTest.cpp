// Global memory that several threads touch: what orders them, and what does not.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

const Order kOrders[] = {Order::Ascending, Order::Descending, Order::Random};

TEST(Race, TwoBlocksWriteTheSame) {
  std::string ir = kernel("ptr addrspace(1) %y", "store i32 1, ptr addrspace(1) %y, align 4");
  Memory memory;
  auto* y = fresh<int32_t>(memory, "y", 1);
  EXPECT_EQ(run(ir, {.grid = {2}}, memory, {y}).text(),
            "data race: @k, block (1, 0, 0) thread (0, 0, 0): writes 4 bytes at y + 0 (y has 4 bytes), which "
            "another "
            "thread has written; nothing orders the two\n"
            "  at st.global.b32 [%rd1], 1 (line 18)\n"
            "  beside block (0, 0, 0) thread (0, 0, 0) at st.global.b32 [%rd1], 1 (line 18)");
  EXPECT_TRUE(run(ir, {.grid = {1}}, memory, {y}).ok());
  EXPECT_TRUE(run(ir, {.grid = {1}}, memory, {y}).ok());  // launches follow one another
}

TEST(Race, OneBlockReadsWhatAnotherWrites) {
  std::string ir = kernel("ptr addrspace(1) %y", R"(
  %is0 = icmp eq i32 %ctaid, 0
  br i1 %is0, label %write, label %read
write:
  store i32 1, ptr addrspace(1) %y, align 4
  br label %out
read:
  %v = load i32, ptr addrspace(1) %y, align 4
)" + keep("i32", "%v") + R"(
  br label %out
out:)");
  for (Order order : {Order::Ascending, Order::Descending}) {
    Memory memory;
    auto* y = iota<int32_t>(memory, "y", 1);
    std::string text = run(ir, {.grid = {2}}, memory, {y}, {.order = order}).text();
    EXPECT_TRUE(has(text, "data race")) << text;
  }
}

TEST(Race, AHalfOfAWordIsNotTheOther) {
  std::string ir = kernel("ptr addrspace(1) %y", R"(
  %p = getelementptr i16, ptr addrspace(1) %y, i64 %t
  store i16 1, ptr addrspace(1) %p, align 2)");
  Memory memory;
  auto* y = fresh<int16_t>(memory, "y", 64);
  EXPECT_TRUE(run(ir, {.grid = {8}, .block = {8}}, memory, {y}).ok());
  // Wide and narrow accesses of the same bytes still meet.
  std::string mixed = kernel("ptr addrspace(1) %y", R"(
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %wide, label %narrow
wide:
  store <4 x i32> zeroinitializer, ptr addrspace(1) %y, align 16
  br label %out
narrow:
  %p = getelementptr i8, ptr addrspace(1) %y, i64 15
  store i8 1, ptr addrspace(1) %p, align 1
  br label %out
out:)");
  EXPECT_TRUE(has(run(mixed, {.block = {2}}, memory, {y}).text(), "writes 1 bytes at y + 15"));
}

TEST(Race, AReaderThatIsNotTheLastOneCounts) {
  // Threads 0 and 1 read, then thread 1 writes: thread 0's read is the race.
  std::string ir = kernel("ptr addrspace(1) %y", R"(
  %v = load i32, ptr addrspace(1) %y, align 4
)" + keep("i32", "%v") + R"(
  %is1 = icmp eq i32 %tid, 1
  br i1 %is1, label %write, label %out
write:
  store i32 1, ptr addrspace(1) %y, align 4
  br label %out
out:)");
  Memory memory;
  auto* y = iota<int32_t>(memory, "y", 1);
  EXPECT_TRUE(has(run(ir, {.block = {2}}, memory, {y}).text(), "which another thread has read"));
}

/// Lanes read the first element; after a barrier of their warp one lane, of those or of another warp, writes
/// it.
std::string readThenWrite(const std::string& writer, const std::string& barrier) {
  return kernel("ptr addrspace(1) %y", R"(
  %v = load i32, ptr addrspace(1) %y, align 4
)" + keep("i32", "%v") + barrier + R"(
  %isWriter = icmp eq i32 %tid, )" + writer +
                                           R"(
  br i1 %isWriter, label %write, label %out
write:
  store i32 1, ptr addrspace(1) %y, align 4
  br label %out
out:)");
}

TEST(Race, ABarrierOfAWarpOrdersTheReadsOfItsLanes) {
  const std::string barrier = "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n";
  for (const Order order : kOrders) {
    const auto text = [&](const std::string& ir, uint32_t threads) {
      Memory memory;
      auto* y = iota<int32_t>(memory, "y", 1);
      return run(ir, {.block = {threads}}, memory, {y}, {.order = order}).text();
    };
    EXPECT_FALSE(has(text(readThenWrite("5", barrier), 32), "data race"));
    EXPECT_TRUE(has(text(readThenWrite("5", ""), 32), "data race"));
    EXPECT_TRUE(has(text(readThenWrite("5", barrier), 64), "data race")) << "the other warp reads too";
    EXPECT_TRUE(has(text(readThenWrite("40", barrier), 64), "data race"));
  }
}

TEST(Race, ReadersOfAWholeReadItsParts) {
  // Two blocks read 16 bytes; a third one reads four of them, and writes these after a barrier of its own.
  std::string ir = kernel("ptr addrspace(1) %y", R"(
  %is2 = icmp eq i32 %ctaid, 2
  br i1 %is2, label %part, label %whole
whole:
  %all = load <4 x i32>, ptr addrspace(1) %y, align 16
  %one = extractelement <4 x i32> %all, i32 3
)" + keep("i32", "%one") + R"(
  br label %out
part:
  %v = load i32, ptr addrspace(1) %y, align 4
)" + keep("i32", "%v") + kBarrier + R"(
  store i32 1, ptr addrspace(1) %y, align 4
  br label %out
out:)");
  for (Order order : kOrders) {
    Memory memory;
    auto* y = iota<int32_t>(memory, "y", 4);
    std::string text = run(ir, {.grid = {3}}, memory, {y}, {.order = order}).text();
    EXPECT_TRUE(has(text, "data race")) << text;
  }
}

TEST(Race, BarriersOrderGlobalMemoryWithinABlockOnly) {
  std::string ir = kernel("ptr addrspace(1) %y, i64 %flip", R"(
  %p = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %tid, ptr addrspace(1) %p, align 4
)" + kBarrier + R"(
  %o = xor i64 %t, %flip
  %q = getelementptr i32, ptr addrspace(1) %y, i64 %o
  %v = load i32, ptr addrspace(1) %q, align 4
)" + keep("i32", "%v"));
  for (Order order : kOrders) {
    Memory memory;
    auto* y = iota<int32_t>(memory, "y", 128);
    EXPECT_TRUE(
        run(ir, {.grid = {2}, .block = {64}}, memory, {y, word(uint64_t(33))}, {.order = order}).ok());
    EXPECT_FALSE(
        run(ir, {.grid = {2}, .block = {64}}, memory, {y, word(uint64_t(64))}, {.order = order}).ok());
  }
}

TEST(Race, AtomicsMeetAtomics) {
  std::string ir =
      kernel("ptr addrspace(1) %y", "%old = atomicrmw add ptr addrspace(1) %y, i32 1 monotonic, align 4");
  Memory memory;
  auto* y = iota<int32_t>(memory, "y", 1);
  Report report = run(ir, {.grid = {4}, .block = {64}}, memory, {y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(*y, 256);
  EXPECT_EQ(report.atomics, 256u);
  std::string plain = kernel("ptr addrspace(1) %y", R"(
  %old = atomicrmw add ptr addrspace(1) %y, i32 1 monotonic, align 4
  %v = load i32, ptr addrspace(1) %y, align 4
)" + keep("i32", "%v"));
  EXPECT_TRUE(has(run(plain, {.block = {2}}, memory, {y}).text(), "data race"));
}

//===-- The last block ----------------------------------------------------------------===//

/// Every block writes its partial; the last one, by a counter, adds them all up.
std::string lastBlock(const std::string& fence, const std::string& barrier, const std::string& after) {
  return "@last = internal addrspace(3) global i32 undef, align 4\n" +
         kernel("ptr addrspace(1) %partial, ptr addrspace(1) %counter, ptr addrspace(1) %y", R"(
  %n = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %total32 = mul i32 %n, %ntid
  %total = zext i32 %total32 to i64
  %p = getelementptr i32, ptr addrspace(1) %partial, i64 %t
  store i32 %t32, ptr addrspace(1) %p, align 4
)" + fence + barrier + R"(
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %count, label %meet
count:
  %old = atomicrmw add ptr addrspace(1) %counter, i32 1 monotonic, align 4
  %before = sub i32 %n, 1
  %isLast = icmp eq i32 %old, %before
  %flag = zext i1 %isLast to i32
  store i32 %flag, ptr addrspace(3) @last, align 4
)" + after + R"(
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %l = load i32, ptr addrspace(3) @last, align 4
  %mine = icmp eq i32 %l, 1
  %sum = and i1 %mine, %is0
  br i1 %sum, label %loop, label %out
loop:
  %i = phi i64 [ 0, %meet ], [ %i1, %loop ]
  %s = phi i32 [ 0, %meet ], [ %s1, %loop ]
  %q = getelementptr i32, ptr addrspace(1) %partial, i64 %i
  %v = load i32, ptr addrspace(1) %q, align 4
  %s1 = add i32 %s, %v
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %total
  br i1 %more, label %loop, label %done
done:
  store i32 %s1, ptr addrspace(1) %y, align 4
  br label %out
out:)");
}
const std::string kFence = "  call void @llvm.nvvm.membar.gl()\n";

std::string runLastBlock(const std::string& ir, Order order) {
  Memory memory;
  auto* partial = fresh<int32_t>(memory, "partial", 8 * 64);
  auto* counter = iota<int32_t>(memory, "counter", 1);
  auto* y = fresh<int32_t>(memory, "y", 1);
  Report report = run(ir, {.grid = {8}, .block = {64}}, memory, {partial, counter, y}, {.order = order});
  if (!report.ok()) return report.text();
  return *y == 511 * 256 ? "ok" : "the sum is " + std::to_string(*y);
}

TEST(Race, TheLastBlockSeesWhatFencedBlocksHaveWritten) {
  for (Order order : kOrders) {
    EXPECT_EQ(runLastBlock(lastBlock(kFence, kBarrier, kFence), order),
              "ok");  // each thread fences, then the barrier
    EXPECT_EQ(runLastBlock(lastBlock("", kBarrier + kFence, kFence), order),
              "ok");  // the barrier, then a fence
    EXPECT_EQ(runLastBlock(lastBlock("  fence syncscope(\"device\") acq_rel\n", kBarrier,
                                     "  fence syncscope(\"device\") acq_rel\n"),
                           order),
              "ok");
  }
}

TEST(Race, AMissingFenceBeforeTheCounterIsSeen) {
  std::string text = runLastBlock(lastBlock("", kBarrier, kFence), Order::Ascending);
  EXPECT_TRUE(has(text, "data race") && has(text, "partial + 0")) << text;
}

TEST(Race, AMissingFenceAfterTheCounterIsSeen) {
  EXPECT_TRUE(has(runLastBlock(lastBlock(kFence, kBarrier, ""), Order::Ascending), "data race"));
}

TEST(Race, AMissingBarrierBeforeTheCounterIsSeen) {
  EXPECT_TRUE(has(runLastBlock(lastBlock(kFence, "", kFence), Order::Ascending), "data race"));
}

TEST(Race, AFenceOfTheBlockDoesNotReachOthers) {
  std::string block = "  call void @llvm.nvvm.membar.cta()\n";
  EXPECT_TRUE(has(runLastBlock(lastBlock(block, kBarrier, kFence), Order::Ascending), "data race"));
}

/// The counter's addition, as another instruction.
std::string withAddition(const std::string& addition) {
  std::string ir = lastBlock("", kBarrier, "");
  const std::string from = "atomicrmw add ptr addrspace(1) %counter, i32 1 monotonic, align 4";
  return ir.replace(ir.find(from), from.size(), addition);
}

TEST(Race, AcquireAndReleaseNeedNoFence) {
  EXPECT_EQ(
      runLastBlock(withAddition("call i32 asm sideeffect \"atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;\", "
                                "\"=r,l\"(ptr addrspace(1) %counter)"),
                   Order::Random),
      "ok");
}

TEST(Race, NvptxLeavesTheOrderOutOfAnAtomicAddition) {
  EXPECT_TRUE(
      has(runLastBlock(withAddition("atomicrmw add ptr addrspace(1) %counter, i32 1 acq_rel, align 4"),
                       Order::Random),
          "data race"));
}

//===-- A barrier of all blocks -----------------------------------------------------------===//

/// x becomes the sum of itself and its neighbour's, for two rounds, with a barrier of the grid between.
std::string gridBarrier(const std::string& fence) {
  return kernel("ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %counter", R"(
  %n = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %total = mul i32 %n, %ntid
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %t
  %v = load i32, ptr addrspace(1) %p, align 4
  %twice = mul i32 %v, 2
  store i32 %twice, ptr addrspace(1) %p, align 4
)" + kBarrier + R"(
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %arrive, label %meet
arrive:
)" + fence + R"(
  %old = atomicrmw add ptr addrspace(1) %counter, i32 1 monotonic, align 4
  br label %spin
spin:
  %seen = load volatile i32, ptr addrspace(1) %counter, align 4
  %all = icmp uge i32 %seen, %n
  br i1 %all, label %through, label %spin
through:
)" + fence + R"(
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %o32 = add i32 %t32, 1
  %wrap = urem i32 %o32, %total
  %o = zext i32 %wrap to i64
  %q = getelementptr i32, ptr addrspace(1) %x, i64 %o
  %w = load i32, ptr addrspace(1) %q, align 4
  %py = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %w, ptr addrspace(1) %py, align 4)");
}

std::string runGrid(const std::string& ir, Order order, bool cooperative) {
  Memory memory;
  auto* x = iota<int32_t>(memory, "x", 4 * 64);
  auto* y = fresh<int32_t>(memory, "y", 4 * 64);
  auto* counter = iota<int32_t>(memory, "counter", 1);
  Report report = run(ir, {.grid = {4}, .block = {64}, .cooperative = cooperative}, memory, {x, y, counter},
                      {.order = order});
  if (!report.ok()) return report.text();
  for (int i = 0; i < 256; ++i)
    if (y[i] != 2 * ((i + 1) % 256)) return "wrong";
  return "ok";
}

TEST(Grid, ABarrierOfAllBlocksWorksInACooperativeLaunch) {
  for (Order order : kOrders) EXPECT_EQ(runGrid(gridBarrier(kFence), order, true), "ok");
}

TEST(Grid, ABarrierWithoutFencesIsARace) {
  EXPECT_TRUE(has(runGrid(gridBarrier(""), Order::Ascending, true), "data race"));
}

TEST(Grid, ABarrierOfBlocksThatAreNotResidentIsADeadlock) {
  std::string text = runGrid(gridBarrier(kFence), Order::Ascending, false);
  EXPECT_TRUE(has(
      text,
      "deadlock: @k, block (0, 0, 0) thread (0, 0, 0): 1 threads spin, and nothing that the other 63 do can "
      "end it; 1 of 4 blocks are resident, and a barrier of all blocks needs a cooperative launch"))
      << text;
  EXPECT_TRUE(has(text, "at ld.volatile.global.b32")) << text;
}

/// Blocks 2k and 2k + 1 read a word of x, meet, and block 2k writes word k.
std::string pairsMeet(const std::string& word) {
  return kernel("ptr addrspace(1) %x, ptr addrspace(1) %arrivals", R"(
  %pair = lshr i32 %ctaid, 1
  %other = xor i32 %ctaid, 1
)" + word + R"(
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %word
  %v = load i32, ptr addrspace(1) %px, align 4
  %sum = add i32 %v, 1
)" + kBarrier + R"(
  %mine = getelementptr i32, ptr addrspace(1) %arrivals, i32 %ctaid
  %theirs = getelementptr i32, ptr addrspace(1) %arrivals, i32 %other
  %is0 = icmp eq i32 %tid, 0
  br i1 %is0, label %arrive, label %meet
arrive:
  store atomic i32 1, ptr addrspace(1) %mine syncscope("device") release, align 4
  br label %spin
spin:
  %seen = load atomic i32, ptr addrspace(1) %theirs syncscope("device") acquire, align 4
  %come = icmp ne i32 %seen, 0
  br i1 %come, label %meet, label %spin
meet:
)" + kBarrier + R"(
  %odd = and i32 %ctaid, 1
  %rest = or i32 %odd, %tid
  %writes = icmp eq i32 %rest, 0
  br i1 %writes, label %write, label %out
write:
  %py = getelementptr i32, ptr addrspace(1) %x, i32 %pair
  store i32 %sum, ptr addrspace(1) %py, align 4
  br label %out
out:)");
}

std::string runPairs(const std::string& ir, Order order) {
  Memory memory;
  auto* x = iota<int32_t>(memory, "x", 4);
  auto* arrivals = fresh<int32_t>(memory, "arrivals", 4);
  std::fill_n(arrivals, 4, 0);
  llvm::cantFail(memory.markInitialised(arrivals, 16));
  Report report =
      run(ir, {.grid = {4}, .block = {64}, .cooperative = true}, memory, {x, arrivals}, {.order = order});
  return report.ok() ? "ok" : report.text();
}

TEST(Grid, BlocksThatMeetInPairsMayWriteWhatTheyAloneHaveRead) {
  for (Order order : kOrders) EXPECT_EQ(runPairs(pairsMeet("  %word = add i32 %pair, 0"), order), "ok");
}

TEST(Grid, BlocksThatMeetInPairsMayNotWriteWhatOthersHaveRead) {
  for (Order order : kOrders) {
    const std::string text = runPairs(pairsMeet("  %word = mul i32 %pair, 0"), order);
    EXPECT_TRUE(has(text, "data race") && has(text, "x + 0")) << text;
  }
}

/// A device orders nothing beyond the smaller of the two scopes.
TEST(Grid, BlocksThatMeetInAScopeThatIsTooSmallAreFound) {
  const std::string ir = pairsMeet("  %word = add i32 %pair, 0");
  const auto scoped = [&](const char* order) {
    std::string damaged = ir;
    const size_t at = damaged.find(std::string("syncscope(\"device\") ") + order);
    return damaged.replace(at, 19, "syncscope(\"block\")");
  };
  for (const char* order : {"release", "acquire"})
    for (Order threads : kOrders) {
      const std::string text = runPairs(scoped(order), threads);
      EXPECT_TRUE(has(text, "data race: @k") && has(text, "reads arrivals +") &&
                  has(text,
                      "which another thread has released; a scope of .cta orders the threads of a "
                      "block alone"))
          << text;
    }
}

TEST(Grid, BlocksOfAClusterMayMeetInItsScope) {
  std::string ir = pairsMeet("  %word = add i32 %pair, 0");
  for (size_t at; (at = ir.find("\"device\"")) != ir.npos;) ir.replace(at, 8, "\"cluster\"");
  const auto text = [&](uint32_t cluster) {
    Memory memory;
    auto* x = iota<int32_t>(memory, "x", 4);
    auto* arrivals = iota<int32_t>(memory, "arrivals", 4);
    std::fill_n(arrivals, 4, 0);
    return run(ir, {.grid = {4}, .block = {64}, .cluster = {cluster}, .cooperative = true}, memory,
               {x, arrivals})
        .text();
  };
  EXPECT_EQ(text(2), "ok");
  EXPECT_TRUE(has(text(1), "a scope of .cluster orders the blocks of a cluster alone")) << text(1);
}

TEST(Grid, AWordThatIsNotClearedIsFoundByTheWait) {
  Memory memory;
  auto* x = iota<int32_t>(memory, "x", 4);
  auto* arrivals = fresh<int32_t>(memory, "arrivals", 4);
  Report report = run(pairsMeet("  %word = add i32 %pair, 0"),
                      {.grid = {4}, .block = {64}, .cooperative = true}, memory, {x, arrivals});
  EXPECT_TRUE(has(report.text(), "uninitialised") && has(report.text(), "reads 4 bytes at arrivals"))
      << report.text();
}

//===-- The non-coherent cache -------------------------------------------------------------===//

TEST(Race, ANonCoherentReadOfWhatTheLaunchWrites) {
  std::string ir = kernel(kXY, R"(
  %px = getelementptr float, ptr addrspace(1) %x, i64 %t
  %py = getelementptr float, ptr addrspace(1) %y, i64 %t
  %v = load float, ptr addrspace(1) %px, align 4, !invariant.load !0
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(1) %py, align 4)") +
                   "!0 = !{}\n";
  Memory memory;
  auto* x = iota<float>(memory, "x", 32);
  auto* y = fresh<float>(memory, "y", 32);
  EXPECT_TRUE(run(ir, {.block = {32}}, memory, {x, y}).ok());
  EXPECT_TRUE(has(
      run(ir, {.block = {32}}, memory, {x, x}).text(),
      "writes 4 bytes at x + 0 (x has 128 bytes), which this launch reads through the non-coherent cache"));
  std::string between = kernel(kXY, R"(
  %v = load float, ptr addrspace(1) %x, align 4, !invariant.load !0
  %w = load volatile float, ptr addrspace(1) %x, align 4
)" + keep("float", "%v") + keep("float", "%w") +
                                        R"(
  store float 1.0, ptr addrspace(1) %x, align 4)") +
                        "!0 = !{}\n";
  EXPECT_TRUE(
      has(run(between, {}, memory, {x, y}).text(), "which this launch reads through the non-coherent cache"));
  std::string later = kernel(kXY, R"(
  store float 1.0, ptr addrspace(1) %x, align 4
  %v = load float, ptr addrspace(1) %x, align 4, !invariant.load !0
)" + keep("float", "%v")) +
                      "!0 = !{}\n";
  EXPECT_TRUE(has(run(later, {}, memory, {x, y}).text(),
                  "reads 4 bytes at x + 0 (x has 128 bytes) through the non-coherent cache, but this launch "
                  "has written them"));
}

}  // namespace
}  // namespace normc::emulator
