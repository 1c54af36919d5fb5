// Schedules of the CUDA target that are taken without measuring, what becomes of one where memory begins
// anywhere, and the architectures they are for.
#include <gmock/gmock.h>

#include <set>

#include "codegen/Package.h"
#include "codegen/targets/cuda/DefaultTable.h"
#include "codegen/targets/cuda/Defaults.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Schedule.h"
#include "codegen/targets/cuda/Traits.h"
#include "codegen/targets/cuda/Variants.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::cuda {
namespace {

Arch archOf(const char* name) { return llvm::cantFail(findArch(name)); }

std::string archError(llvm::StringRef name) {
  auto arch = findArch(name);
  return arch ? "" : llvm::toString(arch.takeError());
}

TEST(CudaTarget, RefusesWhatNoStrategyServes) {
  const std::string norm =
      "norm n {\n  reduce features(groups = 4)\n  center current\n  moment central\n"
      "  quantize int8(per = row)\n}\n";
  const Problem problem = problemOf(norm, ":forward@f32[*x64]");
  const auto onCpu = llvm::cantFail(findTarget("x86-64-v3"))->bind(problem)->whyIllegal();
  ASSERT_TRUE(onCpu);
  EXPECT_EQ(llvm::cantFail(findTarget("sm_90"))->bind(problem)->whyIllegal(), onCpu);
}

class CudaDefaults : public testing::TestWithParam<BuiltinNorm> {};

TEST_P(CudaDefaults, AreLegalOrTheTargetSaysWhyNot) {
  std::vector<TargetPtr> targets;
  for (llvm::StringRef name : defaultArchs()) targets.push_back(llvm::cantFail(findTarget(name)));
  int served = 0;
  for (Entry entry : kEntries)
    for (const char* dtype : {"f32", "bf16", "f16"})
      for (bool channelsFirst : {false, true})
        for (int64_t features :
             {0, 1, 7, 64, 127, 128, 768, 1000, 1024, 4096, 5120, 8192, 16384, 32768, 65536}) {
          auto problem = problemOf(GetParam(), {.entry = entry,
                                                .features = features ? features : 4,
                                                .dtype = dtype,
                                                .channelsFirst = channelsFirst});
          if (!problem) continue;
          if (!features) {
            problem->features.reset();
            if (!checkProblem(*problem)) continue;
          }
          for (const TargetPtr& target : targets) {
            SCOPED_TRACE(problem->text() + " " + target->name().str());
            const auto bound = target->bind(*problem);
            const auto candidates = bound->defaults();
            EXPECT_EQ(candidates.empty(), bound->whyIllegal().has_value());
            for (const Candidate& candidate : candidates) {
              auto why = bound->whyIllegal(candidate.schedule);
              EXPECT_FALSE(why) << candidate.schedule << ": " << *why;
              EXPECT_EQ(llvm::cantFail(bound->parse(candidate.schedule))->text(), candidate.schedule);
            }
            const bool rows = problem->spec->perRow();
            EXPECT_EQ(candidates.empty(), channelsFirst && (isOverRanks(entry) || rows))
                << bound->whyIllegal().value_or("no reason given");
            ++served;
          }
        }
  EXPECT_GE(served, 200);
}
INSTANTIATE_TEST_SUITE_P(Norms, CudaDefaults, testing::ValuesIn(builtinNorms()),
                         [](const auto& info) { return info.param.name; });

TEST(CudaSchedule, DefaultAccessesAreAsWideAsTheArchitectureAndTheRunAllow) {
  auto vector = [](const char* problem, const char* arch) {
    return defaultSchedule(problemOf(problem), archOf(arch), Strategy::Resident).vector;
  };
  EXPECT_EQ(vector("layer_norm:forward@f32[*x1024]", "sm_80"), 4);
  EXPECT_EQ(vector("layer_norm:forward@bf16[*x1024]", "sm_90"), 8);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x1024]", "sm_100"), 8);
  EXPECT_EQ(vector("layer_norm:forward@f16[*x1024]", "sm_100"), 16);
  EXPECT_EQ(vector("layer_norm:forward@bf16[*x1020]", "sm_90"), 4);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x1002]", "sm_90"), 2) << "8 bytes need no peeling";
  EXPECT_EQ(vector("layer_norm:forward@f32[*x127]", "sm_90"), 4) << "peeled";
  EXPECT_EQ(vector("layer_norm:forward@bf16[*x1002]", "sm_90"), 8) << "peeled rather than 4 bytes";
  EXPECT_EQ(vector("layer_norm:forward@f32[*x25]", "sm_90"), 1) << "too short to be peeled";
  EXPECT_EQ(vector("layer_norm:backward@f32[*x127]", "sm_90"), 4) << "of rows that begin alike";
  EXPECT_EQ(vector("layer_norm:backward@bf16[*x1004]", "sm_90"), 4) << "8 bytes divide it";
  EXPECT_EQ(vector("layer_norm:backward@f32[*x25]", "sm_90"), 1);
  EXPECT_EQ(vector("group_norm:backward@f32[*x1270]{groups=2}", "sm_90"), 1)
      << "each group's sums begin elsewhere";
}

