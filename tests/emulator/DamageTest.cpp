// PTX that was damaged at random: it is refused, or runs, and a fault is a report. Nothing ends the process.
#include <gtest/gtest.h>

#include <random>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// A kernel with a loop, shared and local memory, a shuffle, a barrier, a copy and a predicate.
std::string text() {
  return ptxEntry("x, y, n", R"(.shared .align 16 .b8 tile[512];
ld.param.b64 %rd1, [k_param_0];
ld.param.b64 %rd2, [k_param_1];
ld.param.b64 %rd3, [k_param_2];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd4, %r1, 16;
add.s64 %rd1, %rd1, %rd4;
add.s64 %rd2, %rd2, %rd4;
mov.b64 %rd5, tile;
add.s64 %rd6, %rd5, %rd4;
cp.async.cg.shared.global [%rd6], [%rd1], 16;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
mov.b64 %rd7, 0;
mov.b32 %r2, 0f00000000;
$L:
xor.b64 %rd8, %rd4, 16;
add.s64 %rd8, %rd5, %rd8;
ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%rd8];
fma.rn.f32 %r2, %r3, %r4, %r2;
max.f32 %r5, %r5, %r6;
st.local.b32 [depot], %r5;
add.s64 %rd7, %rd7, 1;
setp.lt.s64 %p1, %rd7, %rd3;
@%p1 bra $L;
shfl.sync.bfly.b32 %r7, %r2, 1, 31, -1;
ld.local.b32 %r8, [depot];
cvt.rn.bf16x2.f32 %r9, %r7, %r8;
setp.ne.u32 %p2, %r1, 3;
@%p2 st.global.v2.b32 [%rd2], {%r9, %r2};
atom.global.add.u32 %r8, [%rd2+8], 1;)");
}

/// Replaces, removes, doubles or exchanges words and numbers.
std::string damaged(std::string text, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % n; };
  std::vector<std::string> words;
  for (size_t at = text.find("ld.param"); at < text.size();) {
    size_t end = text.find_first_of(" \n,;.[]{}", at + 1);
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  const std::string head = text.substr(0, text.find("ld.param"));
  // Two in three texts have other operands alone, so that many of them run.
  if (seed % 3) {
    const auto operands = [&](char first) {
      std::vector<size_t> found;
      for (size_t i = 0; i < words.size(); ++i)
        if (words[i].size() > 2 && words[i][1] == '%' && words[i][2] == first) found.push_back(i);
      return found;
    };
    const auto places = operands("rp"[below(8) == 0]);
    words[places[below(places.size())]] = words[places[below(places.size())]];
  } else {
    for (size_t i = 0; i <= below(3); ++i) {
      const size_t at = below(words.size()), other = below(words.size());
      switch (below(5)) {
        case 0:
          words[at] = words[other];
          break;
        case 1:
          words[at].clear();
          break;
        case 2:
          words[at] += words[at];
          break;
        case 3:
          std::swap(words[at], words[other]);
          break;
        default:
          words[at] += char(33 + below(94));
      }
    }
  }
  std::string result = head;
  for (const std::string& word : words) result += word;
  return result;
}

TEST(Damage, OfATextIsRefusedOrReported) {
  int refused = 0, reported = 0, fine = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const std::string ptx = damaged(text(), seed);
    auto program = Program::compile(ptx);
    if (!program) {
      EXPECT_FALSE(llvm::toString(program.takeError()).empty());
      ++refused;
      continue;
    }
    Memory memory;
    auto* x = iota<float>(memory, "x", 128, Access::ReadOnly);
    auto* y = iota<float>(memory, "y", 128);
    if (program->functions().size() != 1 || program->parameters("k") != 3) continue;
    const Report report =
        run(*program, {.block = {32}}, memory, {x, y, word(uint64_t(3))}, {.maxSteps = 100000});
    ++(report.ok() ? fine : reported);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(reported, 20);
  EXPECT_GT(fine, 20);
}

TEST(Damage, TheTextIsRightWithoutIt) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 128, Access::ReadOnly);
  auto* y = iota<float>(memory, "y", 128);
  const Report report = run(programOfPtx(text()), {.block = {32}}, memory, {x, y, word(uint64_t(3))});
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace
}  // namespace normc::emulator
