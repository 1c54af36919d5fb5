// inspect, check, explain, doctor
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "autotune/measure/Caches.h"
#include "runtime/normc.h"
#include "tests/cli/Command.h"
#include "tools/normc/Output.h"

namespace normc::cli {
namespace {

using Inspect = CommandTest;
using Check = CommandTest;
using Explain = CommandTest;
using Doctor = CommandTest;

constexpr const char* kLayer = "layer_norm:forward@f32[*x8]";

TEST_F(Inspect, ShowsKernelsCodeAndNorms) {
  package("l.npk", {kLayer, "layer_norm:backward@f32[*x*]"});
  const Outcome o = normc({"inspect", "l.npk"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "l.npk: 2 kernels of 1 norm, "));
  EXPECT_TRUE(contains(o.out, " 0  layer_norm:forward@f32[*x8]"));
  EXPECT_TRUE(contains(o.out, " 1  layer_norm:backward@f32[*x*]"));
  EXPECT_TRUE(contains(o.out, "mlir: resident,vector="));
  EXPECT_TRUE(contains(o.out, "default"));
}

TEST_F(Inspect, NamesTheVersionThatMadeThePackage) {
  package("l.npk", {kLayer});
  EXPECT_EQ(normc({"inspect", "l.npk", "--json"}).json()["manifest"]["producer"]["normc"], normc_version());
}

TEST_F(Inspect, ShowsTransfersAsTheDesignPromisesThem) {
  package("p.npk", {"power_norm:forward@f32[*x8]", "power_norm:backward@f32[*x8]"});
  const Outcome o = normc({"inspect", "p.npk", "--traffic", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto kernels = o.json()["manifest"]["kernels"];
  EXPECT_EQ(kernels[0]["traffic"]["reads"].get<int>() + kernels[0]["traffic"]["writes"].get<int>(), 2);
  EXPECT_EQ(kernels.back()["traffic"]["reads"].get<int>() + kernels.back()["traffic"]["writes"].get<int>(),
            3);
  EXPECT_TRUE(contains(normc({"inspect", "p.npk", "--traffic"}).out, "X-sized transfers of each kernel"));
}

TEST_F(Inspect, RefusesWhatIsNoPackage) {
  write("not.npk", std::string(200, 'x'));
  const Outcome o = normc({"inspect", "not.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(o.err, "normc: error: not.npk is not a normc package: it does not begin with NORMCPK\n");
}

TEST_F(Inspect, RefusesAFolder) {
  const Outcome o = normc({"inspect", "/"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.err, "normc: error: / is not a regular file\n");
}

TEST_F(Inspect, RefusesAPackageThatIsNotThere) {
  const Outcome o = normc({"inspect", "none.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "normc: error: cannot open the package none.npk: No such file or directory"));
}

TEST_F(Inspect, RefusesATruncatedPackage) {
  package("l.npk", {kLayer});
  write("l.npk", read("l.npk").substr(0, 1000));
  const Outcome o = normc({"inspect", "l.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "l.npk is truncated: it has 1000 bytes of "));
}

TEST_F(Inspect, RefusesAManifestThatLacksWhatItShows) {
  package("l.npk", {kLayer});
  rewriteManifest("l.npk", R"("traffic")", R"("trafick")");
  const Outcome o = normc({"inspect", "l.npk", "--traffic"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "normc: error: the manifest of the package is not one that normc writes: "));
}

TEST_F(Inspect, FindsAFlippedBitInTheCode) {
  package("l.npk", {kLayer});
  std::string file = read("l.npk");
  const auto blob = normc({"inspect", "l.npk", "--json"}).json()["manifest"]["blobs"][0];
  file[blob["offset"].get<size_t>() + blob["bytes"].get<size_t>() / 2] ^= 4;
  write("l.npk", file);
  const Outcome o = normc({"inspect", "l.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "l.npk is damaged: the hash of blob 0 (elf, "));
}

TEST_F(Check, FindsAGoodPackageRight) {
  package("l.npk", {kLayer, "layer_norm:forward@f32[*x*]"});
  const Outcome o = normc({"check", "l.npk"});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_TRUE(
      contains(o.out, "2 kernels against the reference in double precision: 2 right, 0 wrong, 0 not run"));
}

TEST_F(Check, TriesBothStrategiesOfANorm) {
  package("b.npk", {"batch_norm:forward@f32[*x8]", "batch_norm:infer@f32[*x8]"});
  const auto result = normc({"check", "b.npk", "--json"}).json();
  ASSERT_EQ(result["kernels"].size(), 4u) << "one of each two is for few rows";
  for (const auto& kernel : result["kernels"]) {
    EXPECT_EQ(kernel["result"], "right");
    EXPECT_GT(kernel["trials"], 20);
  }
}

TEST_F(Check, FindsAWrongKernel) {
  package("l.npk", {kLayer});
  rewriteManifest("l.npk", R"("name":"epsilon","value":1e-05)", R"("name":"epsilon","value":1e-02)");
  const Outcome o = normc({"check", "l.npk"});
  EXPECT_EQ(o.code, 1);
  EXPECT_TRUE(contains(o.out, "WRONG in "));
  EXPECT_TRUE(contains(o.out, "0 right, 1 wrong"));
  EXPECT_TRUE(contains(o.out, "kernel 0: layer_norm:forward@f32[*x8] on 33x8 "));
  const Outcome json = normc({"check", "l.npk", "--json"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.json()["kernels"][0]["result"], "wrong");
  EXPECT_FALSE(json.json()["kernels"][0]["failures"].empty());
  EXPECT_GT(json.json()["kernels"][0]["worst_error_of_bound"], 1) << "the trials that failed count";
}

TEST_F(Check, LooksOnlyAtKernelsThatServeTheProblem) {
  package("l.npk", {kLayer, "layer_norm:forward@f32[*x*]", "layer_norm:infer@f32[*x*]",
                    "layer_norm:forward@f32[*x16]"});
  const auto kernels = normc({"check", "l.npk", kLayer, "--json"}).json()["kernels"];
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]["problem"], kLayer);
  EXPECT_EQ(kernels[1]["problem"], "layer_norm:forward@f32[*x*]");
}

TEST_F(Check, SaysThatNoKernelServesTheProblem) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"check", "l.npk", "layer_norm:forward@bf16[*x8]"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "no kernel of l.npk serves layer_norm:forward@bf16[*x8]"));
}

TEST_F(Check, SuggestsTheNearestNormOfThePackage) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"check", "l.npk", "layer_nrm:forward@f32[*x8]"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "l.npk has no norm 'layer_nrm'"));
  EXPECT_TRUE(contains(o.err, "did you mean 'layer_norm'?"));
}

TEST_F(Check, SaysWhatItCouldNotRun) {
  const bool x86 = std::string(normc_cpu_isa()) != "aarch64";
  const std::string other = x86 ? "aarch64" : "x86-64-v3";
  package("l.npk", {kLayer, "--target", "host," + other});
  const Outcome both = normc({"check", "l.npk"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_TRUE(contains(both.out, "not run: needs " + other + "; this processor has "));
  EXPECT_TRUE(contains(both.out, "1 right, 0 wrong, 1 not run"));

  package("o.npk", {kLayer, "--target", other});
  const Outcome none = normc({"check", "o.npk"});
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(contains(none.err, "no kernel of o.npk was run here, so nothing is checked"));
}

TEST_F(Check, AnInterruptSaysThatTheRestIsNotChecked) {
  package("l.npk", {kLayer});
  const Outcome o = interrupted({"check", "l.npk"});
  EXPECT_EQ(o.code, 4);
  EXPECT_TRUE(contains(o.out, "interrupted, the rest is not checked"));
}

TEST_F(Explain, NamesTheKernelAndWhyItWasChosen) {
  package("l.npk", {"layer_norm:forward@f32[*x*]", kLayer});
  const Outcome o = normc({"explain", "l.npk", "layer_norm:forward@f32[4096x8]"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "kernel: 1 of l.npk"));
  EXPECT_TRUE(contains(o.out, "it is compiled for exactly these features"));
  EXPECT_TRUE(contains(o.out, "rejected:\n  kernel 0"));
  EXPECT_TRUE(contains(o.out, "traffic: 2 X-sized transfers (1 read, 1 write)"));
}

TEST_F(Explain, GivesTheChoiceToPrograms) {
  package("l.npk", {kLayer});
  const auto result = normc({"explain", "l.npk", kLayer, "--number", "epsilon=0.5", "--json"}).json();
  EXPECT_EQ(result["kernel"], 0);
  EXPECT_TRUE(contains(result["explanation"], "number: epsilon = 0.5 (default 1e-05)"));
}

TEST_F(Explain, TimesACallBesideACopyAndAPrediction) {
  package("l.npk", {"layer_norm:backward@f32[*x*]", kLayer});
  const auto forward = normc({"explain", "l.npk", kLayer, "--rows", "1000", "--json"}).json();
  EXPECT_EQ(forward["time"]["bytes"], 2 * 1000 * 8 * 4);
  EXPECT_GT(forward["time"]["seconds"], 0.0);
  EXPECT_GT(forward["time"]["predicted_seconds"], 0.0);
  EXPECT_GT(forward["time"]["to_copy"]["value"], 0.0);
  const Outcome backward =
      normc({"explain", "l.npk", "layer_norm:backward@f32[*x*]", "--rows", "10", "--features", "100"});
  EXPECT_EQ(backward.code, 0) << backward.err;
  EXPECT_TRUE(contains(backward.out, "moved: 11.7 KiB by that traffic, 3.9 KiB a tensor\npredicted: "))
      << backward.out;
  EXPECT_TRUE(contains(backward.out, "of the time of the faster copy")) << backward.out;
}

TEST_F(Explain, TimesACopyOnNoMoreThreadsThanThereAreProcessors) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", kLayer, "--rows", "1000", "--threads", "1000000"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "of the time of the faster copy"));
}

TEST_F(Explain, CountsTheBytesOfEachType) {
  const std::string wider = "rms_norm:forward@bf16[*x64]{y=f32}";
  package("w.npk", {wider});
  const auto result = normc({"explain", "w.npk", wider, "--rows", "100", "--json"}).json();
  EXPECT_EQ(result["time"]["bytes"], 100 * 64 * (2 + 4));
  EXPECT_GT(result["time"]["to_copy"]["value"], 0.0);
}

TEST_F(Explain, PrintsThePlanBeforeItMeasures) {
  package("l.npk", {kLayer});
  FILE* const program = popen(
      ("cd " + folder_ + " && " + NORMC_PROGRAM + " explain l.npk '" + kLayer + "' --rows 200000").c_str(),
      "r");
  ASSERT_NE(program, nullptr);
  std::string first(4096, '\0'), rest;
  const ssize_t length = ::read(fileno(program), first.data(), first.size());
  first.resize(size_t(std::max<ssize_t>(length, 0)));
  for (int c = 0; (c = std::fgetc(program)) != EOF;) rest += char(c);
  EXPECT_EQ(pclose(program), 0);
  EXPECT_TRUE(contains(first, "traffic: 2 X-sized transfers"));
  EXPECT_EQ(first.find("measured:"), first.npos) << first;
  EXPECT_TRUE(contains(rest, "measured: "));
}

TEST_F(Explain, TimesNoCallThatExchangesSums) {
  const std::string commit = "power_norm:commit@f32[*x8]";
  package("c.npk", {commit});
  const Outcome o = normc({"explain", "c.npk", commit, "--rows", "10"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err,
                       "--rows times a call by itself, and power_norm:commit@f32[*x8] exchanges sums with "
                       "others\n  hint: forward and backward of the norm are timed"))
      << o.err;
}

TEST_F(Explain, RefusesAThresholdThatNoSizeReaches) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", kLayer, "--number", "large_bytes=1e30"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "the number 'large_bytes' is 1e+30; it must be below 9223372036854775808"))
      << o.err;
}

TEST_F(Explain, SaysWhichCallItCannotTime) {
  package("l.npk", {"layer_norm:backward@f32[*x*]", kLayer});
  const Outcome unknown = normc({"explain", "l.npk", "layer_norm:backward@f32[*x*]", "--rows", "10"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(
      contains(unknown.err, "the kernel is for any number of features\n  hint: say how many with --features"))
      << unknown.err;
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--rows", "10", "--features", "9"}).err,
                       "--features 9, and the kernel is for 8"));
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--features", "8"}).err,
                       "--features is of a call that is timed"));
  const Outcome large = normc({"explain", "l.npk", kLayer, "--rows", "1000000000"});
  EXPECT_EQ(large.code, 3);
  EXPECT_TRUE(contains(large.err, "a call on 1000000000 rows with a copy beside it needs about "))
      << large.err;
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--rows", "100000000000"}).err,
                       "a call of 100000000000 rows of 8 features has more than 2^33 elements"));
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--rows", "none"}).err,
                       "--rows is 'none'; it must be a whole number, 1 or more"));
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--rows", "9000000000000000000"}).err,
                       "a call of 9000000000000000000 rows of 8 features has more than 2^33 elements"));
}