/// Knobs of a row's default: threads and elements of each, blocks that share it.
struct Held {
  int64_t threads, elements, cluster;
  bool operator==(const Held&) const = default;
  friend void PrintTo(const Held& h, std::ostream* out) {
    *out << h.threads << "*" << h.elements << "*" << h.cluster;
  }
};
Held held(const std::string& problem, const char* arch) {
  const Schedule s = defaultSchedule(problemOf(problem), archOf(arch), Strategy::Resident);
  return {s.threads, s.tile * s.vector, s.cluster};
}

Held heldOf(const char* entry, const char* dtype, int64_t features, const char* arch) {
  return held("layer_norm:" + std::string(entry) + "@" + dtype + "[*x" + std::to_string(features) + "]",
              arch);
}

TEST(CudaSchedule, DefaultClustersGrowWithTheRow) {
  for (const char* dtype : {"f32", "bf16"}) {
    auto forward = [&](int64_t features) { return heldOf("forward", dtype, features, "sm_100"); };
    auto backward = [&](int64_t features) { return heldOf("backward", dtype, features, "sm_100"); };
    SCOPED_TRACE(dtype);
    EXPECT_EQ(forward(8192), (Held{256, 32, 1}));
    EXPECT_EQ(forward(16384), (Held{256, 32, 2}));
    EXPECT_EQ(forward(32768), (Held{256, 32, 4}));
    EXPECT_EQ(forward(131072), (Held{256, 32, 16}));
    EXPECT_EQ(forward(262144), (Held{512, 16, 4})) << "and more in shared memory";
    EXPECT_EQ(backward(4096), (Held{256, 16, 1}));
    EXPECT_EQ(backward(8192), (Held{256, 16, 2}));
    EXPECT_EQ(backward(65536), (Held{256, 16, 16}));
    EXPECT_EQ(backward(131072), (Held{512, 16, 16}));
    EXPECT_EQ(backward(1 << 20).elements, 0) << "walked in a loop, memory is read again";
  }
  EXPECT_EQ(held("layer_norm:forward@f32[*x2097152]", "sm_80"), (Held{512, 0, 1}));
}

// The rule that an H200 measured (docs/cuda.md), at lengths without a line of their own: larger blocks before
// clusters.
TEST(CudaSchedule, MeasuredDefaultsHoldMoreOfARowInABlock) {
  auto wide = [](const char* entry, int64_t features) { return heldOf(entry, "f32", features, "sm_90"); };
  auto narrow = [](const char* entry, int64_t features) { return heldOf(entry, "bf16", features, "sm_90"); };
  EXPECT_EQ(wide("forward", 1024), (Held{128, 32, 1}));
  EXPECT_EQ(wide("forward", 6656), (Held{416, 16, 1}));
  EXPECT_EQ(wide("forward", 15360), (Held{512, 32, 1}));
  EXPECT_EQ(wide("forward", 262144), (Held{512, 32, 16}));
  EXPECT_EQ(wide("backward", 8192), (Held{512, 16, 1}));
  EXPECT_EQ(wide("backward", 61440), (Held{512, 16, 8}));
  EXPECT_EQ(narrow("forward", 4096), (Held{128, 32, 1}));
  EXPECT_EQ(narrow("forward", 9216), (Held{256, 40, 1}));
  EXPECT_EQ(narrow("forward", 15360), (Held{384, 40, 1}));
  EXPECT_EQ(narrow("forward", 61440), (Held{256, 32, 8}));
  EXPECT_EQ(narrow("backward", 512), (Held{128, 16, 1}));
  EXPECT_EQ(narrow("backward", 7168), (Held{448, 16, 1}));
  EXPECT_EQ(narrow("backward", 61440), (Held{256, 32, 8}));
  const Schedule forward =
      defaultSchedule(problemOf("rms_norm:forward@bf16[*x4096]"), archOf("sm_90"), Strategy::Resident);
  EXPECT_EQ(forward.blocks * forward.threads, 1024) << "64 registers a thread";
  EXPECT_EQ(forward.hints, 1);
}

