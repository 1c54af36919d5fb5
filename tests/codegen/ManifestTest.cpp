// The manifest entry of a kernel, derived from the IR (docs/package-format.md).
#include "codegen/Manifest.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

/// With a schedule of its own, so that better defaults change nothing here.
package::Kernel manifestOf(const std::string& text, Strategy strategy) {
  Problem problem = problemOf(text);
  Planned plan(problem, strategy);
  cpu::Schedule schedule{.strategy = strategy, .vector = 8, .rows = 4, .unroll = 1, .tile = 4, .grain = 32};
  return kernelManifest(problem, schedule, isaOf("x86-64-v3"), plan.kernel());
}

std::string text(const package::Shape& shape) {
  const char* const names[] = {"", "segments", "rows", "features", "chunks."};
  std::string out = "[";
  for (const package::Factor& f : shape) {
    if (out.size() > 1) out += ",";
    out += names[f.kind];
    if (f.kind == package::Factor::Fixed || f.kind == package::Factor::Chunks) out += std::to_string(f.value);
  }
  return out + "]";
}

/// One operand a line: role name type access, and the shape of a workspace.
std::string operands(const package::Kernel& m) {
  std::string out;
  for (const package::Operand& o : m.operands)
    out += std::string(name(o.role)) + " " + o.name + " " + std::string(name(o.type)) + " " +
           std::string(name(o.access)) + (o.role == package::Role::Workspace ? " " + text(o.shape) : "") +
           "\n";
  return out;
}

/// One phase a line: symbol role units, how it is cut, what a unit weighs, and when it runs.
std::string phases(const package::Kernel& m) {
  std::string out;
  for (const package::Phase& p : m.phases)
    out += p.symbol + " " + p.role + " " + text(p.units) + " min=" + std::to_string(p.minUnits) +
           (p.enoughUnits ? " enough=" + std::to_string(*p.enoughUnits) : "") +
           " multiple=" + std::to_string(p.multiple) + (p.group ? " group=" + std::to_string(*p.group) : "") +
           " " + (p.weight.empty() ? "" : "of " + text(p.weight) + " ") + std::string(name(p.when)) + "\n";
  return out;
}

std::string fields(const std::vector<package::Field>& list) {
  std::string out;
  for (const package::Field& f : list)
    out += f.name + " " + std::string(name(f.type)) + " " + text(f.shape) + "\n";
  return out;
}

TEST(Manifest, AMultipleOfAllGroupsThatOverflowsIsNoSmallNumber) {
  const Problem problem = problemOf(
      "norm n {\n  reduce features\n  rope half(groups = 77158673929)\n"
      "  quantize int8(per = block, size = 119537721)\n}\n",
      ":forward@f32[*x*]");
  Planned plan(problem, Strategy::Resident);
  const cpu::Isa& isa = isaOf("x86-64-v3");
  const package::Kernel m =
      kernelManifest(problem, cpu::defaultSchedule(problem, isa, Strategy::Resident), isa, plan.kernel());
  EXPECT_EQ(m.featuresMultiple, package::kHuge) << "2^64 + 2 features";
}

TEST(Manifest, NamesTheProblemAndItsParts) {
  package::Kernel m =
      manifestOf("power_norm_released:forward@bf16[*x*x64]{heads=4,mask,params=bf16}", Strategy::Streamed);
  EXPECT_EQ(m.problem, "power_norm_released:forward@bf16[*x*x64]{heads=4,mask,params=bf16}");
  EXPECT_EQ(m.parts.entry, Entry::Forward);
  EXPECT_EQ(m.parts.data, DType::BF16);
  EXPECT_EQ(m.parts.params, DType::BF16);
  EXPECT_EQ(m.parts.layout, Layout::FeaturesLast);
  EXPECT_TRUE(m.parts.mask);
  EXPECT_TRUE(m.parts.segmented);
  EXPECT_EQ(m.parts.features, 64);
  EXPECT_EQ(m.parts.bindings, (std::map<std::string, int64_t>{{"heads", 4}}));
  EXPECT_EQ(m.isa, "x86-64-v3");
  EXPECT_EQ(m.generator, "mlir");
  EXPECT_EQ(m.schedule, "streamed,vector=8,rows=4,unroll=1,tile=4,grain=32,stream=0");
}

