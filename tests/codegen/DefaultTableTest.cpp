// Tables of default schedules: their lines, which of them decides, and what the rule keeps.
#include <tuple>

#include "codegen/targets/cpu/DefaultCandidates.h"
#include "codegen/targets/cpu/DefaultClauses.h"
#include "codegen/targets/cpu/DefaultRule.h"
#include "codegen/targets/cpu/DefaultTable.h"
#include "dsl/Library.h"
#include "runtime/abi/CpuCore.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::cpu {
namespace {

std::string errorOf(llvm::StringRef lines) {
  auto table = readTable(lines);
  return table ? "" : llvm::toString(table.takeError());
}

/// A core whose table is `lines`, and the set that it is for.
Isa withTable(const Core& core) {
  Isa isa = isaOf("x86-64-v3");
  isa.core = &core;
  return isa;
}

constexpr llvm::StringLiteral kLines =
    R"({"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x768]", "schedule": "resident,vector=8,rows=8,unroll=2,stream=2"}
{"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x1024]", "schedule": "resident,vector=8,rows=1,unroll=8,stream=4,fetch,in_turn"}
{"set": "x86-64-v4", "problem": "layer_norm:backward@f32[*x768]", "schedule": "resident,vector=8,rows=8,unroll=2,stream=2"}
{"set": "x86-64-v3", "problem": "batch_norm:forward@f32[*x768]", "schedule": "resident,vector=8,rows=2,tile=2", "most_rows": 100}
{"set": "x86-64-v3", "problem": "rms_norm:forward@f32[*x*]", "schedule": "resident,vector=8,rows=4,unroll=2,stream=4"}
{"set": "x86-64-v3", "problem": "rms_norm_residual:backward@f32[*x768]", "schedule": "resident,vector=8,rows=2,unroll=4,stream=1"}
)";

class Defaults : public testing::Test {
 protected:
  /// Returns the default beside that of the rule: `rows,unroll,stream`, or `rule`.
  std::string of(const char* text, Strategy strategy = Strategy::Resident) {
    const Problem problem = problemOf(text);
    const Schedule s = defaultSchedule(problem, isa_, strategy);
    Schedule rule = ruleSchedule(problem, isa_, strategy);
    fitClauses(problem, rule);
    EXPECT_EQ(s.grain, rule.grain) << text;
    if (s == rule) return "rule";
    return std::to_string(s.rows) + "," + std::to_string(s.unroll) + "," + std::to_string(s.stream);
  }

  const Core core_{"test", "", kLines, ""};
  const Isa isa_ = withTable(core_);
};

TEST(DefaultTable, EveryLineDecidesItsOwnProblem) {
  for (const Core& core : cores()) {
    auto table = readTable(core.lines);
    ASSERT_TRUE(bool(table)) << core.name.str() << ".jsonl: " << llvm::toString(table.takeError());
    for (const TableLine& line : *table) {
      Isa isa = isaOf(line.set);
      isa.core = &core;
      Schedule wanted = line.schedule;
      const Schedule s = defaultSchedule(line.problem, isa, wanted.strategy);
      wanted.grain = s.grain;
      EXPECT_EQ(s.text(), wanted.text())
          << core.name.str() << ", " << line.set << ", " << line.problem.text();
    }
  }
}

// Each lane finds its own mate there, so a step has one row, which a line with `in_turn` did not expect.
TEST(DefaultTable, LinesFitPairsThatNoVectorDoes) {
  const auto specs = readNorms(
      "norm n from rms_norm {\n  rope interleaved(groups = 3, features = 6)\n  residual before\n}\n", "test");
  ASSERT_TRUE(specs) << normc::text(specs.errors());
  const auto problem =
      parseProblem("n:forward@f32[*x192]", [&](std::string_view) { return Result(specs->back()); });
  ASSERT_TRUE(problem);
  const Core core{"test", "",
                  R"({"set": "x86-64-v3", "problem": "rms_norm:forward@f32[*x192]", "schedule": )"
                  R"("resident,vector=8,rows=1,unroll=8,stream=4,in_turn"})",
                  ""};
  const Isa isa = withTable(core);
  const Schedule s = defaultSchedule(*problem, isa, Strategy::Resident);
  EXPECT_EQ(whyIllegal(*problem, s, isa).value_or(""), "") << s.text();
}

TEST(DefaultTable, EachCoreHasOne) {
  for (const std::string_view name : kCores) EXPECT_TRUE(findCore(name)) << name;
  EXPECT_EQ(cores().size(), kCores.size());
  for (const Core& core : cores()) EXPECT_FALSE(core.measured.empty()) << core.name.str();
}

