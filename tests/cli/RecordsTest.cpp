// Records as a user handles them: tune, compile with what was found, show, merge, verify, plot, ship.
#include <filesystem>
#include <set>

#include "autotune/records/Record.h"
#include "autotune/tune/ThisDevice.h"
#include "dsl/Library.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/normc.h"
#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

constexpr const char* kProblem = "layer_norm:forward@f32[*x64]";
/// Legal on every processor, and not a default of any.
constexpr const char* kSchedule = "resident,vector=4,rows=2,unroll=2,tile=4,grain=8,stream=0";

class RecordsVerb : public CommandTest {
 protected:
  /// A choice as `tune` would have made it here.
  tune::Record choice(int64_t rows, const std::string& schedule = kSchedule) const {
    tune::Record r;
    r.kind = tune::RecordKind::Choice;
    r.task = {*parseProblemText(kProblem), hash(), 1, rows, 64, 1, "warm"};
    r.device = tune::thisProcessor(normc_cpu_isa());
    r.toolchain = {{"normc", normc_version()}, {"llvm", LLVM_VERSION_STRING}};
    r.generator = "mlir", r.schedule = schedule, r.stage = "race", r.trials = 22;
    r.samples = {1e-6}, r.reference = {2e-6}, r.session = "s", r.number = rows;
    r.conclusion = tune::Conclusion{tune::Verdict::Won, 0.5, 0.49, 0.51};
    return r;
  }
  static std::string hash();
  void writeRecords(const std::string& name, const std::vector<tune::Record>& records) const {
    std::string text;
    for (const tune::Record& r : records) text += tune::lineOf(r) + "\n";
    write(name, text);
  }
};

std::string RecordsVerb::hash() { return (*findNorm("layer_norm"))->structuralHash(); }

TEST_F(RecordsVerb, ChooseTheScheduleOfAPackageAndExplainSaysHow) {
  writeRecords("db.jsonl", {choice(32)});
  const Outcome made = normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto json = made.json();
  EXPECT_EQ(json["kernels"][0]["schedule"], kSchedule);
  const Outcome explained = normc({"explain", "a.npk", "layer_norm:forward@f32[32x64]"});
  EXPECT_TRUE(contains(explained.out, ", exact, 2.00x the default)"));
  EXPECT_TRUE(contains(explained.out, "records, when the package was made:\n  exact: record "));
  const auto selection = normc({"explain", "a.npk", kProblem, "--json"}).json();
  EXPECT_EQ(selection.at("selection").size(), 1u);
  EXPECT_EQ(normc({"check", "a.npk"}).code, 0);
}

TEST_F(RecordsVerb, SizesThatWereTunedApartGetKernelsApart) {
  writeRecords("db.jsonl", {choice(16), choice(4096, "resident,vector=8,rows=1,unroll=4,tile=4,grain=32")});
  const auto json = normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk", "--json"}).json();
  ASSERT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["kernels"][0]["rows_max"], 256) << "the geometric middle";
  EXPECT_EQ(json["kernels"][1]["rows_max"], nullptr);
  EXPECT_EQ(normc({"explain", "a.npk", "layer_norm:forward@f32[100x64]", "--json"}).json()["schedule"],
            kSchedule);
  EXPECT_NE(normc({"explain", "a.npk", "layer_norm:forward@f32[300x64]", "--json"}).json()["schedule"],
            kSchedule);
  EXPECT_NE(normc({"explain", "a.npk", kProblem, "--json"}).json()["schedule"], kSchedule);
}

