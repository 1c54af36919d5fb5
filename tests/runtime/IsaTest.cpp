// The table of instruction sets, and what this processor makes of it.
#include <gtest/gtest.h>

#include <iterator>
#include <set>

#include "runtime/abi/Isa.h"
#include "runtime/normc.h"

namespace normc {
namespace {

TEST(Isa, IsFoundByItsName) {
  for (const Isa& isa : kIsas) EXPECT_EQ(findIsa(isa.name), &isa);
  EXPECT_EQ(findIsa("x86-64-v2"), nullptr);
  EXPECT_EQ(findIsa(""), nullptr);
}

TEST(Isa, NamesAreListedInTheOrderOfTheTable) {
  EXPECT_EQ(isaNames(), "x86-64-v3, x86-64-v4, x86-64-v4-bf16, aarch64");
}

TEST(Isa, IncludesTheLowerLevelsOfItsMachine) {
  const Isa &v3 = *findIsa("x86-64-v3"), &bf16 = *findIsa("x86-64-v4-bf16"), &arm = *findIsa("aarch64");
  EXPECT_TRUE(includes(bf16, v3));
  EXPECT_TRUE(includes(v3, v3));
  EXPECT_FALSE(includes(v3, bf16));
  EXPECT_FALSE(includes(bf16, arm)) << "another machine";
  EXPECT_FALSE(includes(arm, v3));
}

TEST(Isa, LevelsOfAMachineRise) {
  for (size_t i = 1; i < std::size(kIsas); ++i)
    if (kIsas[i].machine == kIsas[i - 1].machine)
      EXPECT_GT(kIsas[i].level, kIsas[i - 1].level) << kIsas[i].name;
}

TEST(Isa, OfThisProcessorIsWhatTheApiSays) {
  ASSERT_TRUE(cpuIsa());
  EXPECT_STREQ(normc_cpu_isa(), cpuIsa()->name.data());
}

}  // namespace
}  // namespace normc
