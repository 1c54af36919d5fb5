// Statistics of one element, or of equal ones: y is the bias, and the element has no gradient. Errors there
// would be multiplied by 1 / sqrt(epsilon).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

struct Case {
  const char* norm;
  const char* clauses;
  const char* shape;  ///< type and dimensions
  Extents extents;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.norm << c.shape << ' ' << c.clauses; }

class OneElement : public testing::TestWithParam<Case> {
 protected:
  /// Runs a forward and its backward, of rows that are all alike and a bias of 0, and returns y and dx.
  std::pair<std::vector<double>, std::vector<double>> step(codegen::Strategy strategy) {
    const Case& c = GetParam();
    const auto problem = [&](const char* entry) {
      const auto found = problemWith(c.norm, c.clauses, std::string(":") + entry + c.shape);
      EXPECT_TRUE(found);
      return found.value();
    };
    const Problem forward = problem("forward"), backward = problem("backward");
    ReferenceCall call = *gate::argumentsFor(backward, {.extents = c.extents});
    const size_t row = size_t(c.extents.features);
    for (size_t i = row; i < call.x.size(); ++i) call.x[i] = call.x[i % row];
    if (forward.spec->bias) call.bias.assign(row, 0);
    call.state = initialState(forward, c.extents);
    const auto first = run(forward, strategy, call);
    call.saved.clear();
    for (const auto& [name, values] : first)
      if (name.starts_with("saved.")) call.saved[name.substr(6)] = values;
    return {first.at("y"), run(backward, strategy, call).at("dx")};
  }

 private:
  static std::map<std::string, std::vector<double>> run(const Problem& problem, codegen::Strategy strategy,
                                                        const ReferenceCall& call) {
    const auto kernel =
        compiled(problem, codegen::cpu::defaultSchedule(problem, hostIsa(), strategy), hostIsa());
    EXPECT_TRUE(kernel->plan) << kernel->error;
    const gate::CallResult result = gate::Call(kernel->plan, problem, call, {}).run();
    EXPECT_EQ(result.fault, "");
    return result.outputs;
  }
};

TEST_P(OneElement, IsTheBiasAndHasNoGradient) {
  const auto problem =
      problemWith(GetParam().norm, GetParam().clauses, std::string(":forward") + GetParam().shape);
  ASSERT_TRUE(problem);
  for (const codegen::Strategy strategy : codegen::cpu::strategies(*problem)) {
    if (strategy == codegen::Strategy::Split) continue;  // many features in few rows
    const auto [y, dx] = step(strategy);
    EXPECT_TRUE(std::ranges::all_of(y, [](double each) { return each == 0; }));
    EXPECT_TRUE(std::ranges::all_of(dx, [](double each) { return each == 0; }));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Norms, OneElement,
    testing::Values(Case{"layer_norm", "", "@f32[*x1]", {1, 9, 1}},
                    Case{"layer_norm", "", "@bf16[*x*]", {1, 9, 1}},
                    Case{"group_norm", "", "@f32[*x8]{groups=8}", {1, 5, 8}},
                    Case{"batch_norm", "", "@f32[*x17]", {1, 1, 17}},
                    Case{"batch_norm", "", "@f64[*x*]", {1, 1, 17}},
                    Case{"batch_renorm", "", "@f32[*x16]", {1, 1, 16}},
                    Case{"instance_norm", "", "@f32[*x*x16]", {3, 1, 16}},
                    Case{"batch_norm", "pre group_scaling(groups = 1)", "@f32[*x64]", {1, 1, 64}},
                    Case{"batch_norm", "gate silu(at = before)", "@f32[*x64]", {1, 1, 64}},
                    Case{"layer_norm", "gate silu(at = before)", "@f32[*x1]", {1, 9, 1}}));

// Both sweeps of the backward have to find the sign of the same y.
INSTANTIATE_TEST_SUITE_P(
    EqualRows, OneElement,
    testing::Values(
        Case{"batch_norm", "pre group_scaling(groups = 1);activation relu", "@f32[*x64]", {1, 1, 64}},
        Case{"batch_norm", "pre group_scaling(groups = 1);activation relu", "@f64[*x64]", {1, 3, 64}},
        Case{"batch_norm", "pre group_scaling(groups = 4);activation relu", "@bf16[*x*]", {1, 2, 64}}));

}  // namespace
}  // namespace normc
