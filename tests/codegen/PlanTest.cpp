// The strategies that can serve a problem, and the reasons why others cannot.
#include "codegen/Target.h"
#include "codegen/targets/cpu/CpuSchedule.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

std::string reason(const Problem& problem, Strategy strategy) {
  auto why = whyIllegal(problem, strategy);
  return why ? *why : "";
}

TEST(Plan, PerFeatureStatisticsHaveBothStrategies) {
  Problem problem = problemOf("batch_norm:forward@f32[*x64]");
  EXPECT_EQ(legalStrategies(problem),
            (llvm::SmallVector<Strategy, 2>{Strategy::Streamed, Strategy::Resident}));
}

TEST(Plan, StatisticOfARowIsResident) {
  for (const char* text : {"layer_norm:forward@f32[*x64]", "instance_norm:forward@f32[*x*x64]"}) {
    Problem problem = problemOf(text);
    EXPECT_EQ(reason(problem, Strategy::Streamed),
              "a statistic per row or segment is complete in its slab: strategy resident");
    EXPECT_EQ(legalStrategies(problem), (llvm::SmallVector<Strategy, 2>{Strategy::Resident}));
  }
}

TEST(Plan, ChannelsFirstIsStreamedOnACpuAlone) {
  Problem problem = problemOf("batch_norm:forward@f32[*x64x*]{layout=channels_first}");
  EXPECT_EQ(reason(problem, Strategy::Streamed), "");
  EXPECT_EQ(reason(problem, Strategy::Resident), "");
  EXPECT_EQ(whyIllegalOnSomeTarget(problem, Strategy::Streamed).value_or(""),
            "a channel is one slab in layout channels_first: strategy resident");
  EXPECT_EQ(legalStrategies(problem), (llvm::SmallVector<Strategy, 2>{Strategy::Resident}));
  EXPECT_EQ(cpu::strategies(problem),
            (llvm::SmallVector<Strategy, 2>{Strategy::Resident, Strategy::Streamed}));
  const TargetPtr gpu = llvm::cantFail(findTarget("sm_90"));
  std::string schedule = gpu->bind(problem)->defaults().front().schedule;
  schedule.replace(0, schedule.find(','), "streamed");
  EXPECT_EQ(gpu->bind(problem)->whyIllegal(schedule).value_or(""),
            "a channel is one slab in layout channels_first: strategy resident");
}

TEST(Plan, EntriesOverRanksAreStreamed) {
  Problem problem = problemOf("batch_norm:forward_reduce@f32[*x64]");
  EXPECT_EQ(reason(problem, Strategy::Resident),
            "an entry over ranks stores or reads sums between its sweeps: strategy streamed");
  EXPECT_EQ(legalStrategies(problem), (llvm::SmallVector<Strategy, 2>{Strategy::Streamed}));
  problem = problemOf("batch_norm:backward_apply@f32[*x64x*]{layout=channels_first}");
  EXPECT_EQ(legalStrategies(problem), (llvm::SmallVector<Strategy, 2>{}));
  EXPECT_EQ(cpu::strategies(problem), (llvm::SmallVector<Strategy, 2>{Strategy::Streamed}));
  EXPECT_EQ(llvm::cantFail(findTarget("sm_90"))->bind(problem)->whyIllegal().value_or(""),
            "an entry over ranks goes through channels in the order of memory: only MLIR for a CPU does");
}

TEST(Plan, APackageReadsChannelsInTheOrderOfMemoryWhereTheyOutgrowTheCache) {
  auto defaults = [](const char* text) {
    return llvm::cantFail(findTarget("x86-64-v4"))->bind(problemOf(text))->defaults();
  };
  const auto list = defaults("batch_norm:forward@f32[*x64x*]{layout=channels_first}");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(llvm::StringRef(list[0].schedule).starts_with("streamed,")) << list[0].schedule;
  EXPECT_EQ(list[0].limits, package::Limits());
  EXPECT_TRUE(llvm::StringRef(list[1].schedule).starts_with("resident,")) << list[1].schedule;
  EXPECT_EQ(list[1].limits.rowsMax, (8 << 20) / 64 / 4);
  EXPECT_EQ(defaults("batch_norm:backward@f32[*x64x*]{layout=channels_first}")[1].limits.rowsMax,
            (2 << 20) / 64 / 4);
  EXPECT_EQ(defaults("batch_norm:infer@bf16[*x64x*]{layout=channels_first}")[1].limits.rowsMax,
            (64 << 10) / 64 / 2)
      << "nothing is read twice";
}