TEST_F(RecordsVerb, RunsOfOtherLengthsGetKernelsApart) {
  const std::string problem = "batch_norm:infer@f32[*x8x*]{layout=channels_first}",
                    options = "]{layout=channels_first}";
  const std::string whole = "resident,vector=4,rows=2,unroll=1,tile=4,grain=32,stream=0",
                    inOrder = "streamed,vector=4,rows=1,unroll=1,tile=4,grain=1024,stream=0";
  const auto tuned = [&](int64_t segments, int64_t rows, const std::string& schedule) {
    tune::Record r = choice(rows, schedule);
    r.task.problem = *parseProblemText(problem), r.task.norm = (*findNorm("batch_norm"))->structuralHash();
    r.task.segments = segments, r.task.features = 8;
    return r;
  };
  writeRecords("db.jsonl", {tuned(1, 65536, whole), tuned(64, 1024, inOrder)});
  const auto json = normc({"compile", problem, "--records", "db.jsonl", "-o", "a.npk", "--json"}).json();
  const auto chosen = [&](const std::string& shape) {
    return normc({"explain", "a.npk", "batch_norm:infer@f32[" + shape + options, "--json"})
        .json()["schedule"]
        .get<std::string>();
  };
  EXPECT_EQ(chosen("1x8x65536"), whole) << json;
  EXPECT_EQ(chosen("64x8x1024"), inOrder) << "as many rows of all segments, but runs are short";
  EXPECT_EQ(chosen("8x8x8193"), whole) << "beyond the geometric middle";
  EXPECT_EQ(chosen("8x8x8192"), inOrder);
  EXPECT_EQ(normc({"explain", "a.npk", problem}).code, 0) << "runs of any length";
  EXPECT_TRUE(contains(normc({"inspect", "a.npk"}).out, ", of a segment from 8193"));
  EXPECT_TRUE(contains(normc({"inspect", "a.npk"}).out, ", of a segment to 8192"));
  EXPECT_EQ(normc({"check", "a.npk"}).code, 0)
      << "standard trials have no such runs: those kernels are tried alone";
}

TEST_F(RecordsVerb, WithoutAChoiceThereIsTheDefaultAndEveryRungIsSaid) {
  writeRecords("db.jsonl", {});
  const auto plain = normc({"compile", kProblem, "-o", "b.npk", "--json"}).json();
  const auto json = normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk", "--json"}).json();
  EXPECT_EQ(json["kernels"][0]["schedule"], plain["kernels"][0]["schedule"]);
  const Outcome explained = normc({"explain", "a.npk", kProblem});
  EXPECT_TRUE(contains(
      explained.out,
      "  exact: no choice is recorded\n  bucket: no choice is recorded\n  neighbour: no choice is recorded\n"
      "  same architecture: no choice is recorded\n  default: by the sizes alone\n"));
}

TEST_F(RecordsVerb, AScheduleThatIsIllegalHereIsPassedOver) {
  writeRecords("db.jsonl",
               {choice(32, "resident,vector=4,rows=3,unroll=1,tile=4,grain=8"), choice(48, "nonsense")});
  EXPECT_EQ(normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk"}).code, 0);
  EXPECT_TRUE(
      contains(normc({"explain", "a.npk", kProblem}).out, "which cannot be made for this problem here"));
}

TEST_F(RecordsVerb, SeedsOfATuningAreTheNearestChoices) {
  const auto candidates = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"tune", kProblem, "--rows", "4096", "--dry-run", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return normc(words).json().at("tasks").at(0).at("candidates");
  };
  std::vector<tune::Record> records;
  for (const auto& candidate : candidates({}))
    if (candidate["generator"] == "mlir" && !candidate["seed"].get<bool>() && records.size() < 8)
      records.push_back(choice(32 << records.size(), candidate["schedule"]));
  writeRecords("db.jsonl", records);
  std::set<std::string> seeds;
  for (const auto& candidate : candidates({"--records", "db.jsonl"}))
    if (candidate["seed"].get<bool>()) seeds.insert(candidate["schedule"]);
  EXPECT_FALSE(seeds.contains(records.at(0).schedule)) << "that of 32 rows is one of the two farthest";
  for (size_t i = 2; i < 8; ++i)
    EXPECT_TRUE(seeds.contains(records.at(i).schedule)) << "that of " << (32 << i) << " rows";
}

TEST_F(RecordsVerb, ShowCountsAndLists) {
  writeRecords("db.jsonl", {choice(32), choice(32)});
  write("db.jsonl", read("db.jsonl") + "nonsense\n");
  const Outcome o = normc({"records", "show", "db.jsonl"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "1 record, 1 duplicate, 1 damaged line; 0 trials of 1 device"));
  EXPECT_TRUE(contains(o.out, std::string("won   2.00x  ") + kSchedule) || contains(o.out, kSchedule));
  const auto json = normc({"records", "show", "db.jsonl", "--json"}).json();
  EXPECT_EQ(json["choices"][0]["verdict"], "won");
}

