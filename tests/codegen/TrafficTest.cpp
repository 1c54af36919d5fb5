// X-sized transfers, counted in the IR, against the table of docs/design.md,
// section 5: the number of times that a kernel goes through memory is its price.
#include "codegen/targets/cpu/CpuSpace.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

/// Reads and writes as "2R 1W".
std::string text(Traffic t) { return std::to_string(t.reads) + "R " + std::to_string(t.writes) + "W"; }

std::string trafficOf(const Problem& problem, Strategy strategy, bool warmup = false) {
  Planned plan(problem, strategy);
  return plan.kernel() ? text(codegen::trafficOf(plan.kernel(), warmup)) : plan.error;
}

/// One line of the table: what a norm moves, by entry and strategy. Empty: the strategy cannot serve it.
struct Row {
  const char* norm;
  const char* forward;
  const char* backward;
  const char* forwardResident;
  const char* backwardResident;
  const char* infer = "1R 1W";
  const char* inferBackward = "2R 1W";
};

const Row kTable[] = {
    // The statistics of a batch must be complete before its first output, and both sums before the first dx.
    {"batch_norm", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    {"batch_norm_unbiased", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    {"batch_renorm", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    {"power_norm_v", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    // A window contains the current batch, so it gains nothing.
    {"mabn", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    {"unified_norm", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    // Only what earlier batches left is needed: one sweep, and no barrier.
    {"power_norm", "1R 1W", "2R 1W", "1R 1W", "2R 1W"},
    {"power_norm_released", "1R 1W", "2R 1W", "", ""},
    // A row, or a segment, stays on chip between its sweeps.
    {"layer_norm", "", "", "1R 1W", "2R 1W"},
    {"rms_norm", "", "", "1R 1W", "2R 1W"},
    {"group_norm", "", "", "1R 1W", "2R 1W"},
    {"group_scaling", "", "", "1R 1W", "2R 1W"},
    {"instance_norm", "", "", "1R 1W", "2R 1W"},
    {"group_norm_segment", "", "", "1R 1W", "2R 1W"},
    {"l2_norm", "", "", "1R 1W", "2R 1W"},
    // What stands around a norm moves its own tensors, once where x is read once.
    {"gemma_rms_norm", "", "", "1R 1W", "2R 1W"},
    {"batch_norm_relu", "2R 1W", "4R 1W", "1R 1W", "2R 1W"},
    {"group_norm_silu", "", "", "1R 1W", "2R 1W"},
    {"adaptive_layer_norm", "", "", "1R 1W", "2R 1W"},
    {"layer_norm_residual", "", "", "2R 2W", "3R 1W", "2R 2W"},
    {"rms_norm_residual", "", "", "2R 2W", "3R 1W", "2R 2W"},
    {"rms_norm_residual_int8", "", "", "2R 2W", "3R 1W", "2R 2W"},
    {"rms_norm_residual_e4m3_block", "", "", "2R 2W", "3R 1W", "2R 2W"},
    {"gemma_sandwich", "", "", "2R 1W", "2R 1W", "2R 1W"},
    {"gated_rms_norm", "", "", "2R 1W", "3R 2W", "2R 1W"},
    {"delta_gated_rms_norm", "", "", "2R 1W", "3R 2W", "2R 1W"},
    {"adaptive_layer_norm_zero", "", "", "2R 2W", "4R 2W", "2R 2W"},
    {"qk_norm_rope", "", "", "1R 1W", "2R 1W"},
    {"layer_norm_channels", "", "", "1R 1W", "2R 1W"},
    {"resnet_tail", "3R 1W", "6R 2W", "2R 1W", "3R 2W", "2R 1W", "3R 2W"},
};

class TrafficTable : public testing::TestWithParam<BuiltinNorm> {
 protected:
  const Row& row() const {
    for (const Row& r : kTable)
      if (r.norm == GetParam().name) return r;
    ADD_FAILURE() << GetParam().name << " is not in the table of this test";
    return kTable[0];
  }
  /// Asserts one cell for every layout and mask under which the problem exists.
  void expectCell(Entry entry, Strategy strategy, std::string cell) const {
    int served = 0;
    for (bool mask : {false, true})
      for (bool channelsFirst : {false, true}) {
        auto problem = problemOf(GetParam(), {.entry = entry, .mask = mask, .channelsFirst = channelsFirst});
        if (!problem || whyIllegal(*problem, strategy)) continue;
        ++served;
        // The gradient of a residual behind the norm is dy, but with a mask a tensor of its own.
        const bool own = isBackward(entry) && GetParam().name == "gemma_sandwich" && mask;
        EXPECT_EQ(trafficOf(*problem, strategy), own ? "2R 2W" : cell)
            << problem->text() << " " << name(strategy).str();
      }
    EXPECT_EQ(served > 0, !cell.empty()) << GetParam().name << " " << name(strategy).str();
  }
};

TEST_P(TrafficTable, ForwardMovesWhatTheTableSays) {
  expectCell(Entry::Forward, Strategy::Streamed, row().forward);
  expectCell(Entry::Forward, Strategy::Resident, row().forwardResident);
}
TEST_P(TrafficTable, BackwardMovesWhatTheTableSays) {
  expectCell(Entry::Backward, Strategy::Streamed, row().backward);
  expectCell(Entry::Backward, Strategy::Resident, row().backwardResident);
}
TEST_P(TrafficTable, InferenceReadsOnceAndWritesOnce) {
  expectCell(Entry::Infer, Strategy::Streamed, *row().forward ? row().infer : "");
  expectCell(Entry::Infer, Strategy::Resident, *row().forwardResident ? row().infer : "");
}
/// Its statistics are known, so it reads each tensor once. Group scaling takes its sums from rows on chip.
TEST_P(TrafficTable, TheGradientOfInferenceReadsEachTensorOnce) {
  const bool state = GetParam().spec->running.has_value();
  expectCell(Entry::InferBackward, Strategy::Streamed, state && *row().forward ? row().inferBackward : "");
  expectCell(Entry::InferBackward, Strategy::Resident,
             state && *row().forwardResident ? row().inferBackward : "");
}
/// The transfers that the model of a CPU counts, as `trafficOf` gives those of a plan.
TEST_P(TrafficTable, IsWhatThePredictionCounts) {
  int served = 0;
  for (Entry entry : kEntries)
    for (Strategy strategy : {Strategy::Streamed, Strategy::Resident, Strategy::Split})
      for (bool mask : {false, true})
        for (bool channelsFirst : {false, true}) {
          auto problem =
              problemOf(GetParam(), {.entry = entry, .mask = mask, .channelsFirst = channelsFirst});
          if (!problem || whyIllegal(*problem, strategy)) continue;
          ++served;
          cpu::Predictor predictor(*problem, isaOf("x86-64-v3"));
          const TrafficBounds& counted = predictor.traffic(strategy);
          EXPECT_EQ(text(counted.kept), trafficOf(*problem, strategy))
              << problem->text() << " " << name(strategy).str();
          EXPECT_GE(counted.apart.reads, counted.kept.reads);
          EXPECT_EQ(counted.apart.writes, counted.kept.writes);
        }
  EXPECT_GT(served, 0);
}
TEST(Traffic, OfALineThatLeavesTheCacheIsThatOfEachSweep) {
  const auto apart = [](const char* problem, Strategy strategy) {
    return text(cpu::Predictor(problemOf(problem), isaOf("x86-64-v3")).traffic(strategy).apart);
  };
  EXPECT_EQ(apart("layer_norm:forward@f32[*x1024]", Strategy::Resident), "2R 1W");
  EXPECT_EQ(apart("layer_norm:backward@f32[*x1024]", Strategy::Resident), "4R 1W");
  EXPECT_EQ(apart("batch_norm:forward@f32[*x64]", Strategy::Resident), "2R 1W");
  EXPECT_EQ(apart("batch_norm:forward@f32[*x64]", Strategy::Streamed), "2R 1W")
      << "no slab of it is kept anyway";
  EXPECT_EQ(apart("power_norm:forward@f32[*x64]", Strategy::Resident), "1R 1W") << "it reads once";
}
TEST(Traffic, OfASplitRowIsThatOfTwoReadings) {
  EXPECT_EQ(trafficOf(problemOf("layer_norm:forward@f32[*x65536]"), Strategy::Split), "2R 1W");
  EXPECT_EQ(trafficOf(problemOf("rms_norm:backward@f32[*x65536]"), Strategy::Split), "4R 1W");
}
INSTANTIATE_TEST_SUITE_P(Norms, TrafficTable, testing::ValuesIn(builtinNorms()),
                         [](const auto& info) { return info.param.name; });

TEST(Traffic, TotalsAreTheFlagshipsOfTheDesign) {
  EXPECT_EQ((Traffic{1, 1}.total()), 2);
  EXPECT_EQ((Traffic{4, 1}.total()), 5);
}

TEST(Traffic, WarmupOfTheReleasedFormCostsOneMoreRead) {
  Problem forward = problemOf("power_norm_released:forward@f32[*x64]{heads=4}");
  EXPECT_EQ(trafficOf(forward, Strategy::Streamed, /*warmup=*/true), "2R 1W");
  Problem backward = problemOf("power_norm_released:backward@f32[*x64]{heads=4}");
  EXPECT_EQ(trafficOf(backward, Strategy::Streamed, /*warmup=*/true), "2R 1W");
}

TEST(Traffic, WarmupOfPowerNormCostsNothingWhereColumnsAreResident) {
  std::string warm = "norm n from power_norm {\n  warmup steps = 10\n}\n";
  Problem problem = problemOf(warm, ":forward@f32[*x64]");
  EXPECT_EQ(trafficOf(problem, Strategy::Streamed), "1R 1W");
  EXPECT_EQ(trafficOf(problem, Strategy::Streamed, /*warmup=*/true), "2R 1W");
  EXPECT_EQ(trafficOf(problem, Strategy::Resident, /*warmup=*/true), "1R 1W");
}

TEST(Traffic, RunningCentreKeepsTheForwardAtTwo) {
  std::string norm = "norm n from power_norm {\n  center running\n  moment central\n}\n";
  EXPECT_EQ(trafficOf(problemOf(norm, ":forward@f32[*x64]"), Strategy::Streamed), "1R 1W");
  EXPECT_EQ(trafficOf(problemOf(norm, ":backward@f32[*x64]"), Strategy::Streamed), "2R 1W");
}

TEST(Traffic, CurrentCentreBringsTheBarrierBack) {
  std::string norm = "norm n from power_norm {\n  center current\n  moment central\n}\n";
  EXPECT_EQ(trafficOf(problemOf(norm, ":forward@f32[*x64]"), Strategy::Streamed), "2R 1W");
  EXPECT_EQ(trafficOf(problemOf(norm, ":backward@f32[*x64]"), Strategy::Streamed), "4R 1W");
}

TEST(Traffic, FrozenBackwardNeedsNoSumBeforeItsOutput) {
  std::string norm = "norm n from batch_norm {\n  backward frozen\n}\n";
  EXPECT_EQ(trafficOf(problemOf(norm, ":backward@f32[*x64]"), Strategy::Streamed), "2R 1W");
}

TEST(Traffic, InferenceWithoutAStateHasToLookFirst) {
  std::string norm = "norm n from power_norm_v {\n  running none\n}\n";
  EXPECT_EQ(trafficOf(problemOf(norm, ":infer@f32[*x64]"), Strategy::Streamed), "2R 1W");
  EXPECT_EQ(trafficOf(problemOf(norm, ":infer@f32[*x64]"), Strategy::Resident), "1R 1W");
}

/// A reduction and its application read what the fused entry reads twice.
TEST(Traffic, OverRanksIsThatOfTheFusedEntries) {
  const auto moved = [](const std::string& problem) {
    return trafficOf(problemOf(problem), Strategy::Streamed);
  };
  EXPECT_EQ(moved("batch_norm:forward_reduce@f32[*x64]"), "1R 0W");
  EXPECT_EQ(moved("batch_norm:forward_apply@f32[*x64]"), "1R 1W");
  EXPECT_EQ(moved("batch_norm:backward_reduce@f32[*x64]"), "2R 0W");
  EXPECT_EQ(moved("batch_norm:backward_apply@f32[*x64]"), "2R 1W");
  EXPECT_EQ(moved("power_norm:forward_reduce@f32[*x64]"), "1R 1W");
  EXPECT_EQ(moved("power_norm:backward_reduce@f32[*x64]"), "2R 1W");
  EXPECT_EQ(moved("power_norm:commit@f32[*x64]"), "0R 0W");
}

TEST(Traffic, AnActivationMovesNothing) {
  for (const char* base : {"layer_norm", "batch_norm", "power_norm"}) {
    const std::string bare = std::string("norm n from ") + base + " {\n  activation none\n}\n",
                      active = std::string("norm n from ") + base + " {\n  activation silu\n}\n";
    for (Strategy strategy : {Strategy::Streamed, Strategy::Resident})
      for (const char* entry : {":forward@f32[*x64]", ":backward@f32[*x64]"}) {
        const Problem with = problemOf(active, entry);
        if (whyIllegal(with, strategy)) continue;
        EXPECT_EQ(trafficOf(with, strategy), trafficOf(problemOf(bare, entry), strategy)) << base << entry;
      }
  }
}

/// The table of what fusing saves, for norms that no file has: forward and backward, transfers in all.
TEST(Traffic, OfWhatSurroundsANormIsThatOfItsTensors) {
  struct Case {
    std::string base, clauses;
    Strategy strategy;
    int64_t forward, backward;
  };
  constexpr Strategy resident = Strategy::Resident, streamed = Strategy::Streamed;
  const Case cases[] = {
      {"rms_norm", "residual before", resident, 4, 4},
      {"rms_norm", "residual before(stream = no)", resident, 3, 4},
      {"rms_norm", "residual after", resident, 3, 3},
      {"rms_norm", "residual after\n  activation silu", resident, 3, 5},
      {"rms_norm", "gate silu(at = before)", resident, 3, 5},
      {"rms_norm", "gate silu", resident, 3, 5},
      {"rms_norm", "gate sigmoid(per = segment)", resident, 2, 3},
      {"rms_norm", "gate identity(per = feature)", resident, 2, 3},
      {"rms_norm", "modulate scale, shift", resident, 2, 3},
      {"rms_norm", "modulate scale, shift, per = row", resident, 4, 6},
      {"rms_norm", "activation silu", resident, 2, 3},
      {"rms_norm", "rope half", resident, 2, 3},
      {"rms_norm", "rope interleaved\n  gate silu", resident, 3, 5},
      {"rms_norm", "quantize e4m3(per = block, size = 16)", resident, 2, 3},
      {"rms_norm", "residual before\n  quantize int8", resident, 4, 4},
      {"batch_norm", "quantize int8(per = tensor)", streamed, 3, 5},
      {"batch_norm", "quantize int8", streamed, 3, 5},
      {"layer_norm", "gate identity(at = before, per = segment)\n  residual before\n  modulate scale, shift",
       resident, 4, 6},
      {"batch_norm", "activation relu", streamed, 3, 5},
      // h is written by the first sweep, and read by the second and by backward
      {"batch_norm", "residual before", streamed, 5, 6},
      {"batch_norm", "residual before(stream = no)", streamed, 5, 7},
      {"batch_norm", "modulate scale, shift", streamed, 3, 5},
      {"batch_norm", "modulate scale, shift, per = row", streamed, 5, 9},
      {"batch_norm", "residual after\n  activation relu", streamed, 4, 8},
      {"power_norm", "residual before", streamed, 4, 4},
  };
  for (const Case& c : cases) {
    const std::string norm = "norm n from " + c.base + " {\n  " + c.clauses + "\n}\n";
    SCOPED_TRACE(norm);
    const auto total = [&](const char* entry) {
      Planned plan(problemOf(norm, entry), c.strategy);
      EXPECT_TRUE(plan.kernel()) << plan.error;
      return plan.kernel() ? codegen::trafficOf(plan.kernel()).total() : 0;
    };
    EXPECT_EQ(total(":forward@f32[*x*x64]"), c.forward);
    EXPECT_EQ(total(":backward@f32[*x*x64]"), c.backward);
  }
}

TEST(Traffic, GroupScalingInFrontIsRecomputedOnChip) {
  std::string norm = "norm n from power_norm_v {\n  pre group_scaling(groups = 2)\n}\n";
  EXPECT_EQ(trafficOf(problemOf(norm, ":forward@f32[*x64]"), Strategy::Streamed), "2R 1W");
  EXPECT_EQ(trafficOf(problemOf(norm, ":backward@f32[*x64]"), Strategy::Streamed), "4R 1W");
}

}  // namespace
}  // namespace normc::codegen