TEST(DefaultTable, ASiblingIsAnotherCore) {
  for (const Core& core : cores())
    EXPECT_TRUE(core.sibling.empty() || (findCore(core.sibling) && core.sibling != core.name))
        << core.name.str() << " and " << core.sibling;
}

TEST(DefaultTable, AnErrorNamesTheLine) {
  const std::string good = kLines.split('\n').first.str() + "\n";
  EXPECT_EQ(errorOf(good), "");
  EXPECT_TRUE(llvm::StringRef(errorOf(good + "{\"set\": \"avx2\"}\n"))
                  .starts_with("line 3: unknown target 'avx2'; "));
  EXPECT_EQ(
      errorOf(
          R"({"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x64]", "schedule": "resident,rows=3"})"),
      "line 2: schedule 'resident,rows=3' of 'layer_norm:forward@f32[*x64]': rows = 3; legal: a power of "
      "two up to 8");
  for (const char* rows : {"0", "-4", "2.5", "\"64\"", "null"})
    EXPECT_EQ(errorOf(std::string(R"({"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x64]", )"
                                  R"("schedule": "resident,vector=8", "most_rows": )") +
                      rows + "}"),
              "line 2: most_rows of 'layer_norm:forward@f32[*x64]' is no whole number from 1 on")
        << rows;
  EXPECT_EQ(errorOf(R"({"set": "x86-64-v3", "problem": "layer_norm:sideways@f32[*x64]"})").substr(0, 8),
            "line 2: ");
}

TEST_F(Defaults, TheLineOfAProblemDecides) {
  EXPECT_EQ(of("layer_norm:forward@f32[*x768]"), "8,2,2");
  EXPECT_EQ(of("layer_norm:forward@f32[*x1024]"), "1,8,4");
  EXPECT_EQ(of("layer_norm:backward@f32[*x768]"), "rule") << "the line is for another set";
  EXPECT_EQ(of("rms_norm:forward@f32[*x768]"), "rule") << "another kind";
}

TEST_F(Defaults, TheNearestSizeWhoseRowsBeginAlikeDecides) {
  EXPECT_EQ(of("layer_norm:forward@f32[*x1280]"), "8,2,2");
  EXPECT_EQ(of("layer_norm:forward@f32[*x2048]"), "1,8,4") << "rows a multiple of a page apart";
  EXPECT_EQ(of("layer_norm:forward@f32[*x1000]"), "rule") << "rows begin inside cache lines";
  EXPECT_EQ(of("layer_norm:forward@f32[*x4096]"), "rule") << "two octaves away";
}

TEST_F(Defaults, ALineOfAnyNumberOfFeaturesIsForSuchKernelsAlone) {
  EXPECT_EQ(of("rms_norm:forward@f32[*x*]"), "4,2,4");
  EXPECT_EQ(of("rms_norm:infer@f32[*x*]"), "4,2,4");
  EXPECT_EQ(of("rms_norm:forward@f32[*x1024]"), "rule");
  EXPECT_EQ(of("layer_norm:forward@f32[*x*]"), "rule") << "another kind";
  EXPECT_EQ(of("layer_norm:backward@f32[*x*]"), "rule");
}

TEST_F(Defaults, AnInferenceOfRowsTakesTheLineOfAForward) {
  EXPECT_EQ(of("layer_norm:infer@f32[*x768]"), "8,2,2");
  EXPECT_EQ(of("batch_norm:infer@f32[*x768]"), "rule") << "sums nothing";
}

TEST_F(Defaults, ClausesAndOtherTypesKeepTheLargeCallsOfTheRule) {
  const auto stream = [&](const char* text) {
    return ruleSchedule(problemOf(text), isa_, Strategy::Resident).stream;
  };
  const char* clauses = "rms_norm_residual:forward@f32[*x768]";
  EXPECT_EQ(of(clauses), "rule") << "squares";
  const Problem gated = problemOf("norm n from layer_norm {\n  gate silu\n}\n", ":forward@f32[*x768]");
  const Schedule s = defaultSchedule(gated, isa_, Strategy::Resident);
  EXPECT_EQ(s.rows, 8);
  EXPECT_EQ(s.stream, ruleSchedule(gated, isa_, Strategy::Resident).stream);
  EXPECT_EQ(of("layer_norm:forward@f16[*x1536]"),
            "8,2," + std::to_string(stream("layer_norm:forward@f16[*x1536]")));
}