TEST_F(Explain, TimesNoCallOfAnotherShapeThanTheProblem) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", "layer_norm:forward@f32[128x8]", "--rows", "16"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err,
            "normc: error: --rows 16 is of another call than the problem: the call has 16 rows; this plan "
            "(layer_norm:forward@f32[128x8]) is for 128\n"
            "  hint: leave sizes open in the problem, with *, or give the same ones\n");
  EXPECT_EQ(normc({"explain", "l.npk", "layer_norm:forward@f32[128x8]", "--rows", "128"}).code, 0);
}

TEST_F(Explain, SaysWhyNoKernelServes) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", "layer_norm:forward@f32[*x9]"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "is for features 8, not 9"));
}

TEST_F(Explain, SaysWhichFeaturesGroupsAllow) {
  const std::string any = "group_norm:forward@f32[*x*]{groups=8}";
  package("g.npk", {any});
  const Outcome open = normc({"explain", "g.npk", any});
  EXPECT_TRUE(contains(open.out, "\nfeatures: multiples of 8\n")) << open.out << open.err;
  EXPECT_EQ(normc({"explain", "g.npk", "group_norm:forward@f32[*x64]{groups=8}"}).code, 0);
  const Outcome odd = normc({"explain", "g.npk", "group_norm:forward@f32[4x60]{groups=8}"});
  EXPECT_EQ(odd.code, 2);
  EXPECT_TRUE(contains(odd.err, "60 features do not divide into 8 groups")) << odd.err;
  const Outcome timed = normc({"explain", "g.npk", any, "--rows", "4", "--features", "60"});
  EXPECT_EQ(timed.code, 2);
  EXPECT_TRUE(contains(timed.err, "60 features do not divide into 8 groups")) << timed.err;
}

