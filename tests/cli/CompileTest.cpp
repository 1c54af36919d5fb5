#include <filesystem>

#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;

using Compile = CommandTest;

std::vector<std::string> problemsIn(const nlohmann::json& result) {
  std::vector<std::string> problems;
  for (const auto& kernel : result.at("kernels")) problems.push_back(kernel.at("problem"));
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  return problems;
}

TEST_F(Compile, MakesForwardBackwardAndInferForAnyNumberOfFeaturesByDefault) {
  const Outcome o = normc({"compile", "rms_norm", "-o", "r.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()),
            (std::vector<std::string>{"rms_norm:forward@f32[*x*]", "rms_norm:backward@f32[*x*]",
                                      "rms_norm:infer@f32[*x*]"}));
  EXPECT_EQ(o.json()["bytes"], read("r.npk").size());
  EXPECT_EQ(files(), std::vector<std::string>{"r.npk"});
}

TEST_F(Compile, MakesTheGradientOfInferWhereItIsNamed) {
  const Outcome o = normc(
      {"compile", "batch_norm", "--entry", "infer_backward", "--features", "8", "-o", "b.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()).front(), "batch_norm:infer_backward@f32[*x*]");
  EXPECT_EQ(problemsIn(o.json()).back(), "batch_norm:infer_backward@f32[*x8]");
  const Outcome check = normc({"check", "b.npk"});
  EXPECT_EQ(check.code, 0) << check.out << check.err;
}

TEST_F(Compile, MultipliesFeaturesDtypesAndEntries) {
  const Outcome o = normc({"compile", "rms_norm", "--features", "8", "--features", "16,8", "--dtype",
                           "f32,f64", "--entry", "infer", "-o", "r.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()),
            (std::vector<std::string>{"rms_norm:infer@f32[*x*]", "rms_norm:infer@f32[*x8]",
                                      "rms_norm:infer@f32[*x16]", "rms_norm:infer@f64[*x*]",
                                      "rms_norm:infer@f64[*x8]", "rms_norm:infer@f64[*x16]"}));
}

TEST_F(Compile, SaysWhatItMade) {
  const Outcome o = normc({"compile", "rms_norm:infer@f32[*x8]", "--target", "x86-64-v3", "-o", "r.npk"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "r.npk: 1 kernel of 1 norm for x86-64-v3, "));
  EXPECT_EQ(o.err, "");
}

TEST_F(Compile, HasKernelsOfSeveralCoresWhereTheirSchedulesDiffer) {
  const Outcome o = normc({"compile", "layer_norm", "--entry", "forward", "--features", "768", "--target",
                           "x86-64-v3:zen3,x86-64-v3:cove", "-o", "c.npk"});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto made = normc({"inspect", "c.npk", "--json"}).json()["manifest"];
  std::vector<std::string> cores;
  for (const auto& kernel : made["kernels"])
    cores.push_back(kernel["problem"].get<std::string>() + " " + kernel.value("core", "any"));
  EXPECT_EQ(cores,
            (std::vector<std::string>{"layer_norm:forward@f32[*x*] any", "layer_norm:forward@f32[*x768] zen3",
                                      "layer_norm:forward@f32[*x768] cove"}));
  EXPECT_EQ(made["blobs"].size(), 1u);
  EXPECT_EQ(normc({"compile", "layer_norm:forward@f32[*x768]", "--target", "x86-64-v3:zen3,x86-64-v3:cove",
                   "-o", "j.npk", "--json"})
                .json()["kernels"][1]["target"],
            "x86-64-v3:cove");
  EXPECT_TRUE(contains(normc({"inspect", "c.npk"}).out, "x86-64-v3:zen3"));
  const Outcome check = normc({"check", "c.npk"});
  EXPECT_EQ(check.code, 0) << check.out;
  const Outcome shown = normc({"compile", "layer_norm:forward@f32[*x768]", "--emit", "asm", "--target",
                               "x86-64-v3:zen3,x86-64-v3:cove"});
  EXPECT_TRUE(contains(shown.err, "--emit shows one target; --target has 2")) << shown.err;
}

TEST_F(Compile, NamesNoCoreWhereThereIsOne) {
  const Outcome o =
      normc({"compile", "layer_norm:forward@f32[*x768]", "--target", "x86-64-v3:zen3", "-o", "z.npk"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_FALSE(normc({"inspect", "z.npk", "--json"}).json()["manifest"]["kernels"][0].contains("core"));
}

TEST_F(Compile, PassesOptionsOfTheProblemOn) {
  const Outcome o = normc({"compile", "power_norm_released", "--bind", "heads=2", "--mask", "--segmented",
                           "--params", "bf16", "--dtype", "bf16", "--entry", "infer", "--features", "8",
                           "--target", "x86-64-v4", "-o", "p.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()).back(), "power_norm_released:infer@bf16[*x*x8]{heads=2,mask,params=bf16}");
}

TEST_F(Compile, ChannelsFirstHasThreeDimensions) {
  const Outcome o = normc(
      {"compile", "batch_norm", "--layout", "channels_first", "--entry", "infer", "-o", "b.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json())[0], "batch_norm:infer@f32[*x*x*]{layout=channels_first}");
}

TEST_F(Compile, TakesNormsFromAFile) {
  write("mine.norm", "norm mine from rms_norm { epsilon 1e-3 }\n");
  const Outcome o = normc({"compile", "mine.norm", "mine:infer@f32[*x8]", "-o", "m.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()), std::vector<std::string>{"mine:infer@f32[*x8]"});
}

constexpr const char* kPartOfAHead =
    "norm q {\n  reduce features(groups = heads)\n  affine scale\n  rope half(groups = heads, features = 4)\n"
    "}\n";

TEST_F(Compile, ANormThatNeedsAKnownNumberOfFeaturesIsCompiledForTheGivenOnes) {
  write("q.norm", kPartOfAHead);
  const std::vector<std::string> named{"q.norm", "--bind",   "heads=2",  "--entry",
                                       "infer",  "--target", "x86-64-v3"};
  const auto normcOf = [&](std::vector<std::string> more) {
    more.insert(more.begin() + 1, named.begin(), named.end());
    return normc(more);
  };
  Outcome o = normcOf({"compile", "-o", "q.npk", "--json", "--features", "16,32"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()),
            (std::vector<std::string>{"q:infer@f32[*x16]{heads=2}", "q:infer@f32[*x32]{heads=2}"}));
  const std::string error =
      "normc: error: the norm q needs a known number of features: its 'rope' turns 4 of each group\n"
      "  hint: give it: --features 4096\n";
  o = normcOf({"compile", "-o", "other.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, error);
  EXPECT_EQ(normcOf({"tune", "--dry-run", "--features", "16"}).code, 0);
  o = normcOf({"tune", "--dry-run"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, error);
}

TEST_F(Compile, SaysHowAFileOfNormsIsNamed) {
  write("plain", "norm plain {\n  reduce features\n}\n");
  const Outcome o = normc({"compile", "plain", "-o", "p.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err,
            "normc: error: there is no norm 'plain'; a file has that name\n"
            "  hint: write ./plain, or give the file the ending .norm\n");
  EXPECT_EQ(normc({"compile", "./plain", "--entry", "infer", "-o", "p.npk"}).code, 0);
}

TEST_F(Compile, AppliesTheGivenSchedule) {
  const Outcome o =
      normc({"compile", "rms_norm:infer@f32[*x8]", "--schedule",
             "resident,vector=4,rows=2,unroll=2,tile=2,grain=8,stream=2", "-o", "r.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.json()["kernels"][0]["schedule"], "resident,vector=4,rows=2,unroll=2,tile=2,grain=8,stream=2");
  EXPECT_EQ(o.json()["kernels"][0]["origin"], "given");
  EXPECT_EQ(normc({"inspect", "r.npk", "--json"}).json()["manifest"]["kernels"][0]["origin"], "given");
  EXPECT_TRUE(contains(normc({"explain", "r.npk", "rms_norm:infer@f32[*x8]"}).out, ",stream=2 (given)\n"));
}

TEST_F(Compile, EmitsEveryStageAsText) {
  const auto emit = [&](const char* stage) {
    const Outcome o = normc(
        {"compile", "layer_norm", "--emit", stage, "layer_norm:infer@f32[*x64]", "--target", "x86-64-v3"});
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_TRUE(contains(emit("sweeps"), "norm.sweep"));
  EXPECT_TRUE(contains(emit("loops"), "scf.for"));
  EXPECT_TRUE(contains(emit("llvm"), "define "));
  EXPECT_TRUE(contains(emit("asm"), "vfmadd"));
  EXPECT_TRUE(files().empty());
}

TEST_F(Compile, EmitsToAFile) {
  const Outcome o = normc({"compile", "--emit", "sweeps", "layer_norm:infer@f32[*x64]", "-o", "sweeps.mlir"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "");
  EXPECT_TRUE(contains(read("sweeps.mlir"), "norm.kernel"));
}

TEST_F(Compile, EmitShowsOneProblem) {
  const Outcome o = normc({"compile", "layer_norm", "--emit", "sweeps"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--emit shows one problem; the command line has 3"));
}

TEST_F(Compile, EmitShowsOneTarget) {
  const Outcome o =
      normc({"compile", "--emit", "asm", "layer_norm:infer@f32[*x64]", "--target", "x86-64-v3,aarch64"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--emit shows one target; --target has 2"));
}

TEST_F(Compile, PtxOnlyIsForGpus) {
  const Outcome o =
      normc({"compile", "layer_norm:infer@f32[*x64]", "--target", "x86-64-v3", "--ptx-only", "-o", "p.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--ptx-only is for GPUs, and no --target is one"));
  EXPECT_TRUE(contains(o.err, "add a GPU, e.g. --target sm_90, or leave it out"));
}

TEST_F(Compile, PrintsTheModuleAfterPasses) {
  const auto after = [&](const std::string& passes, bool json = false) {
    std::vector<std::string> line{
        "compile", "layer_norm:infer@bf16[*x64]", "--print-after", passes, "--target", "x86-64-v3"};
    if (json) line.push_back("--json");
    return normc(line);
  };
  const Outcome two = after("expand-bf16,norm-attach-schedule");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(two.out.find("// after norm-attach-schedule\nmodule {\n  norm.kernel"), 0u) << "in their order";
  EXPECT_TRUE(contains(two.out, "// after expand-bf16\nmodule {\n  func.func"));
  EXPECT_TRUE(contains(after("cse").out, "// after cse\n")) << "a pass of MLIR";
  const Outcome json = after("add-entry-points", true);
  EXPECT_EQ(json.json()["passes"][0], "add-entry-points");
  EXPECT_TRUE(contains(json.json()["text"], "llvm.func @kernel_apply"));
  EXPECT_TRUE(files().empty());
}

struct Wrong {
  std::vector<std::string> arguments;
  int code;
  std::string text;
};

class CompileRefuses : public CommandTest, public testing::WithParamInterface<Wrong> {};

TEST_P(CompileRefuses, AndWritesNothing) {
  std::vector<std::string> arguments{"compile", "-o", "x.npk"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const Outcome o = normc(arguments);
  EXPECT_EQ(o.code, GetParam().code);
  EXPECT_TRUE(contains(o.err, GetParam().text));
  EXPECT_EQ(o.out, "");
  EXPECT_TRUE(files().empty());
}

TEST_F(Compile, MakesEntriesOverRanksWhereTheyAreNamed) {
  const Outcome o = normc({"compile", "power_norm", "--entry", "forward_reduce,backward_reduce,commit",
                           "--features", "8", "-o", "p.npk", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(problemsIn(o.json()).back(), "power_norm:commit@f32[*x8]");
  const Outcome check = normc({"check", "p.npk"});
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  const Outcome run = normc({"run", "p.npk", "power_norm:commit@f32[*x8]"});
  EXPECT_TRUE(contains(run.err,
                       "power_norm:commit@f32[*x8] exchanges sums with other calls\n  hint: call it through "
                       "the C API"))
      << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, CompileRefuses,
    testing::Values(
        Wrong{{"layer_norm,rms_norm"},
              2,
              "there is no norm 'layer_norm,rms_norm'\n  hint: norms are separated by blanks, e.g. "
              "layer_norm rms_norm"},
        Wrong{{"layer_norm", "--features", "768", "1024"},
              2,
              "there is no norm '1024'\n  hint: values of a flag are separated by commas, e.g. --features "
              "768,1024"},
        Wrong{{"layer_norm", "--dtype", "f32", "bf16"},
              2,
              "there is no norm 'bf16'\n  hint: values of a flag are separated by commas, e.g. --dtype "
              "f32,bf16"},
        Wrong{{"layer_norm", "--entry", "forward", "infer"},
              2,
              "there is no norm 'infer'\n  hint: values of a flag are separated by commas, e.g. --entry "
              "forward,infer"},
        Wrong{{"l2_norm", "--params", "bf16"},
              2,
              "--params is 'bf16'; no norm of the command line has scale or bias"},
        Wrong{{"layer_nrm"}, 2, "there is no norm 'layer_nrm'\n  hint: did you mean 'layer_norm'?"},
        Wrong{{"mine.norm"}, 3, "cannot read mine.norm: No such file or directory"},
        Wrong{{"layer_norm", "--dtype", "f31"}, 2, "--dtype is 'f31'; it must be f32, f64, bf16 or f16"},
        Wrong{{"layer_norm", "--dtype", "fp8"}, 2, "hint: 8-bit codes are declared in the norm"},
        Wrong{
            {"layer_norm", "--target", "sm_99"}, 2, "this LLVM does not know sm_99; it knows sm_80, sm_86, "},
        Wrong{{"layer_norm", "--features", "99999999999999999999"},
              2,
              "--features is '99999999999999999999'; it must be at most 9223372036854775807"},
        Wrong{{"-"}, 3, "standard input: error: the file holds no norm"},
        Wrong{{"layer_norm", "--entry", "foward"}, 2, "did you mean 'forward'?"},
        Wrong{
            {"layer_norm", "--entry", "infer_backward"},
            2,
            "hint: infer of 'layer_norm' uses the statistics of its input, as forward does: its gradient is "
            "'backward'"},
        Wrong{{"layer_norm", "--entry", "forward_reduce"},
              2,
              "each of its statistics is of rows that lie together, on one rank [P10]"},
        Wrong{{"batch_norm", "--entry", "commit"}, 2, "'batch_norm' has no 'commit'"},
        Wrong{
            {"batch_norm:forward_apply@f32[*x8x*]{layout=channels_first}", "--target", "sm_90"},
            2,
            "cannot be compiled for sm_90: an entry over ranks goes through channels in the order of memory"},
        Wrong{{"layer_norm", "--target", "x86-64-v5"}, 2, "--target is 'x86-64-v5'; it must be host, "},
        Wrong{{"layer_norm", "--target", "avx2"},
              2,
              "sm_100 or another sm_NN; a CPU target may name a core: x86-64-v4:zen4\n"
              "  hint: write 'x86-64-v3'\n"},
        Wrong{{"layer_norm", "--target", "native"}, 2, "  hint: write 'host'\n"},
        Wrong{{"layer_norm", "--target", "AVX512"}, 2, "  hint: write 'x86-64-v4'\n"},
        Wrong{{"layer_norm", "--target", "arm64"}, 2, "  hint: write 'aarch64'\n"},
        Wrong{{"layer_norm", "--target", "neon"}, 2, "  hint: write 'aarch64'\n"},
        Wrong{{"layer_norm", "--target", "znver3"}, 2, "  hint: write 'x86-64-v3:zen3'\n"},
        Wrong{{"layer_norm", "--target", "znver4"}, 2, "  hint: write 'x86-64-v4:zen4'\n"},
        Wrong{{"layer_norm", "--target", "znver5"}, 2, "  hint: write 'x86-64-v4:zen5'\n"},
        Wrong{{"layer_norm", "--target", "a100"}, 2, "  hint: write 'sm_80'\n"},
        Wrong{{"layer_norm", "--target", "h100"}, 2, "  hint: write 'sm_90'\n"},
        Wrong{{"layer_norm", "--target", "h200"}, 2, "  hint: write 'sm_90'\n"},
        Wrong{{"layer_norm", "--target", "b200"}, 2, "  hint: write 'sm_100'\n"},
        Wrong{{"layer_norm", "--target", "cuda"}, 2, "  hint: write 'sm_90', or the sm_NN of another GPU\n"},
        Wrong{{"layer_norm", "--target", "gpu"}, 2, "  hint: write 'sm_90', or the sm_NN of another GPU\n"},
        Wrong{{"layer_norm", "--target", "x86-64-v5:zen4"}, 2, "--target is 'x86-64-v5'; it must be host, "},
        Wrong{{"layer_norm", "--target", "x86-64-v4:atom"},
              2,
              "unknown core 'atom' in target 'x86-64-v4:atom'; known: host, any, cove, granite, zen3, zen4, "
              "zen5"},
        Wrong{{"layer_norm", "--layout", "channel_first"}, 2, "did you mean 'channels_first'?"},
        Wrong{{"layer_norm", "--layout", "channels_last"},
              2,
              "--layout is 'channels_last'; it must be features_last or channels_first\n"
              "  hint: write 'features_last', or leave the layout out: it is the default\n"},
        Wrong{{"layer_norm", "--dtype", "float16"}, 2, "  hint: write 'f16'\n"},
        Wrong{{"layer_norm", "--entry", "inference"}, 2, "  hint: write 'infer'\n"},
        Wrong{{"layer_norm", "--features", "many"},
              2,
              "--features is 'many'; it must be a whole number, 1 or more"},
        Wrong{
            {"layer_norm", "--features", "0"}, 2, "--features is '0'; it must be a whole number, 1 or more"},
        Wrong{{"layer_norm:forward@f32[*x4611686018427387904]"},
              2,
              "the number of features is 4611686018427387904 [P1]"},
        Wrong{{"layer_norm", "--features", "1099511627777"}, 2, "use at most 2^40, or * for any"},
        Wrong{{"layer_norm", "--dtype", ","}, 2, "--dtype is ','; it must be a list with commas"},
        Wrong{{"layer_norm", "--features", "64,"},
              2,
              "--features is '64,'; it must be a list with commas\n  hint: a value is missing beside a "
              "comma\n"},
        Wrong{{"layer_norm", "--target", "sm90"}, 2, "  hint: did you mean 'sm_90'?"},
        Wrong{
            {"ln.npk"},
            2,
            "'ln.npk' is a package, and here a norm is needed\n  hint: name a built-in norm or a .norm file; "
            "normc inspect shows what a package holds\n"},
        Wrong{{"./ln.npk"}, 2, "'./ln.npk' is a package, and here a norm is needed"},
        Wrong{{"layer_norm", "--threads", "two"},
              2,
              "--threads is 'two'; it must be a whole number, 0 or more"},
        Wrong{{"layer_norm", "--emit", "sweps"}, 2, "did you mean 'sweeps'?"},
        Wrong{{"layer_norm", "--emit", "ptx", "--target", "x86-64-v3"},
              2,
              "--emit is 'ptx'; for x86-64-v3 it must be sweeps, loops, llvm or asm\n"
              "  hint: ptx is a stage of sm_NN: add --target sm_90\n"},
        Wrong{{"layer_norm:infer@f32[*x64]", "--print-after", "norm-to-loop", "--target", "x86-64-v3"},
              2,
              "--print-after is 'norm-to-loop'; it must be norm-attach-schedule, norm-to-loops, "
              "expand-division"},
        Wrong{{"layer_norm:infer@f32[*x64]", "--print-after", "norm-to-loop"},
              2,
              "hint: did you mean 'norm-to-loops'?"},
        Wrong{{"layer_norm", "--print-after", "cse"},
              2,
              "--print-after shows one problem; the command line has 3"},
        Wrong{{"layer_norm", "--print-after", "cse", "--emit", "asm"},
              2,
              "--emit and --print-after exclude each other"},
        Wrong{{"power_norm_released", "--bind", "heads=2", "--layout", "channels_first"}, 2, "[P3]"},
        Wrong{{"layer_norm", "--params", "f16"}, 2, "[P6]"},
        Wrong{{"power_norm_released"},
              2,
              "leaves the number of its heads open\n  hint: give it: --bind heads=16"},
        Wrong{{"power_norm_released", "--bind", "head=16"}, 2, "did you mean 'heads'?"},
        Wrong{{"power_norm_released", "--bind", "heads"},
              2,
              "--bind is 'heads'; it must have the form heads=16"},
        Wrong{{"power_norm_released", "--bind", "heads=3", "--bind", "heads=4"},
              2,
              "--bind heads is given twice"},
        Wrong{{"layer_norm", "--dtype", "f32,"}, 2, "--dtype is 'f32,'; it must be a list with commas"},
        Wrong{{"power_norm_released", "--bind", "heads=7", "--features", "768"}, 2, "[P5]"},
        Wrong{{"layer_norm", "--schedule", "fast"}, 2, "schedule 'fast'"},
        Wrong{{"layer_norm", "--schedule", "streamed"},
              2,
              "the schedule does not fit layer_norm:forward@f32[*x*]"},
        Wrong{{"layer_norm:forward@f33[*x8]"}, 2, "'f33' is no dtype\n  layer_norm:forward@f33[*x8]\n"},
        Wrong{{"layer_norm:forward@f32[*x8]", "--dtype", "f64"}, 2, "a whole problem says its dtype"}));

TEST_F(Compile, SaysWhatAStageBelongsTo) {
  const char* of[][3] = {{"gpu", "host", "gpu is a stage of sm_NN: add --target sm_90"},
                         {"sass", "host", "sass is a stage of sm_NN: add --target sm_90"},
                         {"halide", "host", "halide is a stage of Halide: add --generator halide"},
                         {"stmt", "host", "stmt is a stage of Halide: add --generator halide"},
                         {"loops", "sm_90", "loops is a stage of CPUs: leave --target out"}};
  for (const auto& [stage, target, hint] : of) {
    const Outcome o = normc({"compile", "layer_norm", "--emit", stage, "--target", target});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, std::string("  hint: ") + hint + "\n")) << o.err;
  }
}

TEST_F(Compile, LooksWhetherItCanWriteBeforeItReads) {
  // The norm is wrong too: the output is looked at first.
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--emit", "asm"}}) {
    std::vector<std::string> words{"compile", "none.norm", "-o", "none/a"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = normc(words);
    EXPECT_EQ(o.code, 3);
    EXPECT_EQ(o.err, "normc: error: cannot write none/a: No such file or directory\n");
  }
}

TEST_F(Compile, ReadsTheStandardInput) {
  write("n.norm", "norm n {\n  reduce features\n}\n");
  const Outcome o = normc({"compile", "-", "--features", "8", "-o", "n.npk"}, folder_ + "/n.norm");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, " kernels of 1 norm for "));
}

TEST_F(Compile, WritesToTheStandardOutputAndSpeaksElsewhere) {
  package("a.npk", {"layer_norm:infer@f32[*x8]"});
  const Outcome o = normc({"compile", "layer_norm:infer@f32[*x8]", "-o", "-"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(o.out == read("a.npk")) << "as it is in a file";
  EXPECT_TRUE(contains(o.err, "-: 1 kernel of 1 norm"));
  EXPECT_EQ(files(), std::vector<std::string>{"a.npk"});
  const Outcome both = normc({"compile", "layer_norm:infer@f32[*x8]", "-o", "-", "--json"});
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(contains(both.err, "--json and -o - both write to the standard output"));
}

TEST_F(Compile, NeedsTheNameOfAPackage) {
  const Outcome o = normc({"compile", "layer_norm"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "needs the name of the package to write"));
}

TEST_F(Compile, SaysWhichFileCannotBeWritten) {
  const Outcome o = normc({"compile", "layer_norm", "-o", "nowhere/x.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.err, "normc: error: cannot write nowhere/x.npk: No such file or directory\n");
}

TEST_F(Compile, DoesNotReplaceAFolder) {
  const Outcome o = normc({"compile", "layer_norm", "-o", "."});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "cannot write .: Is a directory"));
}

TEST_F(Compile, RefusesTwoNormsOfOneName) {
  write("mine.norm", "norm rms_norm { reduce features }\n");
  const Outcome o = normc({"compile", "rms_norm", "mine.norm", "-o", "x.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "two different norms are called 'rms_norm', one of them from mine.norm"));
}

TEST_F(Compile, ReportsTheErrorsOfANormFile) {
  write("mine.norm", "norm mine {\n  reduce rowss\n}\n");
  const Outcome o = normc({"compile", "mine.norm", "-o", "x.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "mine.norm:2:10: error: "));
}

TEST_F(Compile, RefusesAFileWithoutANorm) {
  write("empty.norm", "// nothing\n");
  const Outcome o = normc({"compile", "empty.norm", "-o", "x.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "empty.norm: error: the file holds no norm"));
}

TEST_F(Compile, AnInterruptLeavesAnOldPackageAsItWas) {
  write("x.npk", "old");
  const Outcome o = interrupted({"compile", "layer_norm", "-o", "x.npk"});
  EXPECT_EQ(o.code, 4);
  EXPECT_TRUE(contains(o.err, "interrupted after"));
  EXPECT_TRUE(contains(o.err, "x.npk is not written"));
  EXPECT_EQ(read("x.npk"), "old");
  EXPECT_EQ(files(), std::vector<std::string>{"x.npk"});
}

TEST_F(Compile, ANormBesideAProblemIsRefused) {
  const Outcome o = normc({"compile", "layer_norm", "rms_norm:forward@f32[*x64]", "-o", "x.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(
      contains(o.err,
               "the problems do not use the norm 'layer_norm'\n  hint: write it as a problem too, e.g. "
               "'layer_norm:forward@f32[*x*]', or name norms alone\n"));
}

TEST_F(Compile, WritesWhereALinkLeadsThoughNothingIsThere) {
  fs::create_symlink("there.npk", folder_ + "/link.npk");
  ASSERT_EQ(normc({"compile", "rms_norm:infer@f32[*x8]", "-o", "link.npk"}).code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link.npk"));
  EXPECT_TRUE(exists("there.npk"));
  fs::create_symlink("loop", folder_ + "/loop");
  const Outcome o = normc({"compile", "rms_norm:infer@f32[*x8]", "-o", "loop"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "cannot write loop: Too many levels of symbolic links"));
}

TEST_F(Compile, KeepsTheModeOfAFileThatItReplaces) {
  write("p.npk", "");
  fs::permissions(folder_ + "/p.npk", fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_EQ(normc({"compile", "rms_norm:infer@f32[*x8]", "-o", "p.npk"}).code, 0);
  EXPECT_EQ(fs::status(folder_ + "/p.npk").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Compile, AFileIsNoFolder) {
  write("file", "");
  EXPECT_TRUE(contains(normc({"compile", "rms_norm:infer@f32[*x8]", "-o", "file/p.npk"}).err,
                       "cannot write file/p.npk: Not a directory"));
}

}  // namespace
}  // namespace normc::cli
