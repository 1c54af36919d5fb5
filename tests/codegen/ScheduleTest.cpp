// Schedules as text, and which of them are legal.
#include <array>

#include "codegen/targets/cpu/CpuSchedule.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::cpu {
namespace {

std::string parseError(llvm::StringRef text) {
  auto schedule = parseSchedule(text);
  return schedule ? "" : llvm::toString(schedule.takeError());
}

/// The reason against a schedule for BN on AVX2, which is legal but for what `change` does.
template <typename Change>
std::string reason(Change change, const char* problem = "batch_norm:forward@f32[*x64]",
                   const char* isa = "x86-64-v3") {
  Schedule s{.strategy = Strategy::Streamed, .vector = 8, .rows = 4, .unroll = 1, .tile = 4, .grain = 32};
  change(s);
  auto why = whyIllegal(problemOf(problem), s, isaOf(isa));
  return why ? *why : "";
}

TEST(Schedule, PrintsEveryKnob) {
  Schedule s{.strategy = Strategy::Resident, .vector = 16, .rows = 2, .unroll = 4, .tile = 8, .grain = 5};
  EXPECT_EQ(s.text(), "resident,vector=16,rows=2,unroll=4,tile=8,grain=5,stream=0");
  s.scalarTail = true;
  s.stream = 4;
  EXPECT_EQ(s.text(), "resident,vector=16,rows=2,unroll=4,tile=8,grain=5,stream=4,scalar_tail");
  s.ahead = true;
  EXPECT_EQ(s.text(), "resident,vector=16,rows=2,unroll=4,tile=8,grain=5,stream=4,scalar_tail,ahead");
  s.fetch = true;
  EXPECT_EQ(s.text(), "resident,vector=16,rows=2,unroll=4,tile=8,grain=5,stream=4,scalar_tail,ahead,fetch");
  s.nta = s.inTurn = s.wide = true;
  EXPECT_EQ(
      s.text(),
      "resident,vector=16,rows=2,unroll=4,tile=8,grain=5,stream=4,scalar_tail,ahead,fetch,nta,in_turn,wide");
}

TEST(Schedule, ParsesWhatItPrints) {
  for (Strategy strategy : {Strategy::Streamed, Strategy::Resident})
    for (int64_t knob : {1, 2, 8})
      for (bool flag : {false, true}) {
        Schedule s{strategy, 2 * knob,        knob, 8 / knob, knob, 3 * knob,
                   flag,     flag ? knob : 0, flag, flag,     flag, flag};
        auto again = parseSchedule(s.text());
        ASSERT_TRUE(bool(again)) << s.text();
        EXPECT_EQ(*again, s) << again->text();
      }
}

TEST(Schedule, SaysWhichPartOfATextIsWrong) {
  EXPECT_EQ(parseError("vector=8"),
            "schedule 'vector=8': starts with 'vector'; legal: streamed, resident, split");
  EXPECT_EQ(parseError("streamed,width=8"),
            "schedule 'streamed,width=8': no knob 'width'; legal: vector, rows, unroll, tile, grain, stream, "
            "scalar_tail, "
            "ahead, fetch, nta, in_turn, wide");
  EXPECT_EQ(parseError("streamed,rows=4,rows=2"), "schedule 'streamed,rows=4,rows=2': 'rows' is given twice");
  EXPECT_EQ(parseError("streamed,rows=four"),
            "schedule 'streamed,rows=four': 'four' is not a number for rows");
  EXPECT_EQ(parseError("streamed,rows"), "schedule 'streamed,rows': '' is not a number for rows");
}

TEST(Schedule, IsLegalWithinTheKnobs) {
  EXPECT_EQ(reason([](Schedule&) {}), "");
  EXPECT_EQ(reason([](Schedule& s) { s.vector = 16; }), "") << "twice the register: LLVM splits it";
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 2, s.unroll = 8; }), "");
}

