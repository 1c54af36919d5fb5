// Whatever the bytes, reading ends, and ends with specs or with errors.
#include <gtest/gtest.h>

#include "dsl/Print.h"
#include "dsl/Problem.h"
#include "tests/dsl/Mutated.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

void expectSpecsOrErrors(const std::string& text) {
  const auto specs = readNorms(text, "t.norm");
  if (specs) {
    for (const auto& spec : *specs) EXPECT_TRUE(specOf(print(*spec)) == *spec) << text;
  } else {
    EXPECT_FALSE(specs.errors().empty());
    EXPECT_NE(normc::text(specs.errors()).find("error: "), std::string::npos);
  }
}

TEST(Fuzz, MutatedSpecsGiveSpecsOrErrors) {
  std::mt19937_64 random(1);
  for (const BuiltinNorm& norm : builtinNorms()) {
    for (int i = 0; i < 300; ++i)
      expectSpecsOrErrors(mutated(norm.text, builtinNorms().front().text, random));
  }
}

TEST(Fuzz, EveryPrefixOfASpecGivesSpecsOrErrors) {
  const std::string text = print(randomSpec(3));
  for (size_t length = 0; length <= text.size(); ++length) expectSpecsOrErrors(text.substr(0, length));
}

TEST(Fuzz, MutatedProblemsGiveProblemsOrErrors) {
  std::mt19937_64 random(2);
  const std::string kTexts[] = {"layer_norm:forward@f32[*x1024]",
                                "batch_norm:infer@f16[*x64x*]{layout=channels_first}",
                                "power_norm_released:forward@f32[*x1024]{heads=16,mask,params=f32}"};
  for (const std::string& text : kTexts) {
    for (int i = 0; i < 2000; ++i) {
      const auto problem = parseProblem(mutated(text, kTexts[0], random), findNorm);
      if (!problem) {
        EXPECT_NE(normc::text(problem.errors()).find("error: "), std::string::npos);
        continue;
      }
      const auto again = parseProblem(problem->text(), findNorm);
      ASSERT_TRUE(again) << problem->text();
      EXPECT_EQ(again->text(), problem->text());
    }
  }
}

TEST(Fuzz, DeepAndLongTextsAreHarmless) {
  expectSpecsOrErrors("norm a {\n  reduce " + std::string(100000, '(') + "\n}\n");
  expectSpecsOrErrors("norm " + std::string(100000, 'a') + " {\n  reduce rowz\n}\n");
  expectSpecsOrErrors(std::string(10000, '{'));
}

}  // namespace
}  // namespace normc