TEST_F(Explain, PointsAtWhatIsWrongInAProblem) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", "layer_norm:forwrd@f32[4096x8]"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "'forwrd' is no entry"));
  EXPECT_TRUE(contains(o.err, "did you mean 'forward'?"));
}

TEST_F(Explain, RefusesAnUnknownInstructionSet) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", kLayer, "--isa-cap", "sse2"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(
      o.err,
      "normc: error: --isa-cap is 'sse2'; it must be one of x86-64-v3, x86-64-v4, x86-64-v4-bf16, aarch64"));
}

TEST_F(Explain, SaysWhichSetAPackageLacks) {
  if (std::string(normc_cpu_isa()).find("x86-64") != 0) GTEST_SKIP() << "a processor of x86-64 is needed";
  package("l.npk", {kLayer, "--target", "x86-64-v4"});
  for (const char* verb : {"explain", "run"}) {
    const Outcome o = normc({verb, "l.npk", kLayer, "--isa-cap", "x86-64-v3"});
    EXPECT_EQ(o.code, 3) << verb;
    EXPECT_TRUE(contains(o.err, "needs x86-64-v4"));
    EXPECT_TRUE(o.err.ends_with("\ncompile the package with --target x86-64-v3 as well\n")) << o.err;
  }
}

TEST_F(Explain, RefusesAnUnknownNumber) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", kLayer, "--number", "eps=1"});
  EXPECT_EQ(o.code, 2) << "as any other unknown name of the command line";
  EXPECT_TRUE(contains(o.err, "has no number 'eps'; it has: epsilon"));
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--number", "epsilon=1e999"}).err,
                       "--number epsilon is '1e999', which is out of the range of double precision\n"
                       "  hint: use a value from 1e-307 to 1e308"));
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--number", "epsilon=x"}).err,
                       "--number epsilon is 'x'; it must be a number"));
  EXPECT_TRUE(contains(normc({"explain", "l.npk", kLayer, "--number", "epsilon"}).err,
                       "--number is 'epsilon'; it must have the form epsilon=1e-6"));
}