TEST(Manifest, AnyNumberOfFeaturesIsNoNumber) {
  EXPECT_EQ(manifestOf("layer_norm:forward@f32[*x*]", Strategy::Resident).parts.features, std::nullopt);
}

TEST(Manifest, AnyNumberOfFeaturesMakesWholeGroups) {
  const auto multiple = [](const std::string& text) {
    const bool rows = text.starts_with("power_norm");
    return manifestOf(text, rows ? Strategy::Streamed : Strategy::Resident).featuresMultiple;
  };
  EXPECT_EQ(multiple("group_norm:forward@f32[*x*x*]{groups=8}"), 8);
  EXPECT_EQ(multiple("power_norm_released:backward@f32[*x*]{heads=4}"), 4) << "of what comes before the norm";
  EXPECT_EQ(multiple("layer_norm:forward@f32[*x*]"), 1);
  EXPECT_EQ(multiple("power_norm_released:forward@f32[*x64]{heads=4}"), 1)
      << "they are known, and judged already";
}

TEST(Manifest, PowerNormForward) {
  package::Kernel m = manifestOf("power_norm:forward@f32[*x64]", Strategy::Streamed);
  EXPECT_EQ(operands(m),
            "state_in step i64 read\n"
            "state_in psi2 f32 read\n"
            "saved rstd f32 write\n"
            "tensor scale f32 read\n"
            "tensor bias f32 read\n"
            "workspace work.a f32 both [features]\n"
            "tensor x f32 read\n"
            "tensor y f32 write\n"
            "workspace work.batch_moment f32 both [chunks.1,features]\n"
            "saved second_moment f32 write\n"
            "state_out psi2 f32 write\n"
            "state_out step i64 write\n");
  EXPECT_EQ(phases(m),
            "kernel_prepare combine [features] min=4096 multiple=8 always\n"
            "kernel_apply apply [segments,rows] min=32 enough=64 multiple=4 always\n"
            "kernel_finish finish [features] min=4096 multiple=8 of [chunks.1] always\n"
            "kernel_advance finish [] min=1 multiple=1 always\n");
  EXPECT_EQ(fields(m.state), "step i64 []\npsi2 f32 [features]\nnu f32 [features]\n");
  EXPECT_EQ(fields(m.saved), "rstd f32 [features]\nsecond_moment f32 [features]\n");
  ASSERT_EQ(m.scalars.size(), 3u);
  EXPECT_EQ(m.scalars[0].name, "epsilon");
  EXPECT_EQ(m.scalars[0].value, 1e-5);
  EXPECT_EQ(m.scalars[0].legal.least, 0) << "the running moment divides";
  EXPECT_EQ(m.traffic.reads, 1);
  EXPECT_EQ(m.traffic.writes, 1);
  EXPECT_FALSE(m.warmupTraffic);
}

TEST(Manifest, TheGradientOfInferReadsTheStateAndNothingThatWasSaved) {
  package::Kernel m = manifestOf("batch_norm:infer_backward@f32[*x64]", Strategy::Streamed);
  EXPECT_EQ(m.parts.entry, Entry::InferBackward);
  EXPECT_EQ(operands(m),
            "state_in running_mean f32 read\n"
            "workspace work.c f32 both [features]\n"
            "state_in running_var f32 read\n"
            "tensor scale f32 read\n"
            "workspace work.p f32 both [features]\n"
            "tensor x f32 read\n"
            "tensor dy f32 read\n"
            "tensor dx f32 write\n"
            "workspace work.sum_g f32 both [chunks.1,features]\n"
            "workspace work.sum_gx f32 both [chunks.1,features]\n"
            "tensor dscale f32 write\n"
            "tensor dbias f32 write\n");
  EXPECT_EQ(phases(m),
            "kernel_prepare combine [features] min=4096 multiple=8 always\n"
            "kernel_apply apply [segments,rows] min=32 enough=64 multiple=4 always\n"
            "kernel_finish finish [features] min=4096 multiple=8 of [chunks.1] always\n");
  EXPECT_EQ(fields(m.state), "step i64 []\nrunning_mean f32 [features]\nrunning_var f32 [features]\n");
  EXPECT_EQ(fields(m.saved), "");
}