// The lines of defaults/sm_90.jsonl.
TEST(CudaTable, HasLegalLinesThatTheDefaultsTake) {
  const Arch arch = archOf("sm_90");
  std::set<std::string> problems, ofFewRows;
  for (const TableLine& line : tableOf(arch)) {
    SCOPED_TRACE(line.problem.text() + " " + line.schedule.text());
    EXPECT_TRUE((line.rowsMax ? ofFewRows : problems).insert(line.problem.text()).second)
        << "two lines of one problem";
    const KernelTraits traits = traitsOf(line.problem, line.schedule.strategy);
    EXPECT_EQ(whyIllegal(traits, line.schedule, arch).value_or(""), "");
    const Schedule any = defaultSchedule(line.problem, arch, line.schedule.strategy);
    EXPECT_EQ(any.text() == line.schedule.text(), !line.rowsMax);
    if (!line.rowsMax) continue;
    const auto few = scheduleForFewRows(traits, arch);
    ASSERT_TRUE(few.has_value());
    EXPECT_EQ(few->schedule.text(), line.schedule.text());
    EXPECT_EQ(few->rowsMax, *line.rowsMax);
  }
  EXPECT_GE(ofFewRows.size(), 10u);
  EXPECT_GE(problems.size(), 40u);
  EXPECT_TRUE(tableOf(archOf("sm_100")).empty());
}

TEST(CudaTable, ServesNormsThatDoTheSameWorkAndNoOthers) {
  const Arch arch = archOf("sm_90");
  const auto scheduleOf = [&](const char* problem) {
    return defaultSchedule(problemOf(problem), arch, Strategy::Resident).text();
  };
  const std::string line = scheduleOf("layer_norm:backward@bf16[*x4096]");
  EXPECT_EQ(scheduleOf("layer_norm:backward@f16[*x4096]"), line);
  EXPECT_EQ(scheduleOf("layer_norm:backward@bf16[*x4096]{params=bf16}"), line);
  EXPECT_NE(scheduleOf("layer_norm:backward@f32[*x4096]"), line);
  EXPECT_NE(scheduleOf("rms_norm:backward@bf16[*x4096]"), line);
  EXPECT_NE(scheduleOf("layer_norm_residual:backward@bf16[*x4096]"), line) << "reads one tensor more";
  EXPECT_NE(scheduleOf("layer_norm_residual:forward@bf16[*x16384]"),
            scheduleOf("layer_norm:forward@bf16[*x16384]"))
      << "each has a line";
  EXPECT_NE(scheduleOf("layer_norm:backward@bf16[*x4104]"), line) << "another length";
}

// A package holds both kernels, and a call runs the one for its rows.
TEST(CudaTable, GivesCallsOfFewRowsAKernelOfTheirOwn) {
  const auto defaults = [](const char* problem) {
    return llvm::cantFail(findTarget("sm_90"))->bind(problemOf(problem))->defaults();
  };
  const auto two = defaults("layer_norm:forward@bf16[*x1024]");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].limits, package::Limits());
  EXPECT_EQ(two[1].limits.rowsMax, 16384);
  EXPECT_THAT(two[1].schedule, testing::HasSubstr("hold=1"));
  EXPECT_EQ(defaults("rms_norm:forward@bf16[*x1024]").size(), 1u);
}

TEST(CudaTable, ColumnsOfFewRowsHoldThemAndNoMore) {
  for (const char* arch : {"sm_80", "sm_90", "sm_100", "sm_120"})
    for (const char* problem : {"batch_norm:forward@f32[*x1024]", "batch_norm:forward@bf16[*x1024]",
                                "batch_norm:forward@f32[*x*]", "batch_norm:backward@f32[*x1024]"}) {
      SCOPED_TRACE(std::string(problem) + " for " + arch);
      const auto defaults = llvm::cantFail(findTarget(arch))->bind(problemOf(problem))->defaults();
      ASSERT_EQ(defaults.size(), 2u);
      const Schedule s = llvm::cantFail(parseSchedule(defaults[1].schedule));
      EXPECT_GT(s.hold, 0);
      EXPECT_GE(cuda::heldRows(s), *defaults[1].limits.rowsMax);
      EXPECT_LT(cuda::heldRows(s) - s.rows * (s.threads / s.team), *defaults[1].limits.rowsMax);
    }
}

