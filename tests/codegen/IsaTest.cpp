#include <set>

#include "codegen/targets/cpu/Isa.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::cpu {
namespace {

TEST(Isa, UnknownTargetNamesTheKnownOnes) {
  auto isa = findIsa("x86-64-v5");
  ASSERT_FALSE(isa);
  EXPECT_EQ(llvm::toString(isa.takeError()),
            "unknown target 'x86-64-v5'; known: host, x86-64-v3, x86-64-v4, x86-64-v4-bf16, aarch64");
}

TEST(Isa, HostIsOneOfTheSets) {
  std::string host = isaOf("host").name.str();
  EXPECT_EQ(isaOf(host).name, host);
}

TEST(Isa, NarrowestOfAnArchitectureComesFirst) {
  std::map<std::string, int64_t> widest;
  for (const Isa& isa : instructionSets()) {
    EXPECT_LE(widest[isa.triple.str()], isa.vectorBytes) << isa.name.str();
    widest[isa.triple.str()] = isa.vectorBytes;
  }
}

TEST(Stage, UnknownNameListsTheStages) {
  auto stage = findStage("ptx", {"sweeps", "loops", "llvm", "asm"});
  ASSERT_FALSE(stage);
  EXPECT_EQ(llvm::toString(stage.takeError()), "no stage 'ptx'; legal: sweeps, loops, llvm, asm");
}

}  // namespace
}  // namespace normc::codegen::cpu
