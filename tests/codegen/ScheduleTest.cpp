// Schedules as text, which of them are legal, and what is taken without measuring.
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
  s.inTurn = true;
  EXPECT_EQ(s.text(),
            "resident,vector=16,rows=2,unroll=4,tile=8,grain=5,stream=4,scalar_tail,ahead,fetch,in_turn");
}

TEST(Schedule, ParsesWhatItPrints) {
  for (Strategy strategy : {Strategy::Streamed, Strategy::Resident})
    for (int64_t knob : {1, 2, 8})
      for (bool flag : {false, true}) {
        Schedule s{strategy, 2 * knob,        knob, 8 / knob, knob, 3 * knob,
                   flag,     flag ? knob : 0, flag, flag,     flag};
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
            "ahead, fetch, in_turn");
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

TEST(Schedule, ShortLinesAreLookedAheadForByDefault) {
  auto ahead = [](const char* problem, Strategy strategy) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), strategy).ahead;
  };
  EXPECT_TRUE(ahead("layer_norm:forward@f32[*x128]", Strategy::Resident));
  EXPECT_FALSE(ahead("layer_norm:forward@f32[*x129]", Strategy::Resident));
  EXPECT_TRUE(ahead("group_norm:forward@f32[*x1536]{groups=32}", Strategy::Resident));
  EXPECT_TRUE(ahead("power_norm_released:forward@f32[*x768]{heads=12}", Strategy::Streamed));
  EXPECT_FALSE(ahead("power_norm:forward@f32[*x64]", Strategy::Streamed));
  EXPECT_FALSE(ahead("layer_norm:forward@f32[*x*]", Strategy::Resident)) << "of any length";
}

TEST(Schedule, RowsThatNearlyCollideGoTwoTogetherByDefault) {
  auto schedule = [](const char* problem, Strategy strategy = Strategy::Streamed) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), strategy);
  };
  EXPECT_EQ(schedule("power_norm:forward@f32[*x1024]").rows, 2);
  EXPECT_EQ(schedule("power_norm:forward@f32[*x1040]").rows, 2) << "a line further";
  EXPECT_EQ(schedule("power_norm:forward@f32[*x2040]").rows, 2) << "half a line before";
  EXPECT_EQ(schedule("power_norm:forward@f32[*x1056]").rows, 8);
  EXPECT_EQ(schedule("power_norm:forward@f32[*x500]").rows, 2)
      << "the row after the next begins beside a page";
  EXPECT_EQ(schedule("power_norm:forward@f32[*x250]").rows, 4) << "the fourth after it";
  EXPECT_EQ(schedule("power_norm:backward@f32[*x1000]", Strategy::Resident).tile, 2)
      << "narrower than the distance";
  EXPECT_EQ(schedule("power_norm:backward@f32[*x777]", Strategy::Resident).tile, 4);
  EXPECT_EQ(pageOffsetsOfRows(problemOf("power_norm:forward@f32[*x2040]")), 1);
  EXPECT_EQ(pageOffsetsOfRows(problemOf("power_norm:forward@f32[*x1040]")), 64);
  EXPECT_EQ(pageOffsetsOfRows(problemOf("power_norm:forward@f32[*x8]")), 128) << "rows of less than a line";
  EXPECT_EQ(schedule("power_norm:forward@f32[*x8]").rows, 8);
  const Schedule odd = schedule("layer_norm:backward@f32[*x1000]", Strategy::Resident);
  EXPECT_EQ(odd.rows, 2);
  EXPECT_EQ(odd.unroll, 4);
}