TEST(Schedule, RefusalsSayTheNumberAndTheRule) {
  EXPECT_EQ(reason([](Schedule& s) { s.vector = 32; }), "vector = 32; legal: a power of two up to 16");
  EXPECT_EQ(reason([](Schedule& s) { s.vector = 8; }, "batch_norm:forward@f64[*x64]"), "");
  EXPECT_EQ(reason([](Schedule& s) { s.vector = 16; }, "batch_norm:forward@f64[*x64]"),
            "vector = 16; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.vector = 6; }), "vector = 6; legal: a power of two up to 16");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 0; }), "rows = 0; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 16; }), "rows = 16; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.unroll = 3; }), "unroll = 3; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.tile = -4; }), "tile = -4; legal: a power of two up to 16");
  EXPECT_EQ(reason([](Schedule& s) { s.stream = 3; }), "stream = 3; legal: a power of two up to 8, or 0");
  EXPECT_EQ(reason([](Schedule& s) { s.grain = 0; }), "grain = 0; legal: 1 to 1099511627776");
  EXPECT_EQ(reason([](Schedule& s) { s.grain = (int64_t(1) << 40) + 1; }),
            "grain = 1099511627777; legal: 1 to 1099511627776");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 8, s.unroll = 4; }),
            "rows * unroll = 32 accumulators of each sum; legal: up to 16");
  EXPECT_EQ(reason([](Schedule& s) { s.stream = 0, s.fetch = true; }),
            "fetch with stream = 0; legal: a stream, whose large calls fetch");
  EXPECT_EQ(reason([](Schedule& s) { s.stream = 4, s.nta = true; }),
            "nta without fetch; legal: with fetch, whose prefetches are non-temporal then");
}

TEST(Schedule, WideIsForStreamsOfManyFeatures) {
  const auto wide = [](Schedule& s) { s.wide = true; };
  EXPECT_EQ(reason(wide, "batch_norm:forward@f32[*x513]"), "");
  EXPECT_EQ(reason(wide, "batch_norm:forward@f32[*x*]"), "");
  for (const char* problem :
       {"batch_norm:forward@f32[*x512]", "batch_norm:forward@f32[*x1024x*]{layout=channels_first}",
        "power_norm_released:forward@f32[*x1024]{heads=4}"})
    EXPECT_EQ(reason(wide, problem),
              "wide; legal: streamed, with more than 512 features that lie together, without a "
              "pre-normalization");
  EXPECT_NE(reason([&](Schedule& s) { wide(s), s.strategy = Strategy::Resident; },
                   "batch_norm:forward@f32[*x1024]"),
            "");
}

TEST(Schedule, AnInferenceThatSumsHasTheDefaultOfAForward) {
  const std::string norm = "norm n {\n  reduce rows\n}\n";
  for (const cpu::Isa& isa : setsAndCores())
    for (const char* shape : {"@f32[*x64]", "@f32[*x256]", "@f32[*x1024]", "@bf16[*x4096]"})
      for (const Strategy strategy : {Strategy::Streamed, Strategy::Resident}) {
        const Problem forward = problemOf(norm, std::string(":forward") + shape);
        const Problem infer = problemOf(norm, std::string(":infer") + shape);
        EXPECT_EQ(defaultSchedule(infer, isa, strategy).text(),
                  defaultSchedule(forward, isa, strategy).text())
            << shape << " " << isa.name.str();
      }
}

TEST(Schedule, OnlyLinesAreLookedAheadFor) {
  auto ahead = [](Schedule& s) { s.strategy = Strategy::Resident, s.ahead = true; };
  EXPECT_EQ(reason(ahead, "layer_norm:forward@f32[*x64]"), "");
  EXPECT_EQ(reason([](Schedule& s) { s.ahead = true; }, "power_norm_released:backward@f32[*x64]{heads=4}"),
            "");
  EXPECT_EQ(reason(ahead, "batch_norm:forward@f32[*x64]"),
            "ahead; legal where a statistic is of one row, and has to be complete before it is used");
  EXPECT_EQ(reason([&](Schedule& s) { ahead(s), s.rows = 1; }, "layer_norm:forward@f32[*x64]"),
            "ahead with rows = 1; legal: rows of at least 2");
}

TEST(Schedule, OnlyRunsThatGoTogetherAreWrittenInTurn) {
  auto turns = [](Schedule& s) { s.strategy = Strategy::Resident, s.inTurn = true; };
  EXPECT_EQ(reason(turns, "layer_norm:forward@f32[*x64]"), "");
  EXPECT_EQ(reason(turns, "batch_norm:forward@f32[*x64]"),
            "in_turn; legal where a task has whole rows, or channels, each with its own statistic");
  EXPECT_EQ(reason(turns, "batch_norm:forward@f32[*x64x*]{layout=channels_first}"), "");
  EXPECT_EQ(reason([&](Schedule& s) { turns(s), s.rows = 1, s.stream = 4; },
                   "batch_norm:forward@f32[*x64x*]{layout=channels_first}"),
            "in_turn with rows = 1; legal: rows of at least 2")
      << "large calls write channels side by side";
  EXPECT_EQ(reason([&](Schedule& s) { turns(s), s.strategy = Strategy::Streamed; },
                   "batch_norm:forward@f32[*x64x*]{layout=channels_first}"),
            "in_turn; legal where a task has whole rows, or channels, each with its own statistic");
  EXPECT_EQ(
      reason([&](Schedule& s) { turns(s), s.strategy = Strategy::Split; }, "layer_norm:backward@f32[*x4096]"),
      "in_turn; legal where a task has whole rows, or channels, each with its own statistic");
  EXPECT_EQ(reason([&](Schedule& s) { turns(s), s.rows = 1; }, "layer_norm:forward@f32[*x64]"),
            "in_turn with rows = 1; legal: rows, or stream, of at least 2");
  EXPECT_EQ(reason([&](Schedule& s) { turns(s), s.rows = 1, s.stream = 4; }, "layer_norm:forward@f32[*x64]"),
            "");
}