TEST(Manifest, ReleasedFormMarksThePhaseThatWarmupNeeds) {
  package::Kernel m = manifestOf("power_norm_released:forward@f32[*x64]{heads=4}", Strategy::Streamed);
  EXPECT_EQ(phases(m),
            "kernel_statistics statistics [segments,rows] min=32 enough=64 multiple=4 warmup\n"
            "kernel_prepare combine [features] min=4096 multiple=8 of [chunks.0] always\n"
            "kernel_apply apply [segments,rows] min=32 enough=64 multiple=4 always\n"
            "kernel_finish finish [features] min=4096 multiple=8 of [chunks.2] always\n"
            "kernel_advance finish [] min=1 multiple=1 always\n");
  EXPECT_EQ(m.traffic.reads, 1);
  ASSERT_TRUE(m.warmupTraffic);
  EXPECT_EQ(m.warmupTraffic->reads, 2);
  EXPECT_EQ(m.warmupTraffic->writes, 1);
}

TEST(Manifest, ResidentColumnsAreCutIntoWholeTiles) {
  package::Kernel m = manifestOf("batch_norm:backward@f32[*x64]", Strategy::Resident);
  EXPECT_EQ(phases(m), "kernel_apply apply [features] min=32 multiple=32 always\n");
  EXPECT_EQ(fields(m.saved), "mean f32 [features]\nrstd f32 [features]\n");
  EXPECT_EQ(m.traffic.reads, 2);
}

TEST(Manifest, RowsAreCutIntoStepsAndLikedInGroups) {
  Problem problem = problemOf("layer_norm:forward@f32[*x64]");
  Planned plan(problem, Strategy::Resident);
  cpu::Schedule schedule{.vector = 8, .rows = 4, .grain = 6, .stream = 16};
  EXPECT_EQ(phases(kernelManifest(problem, schedule, isaOf("x86-64-v3"), plan.kernel())),
            "kernel_apply apply [segments,rows] min=6 multiple=4 group=16 always\n");
}

TEST(Manifest, RowsThatLeavePartialsAreEnoughInTasksOfSixtyFour) {
  Problem problem = problemOf("layer_norm:backward@f32[*x64]");
  Planned plan(problem, Strategy::Resident);
  const auto cut = [&](int64_t grain) {
    const cpu::Schedule schedule{.vector = 8, .rows = 4, .grain = grain, .stream = 4};
    return phases(kernelManifest(problem, schedule, isaOf("x86-64-v3"), plan.kernel()));
  };
  const std::string fold = "kernel_finish finish [features] min=4096 multiple=8 of [chunks.0] always\n";
  EXPECT_EQ(cut(16), "kernel_apply apply [segments,rows] min=16 enough=64 multiple=4 always\n" + fold);
  EXPECT_EQ(cut(64), "kernel_apply apply [segments,rows] min=64 multiple=4 always\n" + fold)
      << "they are already";
}

TEST(Manifest, AUnitWeighsWhatItsSizeIsNotKnownFor) {
  EXPECT_EQ(phases(manifestOf("layer_norm:forward@f32[*x*]", Strategy::Resident)),
            "kernel_apply apply [segments,rows] min=32768 multiple=4 of [features] always\n");
  EXPECT_EQ(phases(manifestOf("layer_norm:backward@f32[*x*]", Strategy::Resident)),
            "kernel_apply apply [segments,rows] min=32 enough=64 multiple=4 always\n"
            "kernel_finish finish [features] min=4096 multiple=8 of [chunks.0] always\n")
      << "partials are as long as rows";
  EXPECT_EQ(phases(manifestOf("layer_norm:forward@f32[*x65536]", Strategy::Split)),
            "kernel_statistics statistics [features] min=32 multiple=32 of [segments,rows] always\n"
            "kernel_combine combine [segments,rows] min=32 multiple=4 always\n"
            "kernel_apply apply [features] min=32 multiple=32 of [segments,rows] always\n");
}

