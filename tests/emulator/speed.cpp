// Measures the barriers and accesses per second that the emulator executes.
#include <chrono>
#include <cstdio>

#include "tests/emulator/Support.h"

namespace normc::emulator {

static const char* const kBarriers = R"(
define ptx_kernel void @k(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
})";

static const char* const kShuffles = R"(
define ptx_kernel void @k(i64 %n, ptr addrspace(1) %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = phi float [ 1.0, %entry ], [ %sum, %loop ]
  %other = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x, i32 16, i32 31)
  %sum = fadd float %x, %other
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
})";

/// Each thread reads, scales and writes n vectors of four.
static const char* const kAccesses = R"(
define ptx_kernel void @k(i64 %n, ptr addrspace(1) %x, ptr addrspace(1) %y) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %step = zext i32 %threads to i64
  %t = zext i32 %tid to i64
  %b = zext i32 %block to i64
  %first = mul i64 %b, %n
  %row = mul i64 %first, %step
  %at0 = add i64 %row, %t
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = phi i64 [ %at0, %entry ], [ %atNext, %loop ]
  %px = getelementptr <4 x float>, ptr addrspace(1) %x, i64 %at
  %v = load <4 x float>, ptr addrspace(1) %px, align 16
  %w = fmul <4 x float> %v, splat (float 2.0)
  %py = getelementptr <4 x float>, ptr addrspace(1) %y, i64 %at
  store <4 x float> %w, ptr addrspace(1) %py, align 16
  %next = add i64 %i, 1
  %atNext = add i64 %at, %step
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
})";

static double seconds(const Program& program, const Shape& shape, Memory& memory,
                      const std::vector<const void*>& words, Checks checks) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    auto begin = std::chrono::steady_clock::now();
    Report report = run(program, shape, memory, words, {.checks = checks});
    if (!report.ok()) std::printf("%s\n", report.text().c_str());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

static void measure() {
  Program barriers = programOf(kBarriers), shuffles = programOf(kShuffles), accesses = programOf(kAccesses);
  const uint64_t rounds = 64, blocks = 16, threads = 256, vectors = 16;
  Memory memory;
  size_t bytes = blocks * threads * vectors * 16;
  void* x = memory.allocate(bytes, "x", Access::ReadOnly, Content::Initialised);
  void* y = memory.allocate(bytes, "y");
  const char* names[] = {"none", "bounds", "all"};
  std::printf("256 threads a block     barriers M/s   shuffles M/s   accesses of 16 bytes M/s\n");
  for (Checks checks : {Checks::None, Checks::Bounds, Checks::All}) {
    Shape shape{.grid = {uint32_t(blocks)}, .block = {uint32_t(threads)}};
    double perRound = double(rounds * blocks * threads) / 1e6;
    double b = perRound / seconds(barriers, shape, memory, {word(rounds)}, checks);
    double s = perRound / seconds(shuffles, shape, memory, {word(rounds), y}, checks);
    double a = double(2 * blocks * threads * vectors) / 1e6 /
               seconds(accesses, shape, memory, {word(vectors), x, y}, checks);
    std::printf("checks: %-12s    %12.1f   %12.1f   %12.1f\n", names[int(checks)], b, s, a);
  }
  auto begin = std::chrono::steady_clock::now();
  programOf(kAccesses);
  std::printf("compiling the last one: %.1f ms\n",
              1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace normc::emulator

int main() { normc::emulator::measure(); }
