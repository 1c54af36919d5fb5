// Norm dialect as text: it parses back, and what is not valid says why.
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

class Dialect : public testing::Test {
 protected:
  Dialect() : context_(normDialects(), mlir::MLIRContext::Threading::DISABLED) {
    context_.loadAllAvailableDialects();
    context_.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) { diagnostics_ += d.str() + "\n"; });
  }
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text) {
    diagnostics_.clear();
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
  }
  /// Returns the errors of the parser and the verifier for a module, which must be invalid.
  std::string errorOf(const std::string& text) {
    auto module = parse(text);
    EXPECT_FALSE(module) << text;
    return diagnostics_;
  }
  static std::string kernel(const std::string& phases) {
    return "norm.kernel @k features_last attributes {problem = \"\", statistics = f32, groups = 1, "
           "pre_groups = 1, numbers = []} {\n"
           "norm.tensor @x : f32 [segment, row, feature] tensor read\n"
           "norm.tensor @y : f32 [segment, row, feature] tensor write\n" +
           phases + "}\n";
  }
  static std::string slab(const std::string& body, const std::string& kind = "column",
                          const std::string& per = "feature") {
    return kernel("norm.phase @apply apply over [feature] {\nnorm.slab " + kind + " [" + per +
                  "] resident {\n" + body + "}\n}\n");
  }

  mlir::MLIRContext context_;
  std::string diagnostics_;
};

