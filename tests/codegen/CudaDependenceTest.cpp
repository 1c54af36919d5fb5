// Phases that begin while the one before still runs: what their code has to begin with.
// The emulator runs launches one after another, so the order is looked up in the PTX.
#include "codegen/Target.h"
#include "codegen/targets/cuda/Defaults.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

struct Launched {
  std::string symbol, text;  ///< the PTX of its entry, from the parameters on
  bool dependent;
};

/// The entries of a kernel's phases, in order; the one for any alignment after the other.
std::vector<Launched> launchesOf(const char* text, const char* arch) {
  const Problem problem = *parseProblem(text, findNorm);
  const cuda::Arch found = llvm::cantFail(cuda::findArch(arch));
  const auto schedule = cuda::defaultSchedule(problem, found, legalStrategies(problem).front());
  const CompiledKernel kernel = llvm::cantFail(compileKernel(problem, schedule, found, "k", {.make = false}));
  std::vector<Launched> list;
  for (const package::Phase& phase : kernel.manifest.phases)
    for (const std::string& symbol : {phase.symbol, phase.unaligned.value_or("")}) {
      const size_t begin = kernel.ptx.find(".entry " + symbol + "(");
      if (symbol.empty() || begin == std::string::npos) continue;
      list.push_back(
          {symbol, kernel.ptx.substr(begin, kernel.ptx.find("\n}", begin) - begin), phase.launch->dependent});
    }
  return list;
}

size_t firstAccess(const std::string& entry) {
  return std::min({entry.find("ld.global"), entry.find("st.global"), entry.find("atom.")});
}

const char *const kWait = "griddepcontrol.wait", *const kTrigger = "griddepcontrol.launch_dependents";

class CudaDependence : public testing::TestWithParam<const char*> {};

TEST_P(CudaDependence, WaitsBeforeTheFirstAccessAndTriggersAfterTheWait) {
  for (const char* arch : {"sm_90", "sm_100"}) {
    const auto launches = launchesOf(GetParam(), arch);
    const std::string last = launches.back().symbol.substr(0, launches.back().symbol.rfind("_unaligned"));
    for (const Launched& launch : launches) {
      SCOPED_TRACE(launch.symbol + " " + arch);
      const bool first =
          launch.symbol == launches[0].symbol || launch.symbol == launches[0].symbol + "_unaligned";
      EXPECT_EQ(launch.dependent, !first);
      const size_t wait = launch.text.find(kWait), trigger = launch.text.find(kTrigger);
      EXPECT_EQ(wait != std::string::npos, !first);
      if (!first) EXPECT_LT(wait, firstAccess(launch.text));
      if (trigger == std::string::npos) continue;
      EXPECT_FALSE(launch.symbol.starts_with(last)) << "nothing depends on the last phase";
      if (!first)
        EXPECT_LT(wait, trigger) << "the phase after the next would not be ordered with the one before";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, CudaDependence,
                         testing::Values("layer_norm:backward@bf16[*x1024]", "batch_norm:forward@f32[*x1024]",
                                         "batch_norm:backward@f32[*x*]", "power_norm:forward@f32[*x1024]",
                                         "power_norm_released:forward@f32[*x256]{heads=4}",
                                         "power_norm_released:backward@bf16[*x256]{heads=4,mask}",
                                         "instance_norm:backward@f32[*x*x64]"),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

// Blocks that are there and wait take time from a long phase: its rows come first.
TEST(CudaDependence, TriggersFirstWhereATaskIsBrief) {
  const auto triggers = [](const char* problem) {
    std::string phases;
    for (const Launched& launch : launchesOf(problem, "sm_90"))
      if (launch.text.find(kTrigger) < firstAccess(launch.text)) phases += launch.symbol + " ";
    return phases;
  };
  EXPECT_EQ(triggers("power_norm:forward@f32[*x128]"), "k_apply k_apply_unaligned ")
      << "if there are few rows";
  EXPECT_EQ(triggers("layer_norm:backward@bf16[*x128]"), "k_apply k_apply_unaligned ");
  EXPECT_EQ(triggers("batch_norm:forward@f32[*x128]"), "k_statistics k_statistics_unaligned k_combine ")
      << "a fold always is";
  EXPECT_EQ(triggers("layer_norm:backward@f32[*x*]"), "") << "rows of any length may be long";
}

TEST(CudaDependence, TriggersBehindTheRowsOfALongTask) {
  for (const char* problem : {"layer_norm:backward@bf16[*x8192]", "power_norm:forward@bf16[*x4096]"}) {
    const Launched apply = launchesOf(problem, "sm_90").front();
    const size_t trigger = apply.text.rfind(kTrigger);
    ASSERT_NE(trigger, std::string::npos) << problem;
    EXPECT_GT(trigger, apply.text.find("st.global")) << problem << ": dx and y of the rows";
  }
}

TEST(CudaDependence, IsNotThereBeforeSm90) {
  for (const Launched& launch : launchesOf("batch_norm:forward@f32[*x1024]", "sm_80")) {
    EXPECT_FALSE(launch.dependent) << launch.symbol;
    EXPECT_EQ(launch.text.find("griddepcontrol"), std::string::npos) << launch.symbol;
  }
}

TEST(CudaDependence, OfOneLaunchIsNothing) {
  for (const Launched& launch : launchesOf("layer_norm:forward@f32[*x1024]", "sm_90"))
    EXPECT_EQ(launch.text.find("griddepcontrol"), std::string::npos) << launch.symbol;
}

}  // namespace
}  // namespace normc::codegen