// A block that reads ahead needs rows of its own to read.
TEST(CudaSchedule, ReadingAheadGivesAForwardFewTasks) {
  const Problem problem = problemOf("rms_norm:forward@bf16[*x4096]");
  const auto tasks = [&](const char* schedule) {
    auto kernel = compileKernel(problem, llvm::cantFail(parseSchedule(schedule)), archOf("sm_90"), "k",
                                {.make = false});
    EXPECT_TRUE(bool(kernel));
    return kernel->manifest.phases[0].maxChunks;
  };
  EXPECT_EQ(tasks("resident,threads=256,team=256,vector=8,tile=2,chunks=264,blocks=2,prefetch=5"), 264);
  EXPECT_GT(tasks("resident,threads=256,team=256,vector=8,tile=2,chunks=264,blocks=2,prefetch=0"), 1 << 20);
}

TEST(CudaTable, SaysWhichLineIsWrong) {
  const auto error = [](const char* line) {
    auto table = readTable(line);
    return table ? std::string() : llvm::toString(table.takeError());
  };
  EXPECT_EQ(error("{\"problem\": \"layer_norm:forward@f32[*x*]\", \"schedule\": \"resident\"}"),
            "line 2: problem 'layer_norm:forward@f32[*x*]' has any number of features");
  EXPECT_THAT(error("\n{\"problem\": \"no_norm:forward@f32[*x64]\", \"schedule\": \"resident\"}"),
              testing::StartsWith("line 3: "));
  EXPECT_THAT(error("{\"problem\": \"layer_norm:forward@f32[*x64]\", \"schedule\": \"resident,thread=1\"}"),
              testing::HasSubstr("thread"));
  EXPECT_EQ(
      error("{\"problem\": \"layer_norm:forward@f32[*x64]\", \"schedule\": \"resident\", \"rows_max\": 0}"),
      "line 2: rows_max = 0; legal: at least 1");
}

TEST(CudaSchedule, DefaultsKeepInSharedMemoryWhatRegistersDoNot) {
  auto shared = [](const char* problem, const char* arch) {
    const Schedule s = defaultSchedule(problemOf(problem), archOf(arch), Strategy::Resident);
    return std::vector<int64_t>{s.threads, s.tile * s.vector, s.shared * s.vector, s.cluster};
  };
  using Parts = std::vector<int64_t>;
  EXPECT_EQ(shared("layer_norm:forward@f32[*x32768]", "sm_80"), Parts({512, 64, 0, 1}));
  EXPECT_EQ(shared("layer_norm:forward@f32[*x40960]", "sm_80"), Parts({512, 48, 32, 1}));
  EXPECT_EQ(shared("layer_norm:forward@f32[*x65536]", "sm_80"), Parts({512, 0, 0, 1}))
      << "more than other devices for which it is code have";
  EXPECT_EQ(shared("layer_norm:forward@bf16[*x65536]", "sm_80"), Parts({512, 32, 96, 1}));
  EXPECT_EQ(shared("layer_norm:backward@f32[*x8192]", "sm_80"), Parts({256, 32, 0, 1}));
  EXPECT_EQ(shared("layer_norm:backward@f32[*x10240]", "sm_80"), Parts({512, 12, 8, 1}));
  EXPECT_EQ(shared("rms_norm:backward@bf16[*x16384]", "sm_80"), Parts({512, 8, 24, 1}));
  EXPECT_EQ(shared("layer_norm:forward@f32[*x786432]", "sm_90"), Parts({512, 16, 80, 16}));
  EXPECT_EQ(shared("layer_norm:backward@f32[*x262144]", "sm_90"), Parts({512, 12, 20, 16}));
  EXPECT_EQ(shared("layer_norm:backward@bf16[*x262144]", "sm_100"), Parts({256, 16, 48, 16}));
}

TEST(CudaSchedule, DefaultTasksFillTheDeviceWithTheirClusters) {
  auto tasks = [](const char* problem) {
    return defaultSchedule(problemOf(problem), archOf("sm_90"), Strategy::Resident).chunks;
  };
  EXPECT_EQ(tasks("rms_norm:backward@bf16[*x3584]"), 264);
  EXPECT_EQ(tasks("rms_norm:backward@bf16[*x16384]"), 66);
  for (const TableLine& line : tableOf(archOf("sm_90"))) {
    if (line.problem.entry != Entry::Backward) continue;
    const Schedule& s = line.schedule;
    EXPECT_EQ(s.chunks, 132 * s.blocks / s.cluster) << line.problem.text();
  }
}

