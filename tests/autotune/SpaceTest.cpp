// The schedules that a tuner tries, and the model's estimates of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "autotune/candidates/Space.h"
#include "autotune/search/Search.h"
#include "dsl/Library.h"

namespace normc::tune {
namespace {

using codegen::TargetPtr;

Problem problemOf(const std::string& text) { return *parseProblem(text, findNorm); }

std::vector<TargetPtr> generatorsOf(const std::string& target) {
  return llvm::cantFail(codegen::findGenerators(target));
}

codegen::Workload workloadOf(const Problem& problem, int64_t rows) {
  return {problem.segmented ? 8 : 1, rows, problem.features.value_or(1), 2, 1 << 20, 32 << 20};
}

double predicted(const codegen::Target& target, const Problem& problem, const std::string& schedule,
                 const codegen::Workload& workload) {
  return llvm::cantFail(target.bind(problem, schedule))->predict(workload);
}

Landscape landscape(const std::string& text, const std::string& target, int64_t rows = 512) {
  const Problem problem = problemOf(text);
  auto made = landscapeOf(generatorsOf(target), problem, workloadOf(problem, rows));
  EXPECT_TRUE(made) << (made ? "" : normc::text(made.errors()));
  return *std::move(made);
}

TEST(Space, EveryPointIsLegalAndStandsOnce) {
  for (const char* target : {"x86-64-v3", "x86-64-v4", "aarch64", "sm_80", "sm_90"})
    for (const char* text :
         {"layer_norm:forward@f32[*x1000]", "batch_norm:backward@bf16[*x768]",
          "instance_norm:forward@f32[*x64x*]{layout=channels_first}", "power_norm:forward@f32[*x64]"}) {
      const Problem problem = problemOf(text);
      const auto generators = generatorsOf(target);
      const Landscape points = landscape(text, target);
      std::map<std::string, decltype(generators.front()->bind(problem))> bound;
      for (const TargetPtr& g : generators) bound[g->generator().str()] = g->bind(problem);
      std::set<std::string> texts;
      for (size_t i = 0; i < points.size(); ++i) {
        const auto made = bound.find(points[i].generator);
        ASSERT_NE(made, bound.end()) << points[i].generator;
        EXPECT_EQ(made->second->whyIllegal(points[i].schedule), std::nullopt) << points[i].schedule;
        EXPECT_TRUE(texts.insert(points[i].generator + points[i].schedule).second)
            << points[i].schedule << " stands twice";
        EXPECT_GT(points[i].predicted, 0) << points[i].schedule;
      }
      EXPECT_GT(points.size(), 3u) << text << " for " << target;
    }
}

TEST(Space, HoldsTheDefaultThatThePackageWouldHave) {
  const Landscape few = landscape("batch_norm:forward@f32[*x768]", "x86-64-v3", 64);
  const Landscape many = landscape("batch_norm:forward@f32[*x768]", "x86-64-v3", 65536);
  const Landscape colliding = landscape("batch_norm:forward@f32[*x1024]", "x86-64-v3", 64);
  EXPECT_TRUE(few[few.byDefault()].schedule.starts_with("resident,")) << few[few.byDefault()].schedule;
  EXPECT_TRUE(many[many.byDefault()].schedule.starts_with("streamed,")) << many[many.byDefault()].schedule;
  EXPECT_TRUE(colliding[colliding.byDefault()].schedule.starts_with("streamed,")) << "rows a page apart";
  EXPECT_GT(many[many.byDefault()].at.size(), 1u) << "a point of the grid, so that it has neighbours";
}

TEST(Space, HoldsEveryStrategy) {
  for (const char* text :
       {"batch_norm:forward@f32[*x1024]", "batch_norm:forward@f32[*x64x*]{layout=channels_first}"}) {
    const Landscape points = landscape(text, "x86-64-v3");
    std::set<std::string> strategies;
    for (size_t i = 0; i < points.size(); ++i)
      strategies.insert(points[i].schedule.substr(0, points[i].schedule.find(',')));
    EXPECT_EQ(strategies, (std::set<std::string>{"resident", "streamed"})) << text;
  }
}

TEST(Space, PrefersChannelsInTheOrderOfMemoryWhereTheyOutgrowTheCache) {
  const std::string text = "batch_norm:forward@f32[*x256x*]{layout=channels_first}";
  for (const auto& [rows, strategy] :
       {std::pair<int64_t, const char*>{49, "resident,"}, {1568, "streamed,"}, {16384, "resident,"}}) {
    const Landscape points = landscape(text, "x86-64-v4", rows);
    EXPECT_TRUE(points[points.byDefault()].schedule.starts_with(strategy))
        << points[points.byDefault()].schedule;
  }
  const Landscape large = landscape(text, "x86-64-v4", 1568);
  EXPECT_TRUE(large[large.ranked().front()].schedule.starts_with("streamed,"))
      << large[large.ranked().front()].schedule;
}

TEST(Space, OffersAGridToColumnsThatWaitForTheirStatistic) {
  const auto gridded = [](const std::string& text, const std::string& target) {
    const Landscape points = landscape(text, target, 4096);
    return std::count_if(points.ranked().begin(), points.ranked().end(),
                         [&](size_t i) { return points[i].schedule.find(",grid=1,") == std::string::npos; });
  };
  EXPECT_GT(gridded("batch_norm:forward@f32[*x64]", "sm_80"), 0);
  EXPECT_EQ(gridded("instance_norm:forward@f32[*x*x64]", "sm_90"), 0) << "a segment has blocks of its own";
}

TEST(Space, NeighboursDifferInOneKnob) {
  const Landscape points = landscape("layer_norm:forward@f32[*x1000]", "x86-64-v3");
  const auto neighbours = points.neighbours(points.byDefault());
  EXPECT_GE(neighbours.size(), 4u);
  const auto& here = points[points.byDefault()].at;
  for (const size_t i : neighbours) {
    int differing = 0;
    for (size_t axis = 0; axis < here.size(); ++axis) differing += here[axis] != points[i].at[axis];
    EXPECT_EQ(differing, 1) << points[i].schedule;
    const auto back = points.neighbours(i);
    EXPECT_NE(std::find(back.begin(), back.end(), points.byDefault()), back.end()) << "and back";
  }
}

TEST(Space, ATailIsAChoiceOnlyWhereThereIsOne) {
  const auto flags = [](const std::string& text) {
    const Landscape points = landscape(text, "x86-64-v3");
    return std::count_if(points.ranked().begin(), points.ranked().end(), [&](size_t i) {
      return points[i].schedule.find(",scalar_tail") != std::string::npos;
    });
  };
  EXPECT_EQ(flags("layer_norm:forward@f32[*x1024]"), 0);
  EXPECT_GT(flags("layer_norm:forward@f32[*x1000]"), 0);
}

TEST(Space, AKnobThatDoesNothingForTheCallHasOneValue) {
  for (const TargetPtr& generator : generatorsOf("x86-64-v4")) {
    const auto values = [&](const char* text, int64_t rows, const std::string& name) {
      const Problem problem = problemOf(text);
      const auto spaces = generator->bind(problem)->knobs(workloadOf(problem, rows));
      for (const codegen::KnobValues& knob : spaces.at(0).knobs)
        if (knob.name == name) return knob.values;
      return std::vector<int64_t>();
    };
    using Values = std::vector<int64_t>;
    const std::string generatorName = generator->generator().str();
    const char *line = "layer_norm:forward@f32[*x1024]", *batch = "batch_norm:forward@f32[*x1024]";
    if (generatorName == "mlir") {
      EXPECT_EQ(values(line, 64, "stream"), Values({0, 4})) << "what the default does in large calls";
      EXPECT_EQ(values(line, 1 << 16, "stream"), Values({0, 1, 4, 8}));
      EXPECT_EQ(values(line, 64, "fetch"), Values({1})) << "of such calls only";
      EXPECT_EQ(values(line, 1 << 16, "fetch"), Values({0, 1}));
    }
    EXPECT_EQ(values(line, 64, "tile").size(), 1u) << generatorName << ": there are no columns";
    if (generatorName != "halide") continue;
    EXPECT_EQ(values(line, 64, "columns").size(), 1u) << "there are no sums per feature";
    EXPECT_EQ(values("batch_norm:infer@f32[*x1024]", 64, "columns").size(), 1u) << "nor here";
    EXPECT_EQ(values(batch, 64, "columns"), Values({512, 1024})) << "more than there are is as many";
    EXPECT_EQ(values("batch_norm:forward@f32[*x4096]", 64, "columns"), Values({512, 1024, 2048}));
  }
}

/// Returns the text of one point of a space.
std::string textAt(const codegen::KnobSpace& space, const std::vector<int>& places) {
  std::string text = space.strategy;
  for (size_t i = 0; i < space.knobs.size(); ++i) {
    const codegen::KnobValues& knob = space.knobs[i];
    const int64_t value = knob.values[size_t(places[i])];
    if (knob.flag && !value) continue;
    text += "," + knob.name + (knob.flag ? "" : "=" + std::to_string(value));
  }
  return text;
}

TEST(Space, HasEachLegalPointOfTheProductOnce) {
  for (const char* name : {"x86-64-v3", "sm_80"})
    for (const TargetPtr& generator : generatorsOf(name)) {
      const Problem problem = problemOf("layer_norm:backward@f32[*x96]");
      const auto bound = generator->bind(problem);
      for (codegen::KnobSpace space : bound->knobs(workloadOf(problem, 64))) {
        for (codegen::KnobValues& knob : space.knobs)  // or there would be too many
          if (knob.values.size() > 2) knob.values = {knob.values.front(), knob.values.back()};
        std::vector<std::pair<std::string, std::vector<int>>> points, legal;
        bound->forEachLegal(space, [&](const codegen::BoundSchedule& schedule, llvm::ArrayRef<int> places) {
          points.emplace_back(schedule.text(), places.vec());
        });
        size_t product = 1;
        for (const codegen::KnobValues& knob : space.knobs) product *= knob.values.size();
        for (size_t point = 0; point < product; ++point) {
          std::vector<int> places(space.knobs.size());
          size_t rest = point;
          for (size_t knob = space.knobs.size(); knob-- > 0; rest /= space.knobs[knob].values.size())
            places[knob] = int(rest % space.knobs[knob].values.size());
          const auto schedule = llvm::cantFail(bound->parse(textAt(space, places)));
          if (!schedule->whyIllegal()) legal.emplace_back(schedule->text(), places);
        }
        EXPECT_FALSE(legal.empty()) << name << " " << generator->generator().str() << " " << space.strategy;
        EXPECT_EQ(points, legal) << name << " " << generator->generator().str() << " " << space.strategy;
      }
    }
}

TEST(Space, AProblemWithoutAScheduleSaysWhy) {
  const Problem problem = problemOf("layer_norm:forward@f64[*x64]");
  const auto made = landscapeOf(generatorsOf("sm_90"), problem, workloadOf(problem, 64));
  ASSERT_FALSE(made);
  EXPECT_NE(made.errors()[0].message.find(
                "layer_norm:forward@f64[*x64] has no legal schedule for sm_90: statistics in f64"),
            std::string::npos)
      << made.errors()[0].message;
}

TEST(Space, TheDefaultIsWhatThePackageWouldRun) {
  const auto target = generatorsOf("x86-64-v4")[0];
  const Problem problem = problemOf("batch_norm:forward@f32[*x64x*]{layout=channels_first}");
  const auto strategy = [&](int64_t segments, int64_t rows) {
    const std::string text =
        defaultFor(*target->bind(problem), {.segments = segments, .rows = rows, .features = 64});
    return text.substr(0, text.find(','));
  };
  EXPECT_EQ(strategy(8, 784), "resident") << "it stays in cache";
  EXPECT_EQ(strategy(669, 784), "streamed");
  EXPECT_EQ(strategy(1, 524288), "resident") << "as many rows, but in long runs";
}

TEST(Model, MoreWorkTakesLonger) {
  const auto target = generatorsOf("x86-64-v3")[0];
  const Problem problem = problemOf("layer_norm:forward@f32[*x1024]");
  const std::string schedule = defaultFor(*target->bind(problem), workloadOf(problem, 64));
  EXPECT_LT(predicted(*target, problem, schedule, workloadOf(problem, 64)),
            predicted(*target, problem, schedule, workloadOf(problem, 640)));
}

TEST(Model, OneAccumulatorWaitsForItselfAndTooManySpill) {
  const auto target = generatorsOf("x86-64-v3")[0];
  const Problem problem = problemOf("layer_norm:forward@f32[*x512]");
  const codegen::Workload workload = workloadOf(problem, 64);  // in cache: arithmetic decides
  const auto time = [&](const char* rows, const char* unroll) {
    return predicted(*target, problem,
                     std::string("resident,vector=8,rows=") + rows + ",unroll=" + unroll + ",tile=4,grain=32",
                     workload);
  };
  EXPECT_LT(time("4", "1"), time("1", "1"));
  EXPECT_LT(time("1", "4"), time("8", "2"));
}

TEST(Model, StatisticsAheadAreForShortLines) {
  const auto target = generatorsOf("x86-64-v3")[0];
  const auto time = [&](const std::string& problemText, const std::string& ahead) {
    const Problem problem = problemOf(problemText);
    const std::string strategy = problem.spec->pre ? "streamed" : "resident";
    return predicted(*target, problem,
                     strategy + ",vector=8,rows=4,unroll=1,tile=4,grain=32,stream=1" + ahead,
                     workloadOf(problem, 64));
  };
  for (const char* line :
       {"layer_norm:forward@f32[*x64]", "power_norm_released:backward@f32[*x768]{heads=12}"})
    EXPECT_LT(time(line, ",ahead"), time(line, "")) << line;
  EXPECT_GT(time("layer_norm:forward@f32[*x2048]", ",ahead"), time("layer_norm:forward@f32[*x2048]", ""));
  const std::string columns = "batch_norm:forward@f32[*x64]";
  EXPECT_EQ(time(columns, ",ahead"), time(columns, "")) << "which it is not legal for";
}

TEST(Space, OfAGpuHasCopiesAheadWhereRowsAreWholeAccesses) {
  const auto most = [](const char* text, const char* arch) {
    const Landscape points = landscape(text, arch);
    char last = '0';
    for (size_t i = 0; i < points.size(); ++i)
      last = std::max(last, points[i].schedule.at(points[i].schedule.find("prefetch=") + 9));
    return last;
  };
  EXPECT_EQ(most("rms_norm:backward@bf16[*x128]", "sm_80"), '4');
  EXPECT_EQ(most("layer_norm:forward@f32[*x127]", "sm_90"), '1');
}

TEST(Space, OfAGpuHasSharedMemoryAndBlocksOfTheGridForLongRowsAlone) {
  using Values = std::vector<int64_t>;
  const auto values = [](const char* text, const char* arch, const std::string& name) {
    const auto spaces = generatorsOf(arch)[0]->bind(problemOf(text))->knobs({});
    for (const codegen::KnobValues& knob : spaces.at(0).knobs)
      if (knob.name == name) return knob.values;
    return Values();
  };
  EXPECT_EQ(values("rms_norm:backward@bf16[*x1024]", "sm_80", "shared"), Values({0}));
  EXPECT_EQ(values("rms_norm:backward@bf16[*x16384]", "sm_80", "shared"), Values({0, 2, 3, 4}))
      << "half of a row, and the default";
  EXPECT_EQ(values("rms_norm:backward@bf16[*x16384]", "sm_80", "grid"), Values({1}));
  EXPECT_EQ(values("rms_norm:backward@bf16[*x65536]", "sm_80", "grid"), Values({1, 2, 4, 8}));
  EXPECT_EQ(values("rms_norm:backward@bf16[*x65536]", "sm_90", "grid"), Values({1})) << "it has clusters";
}

TEST(Space, OfAGpuKnowsWhatKindOfKernelAScheduleMakes) {
  const auto kind = [](const char* text, const std::string& schedule) {
    return llvm::cantFail(generatorsOf("sm_90")[0]->bind(problemOf(text), schedule))->family();
  };
  const char *row = "layer_norm:forward@f32[*x4096]", *columns = "batch_norm:forward@f32[*x1024]";
  EXPECT_EQ(kind(row, "resident,threads=128,team=32,vector=4,tile=32"), "warp");
  EXPECT_EQ(kind(row, "resident,threads=256,team=128,vector=4,tile=4,cluster=2,prefetch=5"),
            "block cluster bulk");
  EXPECT_EQ(kind(row, "resident,threads=256,team=128,vector=4,tile=4,cluster=2,prefetch=2"),
            "block cluster copied");
  EXPECT_EQ(kind(row, "resident,threads=256,team=8,vector=4,tile=0"), "lanes walked");
  EXPECT_EQ(kind(columns, "resident,threads=256,team=8,vector=4,tile=1,rows=4,hold=8,grid=132"),
            "columns held grid");
  EXPECT_EQ(kind(columns, "streamed,threads=256,team=32,vector=4,tile=1,rows=4"), "warp");
}

TEST(Space, CandidatesForAGpuAreFewAndDifferent) {
  for (const char* text : {"layer_norm:backward@bf16[*x4096]", "rms_norm:forward@f32[*x8192]",
                           "power_norm:backward@f32[*x1024]", "batch_norm:forward@bf16[*x768]"}) {
    const Landscape points = landscape(text, "sm_90", 16384);
    SearchOptions options;
    options.fromModel = 2;
    const std::vector<size_t> seeds = seedsOf(points, options);
    ASSERT_EQ(seeds.size(), 6u);
    EXPECT_GE(points.familyDistance(seeds[1], seeds[2]), 2) << text << ": what the model finds best";
    const double best = points[points.ranked()[0]].predicted,
                 byDefault = points[points.byDefault()].predicted;
    const double limit = std::max(1.5 * best, byDefault);
    const std::vector<size_t> all = points.bestOfKinds();
    const auto hopeful =
        std::count_if(all.begin(), all.end(), [&](size_t i) { return points[i].predicted <= limit; });
    std::set<std::string> kinds;
    for (const size_t seed : seeds) {
      EXPECT_LE(points[seed].predicted, limit) << points[seed].schedule;
      kinds.insert(points[seed].schedule.substr(0, 8) + points[seed].family);
    }
    EXPECT_GE(kinds.size(), size_t(std::min<long>(hopeful, 4))) << text;
  }
}

TEST(Model, WhatIsReadOnceIsNotCountedTwice) {
  const auto target = generatorsOf("sm_90")[0];
  const auto time = [&](const char* text, const char* schedule) {
    return predicted(*target, problemOf(text), schedule, workloadOf(problemOf(text), 1 << 14));
  };
  const char* streamed = "streamed,threads=256,team=32,vector=4,tile=1,rows=4,blocks=2";
  const double once = time("power_norm:forward@f32[*x1024]", streamed),
               twice = time("batch_norm:forward@f32[*x1024]", streamed);
  EXPECT_NEAR(twice / once, 1.5, 1e-9) << "a batch's statistics come first, running ones are there";
}

TEST(Model, OfACpuCountsBothReadingsOfABatch) {
  const auto target = generatorsOf("x86-64-v4")[0];
  const auto time = [&](const std::string& problem, const char* schedule) {
    // Memory decides.
    return predicted(*target, problemOf(problem), schedule, workloadOf(problemOf(problem), 1 << 18));
  };
  const auto streamed = "streamed,vector=16,rows=4,unroll=1,tile=4,grain=128,stream=4";
  const auto ratio = [&](const std::string& rest) {
    return time("batch_norm:" + rest, streamed) / time("power_norm:" + rest, streamed);
  };
  EXPECT_NEAR(ratio("forward@f32[*x1024]"), 3.0 / 2, 0.1)
      << "a batch's statistics come first, running ones are there";
  EXPECT_NEAR(ratio("backward@f32[*x1024]"), 5.0 / 3, 0.1);
}

TEST(Model, RemembersWhatSchedulesOfAProblemShare) {
  for (const char* name : {"x86-64-v3", "sm_90"}) {
    const auto target = generatorsOf(name)[0];
    const Problem problem = problemOf("batch_norm:forward@f32[*x1024]");
    const codegen::Workload workload = workloadOf(problem, 4096);
    const auto bound = target->bind(problem);
    for (const codegen::Candidate& each : bound->defaults()) {
      const auto schedule = llvm::cantFail(bound->parse(each.schedule));
      const double once = schedule->predict(workload);
      EXPECT_EQ(schedule->predict(workload), once) << each.schedule;
      EXPECT_EQ(predicted(*target, problem, each.schedule, workload), once) << each.schedule;
    }
  }
}

/// True if the model of a target predicts less time for `fast` than for `slow`.
bool prefers(const char* target, const char* text, int64_t rows, const char* fast, const char* slow) {
  const TargetPtr generator = generatorsOf(target)[0];
  const Problem problem = problemOf(text);
  const codegen::Workload workload = workloadOf(problem, rows);
  return predicted(*generator, problem, fast, workload) < predicted(*generator, problem, slow, workload);
}

TEST(Model, AClusterWaitsLongerThanABlock) {
  EXPECT_TRUE(prefers("sm_90", "layer_norm:forward@f32[*x4096]", 4096,
                      "resident,threads=256,team=256,vector=4,tile=4,rows=1,blocks=4",
                      "resident,threads=256,team=64,vector=4,tile=1,rows=4,blocks=4,cluster=16"));
}

TEST(Model, LessThanALineOfARowCostsAGpuMore) {
  EXPECT_TRUE(prefers("sm_90", "batch_norm:forward@f32[*x4096]", 4096,
                      "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=4",
                      "resident,threads=256,team=4,vector=4,tile=1,rows=4,blocks=4"));
}

TEST(Model, NarrowStripsOfColumnsWasteLines) {
  EXPECT_TRUE(prefers("x86-64-v3", "batch_norm:forward@f32[*x1024]", 1 << 16,
                      "resident,vector=8,rows=4,unroll=1,tile=4,grain=32",
                      "resident,vector=8,rows=4,unroll=1,tile=1,grain=32"));
}

TEST(Model, ARunThatIsReadAgainCostsAGpuMore) {
  EXPECT_TRUE(prefers("sm_90", "layer_norm:forward@f32[*x4096]", 4096,
                      "resident,threads=256,team=256,vector=4,tile=4,rows=1,chunks=264,blocks=2,prefetch=0",
                      "resident,threads=256,team=256,vector=4,tile=0,rows=1,chunks=264,blocks=2,prefetch=0"));
}

}  // namespace
}  // namespace normc::tune
