// `normc tune`, end to end: real kernels, small sizes, short budgets. The choices depend on the
// machine; the output, the records and the errors do not.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

using Tune = CommandTest;

const std::vector<std::string> kSmall{"tune",   "layer_norm", "--features", "64",    "--entry",   "infer",
                                      "--rows", "32",         "--budget",   "300ms", "--threads", "1"};

std::vector<std::string> with(std::vector<std::string> arguments, std::vector<std::string> more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<nlohmann::json> linesOf(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

TEST_F(Tune, FindsAScheduleAndKeepsEveryMeasurement) {
  const Outcome o = normc({"tune", "layer_norm", "--features", "64", "--entry", "infer", "--rows", "32",
                           "--budget", "3s", "--threads", "1", "--records", "db.jsonl", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto task = o.json().at("tasks").at(0);
  EXPECT_EQ(task.at("problem"), "layer_norm:infer@f32[*x64]");
  EXPECT_EQ(task.at("rows"), 32);
  EXPECT_GE(task.at("candidates").at("right").get<int>(), 1);
  EXPECT_EQ(task.at("candidates").at("rejected"), 0);
  EXPECT_LE(task.at("chosen").at("ratio").get<double>(), 1);
  const auto records = linesOf(read("db.jsonl"));
  int choices = 0;
  std::set<std::string> judged;  // the hashes of code
  for (const auto& record : records) {
    EXPECT_EQ(record.at("task").at("problem"), "layer_norm:infer@f32[*x64]");
    // Schedules are drawn, so two may compile to the same code, which is judged once.
    if (record.at("status") == "duplicate") {
      EXPECT_TRUE(judged.contains(record.at("object"))) << record.dump();
      continue;
    }
    EXPECT_GT(record.at("gate").at("trials").get<int>(), 10) << record.dump();
    judged.insert(record.at("object"));
    choices += record.at("kind") == "choice";
  }
  EXPECT_EQ(choices, int(task.at("decided").get<bool>()));
  if (choices) EXPECT_EQ(records.back().at("schedule"), task.at("chosen").at("schedule"));
  EXPECT_EQ(files(), std::vector<std::string>{"db.jsonl"});
}

TEST_F(Tune, SaysWhichFileMayNotGrow) {
  // 1 is 512 bytes, of any file that the command writes.
  const auto limited = [&](const std::string& arguments) {
    return program("/bin/sh", {"-c", "ulimit -f 1; exec '" NORMC_PROGRAM "' " + arguments + " 2>&1 | cat"});
  };
  const std::string small =
      "tune layer_norm --features 64 --entry infer --rows 32 --budget 300ms --threads 1";
  EXPECT_TRUE(contains(limited(small).out, "File too large"));
  write("db.jsonl", std::string(512, '\n'));
  EXPECT_TRUE(contains(limited(small + " --records db.jsonl").out, "File too large"));
  EXPECT_EQ(read("db.jsonl"), std::string(512, '\n'));
  const Outcome o = limited("compile layer_norm:infer@f32[*x8] -o l.npk");
  EXPECT_TRUE(contains(o.out, "normc: error: cannot write "));  // its own temporary file comes first
  EXPECT_TRUE(contains(o.out, ": File too large"));
  EXPECT_EQ(files(), std::vector<std::string>{"db.jsonl"});
}

TEST_F(Tune, EndsWithATable) {
  const Outcome o = normc(kSmall);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "problem                     rows  policy  tried"));
  EXPECT_TRUE(contains(o.out, "layer_norm:infer@f32[*x64]    32  warm"));
  EXPECT_TRUE(contains(o.out, "1 problem in "));
  EXPECT_TRUE(contains(o.err, "the measurements of this run are not kept; --records FILE.jsonl keeps them"));
}

TEST_F(Tune, GoesOnWhereTheRecordsEnd) {
  ASSERT_EQ(normc(with(kSmall, {"--records", "db.jsonl"})).code, 0);
  const Outcome again = normc(with(kSmall, {"--records", "db.jsonl", "--json"}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_GE(again.json()["tasks"][0]["candidates"]["remembered"].get<int>(), 1);
  const Outcome fresh = normc(with(kSmall, {"--records", "db.jsonl", "--fresh", "--json"}));
  EXPECT_EQ(fresh.json()["tasks"][0]["candidates"]["remembered"], 0);
}

TEST_F(Tune, DryRunShowsTheCandidatesAndMeasuresNothing) {
  const Outcome o = normc(with(kSmall, {"--dry-run"}));
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "layer_norm:infer@f32[*x64], 32 rows, 1 thread, warm: "));
  EXPECT_TRUE(contains(o.out, "the default"));
  EXPECT_TRUE(contains(o.out, "a seed"));
  EXPECT_TRUE(contains(o.out, " more, which --json shows\n"));
  EXPECT_LT(std::count(o.out.begin(), o.out.end(), '\n'), 100);
  EXPECT_EQ(normc(with(kSmall, {"--dry-run", "--records", "db.jsonl"})).code, 0);
  EXPECT_TRUE(files().empty());
  const auto json = normc(with(kSmall, {"--dry-run", "--json"})).json();
  double before = 0;
  for (const auto& candidate : json["tasks"][0]["candidates"]) {
    EXPECT_GE(candidate["predicted"].get<double>(), before);
    before = candidate["predicted"];
  }
}

TEST_F(Tune, ShardsAreEachTaskOnce) {
  const auto problems = [&](std::vector<std::string> more) {
    const Outcome o = normc(
        with({"tune", "layer_norm", "--features", "8,16,24", "--rows", "4,8", "--dry-run", "--json"}, more));
    std::vector<std::string> texts;
    const auto json = o.json();
    for (const auto& task : json.at("tasks"))
      texts.push_back(task["problem"].get<std::string>() + " " + task["rows"].dump());
    return texts;
  };
  std::vector<std::string> all = problems({}), parts;
  EXPECT_EQ(all.size(), 18u);
  for (const char* shard : {"1/4", "2/4", "3/4", "4/4"})
    for (const std::string& text : problems({"--shard", shard})) parts.push_back(text);
  std::sort(all.begin(), all.end()), std::sort(parts.begin(), parts.end());
  EXPECT_EQ(all, parts);
}

TEST_F(Tune, RowsMayFollowFromTheSizeOfX) {
  const auto json = normc({"tune", "layer_norm:infer@f32[*x48]", "layer_norm:infer@f32[*x64]", "--elements",
                           "4096", "--dry-run", "--json"})
                        .json();
  EXPECT_EQ(json.at("tasks").at(0).at("rows"), 64) << "85 and a third, rounded down to a power of two";
  EXPECT_EQ(json.at("tasks").at(1).at("rows"), 64);
}

TEST_F(Tune, AnInterruptKeepsWhatIsThere) {
  const Outcome o = interrupted(with(kSmall, {"--records", "db.jsonl"}));
  EXPECT_EQ(o.code, 4);
  EXPECT_TRUE(contains(o.out, "interrupted, the rest is not tuned"));
  EXPECT_TRUE(exists("db.jsonl"));
  EXPECT_TRUE(!contains(read("db.jsonl"), "\"kind\":\"choice\"")) << "nothing is chosen by half a search";
}

TEST_F(Tune, ATotalThatIsTooShortBeginsNothingAndSaysSo) {
  const Outcome o = normc({"tune", "layer_norm", "--features", "8,16", "--entry", "infer", "--rows", "8",
                           "--threads", "1", "--budget", "10h", "--total", "1s", "--records", "db.jsonl"});
  EXPECT_EQ(o.code, 4) << o.err;
  EXPECT_TRUE(contains(o.out,
                       "not tuned, since --total leaves less than a quarter of --budget:\n"
                       "  layer_norm:infer@f32[*x8], 8 rows, 1 thread, warm\n"
                       "  layer_norm:infer@f32[*x16], 8 rows, 1 thread, warm\n"));
  EXPECT_EQ(read("db.jsonl"), "");
}

TEST_F(Tune, ATotalThatIsLongEnoughLeavesNothingUndone) {
  const Outcome o = normc(with(kSmall, {"--total", "10h", "--json"}));
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(o.json()["undone"].empty());
  EXPECT_EQ(o.json()["complete"], true);
}

TEST_F(Tune, StreamsThatAreClosedDoNoHarm) {
  std::string command = "cd " + folder_ + " && " NORMC_PROGRAM;
  for (const std::string& word : with(kSmall, {"--records", "db.jsonl"})) command += " " + word;
  EXPECT_EQ(std::system((command + " <&- 2>&- > out.txt").c_str()), 0);
  EXPECT_TRUE(contains(read("out.txt"), "1 problem in "));
  EXPECT_GE(linesOf(read("db.jsonl")).size(), 2u) << "all of them records";
}

TEST_F(Tune, AnInterruptEndsAnExportBeforeItsCandidatesAreCompiled) {
  const Outcome o = program(
      "/bin/sh",
      {"-c", NORMC_PROGRAM
       " tune export layer_norm:backward@f32[*x4096] --candidates 400 -o b & "
       "for i in $(seq 300); do ls b/0/*.npk && break; sleep 0.1; done >b.log 2>&1; kill $!; wait $!"});
  EXPECT_EQ(o.code, 4) << o.err;
  EXPECT_TRUE(contains(o.err, "interrupted; b has no plan and cannot be run"));
  EXPECT_FALSE(exists("b/plan.json"));
}

TEST_F(Tune, CompilesAlsoWhereItsParentIgnoresTheEndOfChildren) {
  const Outcome o =
      program("/bin/sh", {"-c", "trap '' CHLD; exec " NORMC_PROGRAM " tune export layer_norm:infer@f32[*x64] "
                                "--candidates 1 -o b"});
  EXPECT_EQ(o.code, 0) << o.err;
}

TEST_F(Tune, DamagedRecordsAreSaidAndPassedOver) {
  write("db.jsonl", "{\"schema\": 9}\nnonsense\n{\"torn");
  const Outcome o = normc(with(kSmall, {"--records", "db.jsonl"}));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(
      contains(o.err, "db.jsonl: 0 records, 1 damaged line, 1 line of a newer normc, a torn last line"));
  EXPECT_TRUE(contains(read("db.jsonl"), "{\"schema\": 9}\nnonsense\n{\"torn\n{"));
}

TEST_F(Tune, OneScheduleIsComparedWithTheDefaultAlone) {
  std::vector<std::string> command =
      with(kSmall, {"--schedule", "resident,vector=4,rows=2,unroll=2,tile=4,grain=8", "--json"});
  std::replace(command.begin(), command.end(), std::string("300ms"), std::string("3s"));  // for both
  const Outcome o = normc(command);
  ASSERT_EQ(o.code, 0) << o.err;
  const auto task = o.json().at("tasks").at(0);
  EXPECT_EQ(task.at("points"), 2);
  ASSERT_EQ(task.at("raced").size(), 2u);
  EXPECT_EQ(task["raced"][0]["ratio"], 1);
}

TEST_F(Tune, AComparisonOfNamedSchedulesChoosesNothing) {
  ASSERT_EQ(normc(with(kSmall, {"--schedule", "resident,vector=4,rows=2,unroll=2,tile=4,grain=8", "--records",
                                "db.jsonl"}))
                .code,
            0);
  EXPECT_TRUE(contains(read("db.jsonl"), "\"kind\":\"trial\""));
  EXPECT_FALSE(contains(read("db.jsonl"), "\"kind\":\"choice\""))
      << "what a search chose would give way to it";
}

TEST_F(Tune, MoreThreadsThanProcessorsAreAsManyAsThoseAre) {
  const auto shown = [&](const char* threads) {
    return normc({"tune", "layer_norm:infer@f32[*x64]", "--rows", "32", "--threads", threads, "--dry-run"})
        .out;
  };
  const std::string all = shown("0");
  EXPECT_TRUE(contains(all, ", warm: "));
  EXPECT_EQ(shown("65536"), all);
}

TEST_F(Tune, AScheduleInTwoSpellingsIsOneCandidate) {
  const auto json =
      normc(with(kSmall, {"--schedule", "resident,vector=4,rows=2,unroll=2,tile=4,grain=8", "--schedule",
                          "resident,rows=2,vector=4,unroll=2,tile=4,grain=8", "--dry-run", "--json"}))
          .json();
  EXPECT_EQ(json.at("tasks").at(0).at("candidates").size(), 2u) << "and the default";
}

TEST_F(Tune, AFailureInALaterProblemIsInTheDocumentOfTheEarlierOnes) {
  namespace fs = std::filesystem;
  const fs::path programs = fs::path(NORMC_PROGRAM).parent_path(), here = fs::path(folder_) / "bin";
  fs::create_directories(here);
  fs::copy_file(programs / "normc", here / "normc");
  // On 72 features the worker ends like a program whose library is missing.
  write("bin/normc-worker",
        "#!/bin/sh\nread -r task\ncase $task in *'\"features\":72,'*) echo gone >&2; exit 127 ;; esac\n"
        "{ printf '%s\\n' \"$task\"; exec cat; } | '" +
            (programs / "normc-worker").string() + "'\n");
  fs::permissions(here / "normc-worker", fs::perms::owner_all);
  std::vector<std::string> command = with(kSmall, {"--json"});
  std::replace(command.begin(), command.end(), std::string("64"), std::string("64,72"));
  const Outcome o = program((here / "normc").string(), command);
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_TRUE(contains(o.err, "gone"));
  const auto json = o.json();
  ASSERT_EQ(json.at("tasks").size(), 1u) << json;
  EXPECT_EQ(json["tasks"][0]["problem"], "layer_norm:infer@f32[*x64]");
  EXPECT_EQ(json.at("complete"), false);
  EXPECT_TRUE(contains(json.at("errors").at(0).at("message"), "gone"));
}

TEST_F(Tune, ADriverThatIsNotThereIsSaid) {
  const Outcome o = normc(
      {"tune", "layer_norm", "--features", "64", "--device", "cuda:0", "--cuda-library", "libnone.so.9"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "libnone.so.9"));
  EXPECT_TRUE(o.err.ends_with("\n  hint: leave --device out to run on the CPU\n")) << o.err;
}

#ifdef NORMC_FAKE_CUDA
TEST_F(Tune, AKernelThatDoesNothingOnItsDeviceIsNotTimed) {  // the fake driver alone runs no kernel
  const Outcome o = normc({"tune", "layer_norm:infer@f32[*x64]", "--rows", "8", "--device", "cuda:0",
                           "--cuda-library", NORMC_FAKE_CUDA, "--records", "db.jsonl"});
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_TRUE(contains(
      o.out, "layer_norm:infer@f32[*x64], 8 rows, 1 thread, warm: the default could not be measured: "));
  EXPECT_TRUE(contains(o.out, "y: "));
  EXPECT_TRUE(contains(read("db.jsonl"), "\"kind\":\"cuda\""));
  EXPECT_TRUE(contains(read("db.jsonl"), "\"status\":\"wrong\""));
}

TEST_F(Tune, ADryRunOfExportShowsWhatItWouldPack) {
  const auto json = normc({"tune", "export", "layer_norm:backward@bf16[*x1024]", "--target", "sm_90",
                           "--elements", "1048576", "--candidates", "2", "--dry-run", "--json"})
                        .json();
  std::set<std::string> kinds;
  int defaults = 0;
  for (const auto& candidate : json["tasks"][0]["candidates"]) {
    EXPECT_TRUE(candidate["seed"]);
    EXPECT_GE(candidate["slower"], 1);
    defaults += candidate["default"].get<bool>();
    kinds.insert(candidate["kind"]);
  }
  EXPECT_EQ(json["tasks"][0]["candidates"].size(), 6u);
  EXPECT_EQ(defaults, 1);
  EXPECT_GE(kinds.size(), 4u);
  EXPECT_TRUE(files().empty());
}

TEST_F(Tune, ExportLeavesOutSchedulesThatDoNotFitAndSaysWhy) {
  const auto json =
      normc({"tune", "export", "layer_norm:forward@f32[*x8]", "--target", "x86-64-v3", "-o", "b",
             "--schedule", "streamed", "--schedule", "resident,vector=0,scalar_tail", "--json"})
          .json();
  ASSERT_EQ(json["left_out"].size(), 2u) << json;
  const std::string reasons = json["left_out"].dump();
  EXPECT_TRUE(contains(reasons, "complete in its slab: strategy resident")) << json;
  EXPECT_TRUE(contains(reasons, "vector = 0; legal: a power of two up to")) << json;
}

TEST_F(Tune, ExportTakesSchedulesOfTheUserOrMoreAtRandom) {
  const auto schedulesOf = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"tune",      "export", "rms_norm:infer@bf16[*x64]", "--target", "sm_90",
                                   "--dry-run", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<std::string> schedules;
    const auto json = normc(words).json();
    for (const auto& candidate : json["tasks"][0]["candidates"]) schedules.push_back(candidate["schedule"]);
    return schedules;
  };
  const std::string own =
      "resident,threads=64,team=8,vector=8,tile=1,rows=1,chunks=7,blocks=1,prefetch=0,cluster=1,hints=2,"
      "hold=0,"
      "grid=1,shared=0";
  const auto given = schedulesOf({"--schedule", own});
  ASSERT_EQ(given.size(), 2u);
  EXPECT_NE(given[0], own) << "the default comes first";
  EXPECT_EQ(given[1], own);
  const size_t few = schedulesOf({"--candidates", "2", "--random", "0"}).size();
  EXPECT_EQ(schedulesOf({"--candidates", "2", "--random", "40"}).size(), few + 40);
}

TEST_F(Tune, ADryRunForAGpuNeedsNone) {
  const Outcome o = normc({"tune", "layer_norm:forward@bf16[*x1024]", "--target", "sm_90", "--dry-run"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "legal schedules"));
  EXPECT_TRUE(contains(o.out, "the default"));
}
#endif

TEST_F(Tune, APackageOfABundleSaysWhyItHasItsSchedule) {
  ASSERT_EQ(normc({"tune", "export", "layer_norm:infer@f32[*x64]", "--target", "x86-64-v3", "--candidates",
                   "2", "--random", "0", "-o", "b"})
                .code,
            0);
  const auto candidates = nlohmann::json::parse(read("b/plan.json")).at("tasks").at(0).at("candidates");
  ASSERT_GE(candidates.size(), 2u);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string package = "b/" + candidates[i].at("package").get<std::string>();
    EXPECT_EQ(normc({"inspect", package, "--json"}).json()["manifest"]["kernels"][0]["origin"],
              i == 0 ? "default" : "candidate")
        << package;
  }
}

