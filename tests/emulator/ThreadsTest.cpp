// Launches on several host threads, and orders that repeat.
#include <gtest/gtest.h>

#include <thread>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// y[t] = the sum over the block, by shuffles, a table in shared memory and a barrier.
const std::string kSum = "@sums = internal addrspace(3) global [32 x i32] undef, align 4\n" + kernel(kXY, R"(
  %px = getelementptr i32, ptr addrspace(1) %x, i64 %t
  %v = load i32, ptr addrspace(1) %px, align 4
  %s = call i32 @llvm.nvvm.redux.sync.add(i32 %v, i32 -1)
  %warp = lshr i32 %tid, 5
  %slot = getelementptr i32, ptr addrspace(3) @sums, i32 %warp
  %lane = and i32 %tid, 31
  %is0 = icmp eq i32 %lane, 0
  br i1 %is0, label %give, label %meet
give:
  store i32 %s, ptr addrspace(3) %slot, align 4
  br label %meet
meet:
)" + kBarrier + R"(
  %a = load <4 x i32>, ptr addrspace(3) @sums, align 4
  %r = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %a)
  %py = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %r, ptr addrspace(1) %py, align 4)");

std::string sums(const Program& program, const Options& options) {
  Memory memory;
  auto* x = iota<int32_t>(memory, "x", 8 * 128, Access::ReadOnly);
  auto* y = fresh<int32_t>(memory, "y", 8 * 128);
  Report report = run(program, {.grid = {8}, .block = {128}}, memory, {x, y}, options);
  if (!report.ok()) return report.text();
  for (int i = 0; i < 8 * 128; ++i)
    if (y[i] != 128 * 128 * (i / 128) + 127 * 64) return "wrong at " + std::to_string(i);
  return "ok";
}

TEST(Threads, OneProgramRunsOnManyAtOnce) {
  Program program = programOf(kSum);
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round)
        if (results[i].empty() || results[i] == "ok")
          results[i] = sums(program, {.order = Order::Random, .seed = i});
    });
  for (auto& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "ok");
}

TEST(Threads, ProgramsAreCompiledOnManyAtOnce) {
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string& result : results) threads.emplace_back([&] { result = sums(programOf(kSum), {}); });
  for (auto& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, "ok");
}

/// The order in which threads have counted up.
std::vector<int32_t> ticketsOf(const Options& options) {
  static const std::string ir = kernel("ptr addrspace(1) %counter, ptr addrspace(1) %y", R"(
  %ticket = atomicrmw add ptr addrspace(1) %counter, i32 1 monotonic, align 4
  %py = getelementptr i32, ptr addrspace(1) %y, i64 %t
  store i32 %ticket, ptr addrspace(1) %py, align 4)");
  Memory memory;
  auto* counter = iota<int32_t>(memory, "counter", 1);
  auto* y = fresh<int32_t>(memory, "y", 128);
  EXPECT_TRUE(run(ir, {.grid = {2}, .block = {64}}, memory, {counter, y}, options).ok());
  return {y, y + 128};
}

TEST(Threads, OrdersAreWhatTheySayAndRepeat) {
  auto ascending = ticketsOf({.order = Order::Ascending}),
       descending = ticketsOf({.order = Order::Descending});
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(ascending[i], i);
    EXPECT_EQ(descending[i], 127 - i);
  }
  auto random = ticketsOf({.order = Order::Random, .seed = 7});
  EXPECT_EQ(random, ticketsOf({.order = Order::Random, .seed = 7}));
  EXPECT_NE(random, ticketsOf({.order = Order::Random, .seed = 8}));
  EXPECT_NE(random, ascending);
}

}  // namespace
}  // namespace normc::emulator