TEST(Schedule, LargeCallsAskForTheNextRowsByDefault) {
  auto large = [](const char* text) {
    const Problem problem = problemOf(text);
    const Strategy strategy = problem.spec->perFeature() ? Strategy::Streamed : Strategy::Resident;
    const Schedule s = defaultSchedule(problem, isaOf("x86-64-v4"), strategy);
    return std::pair(s.stream, s.fetch);
  };
  EXPECT_EQ(large("power_norm:forward@f32[*x64]"), std::pair(int64_t{8}, true));
  EXPECT_EQ(large("batch_norm:backward@bf16[*x1024]"), std::pair(int64_t{8}, true));
  EXPECT_EQ(large("power_norm:backward@bf16[*x1024]"), std::pair(int64_t{2}, true))
      << "reads everything once";
  EXPECT_EQ(large("power_norm_released:backward@bf16[*x1024]{heads=8}"), std::pair(int64_t{1}, true));
  EXPECT_EQ(large("batch_norm:forward@bf16[*x1024]"), std::pair(int64_t{4}, true)) << "half as much of each";
  EXPECT_EQ(large("power_norm_released:forward@f32[*x1024]{heads=8}"), std::pair(int64_t{4}, true));
  EXPECT_EQ(large("layer_norm:backward@f32[*x768]"), std::pair(int64_t{4}, true));
  EXPECT_EQ(large("layer_norm:forward@f32[*x2048]"), std::pair(int64_t{8}, true));
  EXPECT_EQ(large("layer_norm:forward@f32[*x16384]"), std::pair(int64_t{4}, true))
      << "eight of these fill a cache";
  EXPECT_EQ(large("layer_norm:forward@f32[*x1024]"), std::pair(int64_t{1}, true))
      << "a short row is read and written alone";
  EXPECT_EQ(large("rms_norm:infer@f32[*x768]"), std::pair(int64_t{1}, true));
  EXPECT_EQ(large("layer_norm:forward@bf16[*x768]"), std::pair(int64_t{4}, true))
      << "but for the time of its conversions";
  EXPECT_EQ(large("layer_norm:forward@f16[*x1024]"), std::pair(int64_t{4}, true));
  EXPECT_EQ(large("rms_norm:forward@bf16[*x768]"), std::pair(int64_t{8}, true));
  EXPECT_EQ(large("rms_norm:forward@bf16[*x2048]"), std::pair(int64_t{4}, true));
}

TEST(Schedule, TasksOfChannelsHaveAMegabyteByDefault) {
  auto grain = [](const char* problem) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), Strategy::Streamed).grain;
  };
  EXPECT_EQ(grain("batch_norm:forward@f32[*x256x*]{layout=channels_first}"), 1024);
  EXPECT_EQ(grain("batch_norm:forward@bf16[*x256x*]{layout=channels_first}"), 2048);
  EXPECT_EQ(grain("batch_norm:forward@f32[*x16x*]{layout=channels_first}"), 4096);
  EXPECT_EQ(grain("batch_norm:forward@f32[*x2048x*]{layout=channels_first}"), 1024)
      << "and so many rows at least";
  auto stream = [](const char* problem, Strategy strategy) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), strategy).stream;
  };
  EXPECT_EQ(stream("batch_norm:backward@f32[*x256x*]{layout=channels_first}", Strategy::Streamed), 1);
  EXPECT_EQ(stream("batch_norm:backward@f32[*x256x*]{layout=channels_first}", Strategy::Resident), 4)
      << "whole channels of a task together";
}

TEST(Schedule, StepsAcrossChannelsHaveSeveralFeaturesByDefault) {
  auto of = [](const char* problem, const char* isa = "x86-64-v4") {
    return defaultSchedule(problemOf(problem), isaOf(isa), Strategy::Resident);
  };
  const Schedule forward = of("layer_norm:forward@f32[*x256x*]{layout=channels_first}");
  EXPECT_EQ(forward.rows, 8);
  EXPECT_EQ(forward.stream, 4);
  EXPECT_TRUE(forward.fetch);
  EXPECT_EQ(forward.grain, 1024) << "rows of a task have 1 MiB";
  EXPECT_EQ(of("layer_norm:backward@f32[*x256x*]{layout=channels_first}").rows, 4);
  EXPECT_EQ(of("rms_norm:forward@f32[*x16x*]{layout=channels_first}").grain, 4096);
  Schedule turns = forward;
  turns.inTurn = true;
  EXPECT_EQ(cpu::whyIllegal(problemOf("layer_norm:forward@f32[*x256x*]{layout=channels_first}"), turns,
                            isaOf("x86-64-v4"))
                .value_or(""),
            "in_turn; legal where a task has whole rows, or channels, each with its own statistic");
}