TEST_F(Tune, ABundleHasAVerbOfItsOwn) {
  std::filesystem::create_directory(folder_ + "/b");
  write("b/plan.json", "{}");
  const Outcome o = normc({"tune", "b"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err,
            "normc: error: 'b' is a bundle, and here a norm is needed\n  hint: normc tune run-bundle b\n");
}

struct Wrong {
  std::vector<std::string> arguments;
  int code;
  std::string text;
};

class TuneRefuses : public CommandTest, public testing::WithParamInterface<Wrong> {};

TEST_P(TuneRefuses, WithWhatToDo) {
  const Outcome o = normc(with({"tune"}, GetParam().arguments));
  EXPECT_EQ(o.code, GetParam().code);
  EXPECT_TRUE(contains(o.err, GetParam().text));
  EXPECT_TRUE(files().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, TuneRefuses,
    testing::Values(
        Wrong{{},
              2,
              "normc tune needs a norm\n  hint: e.g. normc tune layer_norm --features 1024 --records "
              "tuned.jsonl"},
        Wrong{{"layer_norm"}, 2, "normc tune needs to know how many features there are"},
        Wrong{{"batch_norm", "--entry", "forward_reduce", "--features", "8", "--rows", "8"},
              2,
              "batch_norm:forward_reduce@f32[*x8] cannot be tuned: its sums come from several calls"},
        Wrong{{"layer_nrm", "--features", "8"}, 2, "did you mean 'layer_norm'?"},
        Wrong{{"layer_norm", "--features", "8", "--budget", "soon"},
              2,
              "--budget is 'soon'; it must be a time above 0 and of 10000 hours at most, e.g. 20s, 500ms or "
              "2m"},
        Wrong{{"layer_norm", "--features", "8", "--policy", "hot"},
              2,
              "--policy is 'hot'; it must be warm, cold or pipeline"},
        Wrong{{"layer_norm", "--features", "8", "--shard", "3/2"},
              2,
              "--shard is '3/2'; there are only 2 parts"},
        Wrong{{"layer_norm", "--features", "8", "--shard", "3"},
              2,
              "--shard is '3'; it must have the form 2/8"},
        Wrong{{"layer_norm", "--features", "8", "--rows", "9999999999"}, 2, "has more than 2^33 elements"},
        Wrong{{"instance_norm", "--features", "256", "--segments", "72057594037927936", "--rows", "1"},
              2,
              "--segments is '72057594037927936': instance_norm:forward@f32[*x*x256], 72057594037927936 "
              "segments of 1 row of 256 features, "},
        Wrong{{"layer_norm", "--features", "8", "--threads", "4294967297"},
              2,
              "--threads is '4294967297'; it must be 65536 or less"},
        Wrong{{"export", "layer_norm:forward@f32[*x8]", "-o", "b", "--shard", "2/2"},
              2,
              "--shard is '2/2'; there are too few problems for that part, so nothing to export"},
        Wrong{{"layer_norm", "--features", "8", "--rows", "4", "--elements", "64"},
              2,
              "--rows and --elements both say how many rows there are\n  hint: give one of them"},
        Wrong{{"layer_norm", "--features", "8", "--records", "nowhere/db.jsonl"},
              3,
              "cannot write nowhere/db.jsonl: No such file or directory"},
        Wrong{{"layer_norm", "--features", "8", "--elements", "0"},
              2,
              "--elements is '0'; it must be a whole number, 1 or more"},
        Wrong{{"instance_norm", "--features", "8", "--segments", "0"},
              2,
              "--segments is '0'; it must be a whole number, 1 or more"},
        Wrong{{"export", "layer_norm", "--features", "8", "-o", "b", "--candidates", "0"},
              2,
              "--candidates is '0'; it must be a whole number, 1 or more"},
        Wrong{
            {"layer_norm", "--features", "8,,9"},
            2,
            "--features is '8,,9'; it must be a list with commas\n  hint: a value is missing beside a comma"},
        Wrong{{"layer_norm", "--features", "8", "--device", "gpu"},
              2,
              "--device is 'gpu'; it must be cpu or cuda:N"},
        Wrong{{"layer_norm", "--features", "8", "--schedule", "fast"}, 2, "schedule 'fast'"},
        Wrong{{"layer_norm", "--features", "8", "--schedule", "mlr:resident,rows=2"},
              2,
              "the generator of --schedule is 'mlr'; it must be mlir"},
        Wrong{{"layer_norm", "--features", "8", "--schedule", "resident,rows=3"},
              2,
              "the schedule does not fit layer_norm:forward@f32[*x8]"},
        Wrong{{"export", "layer_norm", "--features", "8", "-o", "b", "--schedule", "nonsense"},
              2,
              "schedule 'nonsense': starts with 'nonsense'; legal: streamed, resident, split"},
        Wrong{{"export", "layer_norm", "--features", "8", "-o", "b", "--records", "db.jsonl"},
              2,
              "normc tune export has no use for --records\n  hint: it is for normc tune, normc tune "
              "run-bundle, normc tune import\n"},
        Wrong{
            {"run-bundle", "b", "--rows", "4096"},
            2,
            "normc tune run-bundle has no use for --rows\n  hint: it is for normc tune, normc tune export\n"},
        Wrong{{"run-bundle", "b", "--mask"}, 2, "normc tune run-bundle has no use for --mask"},
        Wrong{{"import", "b", "--records", "db.jsonl", "--dry-run"},
              2,
              "normc tune import has no use for --dry-run"},
        Wrong{{"layer_norm", "--features", "8", "--candidates", "4"},
              2,
              "normc tune has no use for --candidates\n  hint: it is for normc tune export\n"},
        Wrong{{"layer_norm", "--features", "8", "-o", "b"}, 2, "normc tune has no use for --output"},
        Wrong{{"layer_norm", "--features", "8", "--target", "sm_90,sm_80", "--dry-run"},
              2,
              "--target is 'sm_90,sm_80'; tune takes one target\n  hint: run it for each of them\n"},
        Wrong{{"export", "layer_norm", "--features", "8", "-o", "b", "--target", "sm_90,sm_80"},
              2,
              "--target is 'sm_90,sm_80'; tune takes one target\n"},
        Wrong{{"export", "layer_norm", "--features", "8", "-o", "b", "--target", "native"},
              2,
              "--target is 'native'; it must be host, "},
        Wrong{{"layer_norm", "--features", "8", "--segments", "4"},
              2,
              "--segments is '4': layer_norm:forward@f32[*x8] has two dimensions\n  hint: leave it out, or "
              "say --segmented"},
        Wrong{{"layer_norm", "--features", "8", "--target", "aarch64"},
              2,
              "cannot be measured on this processor"}));

TEST_F(Tune, WhatIsImportedGoesToARegularFile) {
  write("results.jsonl", "");
  const Outcome o = normc({"tune", "import", "results.jsonl", "--records", "/dev/null"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "cannot write /dev/null: it is not a regular file"));
}

TEST_F(Tune, RowsThatAreGivenTwiceAreTunedOnce) {
  const Outcome o =
      normc({"tune", "layer_norm:forward@f32[*x8]", "--rows", "64,32,64", "--dry-run", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.json()["tasks"].size(), 2u);
}

TEST_F(Tune, WhatNeedsMoreMemoryThanThereIsIsRefused) {
  const Outcome gate = normc({"tune", "rms_norm:infer@f32[*x4000000000]", "--rows", "1", "--budget", "1s"});
  EXPECT_EQ(gate.code, 3);
  EXPECT_TRUE(contains(gate.err, "the gate of rms_norm:infer@f32[*x4000000000], 1 row, "));
  EXPECT_TRUE(contains(gate.err, " are free"));
  const Outcome race = normc({"tune", "rms_norm:infer@f32[*x8]", "--rows", "1000000000", "--budget", "1s"});
  EXPECT_EQ(race.code, 3);
  EXPECT_TRUE(contains(race.err, "a race of rms_norm:infer@f32[*x8], 1000000000 rows, "));
  const Outcome later = normc({"tune", "rms_norm:infer@f32[*x8]", "--rows", "16,1000000000", "--budget", "1s",
                               "--records", "none.jsonl"});
  EXPECT_EQ(later.code, 3);
  EXPECT_EQ(read("none.jsonl"), "") << "it is refused before the first problem is measured";
}

}  // namespace
}  // namespace normc::cli