TEST(CudaSchedule, WholeColumnsAreOfferedForFewRowsWhereTheySaveLaunches) {
  auto limits = [](const char* problem, const char* arch = "sm_90") {
    std::vector<int64_t> rows;
    for (const Candidate& c : llvm::cantFail(findTarget(arch))->bind(problemOf(problem))->defaults())
      rows.push_back(c.limits.rowsMax.value_or(0));
    return rows;
  };
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(limits("batch_norm:forward@f32[*x1024]", "sm_80"), Rows({0, 256}))
      << "64 KiB in and out of a block";
  EXPECT_EQ(limits("batch_norm:backward@f32[*x1024]", "sm_80"), Rows({0, 170}));
  EXPECT_EQ(limits("batch_norm:forward@f32[*x1024]"), Rows({0, 256}));
  EXPECT_EQ(limits("batch_norm:backward@f32[*x1024]"), Rows({0, 170}));
  EXPECT_EQ(limits("batch_norm:infer@f32[*x1024]"), Rows({0})) << "one launch as it is";
  EXPECT_EQ(limits("power_norm:forward@f32[*x1024]"), Rows({0})) << "outputs wait for no statistic";
  EXPECT_EQ(limits("mabn:backward@f32[*x1024]"), Rows({0})) << "no room for its state";
  EXPECT_EQ(limits("instance_norm:forward@f32[*x*x64]"), Rows({0})) << "there is no other strategy";
}

TEST(CudaSchedule, UnalignedIsTheSameRunOneByOne) {
  const Schedule s{.strategy = Strategy::Resident,
                   .threads = 128,
                   .team = 32,
                   .vector = 8,
                   .tile = 4,
                   .rows = 2,
                   .chunks = 9,
                   .blocks = 1};
  EXPECT_EQ(unaligned(s).text(),
            "resident,threads=128,team=32,vector=1,tile=32,rows=1,chunks=9,blocks=1,prefetch=0,cluster=1,"
            "hints=0,hold=0,grid=1,shared=0");
  Schedule clustered = s;
  clustered.cluster = 4;
  EXPECT_EQ(unaligned(clustered).cluster, 4) << "both are launched alike";
  Schedule gridded = s;
  gridded.grid = 9, gridded.blocks = 2;
  EXPECT_EQ(unaligned(gridded).grid, 9);
  EXPECT_EQ(unaligned(gridded).blocks, 2) << "as many are there at once";
}

TEST(CudaSchedule, AlikeIsTheSameRunOfFewerRowsAtOnce) {
  const Schedule s{.strategy = Strategy::Streamed,
                   .threads = 256,
                   .team = 32,
                   .vector = 4,
                   .tile = 1,
                   .rows = 4,
                   .chunks = 9,
                   .blocks = 2};
  EXPECT_EQ(congruent(s, 1).text(),
            "streamed,threads=256,team=32,vector=4,tile=1,rows=3,chunks=9,blocks=2,prefetch=0,cluster=1,"
            "hints=0,hold=0,grid=1,shared=0");
  Schedule row = s;
  row.rows = 2, row.prefetch = Prefetch::fromKnob(1), row.blocks = 4;
  EXPECT_EQ(congruent(row, 2).rows, 2);
  row.rows = 3, row.vector = 8;
  EXPECT_EQ(congruent(row, 1).rows, 3);
  EXPECT_EQ(congruent(row, 2).rows, 2) << "their sums take registers, too";
  EXPECT_EQ(congruent(row, 3).rows, 3);
  EXPECT_EQ(congruent(row, 3).blocks, 1) << "so does a head";
  EXPECT_EQ(congruent(row, 2).prefetch.knob(), 1) << "the next row's ends are read ahead, too";
  EXPECT_EQ(congruent(row, 2).blocks, 3);
  row.prefetch = Prefetch::fromKnob(3);
  EXPECT_EQ(congruent(row, 2).prefetch.knob(), 0) << "copies are of whole runs";
}