std::string print(mlir::Operation* op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

TEST_F(Dialect, EveryPlanParsesBackToItself) {
  int count = 0;
  for (const BuiltinNorm& norm : builtinNorms())
    for (Entry entry : kEntries) {
      auto problem = problemOf(norm, {.entry = entry, .mask = norm.name == "mabn"});
      if (!problem && (infoOf(entry).needsState || isOverRanks(entry))) continue;
      ASSERT_TRUE(problem) << norm.name;
      for (Strategy strategy : legalStrategies(*problem)) {
        cpu::Schedule schedule = cpu::defaultSchedule(*problem, isaOf("x86-64-v3"), strategy);
        auto text = emitStage(*problem, schedule, isaOf("x86-64-v3"), Stage::Sweeps);
        ASSERT_TRUE(bool(text));
        auto module = parse(*text);
        ASSERT_TRUE(module) << problem->text() << "\n" << diagnostics_;
        EXPECT_EQ(print(*module), *text);
        ++count;
      }
    }
  EXPECT_GT(count, 50);
}

TEST_F(Dialect, ScheduleAttributeKeepsEveryKnob) {
  cpu::Schedule s{.strategy = Strategy::Resident,
                  .vector = 16,
                  .rows = 2,
                  .unroll = 4,
                  .tile = 8,
                  .grain = 5,
                  .scalarTail = true,
                  .stream = 2,
                  .ahead = true,
                  .fetch = true,
                  .nta = true,
                  .inTurn = true,
                  .wide = true};
  std::string text =
      "#norm.schedule<strategy = resident, vector = 16, rows = 2, unroll = 4, tile = 8, grain = 5, "
      "scalar_tail = true, stream = 2, ahead = true, fetch = true, nta = true, in_turn = true, wide = true>";
  EXPECT_EQ(mlir::parseAttribute(text, &context_), s.attribute(&context_)) << diagnostics_;
}

TEST_F(Dialect, AcceptsASweepThatIsWhole) {
  auto module =
      parse(slab("norm.sweep reads [@x] writes [@y] into [] {\n^bb0(%x: f32):\n  norm.yield %x : f32\n}\n"));
  ASSERT_TRUE(module) << diagnostics_;
  KernelOp kernel = *module->getOps<KernelOp>().begin();
  Traffic traffic = trafficOf(kernel);
  EXPECT_EQ(traffic.reads, 1);
  EXPECT_EQ(traffic.writes, 1);
}

TEST_F(Dialect, TrafficOfAResidentSlabCountsATensorOnce) {
  std::string sum =
      "norm.sweep reads [@x] writes [] into [] {\n^bb0(%x: f32):\n  norm.yield %x : f32\n} : f32\n";
  std::string twice = "%a = " + sum + "%b = " + sum;
  auto resident = parse(slab(twice));
  ASSERT_TRUE(resident) << diagnostics_;
  EXPECT_EQ(trafficOf(*resident->getOps<KernelOp>().begin()).reads, 1);
  std::string text = slab(twice);
  auto streamed = parse(text.erase(text.find(" resident"), 9));
  ASSERT_TRUE(streamed) << diagnostics_;
  EXPECT_EQ(trafficOf(*streamed->getOps<KernelOp>().begin()).reads, 2);
}

TEST_F(Dialect, SweepNamesOnlyDeclaredTensors) {
  EXPECT_EQ(errorOf(slab("norm.sweep reads [@z] writes [] into [] {\n^bb0(%z: f32):\n  norm.yield\n}\n")),
            "'norm.sweep' op names @z, which the kernel does not declare\n");
}

TEST_F(Dialect, SweepHasMatesOfWhatItReadsInAKernelWithRope) {
  EXPECT_EQ(errorOf(slab("norm.sweep reads [@x] mates [@x] writes [] into [] {\n^bb0(%x: f32, %m: f32):\n"
                         "  norm.yield\n}\n")),
            "'norm.sweep' op has mates in a kernel without rope\n");
}

TEST_F(Dialect, SweepWithMatesTakesWhetherEachFeatureIsTurnedWhereSomeAre) {
  const auto sweepIn = [](const std::string& turned, const std::string& flag) {
    std::string text = slab("norm.sweep reads [@x] mates [@x] writes [] into [] {\n^bb0(%x: f32, %m: f32" +
                            flag + "):\n  norm.yield\n}\n");
    return text.insert(text.find("statistics ="),
                       "rope = #norm.rope<interleaved = false, runs = 1, turned = " + turned + ">, ");
  };
  EXPECT_TRUE(parse(sweepIn("0", ""))) << diagnostics_;
  EXPECT_TRUE(parse(sweepIn("4", ", %t: i1"))) << diagnostics_;
  EXPECT_EQ(errorOf(sweepIn("4", "")),
            "'norm.sweep' op reads 2 elements and whether each is turned but its region takes 2\n");
}

TEST_F(Dialect, SweepTakesOneElementOfEachTensorItReads) {
  EXPECT_EQ(errorOf(slab("norm.sweep reads [@x] writes [] into [] {\n  norm.yield\n}\n")),
            "'norm.sweep' op reads 1 elements but its region takes 0\n");
}

TEST_F(Dialect, SweepYieldsWritesSumsAndPartials) {
  EXPECT_EQ(errorOf(slab("norm.sweep reads [@x] writes [@y] into [] {\n^bb0(%x: f32):\n  norm.yield\n}\n")),
            "'norm.sweep' op must yield 1 values (writes, sums, partials), not 0\n");
}

/// Returns a sweep that yields x as each of two results and as a partial.
static std::string reduced(const std::string& by) {
  return "norm.tensor @p : f32 [chunk, feature] of 0 workspace both\n"
         "norm.phase @apply apply over [segment, row] {\nnorm.slab run [segment, row] {\n"
         "%a, %b = norm.sweep reads [@x] writes [] into [@p] " +
         by + " {\n^bb0(%x: f32):\n  norm.yield %x, %x, %x : f32, f32, f32\n} : f32, f32\n}\n}\n";
}

TEST_F(Dialect, SweepSaysHowItsTermsAreCombined) {
  auto module = parse(kernel(reduced("by [max, add, add]")));
  ASSERT_TRUE(module) << diagnostics_;
  EXPECT_NE(print(*module).find("into [@p] by [max, add, add] {"), std::string::npos) << print(*module);
  module->walk([](SweepOp sweep) {
    EXPECT_EQ(sweep.combinerOf(0), Combiner::Max);
    EXPECT_EQ(sweep.combinerOf(1), Combiner::Add);
  });
  module = parse(kernel(reduced("")));
  ASSERT_TRUE(module) << diagnostics_;
  module->walk([](SweepOp sweep) { EXPECT_EQ(sweep.combinerOf(0), Combiner::Add); });
}

TEST_F(Dialect, CombinersAreKnownAndComplete) {
  EXPECT_EQ(errorOf(kernel(reduced("by [max]"))),
            "'norm.sweep' op must have 3 combiners (sums, partials), not 1\n");
  EXPECT_EQ(errorOf(kernel(reduced("by [add, add, max]"))),
            "'norm.sweep' op cannot reduce @p by max: partials are added to a workspace that is cleared to "
            "0\n");
  EXPECT_NE(errorOf(kernel(reduced("by [min, add, add]"))).find("one of [add, max]"), std::string::npos)
      << diagnostics_;
}

TEST_F(Dialect, SweepEndsInAYield) {
  EXPECT_EQ(errorOf(slab("norm.sweep reads [] writes [] into [] {\n  %0 = arith.constant 1.0 : f32\n}\n")),
            "'norm.sweep' op must end in norm.yield\n");
}

TEST_F(Dialect, SweepStandsInASlab) {
  EXPECT_EQ(errorOf(kernel("norm.phase @apply apply over [] {\nnorm.sweep reads [] writes [] into [] {\n"
                           "  norm.yield\n}\n}\n")),
            "'norm.sweep' op must stand in a slab of a kernel\n");
}

TEST_F(Dialect, SlabKnowsItsAxes) {
  EXPECT_EQ(errorOf(slab("", "column", "window")),
            "'norm.slab' op has no axis 'window'; legal: segment, row, feature, group, pre_group\n");
  const std::string unknown = errorOf(slab("", "column", "channel"));
  EXPECT_NE(
      unknown.find("one of [segment, row, feature, group, pre_group, window, chunk, partial, block, pair]"),
      std::string::npos)
      << unknown;
}

TEST_F(Dialect, KindOfASlabFitsItsAxes) {
  const std::string sweep =
      "norm.sweep reads [@x] writes [@y] into [] {\n^bb0(%x: f32):\n  norm.yield %x : f32\n}\n";
  EXPECT_TRUE(parse(slab(sweep, "run", "segment, row"))) << diagnostics_;
  EXPECT_EQ(errorOf(slab(sweep, "run")), "'norm.slab' op cannot be a run: the contiguous axis is feature\n");
  EXPECT_EQ(errorOf(slab(sweep, "column", "segment, row")),
            "'norm.slab' op cannot be a column: the contiguous axis is feature\n");
  EXPECT_EQ(errorOf(slab(sweep, "stream")), "'norm.slab' op must be a stream exactly if it is per nothing\n");
  EXPECT_NE(errorOf(slab(sweep, "line")).find("one of [run, block, column, stream]"), std::string::npos);
}

TEST_F(Dialect, ChunksBelongToAPhase) {
  EXPECT_EQ(errorOf(kernel("norm.tensor @p : f32 [chunk, feature] workspace both\n")),
            "'norm.tensor' op must have the axis chunk exactly if it says of which phase\n");
  EXPECT_TRUE(parse(kernel("norm.tensor @p : f32 [chunk, feature] of 0 workspace both\n"))) << diagnostics_;
  EXPECT_EQ(errorOf(slab("norm.fold chunk extent 4 reads [] {\n^bb0(%i: index):\n  norm.yield\n}\n")),
            "'norm.fold' op must go along the chunks of a phase, a window of an extent, or partials that it "
            "reads\n");
}

TEST_F(Dialect, WordsOfTheAbiAreKnown) {
  const std::string error = errorOf(kernel("norm.tensor @p : f32 [] tensor readable\n"));
  EXPECT_NE(error.find("expected one of read, write, both, zeroed"), std::string::npos) << error;
}

TEST_F(Dialect, OnlyUnitsOfSegmentsAreCutBySegment) {
  const auto phase = [](const std::string& units) {
    return kernel("norm.phase @apply apply over [" + units + "] attributes {by_segment} {\n}\n");
  };
  EXPECT_TRUE(parse(phase("segment, row"))) << diagnostics_;
  for (const char* units : {"feature", "segment"})
    EXPECT_EQ(
        errorOf(phase(units)),
        "'norm.phase' op is cut by segment only where its units are those of segments, with another axis\n");
}

TEST_F(Dialect, ChunksOfASegmentAreFoldedInASlabOfIt) {
  const auto fold = [](const std::string& per) {
    return slab("norm.fold chunk of 0 in_segment reads [] {\n^bb0(%i: index):\n  norm.yield\n}\n", "column",
                per);
  };
  EXPECT_TRUE(parse(fold("segment, feature"))) << diagnostics_;
  EXPECT_EQ(errorOf(fold("feature")),
            "'norm.fold' op goes along the chunks of a segment only in a slab that has one\n");
}

TEST_F(Dialect, ProbeReadsAnXSizedTensor) {
  const std::string z = "norm.tensor @z : f32 [feature] tensor read\n";
  const auto probe = [&](const std::string& rest) {
    return kernel(
        z +
        "norm.phase @apply apply over [feature] {\nnorm.slab column [feature] resident {\n%0 = norm.probe " +
        rest + " : f32\n}\n}\n");
  };
  const std::string region = " {\n^bb0(%a: f32, %b: f32):\n  norm.yield %a : f32\n}";
  EXPECT_TRUE(parse(probe("[@x, @z]" + region))) << diagnostics_;
  EXPECT_EQ(errorOf(probe("[@z]")), "'norm.probe' op reads @z, which is not X-sized\n");
  EXPECT_EQ(errorOf(probe("[@z, @z]" + region)), "'norm.probe' op reads no X-sized tensor\n");
  EXPECT_EQ(errorOf(probe("[@w]")), "'norm.probe' op reads @w, which the kernel does not declare\n");
}

TEST_F(Dialect, TensorStandsInAKernel) {
  EXPECT_EQ(errorOf("norm.tensor @x : f32 [] tensor read\n"),
            "'norm.tensor' op expects parent op 'norm.kernel'\n");
}

TEST_F(Dialect, KernelDeclaresATensorOnce) {
  EXPECT_NE(errorOf(kernel("norm.tensor @x : f32 [] tensor read\n")).find("redefinition of symbol named 'x'"),
            std::string::npos);
}

}  // namespace
}  // namespace normc::codegen