TEST_F(RecordsVerb, ShowListsNoDuplicateAsRejected) {
  tune::Record duplicate = choice(32), old = choice(64), wrong = choice(128);
  for (tune::Record* r : {&duplicate, &old, &wrong})
    r->kind = tune::RecordKind::Trial, r->stage = "screen", r->conclusion = {},
    r->samples = r->reference = {};
  duplicate.status = tune::Status::Duplicate, old.status = tune::Status::Refused,
  wrong.status = tune::Status::Wrong;
  duplicate.reason = old.reason = "the same code as another", wrong.reason = "y[0] is wrong";
  writeRecords("db.jsonl", {duplicate, old, wrong});
  const Outcome o = normc({"records", "show", "db.jsonl"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "3 records; 3 trials of 1 device"));
  EXPECT_TRUE(contains(
      o.out, std::string("\nrejected:\n  ") + kProblem + ", " + kSchedule + ": wrong: y[0] is wrong\n"));
  EXPECT_EQ(normc({"records", "show", "db.jsonl", "--json"}).json()["rejected"].size(), 1u);
}

TEST_F(RecordsVerb, VerifyTakesADuplicateOfTheDefaultForATie) {
  const auto made = normc({"compile", kProblem, "-o", "a.npk", "--json"}).json();
  std::string schedule = made["kernels"][0]["schedule"];
  const std::string usual =
      ",tile=" + std::to_string(std::stoi(schedule.substr(schedule.find(",tile=") + 6)));
  ASSERT_EQ(schedule.find(usual), schedule.rfind(usual)) << schedule;
  schedule.replace(schedule.find(usual), usual.size(),
                   usual == ",tile=2" ? ",tile=4" : ",tile=2");  // which a line does not look at
  writeRecords("db.jsonl", {choice(32, schedule)});
  const Outcome o = normc({"records", "verify", "db.jsonl", "--wait", "100ms"});
  EXPECT_EQ(o.code, 0) << o.err << o.out;
  EXPECT_TRUE(contains(o.out, "tie: the same code as "));
  EXPECT_TRUE(contains(o.out, "0 faster than the default again, 1 no longer beyond the noise"));
}

TEST_F(RecordsVerb, AFileOfSomethingElseIsNeitherReadNorAppendedTo) {
  write("notes.txt", "what I meant to do\nand did\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"records", "show", "notes.txt"},
        {"compile", kProblem, "--records", "notes.txt", "-o", "a.npk"},
        {"tune", "import", "notes.txt", "--records", "db.jsonl"},
        {"tune", kProblem, "--records", "notes.txt"}}) {
    const Outcome o = normc(command);
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(
        contains(o.err,
                 "notes.txt holds no records: 2 lines, none of them a measurement\n  hint: records are "
                 "what 'normc tune --records FILE.jsonl' writes"));
  }
  EXPECT_EQ(read("notes.txt"), "what I meant to do\nand did\n");
  EXPECT_EQ(files(), std::vector<std::string>{"notes.txt"});
  const Outcome input = normc({"records", "show", "-"}, folder_ + "/notes.txt");
  EXPECT_EQ(input.code, 3);
  EXPECT_TRUE(contains(input.err, "the standard input holds no records: 2 lines"));
}

TEST_F(RecordsVerb, CompileSaysWhichLinesItPassedOver) {
  tune::Record impossible = choice(32);
  impossible.conclusion->ratio = -5;
  writeRecords("db.jsonl", {impossible, choice(48)});
  write("db.jsonl", read("db.jsonl") + "nonsense\n{\"schema\": 9}\n");
  const Outcome o = normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk", "--json"});
  EXPECT_EQ(o.code, 0);
  EXPECT_TRUE(contains(o.err, "db.jsonl: 1 record, 2 damaged lines, 1 line of a newer normc"));
  EXPECT_TRUE(contains(o.json()["kernels"][0]["origin"], "2.00x the default"));
}