TEST(CudaSchedule, LongRunsAreSpreadWhereRowsBeginAnywhere) {
  const Problem problem = problemOf("layer_norm:backward@bf16[*x1024]");
  Schedule s = llvm::cantFail(
      parseSchedule("resident,threads=128,team=32,vector=8,tile=4,rows=1,chunks=264,blocks=2,prefetch=6"));
  const KernelTraits traits = traitsOf(problem, s.strategy);
  EXPECT_EQ(spread(traits, s).team, 64);
  EXPECT_EQ(spread(traits, s).tile, 2);
  EXPECT_EQ(whyNotCongruent(traits, s).value_or(""), "");
  s.threads = s.team;
  EXPECT_EQ(spread(traits, s).text(), s.text()) << "a block has no more threads";
  s.tile = 2, s.threads = 128;
  EXPECT_EQ(spread(traits, s).text(), s.text()) << "and these have room";
}

TEST(CudaSchedule, StreamsOfOddRowsKeepTheirWideAccesses) {
  auto vector = [](const char* problem) {
    return defaultSchedule(problemOf(problem), archOf("sm_90"), Strategy::Streamed).vector;
  };
  EXPECT_EQ(vector("batch_norm:forward@f32[*x1001]"), 4);
  EXPECT_EQ(vector("power_norm:backward@bf16[*x1001]"), 8);
  EXPECT_EQ(vector("power_norm:forward@bf16[*x1002]"), 8) << "rather than 4 bytes";
  EXPECT_EQ(vector("power_norm:forward@bf16[*x1004]"), 4) << "8 bytes divide it";
  EXPECT_EQ(vector("power_norm:forward@f32[*x25]"), 1) << "too short";
}

TEST(CudaSchedule, PeeledIsTheSameRunInTheSameAccesses) {
  const Schedule s{.strategy = Strategy::Resident,
                   .threads = 128,
                   .team = 32,
                   .vector = 8,
                   .tile = 4,
                   .rows = 2,
                   .chunks = 9,
                   .blocks = 4,
                   .prefetch = Prefetch::fromKnob(1)};
  EXPECT_EQ(peeled(s).text(),
            "resident,threads=128,team=32,vector=8,tile=4,rows=2,chunks=9,blocks=3,prefetch=0,cluster=1,"
            "hints=0,hold=0,grid=1,shared=0");
  Schedule longer{.strategy = Strategy::Resident,
                  .threads = 256,
                  .team = 256,
                  .vector = 4,
                  .tile = 6,
                  .rows = 1,
                  .blocks = 3};
  EXPECT_EQ(peeled(longer).blocks, 1) << "144 registers of a thread";
  longer.tile = 4;
  EXPECT_EQ(peeled(longer).blocks, 2) << "104";
  longer.threads = 160;
  EXPECT_EQ(peeled(longer).blocks, 2);
  const Schedule looped{.strategy = Strategy::Resident,
                        .threads = 256,
                        .team = 256,
                        .vector = 8,
                        .tile = 0,
                        .rows = 2,
                        .chunks = 9};
  EXPECT_EQ(peeled(looped).text(),
            "resident,threads=256,team=256,vector=8,tile=0,rows=1,chunks=9,blocks=0,prefetch=0,cluster=1,"
            "hints=0,hold=0,grid=1,shared=0");
}

TEST(CudaSchedule, DefaultsGiveHintsWhereXIsReadAgain) {
  auto hints = [](const char* problem, const char* arch = "sm_90") {
    const Problem p = problemOf(problem);
    return defaultSchedule(p, archOf(arch), legalStrategies(p).front()).hints;
  };
  EXPECT_EQ(hints("batch_norm:forward@f32[*x256]"), 1);
  EXPECT_EQ(hints("batch_norm:backward@bf16[*x256]"), 1);
  EXPECT_EQ(hints("batch_norm:infer@f32[*x256]"), 0);
  EXPECT_EQ(hints("layer_norm:backward@f32[*x256]"), 0);
  EXPECT_EQ(hints("power_norm:forward@f32[*x256]", "sm_100"), 0);
}

// What an H200 measured of streams whose x no later phase reads.
TEST(CudaSchedule, PlainStreamsReadAheadIntoRegisters) {
  const auto scheduleOf = [](const char* problem, const char* arch = "sm_90") {
    return defaultSchedule(problemOf(problem), archOf(arch), Strategy::Streamed);
  };
  const Prefetch registers = {Prefetch::Registers, 1}, copies = {Prefetch::Async, 1};
  EXPECT_EQ(scheduleOf("power_norm:forward@bf16[*x4096]").prefetch, registers);
  EXPECT_EQ(scheduleOf("power_norm:forward@bf16[*x4096]").hints, 1);
  EXPECT_EQ(scheduleOf("power_norm:forward@f32[*x4096]").rows, 4);
  EXPECT_EQ(scheduleOf("power_norm:forward@bf16[*x4095]").hints, 0) << "rows that begin anywhere";
  EXPECT_EQ(scheduleOf("power_norm:backward@bf16[*x4096]").prefetch, copies);
  EXPECT_NE(scheduleOf("power_norm:forward@f32[*x4096]", "sm_100").prefetch, registers);
  EXPECT_EQ(scheduleOf("power_norm:infer@f32[*x4096]").prefetch, copies) << "which was not measured";
  EXPECT_EQ(scheduleOf("batch_norm:forward@bf16[*x4096]").prefetch, copies);
}

