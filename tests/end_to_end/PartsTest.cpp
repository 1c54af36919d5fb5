// Every built-in norm and entry executed by parts: the bits of a whole call.
#include <gtest/gtest.h>

#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/runtime/InStep.h"

namespace normc {
namespace {

using test::Turns;

gate::Call::Execute byParts(int count, Turns turns) {
  return [=](const normc_plan* plan, const normc_args* args) {
    return test::inStep(count, turns,
                        [=](int ith, normc_barrier barrier, void* ctx) {
                          return normc_execute_part(plan, args, ith, count, barrier, ctx);
                        })
        .status();
  };
}

class Parts : public testing::TestWithParam<std::string> {};

TEST_P(Parts, HaveTheBitsOfTheWholeCall) {
  const Problem problem = problemOf(GetParam());
  for (const codegen::Strategy strategy : codegen::legalStrategies(problem)) {
    const auto kernel =
        compiled(problem, codegen::cpu::defaultSchedule(problem, hostIsa(), strategy), hostIsa());
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (const int64_t step : {0, 3, 5000}) {  // in warmup, with a window that is not full, later
      gate::Trial trial{.extents = {problem.segmented ? 7 : 1, 261, *problem.features}, .step = step};
      const auto arguments = gate::argumentsFor(problem, trial);
      ASSERT_TRUE(arguments);
      for (const bool stateInPlace : {true, false}) {
        trial.placement.stateInPlace = stateInPlace;
        gate::Call call(kernel->plan, problem, *arguments, trial.placement);
        const gate::CallResult whole = call.run();
        ASSERT_EQ(whole.fault, "");
        for (const auto& [count, turns] :
             {std::pair{1, Turns::Free}, {4, Turns::Free}, {3, Turns::Ascending}, {5, Turns::Descending}}) {
          const gate::CallResult parts = call.run(byParts(count, turns));
          EXPECT_EQ(parts.fault, "");
          EXPECT_EQ(bitsOf(parts), bitsOf(whole))
              << codegen::name(strategy).str() << ", step " << step << ", " << count << " threads";
        }
      }
    }
  }
}

/// In the sample each kind of norm meets each entry, layout and mask that it has, and these each other. Each
/// norm is there.
Divided<std::string> problems() {
  std::vector<std::string> all;
  for (const Demand& demand :
       {Demand{.features = 100}, {.features = 24, .channelsFirst = true}, {.features = 40, .mask = true}})
    for (const std::string& text : problemsOf(demand)) all.push_back(text);
  return divided(
      all,
      [](const std::string& text) {
        const Problem problem = problemOf(text);
        return Properties{kindOf(*problem.spec), std::string(name(problem.entry)),
                          problem.mask ? "mask" : std::string(name(problem.layout))};
      },
      [](const std::string& text) { return text.substr(0, text.find(':')); });
}

NORMC_INSTANTIATE_SAMPLE(Norms, Parts, problems(), [](const auto& info) { return testName(info.param); });

}  // namespace
}  // namespace normc