TEST_F(Explain, RefusesANumberThatF32DoesNotHold) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"explain", "l.npk", kLayer, "--number", "epsilon=1e-39"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err,
            "normc: error: the number 'epsilon' is 1e-39; statistics are f32, so it must be from "
            "1.2e-38 to 3.4e38\n");
  package("d.npk", {"layer_norm:forward@f64[*x8]"});
  EXPECT_EQ(normc({"explain", "d.npk", "layer_norm:forward@f64[*x8]", "--number", "epsilon=1e-39"}).code, 0);
}

TEST_F(Doctor, FindsThisMachineHealthy) {
  const Outcome o = normc({"doctor"});
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_TRUE(contains(o.out, "compiled, loaded and right in "));
  EXPECT_TRUE(contains(o.out, "; host is "));
  EXPECT_TRUE(contains(o.out, "This machine compiles and runs kernels."));
}

TEST_F(Doctor, SaysWhetherItCanEmulateCudaKernels) {
  const auto result = normc({"doctor", "--json"}).json();
  for (const auto& finding : result["findings"]) {
    if (finding["item"] != "CUDA emulator") continue;
    const bool present = finding["status"] == "ok";
    EXPECT_EQ(present, finding["remedy"] == "") << finding;
    EXPECT_TRUE(contains(finding["detail"], present ? "normc check --emulate" : "emulator")) << finding;
    return;
  }
  ADD_FAILURE() << "no line for the CUDA emulator";
}