TEST(Schedule, VectorsFillShortLinesByDefault) {
  auto vector = [](const char* problem) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), legalStrategies(problemOf(problem))[0])
        .vector;
  };
  EXPECT_EQ(vector("layer_norm:forward@f32[*x48]"), 16);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x24]"), 8) << "three vectors, rather than one and a half";
  EXPECT_EQ(vector("layer_norm:forward@f32[*x25]"), 16);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x4]"), 4);
  EXPECT_EQ(vector("power_norm_released:forward@f32[*x768]{heads=96}"), 8);
  EXPECT_EQ(vector("power_norm:forward@f32[*x4]"), 16) << "vectors of streams run over features";
}

TEST(Schedule, BF16FillsARegisterOfAVX512ByDefaultAndTwoAsF32) {
  auto schedule = [](const char* text, Strategy strategy, const char* isa = "x86-64-v4-bf16") {
    return defaultSchedule(problemOf(text), isaOf(isa), strategy);
  };
  for (const char* isa : {"x86-64-v4", "x86-64-v4-bf16"}) {
    EXPECT_EQ(schedule("layer_norm:forward@bf16[*x1024]", Strategy::Resident, isa).vector, 32);
    EXPECT_EQ(schedule("layer_norm:forward@f16[*x1024]", Strategy::Resident, isa).vector, 16)
        << "is converted by one instruction";
  }
  EXPECT_EQ(schedule("layer_norm:forward@bf16[*x1024]", Strategy::Resident).rows, 4);
  EXPECT_EQ(schedule("layer_norm:forward@f32[*x1024]", Strategy::Resident).rows, 2);
  EXPECT_EQ(schedule("layer_norm:backward@bf16[*x1000]", Strategy::Resident).unroll, 2)
      << "half as many vectors";
  EXPECT_EQ(schedule("layer_norm:backward@f32[*x1000]", Strategy::Resident).unroll, 4);
  EXPECT_EQ(schedule("power_norm_released:backward@bf16[*x768]{heads=8}", Strategy::Streamed).rows, 2);
  EXPECT_EQ(schedule("power_norm_released:backward@f32[*x768]{heads=8}", Strategy::Streamed).rows, 4);
  EXPECT_EQ(schedule("layer_norm:backward@bf16[*x16384]", Strategy::Split).unroll, 2);
  EXPECT_EQ(schedule("layer_norm:backward@bf16[*x16384]", Strategy::Split).tile, 4);
  EXPECT_EQ(schedule("batch_norm:forward@bf16[*x768]", Strategy::Resident).tile, 2) << "as many bytes of x";
  EXPECT_EQ(schedule("batch_norm:forward@f32[*x768]", Strategy::Resident).tile, 4);
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

TEST(Schedule, DefaultFillsTheRegister) {
  Problem f32 = problemOf("layer_norm:forward@f32[*x1024]"),
          f64 = problemOf("layer_norm:forward@f64[*x1024]");
  Problem bf16 = problemOf("layer_norm:forward@bf16[*x1024]");
  EXPECT_EQ(defaultSchedule(f32, isaOf("x86-64-v4"), Strategy::Resident).vector, 16);
  EXPECT_EQ(defaultSchedule(f32, isaOf("x86-64-v3"), Strategy::Resident).vector, 8);
  EXPECT_EQ(defaultSchedule(f32, isaOf("aarch64"), Strategy::Resident).vector, 4);
  EXPECT_EQ(defaultSchedule(f64, isaOf("x86-64-v3"), Strategy::Resident).vector, 4);
  EXPECT_EQ(
      defaultSchedule(problemOf("layer_norm:forward@f16[*x1024]"), isaOf("x86-64-v3"), Strategy::Resident)
          .vector,
      8)
      << "statistics are f32";
  EXPECT_EQ(defaultSchedule(bf16, isaOf("x86-64-v3"), Strategy::Resident).vector, 16)
      << "two registers are rounded as one";
  EXPECT_EQ(
      defaultSchedule(problemOf("layer_norm:forward@bf16[*x1000]"), isaOf("x86-64-v3"), Strategy::Resident)
          .vector,
      8)
      << "a longer rest would go one by one";
}

TEST(Schedule, RowsAPageApartAreFewerAtATime) {
  auto isa = isaOf("x86-64-v4");
  auto rows = [&](const char* text, Strategy strategy) {
    return defaultSchedule(problemOf(text), isa, strategy).rows;
  };
  EXPECT_EQ(rows("layer_norm:backward@f32[*x1024]", Strategy::Resident), 2);
  EXPECT_EQ(rows("layer_norm:backward@f32[*x600]", Strategy::Resident), 4);
  EXPECT_EQ(rows("layer_norm:backward@bf16[*x2048]", Strategy::Resident), 2);
  EXPECT_EQ(rows("power_norm:backward@f32[*x1024]", Strategy::Streamed), 2);
  EXPECT_EQ(rows("batch_norm:backward@f32[*x1024]", Strategy::Streamed), 2);
  EXPECT_EQ(rows("power_norm:backward@f32[*x768]", Strategy::Streamed), 8);
  EXPECT_EQ(rows("power_norm:backward@f32[*x*]", Strategy::Streamed), 4);
}

TEST(Schedule, LongLinesOfSumsOfSquaresGoOneByOne) {
  auto knobs = [](const char* problem) {
    const Schedule s = defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), Strategy::Resident);
    return std::pair(s.rows, s.unroll);
  };
  EXPECT_EQ(knobs("rms_norm:forward@f32[*x1024]"), std::pair(2L, 2L));
  EXPECT_EQ(knobs("rms_norm:forward@f32[*x4096]"), std::pair(1L, 4L));
  EXPECT_EQ(knobs("rms_norm:forward@f32[*x5120]"), std::pair(2L, 2L)) << "a page does not hold such a row";
  EXPECT_EQ(knobs("layer_norm:forward@f32[*x4096]"), std::pair(2L, 2L));
}

