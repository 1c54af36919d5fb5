// Why the emulator begins where NVPTX does: what the optimiser has broken shows only after it.
#include <gtest/gtest.h>

#include "llvm/Passes/PassBuilder.h"
#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// Threads write a buffer, after a barrier odd threads add 100 to what their neighbour wrote,
/// after another one each reads again what it wrote.
std::string exchange(const std::string& attributes) {
  return kernel("ptr addrspace(1) " + attributes + " %buffer, " + kXY, kLoadX + R"(
  %mine = getelementptr float, ptr addrspace(1) %buffer, i64 %t
  %before = getelementptr float, ptr addrspace(1) %mine, i64 -1
  %low = and i32 %tid, 1
  %odd = trunc i32 %low to i1
  store float %v, ptr addrspace(1) %mine, align 4
)" + kBarrier + R"(
  br i1 %odd, label %add, label %meet
add:
  %w = load float, ptr addrspace(1) %before, align 4
  %sum = fadd float %w, 100.0
  store float %sum, ptr addrspace(1) %before, align 4
  br label %meet
meet:
)" + kBarrier + R"(
  %r = load float, ptr addrspace(1) %mine, align 4
  store float %r, ptr addrspace(1) %py, align 4)");
}

void optimise(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(sccs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, sccs, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Returns y[6] of the kernel, unchanged or optimised. It should be 106.
float result(const std::string& attributes, bool optimised) {
  llvm::LLVMContext context;
  auto module = parseKernel(exchange(attributes), context);
  if (optimised) optimise(*module);
  Program program = llvm::cantFail(Program::compile(ptxOf(*module)));
  Memory memory;
  auto* buffer = fresh<float>(memory, "buffer", 64);
  auto* x = iota<float>(memory, "x", 64);
  auto* y = fresh<float>(memory, "y", 64);
  Report report = run(program, {.block = {64}}, memory, {buffer, x, y});
  EXPECT_TRUE(report.ok()) << report.text();
  return y[6];
}

TEST(Miscompile, NoAliasOnASharedBufferLetsLlvmForwardAcrossABarrier) {
  EXPECT_EQ(result("", false), 106.0f);
  EXPECT_EQ(result("", true), 106.0f);
  // Before the optimiser nothing is wrong with it: what is executed has to be what NVPTX gets.
  EXPECT_EQ(result("noalias", false), 106.0f);
  EXPECT_EQ(result("noalias", true), 6.0f);
}

}  // namespace
}  // namespace normc::emulator