TEST(Plan, APackageReadsWholeChannelsWhereTheirRunsAreLong) {
  const TargetPtr target = llvm::cantFail(findTarget("x86-64-v4"));
  auto limits = [&](const char* text) {
    std::vector<package::Limits> all;
    for (const Candidate& c : target->bind(problemOf(text))->defaults())
      if (llvm::StringRef(c.schedule).starts_with("resident,")) all.push_back(c.limits);
    return all;
  };
  using All = std::vector<package::Limits>;
  EXPECT_EQ(limits("batch_norm:forward@f32[*x64x*]{layout=channels_first}"),
            (All{{.rowsMax = 32768}, {.runMin = 2048}}));
  EXPECT_EQ(limits("batch_norm:forward@bf16[*x64x*]{layout=channels_first}"),
            (All{{.rowsMax = 65536}, {.runMin = 16384}}));
  EXPECT_EQ(limits("batch_norm:backward@f32[*x64x*]{layout=channels_first}"),
            (All{{.rowsMax = 8192}, {.rowsMax = 32768, .runMin = 512}, {.runMin = 2048}}));
  EXPECT_EQ(limits("batch_norm:backward@bf16[*x64x*]{layout=channels_first}"),
            (All{{.rowsMax = 16384}, {.runMin = 16384}}));
  EXPECT_EQ(limits("batch_norm:infer@f32[*x64x*]{layout=channels_first}"), (All{{.rowsMax = 256}}))
      << "x is read once";
  EXPECT_EQ(limits("power_norm:forward@f32[*x64x*]{layout=channels_first}"), (All{{.rowsMax = 32768}}))
      << "the same";
}

TEST(Plan, GroupScalingIsStreamed) {
  Problem problem = problemOf("power_norm_released:forward@f32[*x64]{heads=4}");
  EXPECT_EQ(
      reason(problem, Strategy::Resident),
      "group scaling needs whole rows, a resident column slab has only some features: strategy streamed");
  EXPECT_EQ(reason(problem, Strategy::Streamed), "");
}

TEST(Plan, RowsWhoseFeaturesDoNotLieTogetherAreResidentOnACpuAlone) {
  const Problem problem = problemOf("layer_norm:forward@f32[*x64x*]{layout=channels_first}");
  EXPECT_EQ(cpu::strategies(problem), (llvm::SmallVector<Strategy, 2>{Strategy::Resident}));
  EXPECT_EQ(legalStrategies(problem), (llvm::SmallVector<Strategy, 2>{}));
  EXPECT_EQ(reason(problem, Strategy::Split),
            "the features of a row do not lie together in layout channels_first: strategy resident");
  const char* alone =
      "the features of a row do not lie together in layout channels_first: only MLIR for a CPU goes across "
      "channels";
  EXPECT_EQ(whyIllegalOnSomeTarget(problem, Strategy::Resident).value_or(""), alone);
  EXPECT_EQ(llvm::cantFail(findTarget("sm_90"))->bind(problem)->whyIllegal().value_or(""), alone);
  EXPECT_EQ(whyOnCpuAlone(problemOf("layer_norm:forward@f32[*x*x64]")), std::nullopt);
}

TEST(Plan, HalideHasNeitherTypesOfSingleTensorsNorCodesNorPairs) {
  const std::pair<const char*, const char*> kReasons[] = {
      {"rms_norm:forward@f32[*x64]{y=bf16}", "y of another type than x: only MLIR stores it"},
      {"rms_norm:forward@bf16[*x64]{round=normalized}",
       "round=normalized: only MLIR rounds before the affine"},
      {"rms_norm:backward@bf16[*x64]{round=normalized}", ""},
      {"rms_norm_residual:forward@bf16[*x64]{stream=f32}",
       "a residual of another type than x: only MLIR adds it"},
      {"rms_norm_residual_int8:forward@f32[*x64]", "quantized output: only MLIR stores codes"},
      {"rms_norm_residual_int8:backward@f32[*x64]", ""},
      {"qk_norm_rope:forward@f32[*x64]{heads=2}", "'rope': only MLIR turns pairs of features"}};
  for (const auto& [problem, reason] : kReasons)
    EXPECT_EQ(whyInMlirAlone(problemOf(problem)).value_or(""), reason) << problem;
}