TEST_F(RecordsVerb, CompileSaysThatNoneWasChosen) {
  writeRecords("db.jsonl", {});
  EXPECT_TRUE(contains(normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk"}).out,
                       "0 schedules of 1 chosen by records\n"));
}

TEST_F(RecordsVerb, MergeIsTheSameInAnyOrder) {
  writeRecords("a.jsonl", {choice(1), choice(2)});
  writeRecords("b.jsonl", {choice(2), choice(3)});
  EXPECT_EQ(normc({"records", "merge", "a.jsonl", "b.jsonl", "-o", "ab.jsonl"}).code, 0);
  EXPECT_EQ(normc({"records", "merge", "b.jsonl", "a.jsonl", "-o", "ba.jsonl"}).code, 0);
  EXPECT_EQ(read("ab.jsonl"), read("ba.jsonl"));
  EXPECT_TRUE(contains(normc({"records", "show", "ab.jsonl"}).out, "3 records; "));
}

TEST_F(RecordsVerb, ImportAppendsAndKeepsWhatItCannotRead) {
  writeRecords("db.jsonl", {choice(1)});
  const std::string before = read("db.jsonl") + "{\"schema\": 9}\nnonsense\n";
  write("db.jsonl", before);
  writeRecords("a.jsonl", {choice(1), choice(2)});
  const Outcome o = normc({"tune", "import", "a.jsonl", "--records", "db.jsonl"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(
      o.out, "db.jsonl: 1 new record; 2 records, 1 duplicate, 1 damaged line, 1 line of a newer normc"));
  EXPECT_EQ(read("db.jsonl"), before + tune::lineOf(choice(2)) + "\n");
  EXPECT_EQ(normc({"tune", "import", "a.jsonl", "--records", "/dev/full"}).code, 3);
  EXPECT_EQ(normc({"records", "merge", "db.jsonl", "a.jsonl", "-o", "db.jsonl"}).code, 0);
  EXPECT_TRUE(contains(read("db.jsonl"), "{\"schema\": 9}\n"));
}

TEST_F(RecordsVerb, VerifyMeasuresAgainAndAddsWhatItFinds) {
  tune::Record foreign = choice(8);
  foreign.device.name = "another";
  tune::Record device = choice(16);
  device.device.arch = "sm_90";
  writeRecords("db.jsonl", {choice(32), foreign, device});
  const Outcome o = normc({"records", "verify", "db.jsonl", "--wait", "100ms", "--json"});
  EXPECT_TRUE(o.code == 0 || o.code == 1) << o.err;  // the result of the race depends on the machine
  const auto json = o.json();
  EXPECT_EQ(json["choices"].size(), 3u);
  EXPECT_EQ(json["not_measured"], 2);
  EXPECT_TRUE(contains(json["choices"].dump(), "not measured: made on another device")) << json;
  EXPECT_TRUE(contains(json["choices"].dump(), "not measured: code for sm_90 does not run here")) << json;
  EXPECT_TRUE(contains(read("db.jsonl"), "\"kind\":\"verify\""));
  EXPECT_EQ(o.code == 1, json["slower"] == 1);
}

TEST_F(RecordsVerb, WhatVerifyFindsWrongIsUsedNoMore) {
  namespace fs = std::filesystem;
  const fs::path programs = fs::path(NORMC_PROGRAM).parent_path(), here = fs::path(folder_) / "bin";
  fs::create_directories(here);
  fs::copy_file(programs / "normc", here / "normc");
  // The worker reports the second candidate that it judges, which is the choice, as wrong.
  write("bin/normc-worker", "#!/bin/sh\n'" + (programs / "normc-worker").string() +
                                "' | sed -u '/\"failure\":\"\"/{x;/x/{x;s/\"failure\":\"\"/\"failure\":\"y: "
                                "3 is not 4\"/;x};s/^/x/;x}'\n");
  fs::permissions(here / "normc-worker", fs::perms::owner_all);
  writeRecords("db.jsonl", {choice(32)});
  const Outcome o = program((here / "normc").string(), {"records", "verify", "db.jsonl", "--wait", "100ms"});
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_TRUE(contains(o.out, "wrong: y: 3 is not 4"));
  EXPECT_TRUE(contains(o.out, "0 slower, 1 wrong or failed, 0 not measured"));
  EXPECT_TRUE(contains(read("db.jsonl"), "\"verdict\":\"wrong\""));
  const Outcome made = normc({"compile", kProblem, "--records", "db.jsonl", "-o", "a.npk"});
  EXPECT_TRUE(contains(made.out, "0 schedules of 1 chosen by records"));
  EXPECT_TRUE(contains(normc({"explain", "a.npk", kProblem}).out, "was wrong when it was measured again"));
}

TEST_F(RecordsVerb, VerifyLooksAtChoicesThatCount) {
  tune::Record old = choice(32), tie = choice(32);
  old.device.name = tie.device.name = "another";
  tie.schedule = "default", tie.stamp = 1, tie.conclusion = tune::Conclusion{tune::Verdict::Tie, 1, 1, 1};
  writeRecords("db.jsonl", {old});
  EXPECT_EQ(normc({"records", "verify", "db.jsonl", "--wait", "100ms", "--json"}).json()["choices"].size(),
            1u);
  writeRecords("db.jsonl", {old, tie});
  EXPECT_EQ(normc({"records", "verify", "db.jsonl", "--wait", "100ms", "--json"}).json()["choices"].size(),
            0u)
      << "a tie took its place";
}

/// A norm that is not built in, and a choice of it.
constexpr const char* kOwnNorm =
    "norm mine {\n  reduce features\n  center %s\n  moment raw\n  divide_by current\n  backward exact\n  "
    "affine scale\n  epsilon 1e-6\n}\n";

std::string ownNorm(const std::string& center) {
  std::string text = kOwnNorm;
  return text.replace(text.find("%s"), 2, center);
}

TEST_F(RecordsVerb, VerifyFindsANormOfAFileByItsHash) {
  write("mine.norm", ownNorm("none"));
  write("changed.norm", ownNorm("current"));
  tune::Record own = choice(32);
  own.task.problem = *parseProblemText("mine:forward@f32[*x64]");
  own.task.norm = (*readNorms(read("mine.norm"), "mine.norm")).at(0)->structuralHash();
  const std::string hash = own.task.norm.substr(0, 8);
  const auto verdict = [&](std::vector<std::string> more) {
    writeRecords("db.jsonl", {own});
    std::vector<std::string> all{"records", "verify", "db.jsonl", "--wait", "100ms", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome o = normc(all);
    EXPECT_TRUE(o.code == 0 || o.code == 1) << o.err;
    return o.json()["choices"][0]["verdict"].get<std::string>();
  };
  EXPECT_EQ(verdict({}), "not measured: of a norm that is not built in (mine, hash " + hash +
                             "): give its file by --norm");
  EXPECT_TRUE(contains(verdict({"--norm", "changed.norm"}),
                       "not measured: its mine (hash " + hash + ") is another than that of --norm (hash "));
  const std::string measured = verdict({"--norm", "changed.norm", "--norm", "mine.norm"});
  EXPECT_TRUE(measured == "won" || measured == "tie" || measured == "slower") << measured;
}

TEST_F(RecordsVerb, RecordsWithoutAMeasurementAreNeitherDrawnNorShown) {
  write("empty.jsonl", "");
  for (const auto& [command, use] : {std::pair<std::vector<std::string>, const char*>{
                                         {"records", "plot", "empty.jsonl", "-o", "plots"}, "draw"},
                                     {{"records", "report", "empty.jsonl", "-o", "page.html"}, "show"}}) {
    const Outcome o = normc(command);
    EXPECT_EQ(o.code, 3);
    EXPECT_TRUE(contains(o.err, std::string("the records hold nothing to ") + use +
                                    "\n  hint: normc tune NORM --records FILE makes some"))
        << o.err;
  }
  EXPECT_EQ(files(), std::vector<std::string>{"empty.jsonl"});
}

TEST_F(RecordsVerb, PlotDrawsOrSaysWhatItNeeds) {
  tune::Record trial = choice(32);
  trial.kind = tune::RecordKind::Trial, trial.stage = "screen", trial.conclusion.reset(), trial.number = 99;
  writeRecords("db.jsonl", {choice(32), trial});
  const Outcome o = normc({"records", "plot", "db.jsonl", "-o", "plots"});
  if (o.code == 3) {
    EXPECT_TRUE(contains(o.err,
                         "pictures are drawn by gnuplot, which is not on the PATH\n  hint: on Debian: "
                         "apt-get install gnuplot-nox"));
    EXPECT_TRUE(!exists("plots"));
    return;
  }
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* name : {"landscape", "features", "roofline"}) {
    EXPECT_TRUE(contains(read(std::string("plots/") + name + ".svg"), "<svg"));
    EXPECT_TRUE(read(std::string("plots/") + name + ".png").starts_with("\x89PNG"));
  }
}

TEST_F(RecordsVerb, ABundleGoesThereAndComesBack) {
  const Outcome packed = normc({"tune", "export", "layer_norm", "--features", "64", "--rows", "32", "--entry",
                                "infer", "--threads", "1", "-o", "b", "--candidates", "2"});
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_TRUE(contains(packed.out, "b: 6 candidates of 1 problem for "));
  const Outcome ran = normc({"tune", "run-bundle", "b", "--budget", "3s"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Outcome home = normc({"tune", "import", "b", "--records", "db.jsonl"});
  EXPECT_EQ(home.code, 0) << home.err;
  EXPECT_TRUE(contains(home.out, "db.jsonl: "));
  EXPECT_TRUE(contains(normc({"tune", "import", "b", "--records", "db.jsonl"}).out, "0 new records"));
  const Outcome made =
      normc({"compile", "layer_norm:infer@f32[*x64]", "--records", "db.jsonl", "-o", "a.npk"});
  EXPECT_EQ(made.code, 0) << made.err;
  const std::string why = normc({"explain", "a.npk", "layer_norm:infer@f32[*x64]"}).out;
  const bool decided = ran.out.find("not decided") == ran.out.npos;  // there was time enough
  EXPECT_EQ(why.find("exact: no choice is recorded") == why.npos, decided) << why;
}

TEST_F(RecordsVerb, ShardsThatRanApartMergeToTheWhole) {
  size_t decided = 0;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    const std::string file = std::string("part") + shard[0] + ".jsonl";
    const Outcome o =
        normc({"tune", "layer_norm", "--features", "8,16,24", "--rows", "8", "--entry", "infer", "--threads",
               "1", "--budget", "1s", "--shard", shard, "--records", file, "--json"});
    ASSERT_EQ(o.code, 0) << o.err;
    const auto result = o.json();
    for (const auto& task : result["tasks"]) decided += task["decided"].get<bool>();
  }
  ASSERT_EQ(normc({"records", "merge", "part1.jsonl", "part2.jsonl", "part3.jsonl", "-o", "all.jsonl"}).code,
            0);
  EXPECT_EQ(normc({"records", "show", "all.jsonl", "--json"}).json()["choices"].size(), decided);
  for (const char* features : {"8", "16", "24"})
    EXPECT_TRUE(contains(read("all.jsonl"), std::string("layer_norm:infer@f32[*x") + features + "]"));
}

struct Wrong {
  std::vector<std::string> arguments;
  int code;
  std::string text;
};

class RecordsRefuse : public CommandTest, public testing::WithParamInterface<Wrong> {};

TEST_P(RecordsRefuse, WithWhatToDo) {
  const Outcome o = normc(GetParam().arguments);
  EXPECT_EQ(o.code, GetParam().code);
  EXPECT_TRUE(contains(o.err, GetParam().text));
  EXPECT_TRUE(files().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, RecordsRefuse,
    testing::Values(
        Wrong{{"records"},
              2,
              "normc records needs a word for what to do\n  hint: show, coverage, merge, verify, plot or "
              "report"},
        Wrong{{"records", "shaw", "a"}, 2, "did you mean 'show'?"},
        Wrong{{"records", "show"}, 2, "normc records show needs a file of records"},
        Wrong{{"records", "show", "none.jsonl"}, 3, "cannot read none.jsonl: No such file or directory"},
        Wrong{
            {"records", "merge", "/dev/null"}, 2, "normc records merge needs the name of the file to write"},
        Wrong{{"records", "verify", "a", "b"}, 2, "normc records verify adds what it finds to one file"},
        Wrong{{"records", "verify", "a", "--norm", "no.norm"},
              3,
              "cannot read no.norm: No such file or directory"},
        Wrong{{"records", "show", "a", "--norm", "a.norm"}, 2, "--norm is for records verify alone"},
        Wrong{{"records", "show", "a", "--wait", "1s"}, 2, "--wait is for records verify alone"},
        Wrong{{"records", "verify", "a", "--wait", "long"}, 2, "--wait is 'long'; "},
        Wrong{{"compile", kProblem, "--records", "none.jsonl", "-o", "a.npk"},
              3,
              "cannot read none.jsonl: No such file or directory"},
        Wrong{{"compile", kProblem, "--records", "/dev/zero", "-o", "a.npk"},
              3,
              "cannot read /dev/zero: it is not a regular file"},
        Wrong{{"tune", kProblem, "--records", "/dev/full"},
              3,
              "cannot write /dev/full: it is not a regular file"},
        Wrong{{"compile", kProblem, "--records", "/dev/null", "--schedule", kSchedule, "-o", "a.npk"},
              2,
              "--records and --schedule exclude each other"},
        Wrong{{"compile", kProblem, "--records", "/dev/null", "--generator", "halide", "-o", "a.npk"},
              2,
              "--records and --generator exclude each other\n  hint: a record names the generator of its "
              "schedule"},
        Wrong{{"compile", kProblem, "--records", "/dev/null", "--generator", "mlir", "-o", "a.npk"},
              2,
              "--records and --generator exclude each other"},
        Wrong{{"tune", "export", "layer_norm", "--features", "8"},
              2,
              "normc tune export needs the name of a folder to make"},
        Wrong{{"tune", "export", "layer_norm", "--features", "8", "-o", "/proc/none"},
              3,
              "cannot make the folder /proc/none: "},
        Wrong{{"tune", "export", "layer_norm", "--features", "8", "-o", "/proc"},
              3,
              "cannot export to /proc: it is there, and not empty"},
        Wrong{{"tune", "run-bundle"}, 2, "normc tune run-bundle needs one folder"},
        Wrong{{"tune", "run-bundle", "none"},
              3,
              "cannot read none/plan.json; a bundle is a folder that 'normc tune export' made"},
        Wrong{{"tune", "import"}, 2, "normc tune import needs results, and the records to add them to"}));

TEST_F(RecordsVerb, WhatWritesNoFileTakesNone) {
  writeRecords("db.jsonl", {choice(32)});
  for (const std::string action : {"show", "coverage", "verify"}) {
    const Outcome o = normc({"records", action, "db.jsonl", "-o", "x"});
    EXPECT_EQ(o.code, 2) << action;
    EXPECT_TRUE(contains(o.err, "-o is for records merge, plot and report\n  hint: normc records " + action +
                                    " writes no file"));
  }
}

TEST_F(RecordsVerb, PlotDrawsIntoAFolderOfAnyName) {
  tune::Record trial = choice(32);
  trial.kind = tune::RecordKind::Trial, trial.stage = "screen", trial.conclusion.reset(), trial.number = 99;
  writeRecords("db.jsonl", {choice(32), trial});
  const Outcome o = normc({"records", "plot", "db.jsonl", "-o", "a$b 'c'"});
  if (o.err.find("gnuplot, which is not on the PATH") != o.err.npos)
    GTEST_SKIP() << "gnuplot is not on the PATH";
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(exists("a$b 'c'/features.svg"));
  EXPECT_FALSE(exists("ab c"));
}

TEST_F(RecordsVerb, ARecordHasNoCharacterThatATerminalObeys) {
  tune::Record evil = choice(32);
  evil.device.name = "Xeon\x1b[2J";
  writeRecords("db.jsonl", {evil, choice(64)});
  const Outcome o = normc({"records", "show", "db.jsonl"});
  EXPECT_EQ(o.code, 0);
  EXPECT_TRUE(contains(o.out, "1 damaged line"));
  EXPECT_EQ(o.out.find('\x1b'), o.out.npos);
}

}  // namespace
}  // namespace normc::cli