TEST(Manifest, ChannelsThatAreStreamedAreCutIntoRowsOfWholeLines) {
  package::Kernel m = manifestOf("batch_norm:forward@f32[*x64x*]{layout=channels_first}", Strategy::Streamed);
  EXPECT_EQ(phases(m),
            "kernel_statistics statistics [segments,rows] min=32 multiple=64 always\n"
            "kernel_combine combine [features] min=4096 multiple=8 of [chunks.0] always\n"
            "kernel_apply apply [segments,rows] min=32 multiple=64 always\n"
            "kernel_advance finish [] min=1 multiple=1 always\n");
  EXPECT_NE(operands(m).find("workspace work.statistics_sum f32 both [chunks.0,features]\n"),
            std::string::npos);
  EXPECT_EQ(m.traffic.reads, 2);
  EXPECT_EQ(m.traffic.writes, 1);
}

TEST(Manifest, WholeChannelsAreCutIntoFewTasksOfSeveral) {
  package::Kernel m =
      manifestOf("batch_norm:backward@f32[*x512x*]{layout=channels_first}", Strategy::Resident);
  EXPECT_EQ(phases(m), "kernel_apply apply [features] min=4 multiple=4 always\n");
  EXPECT_EQ(m.phases[0].maxChunks, 64) << "a task begins with what costs as much as hundreds of elements";
}

TEST(Manifest, RowsAcrossChannelsAreCutIntoWholeLines) {
  package::Kernel m =
      manifestOf("layer_norm:backward@f32[*x64x*]{layout=channels_first}", Strategy::Resident);
  EXPECT_EQ(phases(m),
            "kernel_apply apply [segments,rows] min=32 multiple=64 always\n"
            "kernel_finish finish [features] min=4096 multiple=8 of [chunks.0] always\n");
  EXPECT_NE(operands(m).find("workspace work.dscale f32 both [chunks.0,features]\n"), std::string::npos);
}

TEST(Manifest, LayerNormBackwardFoldsThePartialsOfItsRows) {
  package::Kernel m = manifestOf("layer_norm:backward@f16[*x64]", Strategy::Resident);
  EXPECT_EQ(operands(m),
            "saved rstd f32 read\n"
            "saved mean f32 read\n"
            "tensor x f16 read\n"
            "tensor dy f16 read\n"
            "tensor scale f32 read\n"
            "tensor dx f16 write\n"
            "workspace work.dscale f32 both [chunks.0,features]\n"
            "workspace work.dbias f32 both [chunks.0,features]\n"
            "tensor dscale f32 write\n"
            "tensor dbias f32 write\n");
  EXPECT_EQ(phases(m),
            "kernel_apply apply [segments,rows] min=32 enough=64 multiple=4 always\n"
            "kernel_finish finish [features] min=4096 multiple=8 of [chunks.0] always\n");
  EXPECT_EQ(fields(m.state), "");
}

TEST(Manifest, MaskIsBytesAndWindowsAreRings) {
  package::Kernel m = manifestOf("mabn:forward@f32[*x64]{mask}", Strategy::Streamed);
  EXPECT_NE(operands(m).find("tensor mask u8 read\n"), std::string::npos);
  EXPECT_NE(fields(m.state).find("window_psi2 f32 [16,features]\n"), std::string::npos);
}

TEST(Manifest, StatisticsOfF64AreF64) {
  package::Kernel m = manifestOf("batch_norm:forward@f64[*x64]", Strategy::Streamed);
  EXPECT_NE(operands(m).find("workspace work.statistics_sum f64 both [chunks.0,features]\n"),
            std::string::npos);
  EXPECT_EQ(fields(m.saved), "mean f64 [features]\nrstd f64 [features]\n");
}

}  // namespace
}  // namespace normc::codegen