TEST_F(Doctor, GivesTheCachesThatACoreReaches) {
  const measure::Caches caches = measure::thisCaches();
  const auto size = [](int64_t bytes) {
    return bytes > 0 ? bytesText(double(bytes)) : std::string("unknown");
  };
  const std::string expected =
      "caches: L1 " + size(caches.first) + ", L2 " + size(caches.second) + ", L3 " + size(caches.last);
  const auto result = normc({"doctor", "--json"}).json();
  for (const auto& finding : result["findings"])
    if (finding["item"] == "memory") {
      EXPECT_TRUE(contains(finding["detail"], expected)) << finding;
      return;
    }
  ADD_FAILURE() << "no line for the memory";
}

TEST_F(Doctor, LooksForTheProgramsThatOtherVerbsStart) {
  std::filesystem::copy_file(NORMC_PROGRAM, folder_ + "/normc-alone");
  const auto statusOf = [](const nlohmann::json& findings, const std::string& item) -> nlohmann::json {
    for (const auto& finding : findings)
      if (finding["item"] == item) return finding;
    return {};
  };
  EXPECT_EQ(statusOf(normc({"doctor", "--json"}).json()["findings"], "worker")["status"], "ok");
  EXPECT_FALSE(statusOf(normc({"doctor", "--json"}).json()["findings"], "gnuplot").is_null());
  const auto alone = program(folder_ + "/normc-alone", {"doctor", "--json"}).json();
  EXPECT_EQ(alone["healthy"], false);
  const auto worker = statusOf(alone["findings"], "worker");
  EXPECT_EQ(worker["status"], "MISSING");
  EXPECT_EQ(worker["remedy"], "build or install normc-worker beside normc");
}

TEST_F(Doctor, GivesItsFindingsToPrograms) {
  const auto result = normc({"doctor", "--json"}).json();
  EXPECT_EQ(result["healthy"], true);
  EXPECT_EQ(result["findings"][0]["item"], "normc");
}

TEST_F(Check, ThatNeedsMoreMemoryThanThereIsIsRefused) {
  package("p.npk", {"rms_norm:infer@f32[*x*]"});
  const Outcome o = normc({"check", "p.npk", "rms_norm:infer@f32[*x4000000000]"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "a check of 4000000000 features needs about "));
}

}  // namespace
}  // namespace normc::cli
