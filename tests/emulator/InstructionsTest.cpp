// Results of each instruction of PTX, by hand-made cases.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// Returns the results of instructions that write %r1 or %rd1 from the numbers x and y, in %rd8 and %rd9 or,
/// by their lower halves, in %r8 and %r9.
uint64_t of(const std::string& instructions, const std::string& result, uint64_t x, uint64_t y = 0) {
  Memory memory;
  auto* out = fresh<uint64_t>(memory, "out", 1);
  const Program program = programOfPtx(ptxEntry("out, x, y", R"(
ld.param.b64 %rd7, [k_param_0];
ld.param.b64 %rd8, [k_param_1];
ld.param.b64 %rd9, [k_param_2];
cvt.u32.u64 %r8, %rd8;
cvt.u32.u64 %r9, %rd9;
)" + instructions + "\n" + (result[2] == 'd' ? "" : "cvt.u64.u32 %rd1, %r1;\n") +
                                                                 "st.global.b64 [%rd7], %rd1;"));
  const Report report = run(program, {}, memory, {out, word(x), word(y)});
  EXPECT_TRUE(report.ok()) << report.text();
  return *out;
}
uint32_t narrow(const std::string& instructions, uint64_t x, uint64_t y = 0) {
  return uint32_t(of(instructions, "%r1", x, y));
}
uint64_t wide(const std::string& instructions, uint64_t x, uint64_t y = 0) {
  return of(instructions, "%rd1", x, y);
}
uint64_t bitsOf(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t bitsOf(double x) { return std::bit_cast<uint64_t>(x); }
float f32(const std::string& instructions, float x, float y = 0) {
  return std::bit_cast<float>(narrow(instructions, bitsOf(x), bitsOf(y)));
}

TEST(Instructions, OfIntegers) {
  EXPECT_EQ(narrow("add.s32 %r1, %r8, %r9;", ~0u, 3), 2u);
  EXPECT_EQ(narrow("sub.s32 %r1, %r8, 10;", 3), uint32_t(-7));
  EXPECT_EQ(wide("mul.wide.s32 %rd1, %r8, %r9;", uint32_t(-3), 5), uint64_t(-15));
  EXPECT_EQ(wide("mul.wide.u32 %rd1, %r8, 16;", 0xffffffff), 0xffffffffull * 16);
  EXPECT_EQ(wide("mul.hi.u64 %rd1, %rd8, %rd9;", 1ull << 63, 6), 3u);
  EXPECT_EQ(wide("mad.wide.u32 %rd1, %r8, %r9, %rd8;", 7, 8), 63u);
  EXPECT_EQ(narrow("mad.lo.s32 %r1, %r8, %r9, 1;", 7, 8), 57u);
  EXPECT_EQ(narrow("min.s32 %r1, %r8, %r9;", uint32_t(-1), 1), uint32_t(-1));
  EXPECT_EQ(narrow("min.u32 %r1, %r8, %r9;", uint32_t(-1), 1), 1u);
  EXPECT_EQ(narrow("abs.s32 %r1, %r8;", uint32_t(-5)), 5u);
  EXPECT_EQ(wide("neg.s64 %rd1, %rd8;", 5), uint64_t(-5));
  EXPECT_EQ(narrow("not.b32 %r1, %r8;", 5), ~5u);
}

TEST(Instructions, OfQuotients) {
  EXPECT_EQ(wide("div.s64 %rd1, %rd8, %rd9;", uint64_t(-7), 2), uint64_t(-3));
  EXPECT_EQ(narrow("rem.u32 %r1, %r8, %r9;", 17, 5), 2u);
  EXPECT_EQ(wide("div.s64 %rd1, %rd8, %rd9;", 1ull << 63, ~0ull), 1ull << 63) << "no trap";
  EXPECT_EQ(wide("rem.s64 %rd1, %rd8, %rd9;", 1ull << 63, ~0ull), 0u);
  EXPECT_EQ(narrow("div.u32 %r1, %r8, %r9;", 3, 0), ~0u) << "no trap";
}

TEST(Instructions, OfShiftsAndBits) {
  EXPECT_EQ(narrow("shl.b32 %r1, %r8, %r9;", 1, 31), 1u << 31);
  EXPECT_EQ(narrow("shl.b32 %r1, %r8, %r9;", 1, 32), 0u) << "beyond the width";
  EXPECT_EQ(narrow("shr.s32 %r1, %r8, %r9;", 1u << 31, 40), ~0u);
  EXPECT_EQ(wide("shr.u64 %rd1, %rd8, %r9;", 1ull << 40, 38), 4u);
  EXPECT_EQ(narrow("bfe.u32 %r1, %r8, 5, 27;", 0xffffffff), 0x7ffffffu);
  EXPECT_EQ(narrow("bfe.u32 %r1, %r8, 8, 8;", 0x12345678), 0x56u);
  EXPECT_EQ(narrow("bfe.s32 %r1, %r8, 4, 4;", 0x80), uint32_t(-8));
  EXPECT_EQ(narrow("bfe.s32 %r1, %r8, 28, 8;", 1u << 31), uint32_t(-8)) << "a field that ends above it";
  EXPECT_EQ(narrow("bfe.s32 %r1, %r8, 28, 40;", 1u << 31), uint32_t(-8));
  EXPECT_EQ(narrow("bfe.s32 %r1, %r8, 40, 4;", 1u << 31), ~0u);
  EXPECT_EQ(narrow("bfe.s32 %r1, %r8, 28, 8;", 1u << 30), 4u);
  EXPECT_EQ(narrow("bfe.s32 %r1, %r8, 4, 0;", ~0u), 0u);
  EXPECT_EQ(narrow("prmt.b32 %r1, %r8, %r9, 29040;", 0x33221100, 0x77665544), 0x77117700u)
      << "0x7170: bytes 0, 7, 1, 7";
  EXPECT_EQ(narrow("shf.l.wrap.b32 %r1, %r8, %r9, 8;", 0xaabbccdd, 0x11223344), 0x223344aau);
  EXPECT_EQ(narrow("shf.r.clamp.b32 %r1, %r8, %r9, 40;", 0xaabbccdd, 0x11223344), 0x11223344u);
  EXPECT_EQ(narrow("lop3.b32 %r1, %r8, %r9, 12, 150;", 5, 6), 5u ^ 6u ^ 12u);
  EXPECT_EQ(narrow("popc.b32 %r1, %r8;", 0xf0f0), 8u);
  EXPECT_EQ(narrow("clz.b32 %r1, %r8;", 1), 31u);
  EXPECT_EQ(narrow("brev.b32 %r1, %r8;", 1), 1u << 31);
}

TEST(Instructions, OfFloats) {
  EXPECT_EQ(f32("fma.rn.f32 %r1, %r8, %r9, %r9;", 3, 4), 16);
  EXPECT_EQ(f32("div.rn.f32 %r1, %r8, %r9;", 1, 3), 1.0f / 3);
  EXPECT_EQ(f32("mul.rn.ftz.f32 %r1, %r8, %r9;", 1e-20f, 1e-20f), 0.0f);
  EXPECT_NE(f32("mul.rn.f32 %r1, %r8, %r9;", 1e-20f, 1e-20f), 0.0f);
  EXPECT_EQ(f32("add.sat.f32 %r1, %r8, %r9;", 3, 4), 1);
  EXPECT_EQ(f32("min.f32 %r1, %r8, %r9;", NAN, 4), 4);
  EXPECT_TRUE(std::isnan(f32("min.NaN.f32 %r1, %r8, %r9;", NAN, 4)));
  EXPECT_EQ(f32("mov.b32 %r2, 0f40A00000; max.f32 %r1, %r8, %r9, %r2;", 3, 4), 5) << "of three";
  EXPECT_EQ(f32("copysign.f32 %r1, %r8, %r9;", -1, 4), -4) << "the sign of the first";
  EXPECT_EQ(f32("ex2.approx.f32 %r1, %r8;", 3), 8);
  EXPECT_EQ(f32("rsqrt.approx.f32 %r1, %r8;", 4), 0.5f);
  EXPECT_EQ(wide("mul.f64 %rd1, %rd8, %rd9;", bitsOf(1.5), bitsOf(4.0)), bitsOf(6.0));
}

TEST(Instructions, OfPairsAndMixedTypes) {
  const uint64_t x = bitsOf(1.0f) | bitsOf(2.0f) << 32, y = bitsOf(10.0f) | bitsOf(20.0f) << 32;
  EXPECT_EQ(wide("fma.rn.f32x2 %rd1, %rd8, %rd9, %rd9;", x, y), bitsOf(20.0f) | bitsOf(60.0f) << 32);
  EXPECT_EQ(narrow("add.rn.bf16x2 %r1, %r8, %r9;", 0x40003f80, 0x3f803f80), 0x40404000u);
  EXPECT_EQ(f32("mov.b32 {%rs1, %rs2}, %r8; sub.rn.f32.bf16 %r1, %rs2, %r9;", 8, 0.5f), 7.5f)
      << "the last operand has the first type";
  EXPECT_EQ(narrow("cvt.rn.bf16x2.f32 %r1, %r8, %r9;", bitsOf(1.0f), bitsOf(2.0f)), 0x3f804000u)
      << "the first is the upper half";
}

TEST(Instructions, ComparePairsLaneByLane) {
  const char* code = "setp.gt.f16x2 %p1|%p2, %r8, %r9; selp.b32 %r2, 1, 0, %p1; selp.b32 %r1, 2, %r2, %p2;";
  EXPECT_EQ(narrow(code, 0x3c004000, 0x3c003c00), 1u) << "the lower is larger";
  EXPECT_EQ(narrow(code, 0x40003c00, 0x3c003c00), 2u) << "the upper is larger";
}

TEST(Instructions, OfConversions) {
  EXPECT_EQ(wide("cvt.s64.s32 %rd1, %r8;", uint32_t(-5)), uint64_t(-5));
  EXPECT_EQ(wide("cvt.u64.u32 %rd1, %r8;", uint32_t(-5)), uint64_t(uint32_t(-5)));
  EXPECT_EQ(narrow("cvt.s32.s8 %r1, %r8;", 0x80), uint32_t(-128));
  EXPECT_EQ(narrow("cvt.rzi.s32.f32 %r1, %r8;", bitsOf(-2.7f)), uint32_t(-2));
  EXPECT_EQ(narrow("cvt.rni.s32.f32 %r1, %r8;", bitsOf(2.5f)), 2u);
  EXPECT_EQ(narrow("cvt.rmi.s32.f32 %r1, %r8;", bitsOf(-2.1f)), uint32_t(-3));
  EXPECT_EQ(narrow("cvt.rzi.s32.f32 %r1, %r8;", bitsOf(1e20f)), 0x7fffffffu) << "saturates";
  EXPECT_EQ(narrow("cvt.rzi.s32.f32 %r1, %r8;", bitsOf(NAN)), 0u);
  EXPECT_EQ(narrow("cvt.rpi.f32.f32 %r1, %r8;", bitsOf(2.1f)), bitsOf(3.0f));
  EXPECT_EQ(narrow("cvt.rn.f32.s64 %r1, %rd8;", uint64_t(-7)), bitsOf(-7.0f));
  EXPECT_EQ(narrow("cvt.rn.f32.f64 %r1, %rd8;", bitsOf(0.1)), bitsOf(0.1f));
  EXPECT_EQ(wide("cvt.f64.f32 %rd1, %r8;", bitsOf(0.1f)), bitsOf(double(0.1f)));
  EXPECT_EQ(narrow("mov.b32 {%rs1, %rs2}, %r8; cvt.f32.f16 %r1, %rs1;", 0x3c00), bitsOf(1.0f));
}

TEST(Instructions, OfComparisons) {
  const auto is = [](const std::string& how, uint64_t x, uint64_t y) {
    return narrow("setp." + how + " %p1, %r8, %r9; selp.b32 %r1, 1, 0, %p1;", x, y);
  };
  EXPECT_TRUE(is("lt.s32", uint32_t(-1), 1));
  EXPECT_FALSE(is("lt.u32", uint32_t(-1), 1));
  EXPECT_TRUE(is("hi.u32", uint32_t(-1), 1));
  EXPECT_FALSE(is("ne.f32", bitsOf(NAN), bitsOf(1.0f))) << "ordered";
  EXPECT_TRUE(is("neu.f32", bitsOf(NAN), bitsOf(1.0f)));
  EXPECT_TRUE(is("num.f32", bitsOf(2.0f), bitsOf(1.0f)));
  EXPECT_EQ(narrow("setp.lt.s32 %p1|%p2, %r8, %r9; selp.b32 %r1, 1, 0, %p2;", 1, 2), 0u);
  EXPECT_EQ(
      narrow("setp.lt.s32 %p1, %r8, %r9; setp.eq.and.s32 %p2, %r8, 1, !%p1; selp.b32 %r1, 1, 0, %p2;", 1, 2),
      0u);
  EXPECT_EQ(narrow("testp.finite.f32 %p1, %r8; selp.b32 %r1, 1, 0, %p1;", bitsOf(INFINITY)), 0u);
}

TEST(Instructions, UnderAPredicateOrBehindABranch) {
  const char* guarded = "mov.b32 %r1, 1; setp.eq.s32 %p1, %r8, 3; @%p1 mov.b32 %r1, 2; @!%p1 mov.b32 %r1, 4;";
  EXPECT_EQ(narrow(guarded, 3), 2u);
  EXPECT_EQ(narrow(guarded, 5), 4u);
  const char* loop = "mov.b32 %r1, 0; $L: add.s32 %r1, %r1, 2; setp.lt.s32 %p1, %r1, %r8; @%p1 bra $L;";
  EXPECT_EQ(narrow(loop, 7), 8u);
}

TEST(Instructions, ABraceHidesNames) {
  EXPECT_EQ(narrow("mov.b32 %r1, 5; { .reg .b32 %r1; mov.b32 %r1, 9; { .reg .b32 t; mov.b32 t, %r1; } }", 0),
            5u);
}

TEST(Instructions, OfLocalMemory) {
  EXPECT_EQ(narrow(R"(mov.b64 %rd2, depot;
cvta.local.u64 %rd3, %rd2;
st.local.b32 [%rd2+4], %r8;
st.b32 [%rd3], %r9;
ld.b32 %r2, [%rd3+4];
ld.local.b32 %r3, [depot];
sub.s32 %r1, %r2, %r3;)",
                   50, 8),
            42u);
}

}  // namespace
}  // namespace normc::emulator