TEST(Schedule, MaskedTailsOfSixteenBitsNeedMasksOfSixteenBits) {
  auto masked = [](Schedule& s) { s.scalarTail = false; };
  EXPECT_EQ(reason(masked, "batch_norm:forward@bf16[*x64]"),
            "masked tails of 16-bit elements; x86-64-v3 has no 16-bit masks: scalar_tail");
  EXPECT_EQ(reason([](Schedule& s) { s.scalarTail = true; }, "batch_norm:forward@bf16[*x64]"), "");
  EXPECT_EQ(reason(masked, "batch_norm:forward@bf16[*x64]", "x86-64-v4"), "");
  EXPECT_FALSE(
      defaultSchedule(problemOf("batch_norm:forward@f32[*x64]"), isaOf("x86-64-v3"), Strategy::Streamed)
          .scalarTail);
}

TEST(Schedule, RefusesAStrategyThatCannotServeTheProblem) {
  EXPECT_EQ(reason([](Schedule&) {}, "layer_norm:forward@f32[*x64]"),
            "a statistic per row or segment is complete in its slab: strategy resident");
}

TEST(Schedule, CompilationPassesTheReasonOn) {
  Problem problem = problemOf("batch_norm:forward@f32[*x64]");
  Schedule s = defaultSchedule(problem, isaOf("x86-64-v3"), Strategy::Streamed);
  s.rows = 3;
  std::string wanted = "batch_norm:forward@f32[*x64] for x86-64-v3: rows = 3; legal: a power of two up to 8";
  auto text = emitStage(problem, s, isaOf("x86-64-v3"), Stage::Sweeps);
  ASSERT_FALSE(text);
  EXPECT_EQ(llvm::toString(text.takeError()), wanted);
  auto kernel = compileKernel(problem, s, isaOf("x86-64-v3"), "k");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(llvm::toString(kernel.takeError()), wanted);
}

TEST(Schedule, RowsAMultipleOfAPageApartBeginAtFewOffsetsInIt) {
  const auto offsets = [](const char* problem) { return pageOffsetsOfRows(problemOf(problem)); };
  EXPECT_EQ(offsets("power_norm:forward@f32[*x1024]"), 1);
  EXPECT_EQ(offsets("power_norm:forward@f32[*x2040]"), 1) << "half a line before";
  EXPECT_EQ(offsets("power_norm:forward@f32[*x512]"), 2);
  EXPECT_EQ(offsets("power_norm:forward@f32[*x1040]"), 64) << "a line further";
  EXPECT_EQ(offsets("power_norm:forward@f32[*x8]"), 128) << "rows of less than a line";
}

TEST(Schedule, DefaultsAreLegalForEveryProblemAndInstructionSet) {
  int count = 0;
  for (const BuiltinNorm& norm : builtinNorms())
    for (Entry entry : kEntries)
      for (const char* dtype : {"f32", "f64", "bf16", "f16"})
        for (bool channelsFirst : {false, true})
          for (int64_t features : {4, 1024, 65536}) {
            auto problem = problemOf(
                norm, {.entry = entry, .features = features, .dtype = dtype, .channelsFirst = channelsFirst});
            if (!problem) continue;
            for (const Isa& isa : setsAndCores())
              for (Strategy strategy : strategies(*problem)) {
                Schedule s = defaultSchedule(*problem, isa, strategy);
                auto why = whyIllegal(*problem, s, isa);
                EXPECT_FALSE(why) << problem->text() << " " << spelling(isa) << " " << s.text() << ": "
                                  << *why;
                ++count;
              }
          }
  EXPECT_GT(count, 1000);
}

}  // namespace
}  // namespace normc::codegen::cpu