TEST(Plan, ScaledGroupsMustLieTogether) {
  // The language refuses this (P3); planning does not rely on it.
  Problem scaled = problemOf("power_norm_released:forward@f32[*x*x64]{heads=4}");
  scaled.layout = Layout::ChannelsFirst;
  EXPECT_EQ(reason(scaled, Strategy::Streamed), "group scaling of rows needs layout features_last");
}

TEST(Plan, SumsOfASegmentNeedTasksOfItsRows) {
  const Problem rows = problemOf("adaptive_layer_norm:backward@f32[*x*x65536]");
  EXPECT_EQ(reason(rows, Strategy::Split),
            "gradients that are sums over the rows of a segment need tasks of its rows: strategy resident");
  EXPECT_EQ(reason(rows, Strategy::Resident), "");
  EXPECT_EQ(reason(problemOf("adaptive_layer_norm:forward@f32[*x*x65536]"), Strategy::Split), "");
}

/// Statistics of features need slabs of all segments, and the gradient of a segment's vector needs slabs of
/// one.
TEST(Plan, SumsOfASegmentBesideStatisticsOfFeaturesTakeTwoPhases) {
  const std::string norm = "norm n from batch_norm {\n  modulate scale, shift\n}\n";
  for (const char* rest : {":backward@f32[*x*x64]", ":backward@f32[*x64x*]{layout=channels_first}"}) {
    Planned plan(problemOf(norm, rest), Strategy::Resident);
    ASSERT_TRUE(plan.kernel()) << plan.error;
    std::vector<std::string> phases;
    for (auto phase : plan.kernel().getOps<PhaseOp>()) phases.push_back(phase.getSymName().str());
    EXPECT_EQ(phases, (std::vector<std::string>{"statistics", "apply"})) << rest;
  }
}

/// The stored sum is read again where the slab does not stay on chip: the residual may be in the same memory.
TEST(Plan, AStoredSumIsReadInPlaceOfWhatItIsMadeOf) {
  const std::string norm = "norm n from batch_norm {\n  residual before\n}\n";
  const auto reads = [&](Strategy strategy) {
    Planned plan(problemOf(norm, ":forward@f32[*x64]"), strategy);
    EXPECT_TRUE(plan.kernel()) << plan.error;
    std::vector<std::string> all;
    plan.kernel().walk([&](SweepOp sweep) {
      if (sweep->getParentOfType<SlabOp>().getHead()) return;
      std::string names;
      for (auto name : sweep.getReads().getAsRange<mlir::FlatSymbolRefAttr>())
        if (tensorNamed(name.getValue())) names += name.getValue().str() + " ";
      for (auto name : sweep.getWrites().getAsRange<mlir::FlatSymbolRefAttr>())
        names += ">" + name.getValue().str();
      all.push_back(names);
    });
    return all;
  };
  EXPECT_EQ(reads(Strategy::Streamed),
            (std::vector<std::string>{"x residual >residual_out", "bias residual_out >y"}));
  EXPECT_EQ(reads(Strategy::Resident),
            (std::vector<std::string>{"x residual ", "x residual >y>residual_out"}));
}

TEST(Plan, OnlyAStatisticOfARowIsSplit) {
  EXPECT_EQ(reason(problemOf("layer_norm:backward@f32[*x65536]"), Strategy::Split), "");
  EXPECT_EQ(reason(problemOf("batch_norm:forward@f32[*x64]"), Strategy::Split),
            "only a statistic of a row is split over its features: strategy resident");
  EXPECT_EQ(reason(problemOf("group_norm:forward@f32[*x64]{groups=4}"), Strategy::Split),
            "a row of 4 groups is split by them already: strategy resident");
}

TEST(Plan, APackageSplitsFewLongRows) {
  auto limits = [](const char* problem, const char* isa = "x86-64-v4") {
    std::vector<int64_t> rows;
    for (const Candidate& c : llvm::cantFail(findTarget(isa))->bind(problemOf(problem))->defaults())
      rows.push_back(c.limits.rowsMax.value_or(0));
    return rows;
  };
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(limits("layer_norm:backward@f32[*x1023]"), Rows({0}));
  EXPECT_EQ(limits("layer_norm:backward@f32[*x1024]"), Rows({0, 4}));
  EXPECT_EQ(limits("layer_norm:backward@f32[*x2048]"), Rows({0, 16}));
  EXPECT_EQ(limits("layer_norm:backward@f32[*x2048]", "x86-64-v4:cove"), Rows({0, 64}))
      << "x, dy and dx stay in 2 MiB";
  EXPECT_EQ(limits("layer_norm:backward@f32[*x2047]", "x86-64-v3"), Rows({0})) << "sixteen registers";
  EXPECT_EQ(limits("layer_norm:backward@f32[*x2048]", "x86-64-v3"), Rows({0, 4}));
  EXPECT_EQ(limits("layer_norm:backward@f32[*x*]"), Rows({0}));
  EXPECT_EQ(limits("layer_norm:forward@f32[*x16384]"), Rows({0}))
      << "no sums per feature: one core is not worth two forks";
  EXPECT_EQ(limits("layer_norm:forward@f32[*x32768]"), Rows({0, 4}));
  EXPECT_EQ(limits("layer_norm:infer@f32[*x32768]"), Rows({0, 4}));
}

