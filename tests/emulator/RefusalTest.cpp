// Refusals: each names the instruction that cannot be emulated, before anything runs.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

std::string reason(const std::string& body) { return reasonAgainstPtx(ptxEntry("y, n", body)); }

TEST(Refusal, OfAnInstruction) {
  EXPECT_EQ(reason("activemask.b32 %r1;"),
            "cannot be emulated: in @k, line 12: this instruction is not emulated: activemask.b32 %r1");
  EXPECT_EQ(reason("mov.b32 %r1, 0f3F800000; add.rm.f32 %r2, %r1, %r1;"),
            "cannot be emulated: in @k, line 12: .rm is not emulated: add.rm.f32 %r2, %r1, %r1");
  EXPECT_EQ(
      reason("mov.u32 %r1, %smid;"),
      "cannot be emulated: in @k, line 12: the special register %smid differs from device to device and "
      "is not emulated: mov.u32 %r1, %smid");
  EXPECT_TRUE(has(reason("createpolicy.fractional.L2::evict_first.b64 %rd1, 0f3F800000;"),
                  "this instruction is not emulated: createpolicy"));
  EXPECT_TRUE(has(reason("ld.param.b64 %rd1, [k_param_0]; ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd1;"),
                  ".L2::cache_hint is not emulated"));
  EXPECT_TRUE(has(reason("ld.param.b64 %rd1, [k_param_0]; cp.async.cg.shared.global [%rd1], [%rd1], 8;"),
                  "a cp.async of 8 bytes does not exist"));
  EXPECT_TRUE(has(reason("ld.param.b64 %rd1, [k_param_0]; st.async.weak.b32 [%rd1], 1, [%rd1];"),
                  "this st.async is not emulated"));
  EXPECT_TRUE(has(reason("mov.b64 %rd1, 0; mbarrier.arrive.relaxed.cta.shared.b64 %rd1, [%rd1];"),
                  ".relaxed is not emulated"));
}

TEST(Refusal, OfAllAtOnce) {
  const std::string text = reason("activemask.b32 %r1; mov.u32 %r2, %smid;");
  EXPECT_TRUE(has(text, "activemask.b32"));
  EXPECT_TRUE(has(text, "%smid"));
}

TEST(Refusal, OfOperandsThatDoNotFit) {
  EXPECT_TRUE(
      has(reason("mov.b32 %r1, 1; add.s64 %rd1, %r1, 1;"), "a register of 32 bits for an operand of 64"));
  EXPECT_TRUE(has(reason("mov.b64 %rd1, 1; mov.b64 %r1, %rd1;"), "a result of 64 bits for a register of 32"));
  EXPECT_TRUE(has(reason("add.f64 %rd1, 0f3F800000, 0d3FF0000000000000;"),
                  "a number of 32 bits for an operand of 64"));
  EXPECT_TRUE(has(reason("add.s32 %r1;"), "too few operands"));
  EXPECT_TRUE(has(reason("ld.param.b64 %rd1, [k_param_0]; ld.global.v4.b32 {%r1, %r2}, [%rd1];"),
                  "a list of other than 4 registers"));
  EXPECT_TRUE(has(reason("ld.param.b64 %rd1, [k_param_1+8];"), "it reads beyond the parameters"));
  EXPECT_TRUE(has(reason("mov.b64 %rd1, {%r1, %r2, %r3};"), "a list of 3 parts of 64 bits"));
  EXPECT_TRUE(has(reason("ld.global.v2.b32 {1, 2}, [k_param_0];"), "a result that is no register"));
  EXPECT_TRUE(has(reason("mov.b64 %rd1, elsewhere;"), "'elsewhere' is not declared"));
}

TEST(Refusal, OfARegisterThatIsReadBeforeItIsWritten) {
  EXPECT_EQ(
      reason("add.s32 %r1, %r2, 1;"),
      "cannot be emulated: in @k, line 12: it reads %r2, which is not written on every path to it: add.s32 "
      "%r1, %r2, 1");
  const std::string branch = R"(mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $L;
mov.b32 %r2, 7;
$L:
add.s32 %r3, %r2, 1;)";
  EXPECT_TRUE(has(reason(branch), "line 17: it reads %r2"));
  EXPECT_EQ(reason("mov.b32 %r2, 1;\n" + branch), "");
  EXPECT_EQ(reason("// implicit-def: %r2\n" + branch), "") << "NVPTX says that it uses no value of it";
  EXPECT_EQ(reason("mov.b32 %r1, 1; mov.b64 %rd1, {%r2, %r1}; mov.b64 {_, %r3}, %rd1;"), "")
      << "half of a pair";
}

TEST(Refusal, OfAText) {
  EXPECT_EQ(reasonAgainstPtx(""), "line 1 of the PTX: no .target");
  EXPECT_EQ(reasonAgainstPtx(".version 8.0\n.target sm_90\n"), "line 3 of the PTX: no entry");
  EXPECT_EQ(reasonAgainstPtx(".target native\n"), "line 1 of the PTX: a target that is no sm_NN");
  EXPECT_EQ(reason("bra $L;"), "cannot be emulated: in @k: the label $L is not defined");
  EXPECT_EQ(reason("@%q bra $L;"), "line 12 of the PTX: the predicate '%q' is not declared");
  EXPECT_EQ(reason("add.s32 %r1, ?, 1;"),
            "line 12 of the PTX: '?' is not an operand, in 'add.s32 %r1, ?, 1'");
  EXPECT_EQ(reasonAgainstPtx(".target sm_90\n.func (.param .b32 r) f() { ret; }\n"),
            "line 2 of the PTX: a function that is called is not emulated: '.func'");
  EXPECT_EQ(reasonAgainstPtx(".target sm_90\n.visible .entry k(.param .u32 n)\n{ ret; }\n"),
            "line 2 of the PTX: the parameter 'n' of k is not a word of 8 bytes (.b64, .u64, .s64 or .f64)");
  EXPECT_EQ(reasonAgainstPtx(".target sm_90\n.visible .entry k()\n{ mov.b32"),
            "line 3 of the PTX: the end of the text, in the body of an entry");
}

TEST(Refusal, OfVariables) {
  const auto ofModule = [](const std::string& variable) {
    return reasonAgainstPtx(".target sm_90\n" + variable + "\n.visible .entry k()\n{ ret; }\n");
  };
  const std::pair<const char*, const char*> kCases[] = {
      {".shared .align 4 .b8 s[4] = {7, 0, 0, 0};",
       "s is in shared memory and has an initial value, which a device does not give it"},
      {".extern .global .align 4 .b8 g[4];", "g is used, but not defined in the module"},
      {".global .b8 g[2][2];", "line 2 of the PTX: a variable with several dimensions is not emulated"},
      {".shared .align 3 .b8 s[4];", "line 2 of the PTX: the alignment of 's' is no power of two"},
      {".global .b8 g[99999999999999];", "line 2 of the PTX: 'g' is too long"},
      {".local .b8 l[4];", "line 2 of the PTX: a variable of this space is not emulated here: 'l'"},
  };
  for (const auto& [variable, why] : kCases) EXPECT_EQ(ofModule(variable), why);
  EXPECT_TRUE(has(reason(".global .b8 g[4];"), "a variable of this space is not emulated here: 'g'"));
  EXPECT_TRUE(has(reason(".local .b8 l[600000];"), "'l' is too long"));
  EXPECT_TRUE(has(reason(".reg .b32 %q<2000000>;"), "'%q<2000000>' are too many registers"));
}

}  // namespace
}  // namespace normc::emulator