TEST_F(Defaults, AResidualTakesTheLineOfOneWithAStreamAndItsLargeCalls) {
  const auto backward = [&](const char* residual) {
    const Problem problem = problemOf(std::string("norm n from rms_norm {\n  residual ") + residual + "\n}\n",
                                      ":backward@f32[*x768]");
    const Schedule s = defaultSchedule(problem, isa_, Strategy::Resident);
    return std::tuple(s.rows, s.unroll, s.stream);
  };
  EXPECT_EQ(backward("before(stream = no)"), std::tuple(2, 4, 1));
  const Problem after = problemOf("norm n from rms_norm {\n  residual after\n}\n", ":backward@f32[*x768]");
  EXPECT_EQ(defaultSchedule(after, isa_, Strategy::Resident), ruleSchedule(after, isa_, Strategy::Resident));
}

TEST_F(Defaults, AResidualOfSegmentsTakesTheLineOfOneWithAStream) {
  const Core core{
      "test", "",
      R"({"set": "x86-64-v3", "problem": "rms_norm_residual:backward@f32[*x*x768]", "schedule": "resident,vector=8,rows=2,unroll=4,stream=1"})",
      ""};
  const Problem problem =
      problemOf("norm n from rms_norm {\n  residual before(stream = no)\n}\n", ":backward@f32[*x*x768]");
  const TableLine* line = findLine(problem, withTable(core), Strategy::Resident);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->schedule.rows, 2);
}

TEST_F(Defaults, ASiblingHasTheLinesThatACoreLacks) {
  const Core core{"test", "", kLines, "zen3"}, sibling = *findCore("zen3");
  const auto resident = [](const char* text, const Core& core) {
    return defaultSchedule(problemOf(text), withTable(core), Strategy::Resident);
  };
  const char* both = "layer_norm:forward@f32[*x768]";
  EXPECT_EQ(resident(both, core), resident(both, core_)) << "its own line is nearer";
  EXPECT_NE(resident(both, core), resident(both, sibling));
  const char* missing = "rms_norm:backward@f32[*x1024]";
  EXPECT_EQ(resident(missing, core_), ruleSchedule(problemOf(missing), isa_, Strategy::Resident));
  EXPECT_EQ(resident(missing, core), resident(missing, sibling));
  EXPECT_NE(resident(missing, core), resident(missing, core_));
}

TEST_F(Defaults, ALineLimitsTheRowsOfItsStrategy) {
  const auto most = [&](const char* text) {
    return defaultCandidates(problemOf(text), isa_)[1].limits.rowsMax.value_or(0);
  };
  EXPECT_EQ(most("batch_norm:forward@f32[*x768]"), 100);
  EXPECT_EQ(most("batch_norm:forward@f32[*x640]"), 120) << "as many bytes";
}

TEST_F(Defaults, ASiblingLimitsTheRowsWhereALineDoesNot) {
  const Core core{
      "test", "",
      R"({"set": "x86-64-v3", "problem": "batch_norm:forward@f32[*x2048]", "schedule": "resident,vector=8,rows=2,tile=2"})",
      "cove"};
  const Problem problem = problemOf("batch_norm:forward@f32[*x2048]");
  const auto most = [&](const Core& core) { return mostRows(problem, withTable(core), Strategy::Resident); };
  EXPECT_EQ(findLine(problem, withTable(core), Strategy::Resident)->schedule.rows, 2);
  EXPECT_TRUE(most(*findCore("cove")));
  EXPECT_EQ(most(core), most(*findCore("cove")));
}

TEST_F(Defaults, ForwardALimitOfSplitRowsEndsAtANearerLineOfWholeRows) {
  const Core core{
      "test", "",
      R"({"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x4096]", "schedule": "resident,vector=8"}
{"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x6144]", "schedule": "resident,vector=8"}
{"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x6144]", "schedule": "split,vector=8", "most_rows": 24}
{"set": "x86-64-v3", "problem": "layer_norm:forward@bf16[*x6144]", "schedule": "resident,vector=8,scalar_tail"}
)",
      ""};
  const auto most = [&](const std::string& shape) {
    return mostRows(problemOf("layer_norm:forward@" + shape), withTable(core), Strategy::Split).value_or(0);
  };
  EXPECT_EQ(most("f32[*x6144]"), 24);
  EXPECT_EQ(most("f32[*x8192]"), 18);
  EXPECT_EQ(most("f32[*x4096]"), 0);
  EXPECT_EQ(most("f32[*x2048]"), 0);
  EXPECT_EQ(most("bf16[*x6144]"), 0) << "the type was measured, too";
}