TEST(Schedule, SixteenRegistersTakeCentredRowsOfABackwardOneByOne) {
  auto rows = [](const char* problem, const char* isa) {
    return defaultSchedule(problemOf(problem), isaOf(isa), Strategy::Resident).rows;
  };
  EXPECT_EQ(rows("layer_norm:backward@f32[*x768]", "x86-64-v3"), 1);
  EXPECT_EQ(rows("layer_norm:backward@f32[*x768]", "x86-64-v4"), 4);
  EXPECT_EQ(rows("rms_norm:backward@f32[*x768]", "x86-64-v3"), 4);
  EXPECT_EQ(rows("layer_norm:backward@f32[*x4096]", "x86-64-v3"), 2)
      << "rows share what does not stay in the first-level cache";
}

TEST(Schedule, ATaskIsWorthAThread) {
  auto grain = [](const char* problem, Strategy strategy = Strategy::Resident) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), strategy).grain;
  };
  EXPECT_EQ(grain("layer_norm:forward@f32[*x1024]"), 16);
  EXPECT_EQ(grain("layer_norm:backward@f32[*x1024]"), 32) << "leaves sums to be added up";
  EXPECT_EQ(grain("layer_norm:backward@f32[*x4096]"), 16) << "sixteen rows at least";
  EXPECT_EQ(grain("layer_norm:backward@f32[*x16384]"), 4) << "unless they have 256 KiB";
  EXPECT_EQ(grain("batch_norm:backward@f32[*x1024]", Strategy::Streamed), 64) << "x is read twice";
}

TEST(Schedule, StripsOfColumnsHave256Bytes) {
  auto tile = [](const char* problem, const char* isa) {
    return defaultSchedule(problemOf(problem), isaOf(isa), Strategy::Resident).tile;
  };
  EXPECT_EQ(tile("power_norm:forward@f32[*x768]", "x86-64-v3"), 8);
  EXPECT_EQ(tile("power_norm:forward@f32[*x768]", "x86-64-v4"), 4);
  EXPECT_EQ(tile("power_norm:backward@f32[*x768]", "x86-64-v3"), 4)
      << "sums of a backward, in sixteen registers";
  EXPECT_EQ(tile("power_norm:forward@f32[*x1000]", "x86-64-v3"), 2)
      << "rows begin beside each other in a page";
  EXPECT_EQ(tile("power_norm:forward@f32[*x4]", "x86-64-v4"), 4) << "short rows follow each other in a page";
  EXPECT_EQ(tile("power_norm:forward@f32[*x511]", "x86-64-v4"), 8)
      << "every other row within a line of one place";
  EXPECT_EQ(tile("power_norm:forward@f32[*x512]", "x86-64-v4"), 8) << "rows begin at two places in a page";
}