TEST(Plan, APackageGoesDownColumnsWhileTheTensorStaysInCache) {
  auto most = [](const char* problem) {
    const std::vector<Candidate> list =
        llvm::cantFail(findTarget("x86-64-v4"))->bind(problemOf(problem))->defaults();
    return list.size() < 2 ? -1 : list[1].limits.rowsMax.value_or(0);
  };
  EXPECT_EQ(most("power_norm:forward@f32[*x768]"), (512 << 10) / 768 / 4);
  EXPECT_EQ(most("power_norm:backward@f32[*x768]"), (512 << 10) / 768 / 4);
  EXPECT_EQ(most("power_norm:forward@bf16[*x768]"), (512 << 10) / 768 / 2);
  EXPECT_EQ(most("power_norm:forward@f32[*x1024]"), 8) << "rows at one place in a page";
  EXPECT_EQ(most("power_norm:infer@f32[*x768]"), 4) << "saves a phase alone";
}

TEST(Plan, RefusalNamesProblemStrategyAndReason) {
  Planned plan(problemOf("layer_norm:forward@f32[*x64]"), Strategy::Streamed);
  EXPECT_EQ(plan.error,
            "layer_norm:forward@f32[*x64] cannot be planned as streamed: a statistic per row or segment is "
            "complete in "
            "its slab: strategy resident");
}

TEST(Plan, EveryBuiltinNormHasAStrategyInEveryEntry) {
  for (const BuiltinNorm& norm : builtinNorms())
    for (Entry entry : kEntries)
      for (bool mask : {false, true})
        for (bool channelsFirst : {false, true}) {
          auto problem = problemOf(norm, {.entry = entry, .mask = mask, .channelsFirst = channelsFirst});
          if (!problem) continue;
          EXPECT_FALSE(cpu::strategies(*problem).empty()) << problem->text();
          const bool onCpuAlone = channelsFirst && (isOverRanks(entry) || norm.spec->perRow());
          EXPECT_EQ(legalStrategies(*problem).empty(), onCpuAlone) << problem->text();
        }
}

TEST(Plan, EverySumOfASweepIsUsed) {
  // On a GPU a sum is exchanged between threads, which no compiler leaves out.
  for (const BuiltinNorm& norm : builtinNorms())
    for (Entry entry : kEntries) {
      auto problem = problemOf(norm, {.entry = entry});
      if (!problem) continue;
      for (Strategy strategy : cpu::strategies(*problem)) {
        Planned plan(*problem, strategy);
        ASSERT_TRUE(plan.kernel()) << plan.error;
        plan.kernel().walk([&](SweepOp sweep) {
          for (mlir::Value sum : sweep.getSums()) EXPECT_FALSE(sum.use_empty()) << problem->text();
        });
      }
    }
}

TEST(Plan, IsAPureFunction) {
  Problem problem = problemOf("batch_renorm:backward@bf16[*x*]{mask}");
  std::string texts[2];
  for (std::string& text : texts) {
    Planned plan(problem, Strategy::Streamed);
    llvm::raw_string_ostream(text) << plan.kernel();
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("norm.sweep"), std::string::npos);
}

TEST(Plan, NumbersOfASpecDoNotChangeItsCode) {
  // Structure is compiled, numbers are arguments.
  std::string slow = "norm n from power_norm {\n  running decay = 0.999, init = 2\n  epsilon 1e-3\n}\n";
  std::string same = "norm n from power_norm {\n}\n";
  std::string texts[2];
  for (int i : {0, 1}) {
    Planned plan(problemOf(i ? slow : same, ":forward@f32[*x64]"), Strategy::Streamed);
    llvm::raw_string_ostream(texts[i]) << plan.kernel();
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace normc::codegen
