// --generator on the command line: packages of either generator or both, and what is
// said where there is no Halide.
#include <filesystem>

#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

class HalideVerbs : public CommandTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(NORMC_PROGRAM).parent_path() / "normc-halide-gen"))
      GTEST_SKIP()
          << "normc-halide-gen was not built: Halide 21 was not found; scripts/setup --halide installs it";
  }
};

TEST_F(HalideVerbs, APackageHoldsKernelsOfBothAndSaysWhoMadeThem) {
  const Outcome made =
      normc({"compile", "rms_norm:forward@f32[*x64]", "--generator", "both", "-o", "r.npk", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  ASSERT_EQ(made.json()["kernels"].size(), 2u);
  EXPECT_EQ(made.json()["kernels"][0]["generator"], "mlir");
  EXPECT_EQ(made.json()["kernels"][1]["generator"], "halide");
  const Outcome inspected = normc({"inspect", "r.npk"});
  EXPECT_TRUE(contains(inspected.out, "mlir: resident,vector="));
  EXPECT_TRUE(contains(inspected.out, "halide: resident,vector="));
  // The runtime takes the first of two that are alike; the other is judged by itself.
  const Outcome checked = normc({"check", "r.npk"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out, "2 right, 0 wrong, 0 not run"));
}

// Else a kernel without a core would precede those of other cores, which were to be asked first.
TEST_F(HalideVerbs, KernelsOfBothGeneratorsNameTheirCores) {
  ASSERT_EQ(normc({"compile", "layer_norm:forward@f32[*x768]", "--generator", "both", "--target",
                   "x86-64-v3:zen3,x86-64-v3:cove", "-o", "b.npk"})
                .code,
            0);
  for (const auto& kernel : normc({"inspect", "b.npk", "--json"}).json()["manifest"]["kernels"])
    EXPECT_TRUE(kernel.contains("core")) << kernel["generator"];
}

TEST_F(HalideVerbs, CheckJudgesWhatHalideMade) {
  ASSERT_EQ(normc({"compile", "rms_norm", "--features", "64", "--generator", "halide", "-o", "h.npk"}).code,
            0);
  const Outcome checked = normc({"check", "h.npk"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_TRUE(contains(checked.out, "6 right, 0 wrong, 0 not run"));
}

TEST_F(HalideVerbs, DoctorFindsIt) {
  const std::string out = normc({"doctor"}).out;
  EXPECT_TRUE(contains(out, "Halide generator"));
  EXPECT_TRUE(contains(out, "normc-halide-gen"));
}

TEST_F(HalideVerbs, ExplainNamesTheGenerator) {
  ASSERT_EQ(normc({"compile", "rms_norm:forward@f32[*x64]", "--generator", "halide", "-o", "h.npk"}).code, 0);
  EXPECT_TRUE(contains(normc({"explain", "h.npk", "rms_norm:forward@f32[8x64]"}).out, "by halide"));
}

TEST_F(HalideVerbs, TuneComparesAScheduleOfIts) {
  const Outcome o =
      normc({"tune", "rms_norm:forward@f32[*x64]", "--rows", "64", "--threads", "1", "--records", "db.jsonl",
             "--schedule", "halide:resident,vector=8,rows=2,columns=1024"});
  EXPECT_EQ(o.code, 0) << o.err;
  const std::string lines = read("db.jsonl");
  EXPECT_TRUE(contains(lines, "\"generator\":\"halide\"")) << lines;
}

TEST_F(HalideVerbs, StagesAreTextOfTheirOwn) {
  const auto emitted = [&](const char* stage) {
    return normc({"compile", "rms_norm:forward@f32[*x64]", "--generator", "halide", "--target", "x86-64-v3",
                  "--emit", stage})
        .out;
  };
  EXPECT_TRUE(contains(emitted("sweeps"), "norm.sweep"));
  EXPECT_TRUE(contains(emitted("halide"), "produce sums"));
  EXPECT_TRUE(contains(emitted("stmt"), "func kernel_apply (args, task)"));
  EXPECT_TRUE(contains(emitted("asm"), "kernel_apply:"));
  const Outcome wrong =
      normc({"compile", "rms_norm:forward@f32[*x64]", "--generator", "halide", "--emit", "loops"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, " it must be sweeps, halide, stmt or asm"));
}

TEST_F(HalideVerbs, EmitWantsOneGenerator) {
  const Outcome o = normc({"compile", "rms_norm:forward@f32[*x64]", "--generator", "both", "--emit", "asm"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--emit shows the stages of one generator; --generator is both"));
}

TEST_F(HalideVerbs, AScheduleIsOneOfItsOwn) {
  const Outcome o = normc({"compile", "rms_norm:forward@f32[*x64]", "--generator", "halide", "--target",
                           "x86-64-v3", "--schedule", "resident,vector=64", "-o", "r.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "vector = 64; legal: a power of two up to 8"));
  EXPECT_TRUE(files().empty());
}

using NoHalide = CommandTest;

TEST_F(NoHalide, AGeneratorThatIsNoneIsRefused) {
  const Outcome o = normc({"compile", "rms_norm", "--generator", "halid", "-o", "r.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--generator"));
  EXPECT_TRUE(contains(o.err, "halide"));
}

TEST_F(NoHalide, IsSaidWithTheWayToGetIt) {
  std::filesystem::copy_file(NORMC_PROGRAM, folder_ + "/alone");  // a folder without a generator
  const Outcome o = program(
      folder_ + "/alone", {"compile", "rms_norm:forward@f32[*x64]", "--generator", "halide", "-o", "r.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(
      o.err,
      "normc-halide-gen is neither beside this program nor on the PATH: this build has no Halide generator. "
      "'scripts/setup --halide' installs Halide 21; then configure and build again"));
  EXPECT_FALSE(exists("r.npk"));
  const Outcome tune = program(folder_ + "/alone", {"tune", "rms_norm:forward@f32[*x64]", "--dry-run",
                                                    "--schedule", "halide:resident,vector=8"});
  EXPECT_EQ(tune.code, o.code);
  EXPECT_EQ(tune.err, o.err) << "of a schedule as of a package";
}

TEST_F(NoHalide, DoctorSaysHowToGetIt) {
  std::filesystem::copy_file(NORMC_PROGRAM, folder_ + "/alone");
  const Outcome o = program(folder_ + "/alone", {"doctor"});
  EXPECT_TRUE(contains(o.out, "kernels are made through MLIR alone"));
  EXPECT_TRUE(contains(o.out, "to get it: scripts/setup --halide; then configure and build again"));
}

/// normc and its worker in a folder with a script in place of the generator.
class BrokenHalide : public CommandTest {
 protected:
  BrokenHalide() {
    const std::filesystem::path programs = std::filesystem::path(NORMC_PROGRAM).parent_path(),
                                here = folder_ + "/bin";
    std::filesystem::create_directory(here);
    for (const char* name : {"normc", "normc-worker"})
      std::filesystem::copy_file(programs / name, here / name);
    std::filesystem::create_directory_symlink(programs / "../lib", folder_ + "/lib");
  }
  void generator(const std::string& body) const {
    write("bin/normc-halide-gen", "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(folder_ + "/bin/normc-halide-gen", std::filesystem::perms::owner_all);
  }
  Outcome run(std::vector<std::string> arguments) const {
    return program(folder_ + "/bin/normc", std::move(arguments));
  }
};

TEST_F(BrokenHalide, IsNotCalledHealthy) {
  generator("echo 'error while loading shared libraries: libHalide.so' >&2; exit 127");
  const auto findings = run({"doctor", "--json"}).json()["findings"];
  for (const auto& finding : findings) {
    if (finding["item"] != "Halide generator") continue;
    EXPECT_EQ(finding["status"], "absent");
    EXPECT_EQ(finding["detail"],
              "the Halide generator '" + folder_ +
                  "/bin/normc-halide-gen' cannot be started; it said: error while loading shared "
                  "libraries: libHalide.so");
    EXPECT_EQ(finding["remedy"],
              "put libHalide.so where it is looked for (docs/halide.md, Where libHalide.so is), or take the "
              "program away");
    return;
  }
  FAIL() << "doctor says nothing of the Halide generator";
}

TEST_F(BrokenHalide, LeavesNothingInRecordsUnlessItRefuses) {
  const auto tune = [&] {
    const Outcome o =
        run({"tune", "rms_norm:infer@f32[*x64]", "--rows", "8", "--threads", "1", "--records", "db.jsonl",
             "--schedule", "halide:resident,vector=8,rows=2,columns=1024", "--budget", "100ms"});
    EXPECT_EQ(o.code, 0) << o.err;
    return read("db.jsonl");
  };
  generator("exit 127");
  EXPECT_FALSE(contains(tune(), "\"generator\":\"halide\""));
  generator("kill -SEGV $$");
  EXPECT_FALSE(contains(tune(), "\"generator\":\"halide\""));
  generator("echo 'cannot be expressed' >&2; exit 3");
  EXPECT_TRUE(contains(tune(), "\"status\":\"refused\""))
      << "tried again, and this time it is the candidate's";
}

TEST_F(BrokenHalide, IsWhatABundleSaysItsCandidatesLack) {
  generator("echo 'cannot be expressed' >&2; exit 3");
  const auto packed = run({"tune", "export", "rms_norm:infer@f32[*x64]", "--rows", "8", "--threads", "1",
                           "--candidates", "12", "-o", "b", "--json"})
                          .json();
  ASSERT_FALSE(packed["left_out"].empty());
  EXPECT_GT(packed["candidates"], 0);
  for (const auto& one : packed["left_out"]) {
    EXPECT_EQ(one["problem"], "rms_norm:infer@f32[*x64]");
    EXPECT_TRUE(one["schedule"].get<std::string>().starts_with("halide:")) << one;
    EXPECT_TRUE(contains(one["reason"], "cannot be expressed"));
  }
  const std::string text = run({"tune", "export", "rms_norm:infer@f32[*x64]", "--rows", "8", "--threads", "1",
                                "--candidates", "12", "-o", "c"})
                               .out;
  EXPECT_TRUE(contains(text, "left out: rms_norm:infer@f32[*x64], halide:"));
}

TEST_F(NoHalide, GpusAreLeftToMlir) {
  const Outcome o = normc(
      {"compile", "rms_norm:forward@f32[*x64]", "--generator", "halide", "--target", "sm_90", "-o", "r.npk"});
  EXPECT_NE(o.code, 0);
  EXPECT_FALSE(exists("r.npk"));
}

}  // namespace
}  // namespace normc::cli