TEST(Schedule, ShortRowsThatSplitLinesGoTwoTogetherInLongSteps) {
  auto schedule = [](const char* problem, Strategy strategy, const char* isa = "x86-64-v4") {
    return defaultSchedule(problemOf(problem), isaOf(isa), strategy).text();
  };
  const auto with = [](const std::string& text, const char* knobs) {
    return text.find(knobs) != std::string::npos;
  };
  EXPECT_TRUE(with(schedule("power_norm:forward@f32[*x71]", Strategy::Streamed), "rows=2,unroll=4"));
  EXPECT_TRUE(with(schedule("batch_norm:backward@f32[*x129]", Strategy::Streamed), "rows=2,unroll=8"));
  EXPECT_TRUE(with(schedule("power_norm:backward@f32[*x193]", Strategy::Streamed), "rows=8,unroll=1"))
      << "too long for it";
  EXPECT_TRUE(with(schedule("power_norm:forward@f32[*x128]", Strategy::Streamed), "rows=8,unroll=1"))
      << "whole lines";
  const std::string light = schedule("rms_norm:forward@f32[*x193]", Strategy::Resident);
  EXPECT_TRUE(with(light, "vector=16,rows=2,unroll=8") && with(light, "ahead")) << light;
  const std::string one = schedule("power_norm:backward@f32[*x513]", Strategy::Streamed);
  EXPECT_TRUE(with(one, "rows=2,unroll=4")) << one << ": rows begin at two places in a page";
  EXPECT_TRUE(with(schedule("batch_norm:forward@f32[*x97]", Strategy::Resident), "tile=8"));
}

TEST(Schedule, RestsOfARowAreMaskedUnlessTheyAreOneAccessOrMasksAreSlow) {
  auto tail = [](const char* problem, Strategy strategy, const char* isa) {
    return defaultSchedule(problemOf(problem), isaOf(isa), strategy).scalarTail;
  };
  EXPECT_TRUE(tail("power_norm:forward@f32[*x65]", Strategy::Streamed, "x86-64-v4"));
  EXPECT_FALSE(tail("power_norm:forward@f32[*x71]", Strategy::Streamed, "x86-64-v4"));
  EXPECT_TRUE(tail("power_norm:forward@f32[*x71]", Strategy::Streamed, "x86-64-v3"));
  EXPECT_FALSE(tail("power_norm:forward@f32[*x72]", Strategy::Streamed, "x86-64-v3")) << "nothing is left";
  EXPECT_FALSE(tail("batch_norm:forward@f32[*x71]", Strategy::Resident, "x86-64-v3"))
      << "each rest is a pass";
  EXPECT_TRUE(tail("layer_norm:backward@f32[*x71]", Strategy::Resident, "x86-64-v3"));
}

TEST(Schedule, ColumnsGoDownOneRowAfterTheOtherUnlessABackwardIsWide) {
  auto rows = [](const char* problem) {
    return defaultSchedule(problemOf(problem), isaOf("x86-64-v4"), Strategy::Resident).rows;
  };
  EXPECT_EQ(rows("power_norm:backward@f32[*x768]"), 1);
  EXPECT_EQ(rows("power_norm:forward@f32[*x512]"), 1);
  EXPECT_EQ(rows("power_norm:backward@f32[*x512]"), 2) << "tiles of eight vectors";
  EXPECT_EQ(rows("instance_norm:forward@f32[*x*x64]"), 1);
}

TEST(Schedule, ColumnsAreNotStreamed) {
  auto isa = isaOf("x86-64-v3");
  Problem bn = problemOf("batch_norm:forward@f32[*x64]");
  EXPECT_EQ(defaultSchedule(bn, isa, Strategy::Resident).stream, 0);
  EXPECT_EQ(defaultSchedule(bn, isa, Strategy::Streamed).stream, 8);
}

}  // namespace
}  // namespace normc::codegen::cpu
