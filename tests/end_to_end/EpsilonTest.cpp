// Modes of epsilon in kernels of each reduction. `outside` with the least E of rule P8: the root of a moment
// that f32 does not hold is lost beside it, not the gradient. `max` on both sides of the moment.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

struct Kind {
  const char* name;
  const char* clauses;
};
constexpr Kind kKinds[] = {
    {"features_centred", "reduce features\n center current\n moment central"},
    {"features_raw", "reduce features"},
    {"rows_centred", "reduce rows\n center current\n moment central"},
    {"rows_raw", "reduce rows"},
    {"segment", "reduce segment\n center current\n moment central"},
    {"segment_features", "reduce segment_features(groups = 2)"},
};

class Epsilon : public testing::TestWithParam<Kind> {
 protected:
  /// Judges forward and backward of a norm with this clause.
  static void judge(const std::string& epsilon, std::initializer_list<std::string> shapes,
                    std::initializer_list<HardInput> all) {
    const auto specs = readNorms(std::string("norm n {\n ") + GetParam().clauses +
                                     "\n affine scale, bias\n epsilon " + epsilon + "\n}\n",
                                 "t.norm");
    ASSERT_TRUE(specs) << text(specs.errors());
    for (const std::string& shape : shapes) {
      for (const std::string entry : {"forward", "backward"}) {
        const auto problem =
            parseProblem("n:" + entry + "@f32" + shape, [&](std::string_view) { return specs->front(); });
        ASSERT_TRUE(problem) << text(problem.errors());
        const auto target = llvm::cantFail(codegen::findTarget(hostIsa().name));
        const auto kernel = compiled(*problem, target, codegen::defaultJobs(*problem, target)[0].schedule);
        for (const HardInput data : all) {
          const gate::Trial trial{.extents = {3, 33, *problem->features}, .data = data};
          const gate::Verdict verdict = kernel->judge(*problem, trial);
          EXPECT_TRUE(verdict.ok) << verdict.text;
        }
      }
    }
  }
};

TEST_P(Epsilon, GivesRightGradientsAtTheLeastOutside) {
  judge("1e-11 (mode = outside)",
        {"[*x*x64]", "[*x*x768]{mask}", "[*x64x*]{layout=channels_first}",
         "[*x64x*]{layout=channels_first,mask}"},
        {HardInput::Tiny, HardInput::Denormal, HardInput::ConstantRows, HardInput::Normal,
         HardInput::Mean1000});
}

TEST_P(Epsilon, AboveTheMomentIsAConstantToTheGradient) {
  for (const char* epsilon : {"0.1 (mode = max)", "4 (mode = max)"})
    judge(epsilon, {"[*x*x64]", "[*x64x*]{layout=channels_first}"}, {HardInput::Normal});
}
INSTANTIATE_TEST_SUITE_P(Kinds, Epsilon, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace normc