TEST_F(Defaults, ALimitIsOfTheSameTensors) {
  const Core core{
      "test", "",
      R"({"set": "x86-64-v3", "problem": "rms_norm_residual:forward@f32[*x2048]", "schedule": "resident,vector=8"}
{"set": "x86-64-v3", "problem": "rms_norm_residual:forward@f32[*x2048]", "schedule": "split,vector=8", "most_rows": 64}
)",
      ""};
  const auto most = [&](const char* residual, const char* sizes) {
    const Problem problem = problemOf(std::string("norm n from rms_norm {\n  residual ") + residual + "\n}\n",
                                      std::string(":forward@f32[*x") + sizes + "]");
    return mostRows(problem, withTable(core), Strategy::Split).value_or(0);
  };
  EXPECT_EQ(most("before(stream = yes)", "2048"), 64);
  EXPECT_EQ(most("before(stream = yes)", "4096"), 32);
  EXPECT_EQ(most("before(stream = yes)", "1024"), 128);
  EXPECT_EQ(most("before(stream = no)", "2048"), 0) << "a tensor less";
}

/// What was measured on cores that this machine may not have, at sizes of the benchmarks.
TEST(DefaultTable, KeepsWhatWasMeasured) {
  const std::tuple<const char*, const char*, const char*> kMeasured[] = {
      {"x86-64-v4:cove", "layer_norm:forward@f32[*x1000]", "resident,vector=16,rows=4,unroll=2"},
      {"x86-64-v4:cove", "layer_norm:forward@f32[*x768]", "resident,vector=16,rows=4,unroll=2"},
      {"x86-64-v4:cove", "rms_norm:forward@f32[*x512]", "resident,vector=16,rows=4,unroll=2"},
      {"x86-64-v4:cove", "power_norm:forward@f32[*x1024]", "streamed,vector=16,rows=2,unroll=8"},
      {"x86-64-v4:cove", "layer_norm:backward@f32[*x4096]", "resident,vector=16,rows=4,unroll=2"},
      {"x86-64-v4:granite", "power_norm:backward@f32[*x1024]", "streamed,vector=16,rows=4,unroll=4"},
      {"x86-64-v4:granite", "layer_norm:forward@f32[*x1000]", "resident,vector=16,rows=2,unroll=4"},
      {"x86-64-v4:zen5", "layer_norm:forward@f32[*x1024]", "resident,vector=16,rows=2,unroll=8"},
      {"x86-64-v4:zen5", "power_norm:backward@f32[*x768]", "streamed,vector=32,rows=2,unroll=8"},
      {"x86-64-v4:zen4", "rms_norm:forward@f32[*x512]", "resident,vector=8,rows=4,unroll=2"},
      {"x86-64-v4:zen4", "rms_norm:forward@f32[*x1000]", "resident,vector=8,rows=2,unroll=4"},
      {"x86-64-v4:zen4", "layer_norm:forward@f32[*x64]", "resident,vector=8,rows=8,unroll=1"},
      {"x86-64-v4:zen4", "power_norm:forward@f32[*x768]", "streamed,vector=16,rows=8,unroll=1"},
      {"x86-64-v3:zen3", "layer_norm:forward@f32[*x512]", "resident,vector=8,rows=4,unroll=1"},
      {"x86-64-v4:zen4", "layer_norm:forward@f32[*x1024]", "resident,vector=16,rows=2,unroll=2"}};
  for (const auto& [target, text, start] : kMeasured) {
    const Problem problem = problemOf(text);
    const Schedule s = defaultSchedule(problem, isaOf(target), strategies(problem).front());
    EXPECT_EQ(s.text().substr(0, std::string(start).size()), start) << target << " " << text;
  }
}

/// A Granite Rapids shares rows of 8 KiB between tasks for 16 times as many rows as those of 4 KiB, whose
/// line keeps the limit of the other from them.
TEST(DefaultTable, KeepsUpToHowManyRowsAStrategyWasFaster) {
  const auto limit = [](const char* text) {
    return mostRows(problemOf(text), isaOf("x86-64-v4:granite"), Strategy::Split).value_or(-1);
  };
  EXPECT_EQ(limit("layer_norm:backward@f32[*x1024]"), 2);
  EXPECT_EQ(limit("layer_norm:backward@f32[*x2048]"), 32);
}

}  // namespace
}  // namespace normc::codegen::cpu
