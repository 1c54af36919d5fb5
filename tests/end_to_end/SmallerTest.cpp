// Programs become as small as a fault allows.
#include <gtest/gtest.h>

#include "dsl/Check.h"
#include "tests/end_to_end/Smaller.h"

namespace normc {
namespace {

codegen::cpu::Isa isa() { return llvm::cantFail(codegen::cpu::findIsa("x86-64-v3")); }

/// Returns the smallest program from the first seed whose program fails.
Drawn smallestThat(const std::function<bool(const Drawn&)>& fails) {
  for (uint64_t seed = 0;; ++seed)
    if (const Drawn d = draw(seed, isa()); fails(d)) return smallest(d, isa(), fails);
}

TEST(Smaller, LeavesWhatTheFaultNeeds) {
  const Drawn d = smallestThat([](const Drawn& d) {
    const Spec& spec = *d.problem.spec;
    return spec.hasGate(Side::Before) && spec.bias && d.problem.mask && d.schedule.unroll > 1 &&
           d.features >= 8;
  });
  const Spec& spec = *d.problem.spec;
  EXPECT_TRUE(spec.gate && spec.bias && d.problem.mask);
  EXPECT_FALSE(spec.residual || spec.modulate || spec.pre || spec.warmup || spec.scale);
  EXPECT_EQ(spec.activation, Activation::None);
  EXPECT_EQ(spec.gate->function, Activation::None);
  EXPECT_EQ(d.problem.data, DType::F32);
  EXPECT_EQ(d.problem.layout, Layout::FeaturesLast);
  EXPECT_EQ(d.features, 8);
  EXPECT_EQ(d.schedule.rows, 1);
}

TEST(Smaller, AsksAboutLegalProgramsAlone) {
  const Drawn d = smallestThat([](const Drawn& d) {
    EXPECT_TRUE(checkSpec(*d.problem.spec).empty()) << textOf(d, isa());
    EXPECT_TRUE(checkProblem(d.problem)) << textOf(d, isa());
    return d.problem.spec->warmup.has_value();
  });
  EXPECT_TRUE(d.problem.spec->running) << "warmup needs a state: " << textOf(d, isa());
  EXPECT_EQ(faultOf(d, isa()), "");
}

}  // namespace
}  // namespace normc
