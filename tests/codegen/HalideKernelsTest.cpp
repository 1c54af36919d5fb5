// The kernels of the Halide generator for every built-in norm: as many transfers as
// planned, code without dependences, and reasons against schedules.
#include <set>

#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Serialize.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/JSON.h"
#include "runtime/abi/Sums.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::halide {
namespace {

/// X-sized reads and writes of every sweep, also of what is still on chip: what a statement has to load.
std::pair<int, int> sweepsOf(KernelOp kernel) {
  int reads = 0, writes = 0;
  kernel.walk([&](SweepOp sweep) {
    if (sweep->getParentOfType<SlabOp>().getHead()) return;
    auto xSized = [&](mlir::Attribute a) {
      return mlir::cast<TensorOp>(
                 mlir::SymbolTable::lookupSymbolIn(kernel, mlir::cast<mlir::FlatSymbolRefAttr>(a)))
          .isXSized();
    };
    reads += llvm::count_if(sweep.getReads(), xSized);
    writes += llvm::count_if(sweep.getWrites(), xSized);
  });
  return {reads, writes};
}

class HalideTraffic : public testing::TestWithParam<BuiltinNorm> {};

TEST_P(HalideTraffic, OfTheStatementIsThatOfTheSweeps) {
  auto generator = findGenerator();
  if (!generator) GTEST_SKIP() << llvm::toString(generator.takeError());
  const cpu::Isa isa = isaOf("x86-64-v3");
  int served = 0;
  for (Entry entry : kEntries)
    for (bool channelsFirst : {false, true}) {
      auto problem = problemOf(GetParam(), {.entry = entry, .features = 64, .channelsFirst = channelsFirst});
      if (!problem || halide::whyIllegal(*problem)) continue;
      for (Strategy strategy : legalStrategies(*problem)) {
        SCOPED_TRACE(problem->text() + " " + name(strategy).str());
        ++served;
        Planned plan(*problem, strategy);
        const auto [reads, writes] = sweepsOf(plan.kernel());
        expandMath(plan.kernel());
        // Many rows, so that the first of them, where means are guessed, hardly count.
        const int64_t rows = 1027, segments = problem->segmented ? 2 : 1;
        const Schedule schedule = halide::defaultSchedule(*problem, isa, strategy);
        auto answer = ask(*generator, requestOf(plan.kernel(), schedule, isa, "stmt",
                                                {segments, rows, *problem->features}));
        ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
        auto facts = llvm::json::parse(answer->facts);
        ASSERT_TRUE(bool(facts));
        auto counted = [&](llvm::StringRef what) { return *facts->getAsObject()->getNumber(what); };
        EXPECT_DOUBLE_EQ(counted("writes"), writes);
        EXPECT_GE(counted("reads"), reads);
        // The shift estimate takes 32 elements of a row, or all of a group's 16.
        const bool rowsOwn = problem->spec->perRow();
        EXPECT_LT(counted("reads"), reads + (rowsOwn ? 1.01 : 0.05));
      }
    }
  EXPECT_EQ(served > 0, !GetParam().spec->rope) << "all norms but those that turn pairs";
}
INSTANTIATE_TEST_SUITE_P(All, HalideTraffic, testing::ValuesIn(builtinNorms()),
                         [](const auto& info) { return info.param.name; });

/// The generator counts while it writes the loops; the limit is that of runtime/abi/Sums.h.
TEST(HalideSums, HaveNoLongLevel) {
  auto generator = findGenerator();
  if (!generator) GTEST_SKIP() << llvm::toString(generator.takeError());
  int64_t longest = 0;
  for (const char* set : {"x86-64-v3", "x86-64-v4"})
    for (const char* text :
         {"layer_norm:forward@f32[*x1000]", "layer_norm:backward@f32[*x16384]", "rms_norm:forward@f32[*x*]",
          "group_norm_segment:forward@f32[*x*x96]{groups=4}", "batch_norm:forward@f32[*x768]",
          "batch_norm:backward@f32[*x*x100]", "batch_norm:forward@f32[*x24x*]{layout=channels_first}"}) {
      const Problem problem = problemOf(text);
      for (Strategy strategy : legalStrategies(problem))
        for (const auto& [rows, unroll] : {std::pair<int64_t, int64_t>{1, 1}, {1, 4}, {4, 1}}) {
          Schedule schedule = halide::defaultSchedule(problem, isaOf(set), strategy);
          schedule.rows = rows, schedule.unroll = unroll;
          Planned plan(problem, strategy);
          expandMath(plan.kernel());
          auto answer = ask(*generator, requestOf(plan.kernel(), schedule, isaOf(set), "halide"));
          ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
          auto facts = llvm::json::parse(answer->facts);
          ASSERT_TRUE(bool(facts));
          const int64_t chain = *facts->getAsObject()->getInteger("longest_chain");
          EXPECT_LE(chain, kLongestChain) << text << " " << schedule.text();
          longest = std::max(longest, chain);
        }
    }
  EXPECT_EQ(longest, kLongestChain) << "the limit is used";
}

class HalideObjects : public testing::TestWithParam<const char*> {};

TEST_P(HalideObjects, NeedNothingAndExportTheirPhases) {
  const cpu::Isa isa = isaOf(GetParam());
  auto target = findTarget(GetParam());
  if (!target) GTEST_SKIP() << llvm::toString(target.takeError());
  for (const char* text : {"layer_norm:backward@f32[*x*]", "batch_norm:forward@bf16[*x100]",
                           "power_norm:backward@f16[*x64]{mask}", "unified_norm:forward@f32[*x72]",
                           "group_norm_segment:backward@f64[*x*x24]{groups=4}"}) {
    const Problem problem = problemOf(text);
    for (const Candidate& candidate : (*target)->bind(problem)->defaults()) {
      SCOPED_TRACE(problem.text() + " " + candidate.schedule);
      auto kernel = llvm::cantFail((*target)->bind(problem, candidate.schedule))->compile("k");
      ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
      EXPECT_EQ(kernel->manifest.generator, "halide");
      EXPECT_EQ(kernel->manifest.schedule, candidate.schedule);
      auto file =
          llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(kernel->object, "kernel.o"));
      ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
      EXPECT_EQ((*file)->getArch(), llvm::Triple(isa.triple).getArch());
      std::set<std::string> exported, phases;
      for (llvm::object::ELFSymbolRef symbol : (*file)->symbols()) {
        const uint32_t flags = llvm::cantFail(symbol.getFlags());
        const std::string name = llvm::cantFail(symbol.getName()).str();
        EXPECT_FALSE(flags & llvm::object::SymbolRef::SF_Undefined && !name.empty())
            << name << " is undefined";
        if (flags & llvm::object::SymbolRef::SF_Global) exported.insert(name);
      }
      for (llvm::object::SectionRef section : (*file)->sections())
        EXPECT_FALSE(llvm::cantFail(section.getName()).contains("init_array")) << "a constructor";
      for (const package::Phase& phase : kernel->manifest.phases) phases.insert(phase.symbol);
      EXPECT_EQ(exported, phases);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sets, HalideObjects, testing::Values("x86-64-v3", "x86-64-v4", "aarch64"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

//===-- Schedules -----------------------------------------------------------------------===//

template <typename Change>
std::string reason(Change change, const char* problem = "batch_norm:forward@f32[*x64]") {
  Schedule s;
  change(s);
  return whyIllegal(problemOf(problem), s, isaOf("x86-64-v3")).value_or("");
}

TEST(HalideSchedule, PrintsAndParsesEveryKnob) {
  const Schedule s{.strategy = Strategy::Resident,
                   .vector = 4,
                   .rows = 2,
                   .unroll = 8,
                   .tile = 1,
                   .columns = 512,
                   .grain = 5,
                   .scalarTail = true};
  EXPECT_EQ(s.text(), "resident,vector=4,rows=2,unroll=8,tile=1,columns=512,grain=5,scalar_tail");
  EXPECT_EQ(llvm::cantFail(parseSchedule(s.text())), s);
  auto wrong = parseSchedule("streamed,beams=2");
  ASSERT_FALSE(bool(wrong));
  EXPECT_EQ(
      llvm::toString(wrong.takeError()),
      "schedule 'streamed,beams=2': no knob 'beams'; legal: vector, rows, unroll, tile, columns, grain, "
      "scalar_tail");
  auto old = parseSchedule("streamed,vector=8,stream=2");
  ASSERT_FALSE(bool(old));
  EXPECT_EQ(llvm::toString(old.takeError()),
            "schedule 'streamed,vector=8,stream=2' has the knob 'stream', which the Halide generator no "
            "longer has: leave it "
            "out, or tune again");
}

TEST(HalideSchedule, RefusalsSayTheNumberAndTheRule) {
  EXPECT_EQ(reason([](Schedule&) {}), "");
  EXPECT_EQ(reason([](Schedule& s) { s.vector = 16; }), "vector = 16; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule&) {}, "batch_norm:forward@f64[*x64]"),
            "vector = 8; legal: a power of two up to 4");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 3; }), "rows = 3; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.unroll = 16; }), "unroll = 16; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.tile = 0; }), "tile = 0; legal: a power of two up to 8");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 8, s.unroll = 4; }),
            "rows * unroll = 32 accumulators of each sum; legal: up to 16");
  EXPECT_EQ(reason([](Schedule& s) { s.columns = 4; }), "columns = 4; legal: at least vector * unroll = 8");
  EXPECT_EQ(reason([](Schedule& s) { s.grain = 0; }), "grain = 0; legal: 1 to 1099511627776");
  EXPECT_EQ(reason([](Schedule&) {}, "batch_norm:forward@bf16[*x64]"),
            "masked tails of 16-bit elements; x86-64-v3 has no 16-bit masks: scalar_tail");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 1, s.grain = 128; }),
            "grain = 128 rows, 1 at a time, for the sums of a batch; legal: at most 16 steps");
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 4, s.grain = 64; }), "");
  const Schedule longTask = {.rows = 1, .grain = 128};
  EXPECT_EQ(
      whyIllegal(problemOf("norm n {\n  reduce rows\n}\n", ":infer@f32[*x64]"), longTask, isaOf("x86-64-v3"))
          .value_or(""),
      "grain = 128 rows, 1 at a time, for the sums of a batch; legal: at most 16 steps")
      << "without a state an inference sums as a forward does";
  EXPECT_EQ(reason([](Schedule& s) { s.rows = 1, s.grain = 128; }, "batch_norm:infer@f32[*x64]"), "");
  EXPECT_EQ(reason([](Schedule&) {}, "layer_norm:forward@f32[*x64]"),
            "a statistic per row or segment is complete in its slab: strategy resident");
  EXPECT_EQ(reason([](Schedule&) {}, "batch_norm:forward@f32[*x64x*]{layout=channels_first}"),
            "a channel is one slab in layout channels_first: strategy resident");
  EXPECT_EQ(
      reason([](Schedule& s) { s.strategy = Strategy::Resident; },
             "layer_norm:forward@f32[*x64x*]{layout=channels_first}"),
      "the features of a row do not lie together in layout channels_first: only MLIR for a CPU goes across "
      "channels");
  EXPECT_EQ(
      reason([](Schedule& s) { s.strategy = Strategy::Streamed; }, "power_norm:commit@f32[*x64]"),
      "the Halide generator has no partials, which are f64 beside other types: MLIR compiles entries over "
      "ranks");
}

TEST(HalideSchedule, DefaultsAreLegalForEveryNorm) {
  std::set<std::string> tried;
  for (const cpu::Isa& isa : cpu::instructionSets())
    for (const BuiltinNorm& norm : builtinNorms())
      for (const char* dtype : {"f32", "f64", "bf16"})
        for (int64_t features : {4, 12, 64, 100, 8192}) {
          auto problem = problemOf(norm, {.features = features, .dtype = dtype});
          if (!problem || halide::whyIllegal(*problem)) continue;
          tried.insert(norm.name);
          for (Strategy strategy : legalStrategies(*problem))
            EXPECT_EQ(halide::whyIllegal(*problem, halide::defaultSchedule(*problem, isa, strategy), isa),
                      std::nullopt)
                << problem->text();
        }
  EXPECT_GT(tried.size(), builtinNorms().size() / 2) << "Halide has kernels for most norms";
}

}  // namespace
}  // namespace normc::codegen::halide