TEST(CudaSchedule, NoDefaultCountsOnBlocksOfTheGridThatASmallerDeviceCannotHold) {
  for (const char* problem : {"layer_norm:forward@f32[*x131072]", "layer_norm:backward@bf16[*x262144]",
                              "batch_norm:forward@f32[*x1024]"})
    for (Strategy strategy : legalStrategies(problemOf(problem)))
      EXPECT_EQ(defaultSchedule(problemOf(problem), archOf("sm_80"), strategy).grid, 1) << problem;
}

TEST(CudaSchedule, HasAFallbackWhereItCountsOnWhatNotEveryDeviceHas) {
  auto fallback = [](const char* text, const char* schedule = "") {
    const TargetPtr target = llvm::cantFail(findTarget("sm_90"));
    const Problem problem = problemOf(text);
    const std::string first = *schedule ? llvm::cantFail(target->bind(problem, schedule))->text()
                                        : target->bind(problem)->defaults()[0].schedule;
    const auto plain = llvm::cantFail(target->bind(problem, first))->fallback();
    if (plain) {
      EXPECT_EQ(target->bind(problem)->whyIllegal(*plain).value_or(""), "") << text;
      const Schedule s = llvm::cantFail(parseSchedule(*plain));
      EXPECT_EQ(s.cluster * s.grid, 1) << text;
      EXPECT_FALSE(s.prefetch.inBulk()) << text;
      Arch least = archOf("sm_90");
      least.sharedBytes = kLeastShared;
      EXPECT_EQ(whyIllegal(traitsOf(problem, s.strategy), s, least).value_or(""), "") << text;
    }
    return plain.has_value();
  };
  EXPECT_TRUE(fallback("layer_norm:forward@f32[*x262144]")) << "sixteen blocks";
  EXPECT_TRUE(fallback("layer_norm:backward@bf16[*x262144]"));
  EXPECT_FALSE(fallback("layer_norm:forward@f32[*x57344]")) << "eight are everywhere";
  EXPECT_FALSE(fallback("batch_norm:forward@f32[*x1024]"));
  EXPECT_TRUE(fallback("layer_norm:forward@f32[*x150000]")) << "120 KiB of shared memory a block";
  EXPECT_TRUE(fallback("layer_norm:backward@f32[*x2048]",
                       "resident,threads=512,team=256,vector=4,tile=2,rows=1,blocks=1,prefetch=3"))
      << "96 KiB for copies, and what threads tell each other";
  EXPECT_TRUE(fallback("layer_norm:forward@bf16[*x4096]",
                       "resident,threads=256,team=256,vector=8,tile=2,blocks=2,prefetch=5"))
      << "newer PTX";
  EXPECT_TRUE(fallback("layer_norm:backward@bf16[*x4096]")) << "newer PTX";
  EXPECT_TRUE(
      fallback("batch_norm:forward@f32[*x64]",
               "resident,threads=256,team=8,vector=4,tile=1,rows=4,chunks=8,blocks=1,hold=6,grid=16"));
}

TEST(CudaPackage, HoldsAFallbackBehindWhatCountsOnMoreThanEveryDeviceHas) {
  const TargetPtr target = llvm::cantFail(findTarget("sm_90"));
  auto jobsOf = [&](std::vector<const char*> problems) {
    std::vector<Job> jobs;
    for (const char* problem : problems)
      for (Job& job : defaultJobs(problemOf(problem), target)) jobs.push_back(std::move(job));
    addFallbacks(jobs);
    return jobs;
  };
  const auto jobs = jobsOf({"rms_norm:forward@f32[*x262144]", "rms_norm:forward@f32[*x64]"});
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].origin, "default");
  EXPECT_EQ(jobs[1].origin, "fallback");
  EXPECT_EQ(jobs[1].problem.text(), jobs[0].problem.text());
  EXPECT_EQ(llvm::cantFail(parseSchedule(jobs[1].schedule)).cluster, 1);
  EXPECT_EQ(jobsOf({"rms_norm:forward@f32[*x262144]", "rms_norm:forward@f32[*x*]"}).size(), 2u)
      << "that one serves all";
  EXPECT_EQ(jobsOf({"rms_norm:forward@f32[*x262144]", "rms_norm:forward@bf16[*x*]"}).size(), 3u);
}

