// The page of results: a figure for every record, and a word for everything that is missing.
#include <gtest/gtest.h>

#include "bench/gpu/Table.h"

namespace normc::gpu {
namespace {

Json timed() {
  const Json us = {{"median", 10.0}, {"low", 9.5}, {"high", 10.5}},
             one = {{"value", 0.9}, {"low", 0.85}, {"high", 0.95}};
  return {{"kind", "bench"},
          {"who", "normc"},
          {"shape", "rms_norm:forward@bf16[8x64]"},
          {"norm", "rms_norm"},
          {"entry", "forward"},
          {"dtype", "bf16"},
          {"us", us},
          {"gbps", 3000.0},
          {"of_roof", one},
          {"roof_time_over_ours", one}};
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

TEST(GpuTable, SaysWhatIsMissing) {
  const std::string text = tableOf({});
  EXPECT_TRUE(contains(text, "The device's facts are missing."));
  EXPECT_TRUE(contains(text, "## Roofs\n\nNot measured."));
  EXPECT_TRUE(contains(text, "## Tests\n\nNot run."));
  EXPECT_TRUE(contains(text, "## Kernel times\n\nNot measured."));
  EXPECT_TRUE(contains(text, "The cost of enqueueing was not measured."));
}

TEST(GpuTable, ShowsAKernelBesideTheOthers) {
  Json peer = timed();
  peer["who"] = "eager";
  peer["us"]["median"] = 25.5;
  const std::string text = tableOf({timed(), peer});
  EXPECT_TRUE(contains(text,
                       "| rms_norm:forward@bf16[8x64] | 10.00 [9.50, 10.50] | 3000 | 90.0 [85.0, 95.0] | "
                       "0.90 | - | eager 25.50 |"));
  EXPECT_TRUE(contains(text, "| rms_norm forward bf16 | 1 | 90.0 | 90.0 | 90.0 |"));
}

TEST(GpuTable, ShowsWhatTuningBroughtAndTheLastRecordOfAShape) {
  Json won = timed(), tie = timed();
  won["tuned"] = {{"verdict", "won"},
                  {"us", {{"median", 8.0}, {"low", 7.5}, {"high", 8.5}}},
                  {"default_over_tuned", {{"value", 1.25}, {"low", 1.2}, {"high", 1.3}}}};
  tie["tuned"] = {{"verdict", "tie"}};
  EXPECT_TRUE(contains(tableOf({timed(), won}), "0.90 | 8.00 (1.25x) | - |"));
  EXPECT_FALSE(contains(tableOf({timed(), won}), "0.90 | - | - |"));
  EXPECT_TRUE(contains(tableOf({timed(), tie}), "0.90 | the default | - |"));
  won["tuned"] = {{"verdict", "won"}, {"wrong", "y: off"}};
  EXPECT_TRUE(contains(tableOf({won}), "0.90 | WRONG | - |"));
}

TEST(GpuTable, MarksWhatIsWrongAndLeavesItOutOfTheMeans) {
  Json wrong = timed();
  wrong["wrong"] = "y: off";
  EXPECT_TRUE(contains(tableOf({wrong}), "rms_norm:forward@bf16[8x64] WRONG"));
  EXPECT_FALSE(contains(tableOf({wrong}), "geometric mean"));
  for (const char* key : {"us", "gbps", "of_roof", "roof_time_over_ours"}) wrong.erase(key);
  EXPECT_TRUE(contains(tableOf({wrong}), "| rms_norm:forward@bf16[8x64] | - |"));
  EXPECT_TRUE(contains(tableOf({wrong}), "y: off"));
}

TEST(GpuTable, SaysHowTheTestsWent) {
  const Json tests = {
      {"kind", "tests"},    {"kernels", 7},      {"trials", 70},       {"trials_failed", 2},
      {"kernels_wrong", 1}, {"finished", false}, {"worst_ratio", 0.5}, {"failures", {"layer_norm: y"}}};
  const std::string text = tableOf({tests});
  EXPECT_TRUE(contains(text, "7 kernels, 70 trials: 2 trials of 1 kernels failed; not all were tried"));
  EXPECT_TRUE(contains(text, "    layer_norm: y"));
}

TEST(GpuTable, SaysWhatTheRoofIsOfNormsOfAResidualStream) {
  EXPECT_TRUE(contains(tableOf({timed()}),
                       "of a norm of a residual stream, whose calls move four tensors, 0.50 forward and 0.75 "
                       "backward."));
}

TEST(GpuTable, ShowsTheLastThatIsKnownOfAPeer) {
  const Json none = {{"kind", "peer"}, {"who", "PyTorch"}, {"error", "No module named torch"}},
             there = {{"kind", "peer"}, {"who", "PyTorch"}, {"version", "2.11.0"}};
  EXPECT_TRUE(contains(tableOf({none, there}), "## Others\n\nPyTorch: 2.11.0\n"));
  EXPECT_FALSE(contains(tableOf({none, there}), "No module named torch"));
}

TEST(GpuTable, SaysWhetherTheGraphIsEqual) {
  const Json equal = {{"kind", "graph"}, {"calls", 100}, {"plans", 4}, {"equal", true}};
  Json differs = equal;
  differs["equal"] = false, differs["differs"] = "rms_norm:forward@f32[8x64]";
  EXPECT_TRUE(contains(tableOf({equal}), "A graph of 100 calls of 4 plans: the same bits as call by call."));
  EXPECT_TRUE(contains(tableOf({differs}), "differs from call by call in rms_norm:forward@f32[8x64]"));
}

}  // namespace
}  // namespace normc::gpu
