#include <set>

#include "codegen/targets/cpu/CpuIsa.h"
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

TEST(Isa, ACoreStandsBehindAColon) {
  EXPECT_EQ(isaOf("x86-64-v4").core, nullptr) << "a set by itself means the same on every machine";
  EXPECT_EQ(isaOf("x86-64-v4:zen4").core, findCore("zen4"));
  EXPECT_EQ(isaOf("x86-64-v3:cove").core, findCore("cove"));
  EXPECT_EQ(isaOf("x86-64-v3:host").core, isaOf("host").core);
  EXPECT_EQ(isaOf("host:any").core, nullptr);
  EXPECT_EQ(isaOf("x86-64-v3:cove").name, "x86-64-v3") << "code runs on all of the set";
  for (const char* text : {"x86-64-v4", "x86-64-v4:zen4", "x86-64-v3:cove"})
    EXPECT_EQ(spelling(isaOf(text)), text);
}

TEST(Isa, UnknownCoreNamesTheKnownOnes) {
  const auto error = [](const char* text) {
    auto isa = findIsa(text);
    return isa ? "" : llvm::toString(isa.takeError());
  };
  EXPECT_EQ(error("x86-64-v4:bulldozer"),
            "unknown core 'bulldozer' in target 'x86-64-v4:bulldozer'; known: host, any, cove, granite, "
            "zen3, zen4, zen5");
  EXPECT_EQ(error("x86-64-v4:"),
            "unknown core '' in target 'x86-64-v4:'; known: host, any, cove, granite, zen3, zen4, zen5");
  EXPECT_EQ(error("aarch64:zen4"), "target 'aarch64:zen4': no core of aarch64 is known; leave it out");
  EXPECT_EQ(error("x86-64-v5:zen4"),
            "unknown target 'x86-64-v5'; known: host, x86-64-v3, x86-64-v4, x86-64-v4-bf16, aarch64");
}

TEST(Isa, NarrowestOfAnArchitectureComesFirst) {
  std::map<std::string, int64_t> widest;
  for (const Isa& isa : instructionSets()) {
    EXPECT_LE(widest[isa.triple], isa.vectorBytes) << isa.name.str();
    widest[isa.triple] = isa.vectorBytes;
  }
}

TEST(Stage, UnknownNameListsTheStages) {
  auto stage = findStage("ptx", {"sweeps", "loops", "llvm", "asm"});
  ASSERT_FALSE(stage);
  EXPECT_EQ(llvm::toString(stage.takeError()), "no stage 'ptx'; legal: sweeps, loops, llvm, asm");
}

}  // namespace
}  // namespace normc::codegen::cpu
