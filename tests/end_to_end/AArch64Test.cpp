// Kernels for AArch64, compiled here, run under qemu-user, judged by the reference.
#include <gtest/gtest.h>

#include "autotune/gate/Gate.h"
#include "dsl/Tolerance.h"
#include "tests/end_to_end/AArch64Run.h"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

using codegen::Strategy;

class AArch64 : public testing::TestWithParam<const char*> {};

TEST_P(AArch64, AgreesWithTheReferenceUnderQemu) {
  Problem problem = problemOf(GetParam());
  std::vector<gate::Trial> trials;
  for (int64_t rows : {0, 1, 5, 129}) {
    Extents extents{problem.segmented ? 2 : 1, rows, *problem.features};
    trials.push_back({.extents = extents, .step = rows, .seed = uint64_t(rows) + 1});
  }
  trials.push_back({.extents = {problem.segmented ? 3 : 1, 37, *problem.features},
                    .data = HardInput::Mean1000,
                    .step = 7});
  for (Strategy strategy : codegen::cpu::strategies(problem)) {
    AArch64Kernel kernel(problem, strategy);
    for (const gate::Trial& trial : trials) {
      SCOPED_TRACE(problem.text() + " " + codegen::name(strategy).str() + " on " + trial.text(problem));
      auto arguments = gate::argumentsFor(problem, trial);
      ASSERT_TRUE(arguments) << text(arguments.errors());
      auto want = evaluate(problem, *arguments);
      ASSERT_TRUE(want) << text(want.errors());
      AArch64Result got = kernel.run(*arguments);
      ASSERT_EQ(got.fault, "");
      EXPECT_TRUE(got.outputs.count(isBackward(problem.entry) ? "dx" : "y"));
      for (const auto& [output, values] : got.outputs) {
        Agreement agreement =
            compare(want->outputs.at(output), values, toleranceOf(problem, output, trial.extents));
        EXPECT_TRUE(agreement.ok) << output << ": " << agreement.text;
      }
    }
  }
}

TEST(AArch64Tools, AreNamedWhereTheyAreMissing) {
  std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  AArch64Kernel kernel(problemOf("layer_norm:forward@f32[*x8]"), Strategy::Resident);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(kernel.run({}).fault,
            "AArch64 kernels cannot be run here: qemu-aarch64 is not on the PATH; scripts/setup installs it");
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, AArch64,
    testing::Values("layer_norm:forward@f32[*x100]", "layer_norm:backward@f32[*x100]",
                    "layer_norm:forward@bf16[*x35]", "layer_norm:forward@bf16[*x35]{round=normalized}",
                    "rms_norm:infer@f16[*x64]{round=normalized}", "layer_norm:backward@f16[*x64]",
                    "power_norm:forward@f32[*x100]", "power_norm:backward@f32[*x100]",
                    "power_norm:infer@f64[*x20]", "batch_norm:infer_backward@f32[*x100]",
                    "batch_norm:forward@f32[*x72]{mask}", "batch_norm:backward@f32[*x72]{mask}",
                    "batch_norm:forward@f32[*x6x*]{layout=channels_first}",
                    "layer_norm:forward@f32[*x36x*]{layout=channels_first}",
                    "layer_norm:backward@f16[*x10x*]{layout=channels_first,mask}",
                    "group_norm:backward@bf16[*x40x*]{groups=4,layout=channels_first}",
                    "power_norm_released:forward@f32[*x*x48]{heads=4,mask}", "unified_norm:forward@f32[*x12]",
                    "mabn:backward@f32[*x12]", "instance_norm:backward@f32[*x*x20]",
                    "group_norm_segment:forward@f32[*x*x24]{groups=4}"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name)
        if (!isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

}  // namespace
}  // namespace normc
