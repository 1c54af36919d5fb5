// The core of a processor, by what CPUID says of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/abi/CpuCore.h"

namespace normc {
namespace {

constexpr CpuFacts kAmd{.vendor = "AuthenticAMD", .family = 0x19, .avx2 = true, .gfni = true},
    kIntel{.vendor = "GenuineIntel",
           .family = 6,
           .model = 0xcf,
           .avx2 = true,
           .avx512 = true,
           .gfni = true,
           .amxTile = true};

TEST(CpuCore, OfAmdFollowsItsInstructions) {
  CpuFacts f = kAmd;
  EXPECT_EQ(coreOf(f), "zen3");
  f.avx512 = true;
  EXPECT_EQ(coreOf(f), "zen4");
  f.family = 0x1a;
  EXPECT_EQ(coreOf(f), "zen5");
  f.family = 0x15;
  EXPECT_EQ(coreOf(f), "") << "Bulldozer and its successors";
}

TEST(CpuCore, OfIntelIsKnownFromIceLakeOn) {
  CpuFacts f = kIntel;
  EXPECT_EQ(coreOf(f), "cove");
  f.avx512 = f.amxTile = false;
  EXPECT_EQ(coreOf(f), "cove") << "Alder Lake";
  f.gfni = false;
  EXPECT_EQ(coreOf(f), "") << "Skylake";
  f.avx2 = false, f.gfni = true;
  EXPECT_EQ(coreOf(f), "") << "Tremont";
}

TEST(CpuCore, OfARocketLakeWithMatricesIsThatOfAGraniteRapids) {
  CpuFacts f = kIntel;
  for (const unsigned model : {0xadu, 0xaeu, 0xa7u}) {
    f.model = model;
    EXPECT_EQ(coreOf(f), "granite") << std::hex << model;
  }
  f.amxTile = false;
  EXPECT_EQ(coreOf(f), "cove") << "a Rocket Lake";
  f.model = 0xad;
  EXPECT_EQ(coreOf(f), "granite") << "whose matrices a hypervisor hides";
}

TEST(CpuCore, OfAnotherVendorIsUnknown) {
  CpuFacts f = kIntel;
  f.vendor = "CentaurHauls";
  EXPECT_EQ(coreOf(f), "");
  EXPECT_EQ(coreOf({}), "");
}

TEST(CpuCore, OfThisProcessorIsInTheTable) {
  EXPECT_TRUE(cpuCore().empty() || std::ranges::count(kCores, cpuCore()) == 1) << cpuCore();
}

}  // namespace
}  // namespace normc
