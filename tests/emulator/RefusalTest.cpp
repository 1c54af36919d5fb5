// Instructions that cannot be emulated are refused by name before anything runs.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

std::string reason(const std::string& body) { return reasonAgainst(kernel("ptr %y", body)); }

TEST(Refusal, OfAnIntrinsic) {
  EXPECT_EQ(reason("%c = call i64 @llvm.nvvm.read.ptx.sreg.clock64()"),
            "cannot be emulated: in @k: the special register %clock64 differs from device to device and is "
            "not emulated: "
            "%c = call i64 @llvm.nvvm.read.ptx.sreg.clock64()");
  EXPECT_EQ(
      reason("%c = call i32 @llvm.nvvm.activemask()"),
      "cannot be emulated: in @k: this intrinsic is not emulated: %c = call i32 @llvm.nvvm.activemask()");
  EXPECT_EQ(
      reason("%c = call float @llvm.nvvm.add.rm.f(float 1.0, float 2.0)"),
      "cannot be emulated: in @k: this intrinsic is not emulated: %c = call float @llvm.nvvm.add.rm.f(float "
      "1.000000e+00, float 2.000000e+00)");
}

TEST(Refusal, OfAFunctionThatIsNotThere) {
  EXPECT_EQ(reasonAgainst("declare float @__nv_expf(float)\n" +
                          kernel("", "%c = call float @__nv_expf(float 1.0)")),
            "cannot be emulated: in @k: @__nv_expf is called, but not defined in the module: %c = call float "
            "@__nv_expf(float 1.000000e+00)");
  EXPECT_EQ(reasonAgainst("define void @f(i32 %n) {\n call void @f(i32 %n)\n ret void\n}\n" +
                          kernel("", "call void @f(i32 1)")),
            "cannot be emulated: in @k: a recursive call of @f is not emulated: call void @f(i32 1)");
  EXPECT_EQ(reasonAgainst(kernel("ptr %f", "call void %f()")),
            "cannot be emulated: in @k: an indirect call is not emulated: call void %f()");
}

TEST(Refusal, OfAParameter) {
  EXPECT_EQ(reasonAgainst(kernel("ptr %x, i32 %n", "")),
            "cannot be emulated: in @k: parameter 1 is i32; it has to be a word of 8 bytes: a pointer, i64 "
            "or double");
}

TEST(Refusal, OfVariables) {
  EXPECT_EQ(
      reasonAgainst("@s = internal addrspace(3) global i32 7, align 4\n" +
                    kernel("", "%v = load i32, ptr addrspace(3) @s, align 4")),
      "cannot be emulated: @s is in shared memory and has an initial value, which a device does not give it");
  EXPECT_EQ(reasonAgainst("@g = external addrspace(1) global i32, align 4\n" +
                          kernel("", "%v = load i32, ptr addrspace(1) @g, align 4")),
            "cannot be emulated: @g is used, but not defined in the module");
  EXPECT_EQ(
      reason("%n = zext i32 %tid to i64\n %a = alloca float, i64 %n, align 4"),
      "cannot be emulated: in @k: a local variable of variable size: %a = alloca float, i64 %n, align 4");
}

TEST(Refusal, OfAllAtOnce) {
  std::string text =
      reason("%a = call i32 @llvm.nvvm.activemask()\n %b = call i32 @llvm.nvvm.read.ptx.sreg.smid()");
  EXPECT_NE(text.find("%a = "), std::string::npos);
  EXPECT_NE(text.find("%b = "), std::string::npos);
}

std::string compileRaw(const std::string& target, const std::string& ir) {
  llvm::LLVMContext context;
  auto module = parseKernel(ir, context);
  if (target.starts_with("e-"))
    module->setDataLayout(target);
  else
    module->setTargetTriple(llvm::Triple(target));
  auto program = Program::compile(*module);
  return program ? "" : llvm::toString(program.takeError());
}

TEST(Refusal, OfAModule) {
  EXPECT_EQ(reasonAgainst("define void @f() {\n ret void\n}"),
            "the module has no entry function (ptx_kernel)");
  EXPECT_EQ(compileRaw("x86_64-linux-gnu", kernel("", "")),
            "a module for 'x86_64-linux-gnu' is not one for nvptx64");
  EXPECT_EQ(compileRaw("e-p3:32:32-i64:64", kernel("", "")),
            "pointers to address space 3 have 32 bits; only 64 can be emulated: leave out nvptx-short-ptr");
}

}  // namespace
}  // namespace normc::emulator