//===-- Architectures -------------------------------------------------------------===//

TEST(CudaArch, KnowsWhatAPackageHoldsByDefault) {
  ASSERT_EQ(defaultArchs().size(), 3u);
  for (llvm::StringRef name : defaultArchs()) {
    const Arch arch = archOf(name.data());
    EXPECT_EQ(arch.name, name);
    EXPECT_EQ(name, "sm_" + std::to_string(arch.number));
    EXPECT_EQ(arch.accessBytes, arch.number == 100 ? 32 : 16);
    EXPECT_EQ(arch.clusters(), arch.number >= 90);
    EXPECT_EQ(arch.threads, 2048);
  }
}

TEST(CudaArch, SaysWhatIsWrongWithAName) {
  for (const char* name : {"", "sm_", "sm_x", "sm_90x", "sm90", "cuda"})
    EXPECT_EQ(archError(name), "no architecture '" + std::string(name) +
                                   "'; legal: sm_80, sm_90, sm_100 and others from sm_80 on");
  for (const char* name : {"sm_70", "sm_0", "sm_-1"})
    EXPECT_EQ(
        archError(name),
        std::string(name) + " is older than sm_80, the first with bf16; kernels are made from sm_80 on");
  for (const std::string name : {"sm_999", "sm_81"}) {
    const std::string error = archError(name);
    EXPECT_TRUE(error.starts_with("this LLVM does not know " + name + "; it knows sm_80, sm_86, ")) << error;
    EXPECT_NE(error.find(", sm_90, sm_100, "), error.npos) << error;
  }
}

TEST(CudaArch, PlansForOthersLikeTheNearestItHasLookedAt) {
  const Arch ada = archOf("sm_89"), blackwell = archOf("sm_120");
  EXPECT_EQ(ada.name, "sm_89");
  EXPECT_EQ(ada.number, 89);
  EXPECT_EQ(ada.threads, 1536);
  EXPECT_EQ(ada.accessBytes, 16);
  EXPECT_EQ(blackwell.name, "sm_120");
  EXPECT_EQ(blackwell.threads, 1536);
  EXPECT_EQ(blackwell.accessBytes, 16);
  EXPECT_TRUE(blackwell.clusters());
  for (const char* name : {"sm_86", "sm_89", "sm_103", "sm_120"}) {
    auto target = llvm::cantFail(findTarget(name));
    for (const char* text : {"layer_norm:backward@bf16[*x4096]", "batch_norm:forward@f32[*x1024]"}) {
      const Problem problem = problemOf(text);
      auto candidates = target->bind(problem)->defaults();
      ASSERT_FALSE(candidates.empty()) << name << " " << text;
      auto ptx = llvm::cantFail(target->bind(problem, candidates[0].schedule))->emit("ptx");
      ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
      EXPECT_NE(ptx->find(".target " + std::string(name)), std::string::npos);
    }
  }
}

TEST(CudaArch, IsMadePtxForWhicheverLlvmKnows) {
  std::vector<int> known;
  for (int number = 70; number < 200; ++number) {
    const std::string name = "sm_" + std::to_string(number);
    auto target = findTarget(name);
    if (!target) {
      llvm::consumeError(target.takeError());
      continue;
    }
    known.push_back(number);
    const Problem problem = problemOf("rms_norm:forward@f32[*x64]");
    auto ptx = llvm::cantFail((*target)->bind(problem, (*target)->bind(problem)->defaults()[0].schedule))
                   ->emit("ptx");
    ASSERT_TRUE(bool(ptx)) << name << ": " << llvm::toString(ptx.takeError());
    EXPECT_NE(ptx->find(".target " + name), std::string::npos) << name;
    const char* const version = number == 88 || number == 110 ? ".version 9.0"
                                : number > 90                 ? ".version 8.8"
                                                              : ".version 7.8";
    EXPECT_NE(ptx->find(version), std::string::npos) << name;
  }
  for (const int number : {80, 86, 88, 90, 100, 103, 110, 120})
    EXPECT_EQ(llvm::count(known, number), 1) << number;
}

}  // namespace
}  // namespace normc::codegen::cuda
