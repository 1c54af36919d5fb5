// Candidates that crash, hang, lie or reach too far: none gets past the gate, each is recorded, and the
// search goes on. No time is asserted anywhere.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "autotune/gate/Gate.h"
#include "autotune/gate/Plans.h"
#include "autotune/search/Search.h"
#include "dsl/Library.h"
#include "dsl/Tolerance.h"
#include "runtime/normc.hpp"
#include "tests/autotune/Wild.h"
#include "tests/runtime/TestPackage.h"

namespace normc::tune::test {
namespace {

using Wild = WildTest;

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos ? testing::AssertionSuccess()
                                      : testing::AssertionFailure() << text << " has no " << part;
}

Screened screenOne(LiveLab& lab, size_t point) { return lab.screen({point}).at(0); }

TEST_F(Wild, AGoodCandidateIsTimedBesideTheDefault) {
  const Landscape landscape = landscapeOf({"right", "slow"});
  const Setting where = setting();
  LiveLab lab(landscape, where, callbacks(landscape), {});
  EXPECT_EQ(screenOne(lab, 0).status, Status::Ok);
  const Screened slow = screenOne(lab, 1);
  EXPECT_EQ(slow.status, Status::Ok) << slow.reason;
  EXPECT_EQ(slow.samples.size(), slow.reference.size());
  EXPECT_GE(slow.samples.size(), 3u);
}

TEST_F(Wild, TheSameCodeIsTriedOnce) {
  const Landscape landscape = landscapeOf({"right", "slow"});
  const Setting where = setting();
  Journal journal(folder_ + "/db.jsonl");
  LiveLab::Callbacks sameCode = callbacks(landscape, &journal);
  sameCode.make = [make = sameCode.make](size_t point) {
    BuiltCandidate one = make(point);
    one.object = "one";
    return one;
  };
  LiveLab lab(landscape, where, sameCode, {});
  ASSERT_EQ(screenOne(lab, 0).status, Status::Ok);
  const Screened again = screenOne(lab, 1);
  EXPECT_EQ(again.status, Status::Duplicate);
  EXPECT_EQ(again.reason, "the same code as right");
  const auto database = readDatabase(journal.path());
  ASSERT_TRUE(database);
  EXPECT_EQ(std::count_if(database->records.begin(), database->records.end(),
                          [](const Record& r) { return r.status == Status::Duplicate; }),
            1);
}

TEST(Gate, CallsThatCachesDoNotHoldAreTriedWhereAKernelKnowsThem) {
  const host::Context context;
  const auto numbersOf = [&](std::vector<package::Scalar> scalars) {
    package::Kernel kernel = normc::test::layerNorm("forward");
    kernel.scalars.insert(kernel.scalars.end(), scalars.begin(), scalars.end());
    const std::string bytes = normc::test::packageOf(kernel).bytes();
    const host::Package package(context, bytes.data(), bytes.size());
    std::vector<std::string> names;
    for (const normc_number& number :
         gate::numbersOfLargeCalls(host::Plan(package, "layer_norm:forward@f32[*x*]").get())) {
      EXPECT_EQ(number.value, 0);
      names.push_back(number.name);
    }
    return names;
  };
  EXPECT_EQ(numbersOf({}), std::vector<std::string>());
  EXPECT_EQ(numbersOf({{"stream_bytes", 1}}), std::vector<std::string>());
  EXPECT_EQ(numbersOf({{"large_bytes", 1}, {"stream_bytes", 1}}),
            (std::vector<std::string>{"large_bytes", "stream_bytes"}));
}

TEST_F(Wild, FiveKindsOfBadCandidatesAreAllRejectedAndTheSearchGoesOn) {
  planted_ = 1e30;
  const std::vector<std::string> entries{"right",   "segfault", "hang", "nan_at_the_end", "write_one_beyond",
                                         "planted", "slow"};
  const Landscape landscape = landscapeOf(entries);
  Setting where = setting();
  where.patience = 2;
  Journal journal(folder_ + "/db.jsonl");
  LiveLab lab(landscape, where, callbacks(landscape, &journal), {});
  SearchOptions options;
  options.exhaustive = true;
  options.leastRounds = options.mostRounds = 10;
  const Outcome outcome = search(landscape, lab, options);
  EXPECT_EQ(outcome.failure, "");
  ASSERT_EQ(outcome.screened.size(), entries.size());
  std::map<std::string, Screened> by;
  for (const Screened& one : outcome.screened) by[entries[one.point]] = one;
  EXPECT_EQ(by["right"].status, Status::Ok);
  EXPECT_EQ(by["slow"].status, Status::Ok);
  EXPECT_EQ(by["segfault"].status, Status::Crashed);
  EXPECT_TRUE(contains(by["segfault"].reason, "ended by signal 11"));
  EXPECT_EQ(by["hang"].status, Status::Hung);
  EXPECT_TRUE(contains(by["hang"].reason, "did not answer in time"));
  EXPECT_EQ(by["nan_at_the_end"].status, Status::Wrong);
  EXPECT_TRUE(contains(by["nan_at_the_end"].reason, "nan"));
  EXPECT_NE(by["write_one_beyond"].status, Status::Ok);
  EXPECT_EQ(by["planted"].status, Status::Wrong);
  EXPECT_TRUE(contains(by["planted"].reason, "y: "));
  EXPECT_TRUE(entries[outcome.decision.chosen] == "right" || entries[outcome.decision.chosen] == "slow");

  const auto database = readDatabase(journal.path());
  ASSERT_TRUE(database);
  int64_t rejected = 0;
  for (const Record& record : database->records) {
    if (record.status == Status::Ok) continue;
    ++rejected;
    EXPECT_TRUE(record.samples.empty()) << record.schedule << " was timed";
  }
  EXPECT_EQ(rejected, 5);
}

TEST_F(Wild, OneUlpDecidesAtTheEdgeOfTheTolerance) {
  const Problem problem = *parseProblem("layer_norm:forward@f32[*x24]", findNorm);
  const gate::Trial trial{.extents = {1, kRows, kFeatures}, .step = 10000};
  const auto question = gate::questionFor(problem, trial);
  ASSERT_TRUE(question);
  const Quantity& want = question->want.outputs.at("y");
  const Tolerance allowed = toleranceOf(problem, "y", trial.extents);
  const double bound = allowed.relative * want.magnitude[0] + allowed.floor;
  auto edge = float(want.value[0] + bound);
  if (double(edge) > want.value[0] + bound) edge = std::nextafter(edge, -INFINITY);
  const Landscape landscape = landscapeOf({"right", "planted"});
  const Setting where = setting();
  for (const float value : {edge, std::nextafter(edge, INFINITY)}) {
    planted_ = value;
    LiveLab lab(landscape, where, callbacks(landscape), {});
    ASSERT_EQ(screenOne(lab, 0).status, Status::Ok);
    EXPECT_EQ(screenOne(lab, 1).status, value == edge ? Status::Ok : Status::Wrong) << value;
  }
}

TEST_F(Wild, ReadingOneElementTooFarEndsTheWorker) {
  const Landscape landscape = landscapeOf({"right", "read_one_beyond"});
  const Setting where = setting();
  LiveLab lab(landscape, where, callbacks(landscape), {});
  ASSERT_EQ(screenOne(lab, 0).status, Status::Ok);
  EXPECT_EQ(screenOne(lab, 1).status, Status::Crashed);
}

TEST_F(Wild, AnswersThatDifferFromRunToRunAreWrong) {
  const Landscape landscape = landscapeOf({"right", "forgetful"});
  const Setting where = setting();
  LiveLab lab(landscape, where, callbacks(landscape), {});
  ASSERT_EQ(screenOne(lab, 0).status, Status::Ok);
  const Screened forgetful = screenOne(lab, 1);
  EXPECT_EQ(forgetful.status, Status::Wrong);
  EXPECT_TRUE(contains(forgetful.reason, "differs from run to run"));
}

TEST_F(Wild, ADefaultThatIsWrongEndsTheSearch) {
  const Landscape landscape = landscapeOf({"nan_at_the_end", "right"});
  const Setting where = setting();
  LiveLab lab(landscape, where, callbacks(landscape), {});
  const Outcome outcome = search(landscape, lab, {});
  EXPECT_TRUE(contains(outcome.failure, "nan"));
  EXPECT_EQ(outcome.screened.size(), 1u);
}

TEST_F(Wild, WhatWasRejectedStaysRejectedInTheNextSession) {
  const Landscape landscape = landscapeOf({"right", "segfault", "slow"});
  const Setting where = setting();
  Journal journal(folder_ + "/db.jsonl");
  {
    LiveLab lab(landscape, where, callbacks(landscape, &journal), {});
    lab.screen({0, 1, 2});
  }
  const auto remembered = rememberedFrom(landscape, readDatabase(journal.path())->records, where);
  ASSERT_EQ(remembered.size(), 3u);
  LiveLab lab(landscape, where, callbacks(landscape, &journal), remembered);
  const auto again = lab.screen({0, 1, 2});
  EXPECT_FALSE(again[0].remembered) << "the default is what others are compared with";
  EXPECT_TRUE(again[1].remembered);
  EXPECT_EQ(again[1].status, Status::Crashed);
  EXPECT_TRUE(again[2].remembered);
  EXPECT_EQ(readDatabase(journal.path())->counts.records, 4) << "only the default was measured again";
  Setting other = where;
  other.toolchain["llvm"] = "23";
  EXPECT_TRUE(rememberedFrom(landscape, readDatabase(journal.path())->records, other).empty());
  other = where;
  other.device.facts["cores"] = 64;
  EXPECT_TRUE(rememberedFrom(landscape, readDatabase(journal.path())->records, other).empty());
}

TEST_F(Wild, ANewerMeasurementTakesARejectionBack) {
  const Landscape landscape = landscapeOf({"right", "slow"});
  Setting where = setting();
  where.stamp = 2;
  Journal journal(folder_ + "/db.jsonl");
  LiveLab(landscape, where, callbacks(landscape, &journal), {}).screen({0, 1});
  Record rejection = readDatabase(journal.path())->records.at(0);
  rejection.schedule = "slow";
  rejection.status = Status::Crashed;
  rejection.samples = rejection.reference = {};
  const auto status = [&](int64_t stamp) {
    rejection.stamp = stamp;
    Database database = *readDatabase(journal.path());
    database.add(lineOf(rejection));
    return rememberedFrom(landscape, database.records, where).at(1).status;
  };
  EXPECT_EQ(status(1), Status::Ok);
  EXPECT_EQ(status(0), Status::Ok) << "of a normc that wrote no stamps";
  EXPECT_EQ(status(3), Status::Crashed);
}

TEST_F(Wild, ADefaultThatIsGoneEndsTheSearchAndKeepsTheRecords) {
  const Landscape landscape = landscapeOf({"right", "segfault", "slow"});
  const Setting where = setting();
  Journal journal(folder_ + "/db.jsonl");
  LiveLab lab(landscape, where, callbacks(landscape, &journal), {});
  lab.screen({0, 1});
  std::filesystem::remove(folder_ + "/right.npk");
  try {
    lab.screen({2});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(contains(error.what(),
                         "the default of layer_norm:forward@f32[*x24] ran before and does not any more, so "
                         "the device may be gone: "));
  }
  EXPECT_EQ(readDatabase(journal.path())->counts.records, 2);
}

TEST_F(Wild, WhoFailsInARaceIsOutOfItAndTheOthersGoOn) {
  const Landscape landscape = landscapeOf({"right", "crash_when_timed", "slow"});
  const Setting where = setting();
  Journal journal(folder_ + "/db.jsonl");
  LiveLab lab(landscape, where, callbacks(landscape, &journal), {});
  lab.screen({0});
  const std::vector<Samples> samples = lab.race({0, 1, 2}, 3);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].size(), 3u);
  EXPECT_TRUE(samples[1].empty());
  EXPECT_EQ(samples[2].size(), 3u);
  int crashed = 0;
  for (const Record& record : readDatabase(journal.path())->records)
    crashed += record.status == Status::Crashed && record.stage == "race";
  EXPECT_EQ(crashed, 1);
}

TEST_F(Wild, EachRequestOfARaceIsInTheRecordsBeforeTheNext) {
  const Landscape landscape = landscapeOf({"right", "slow"});
  Setting where = setting();
  where.sampleSeconds = 0.2;  // a request takes one round
  Journal journal(folder_ + "/db.jsonl");
  LiveLab::Callbacks asking = callbacks(landscape, &journal);
  std::vector<int64_t> seen;  // the records when the lab asks whether it may go on, behind each request
  asking.stop = [&] {
    seen.push_back(readDatabase(journal.path())->counts.records);
    return seen.size() >= 3;
  };
  LiveLab lab(landscape, where, asking, {});
  const size_t rounds = lab.race({0, 1}, 40).at(0).size();
  ASSERT_GE(rounds, 3u);
  const auto database = readDatabase(journal.path());
  EXPECT_EQ(database->counts.records, int64_t(2 * rounds));
  for (const Record& record : database->records) {
    EXPECT_EQ(record.stage, "race");
    EXPECT_EQ(record.samples.size(), 1u);
    EXPECT_EQ(record.reference.size(), 1u);
  }
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[2], int64_t(2 * rounds));
  EXPECT_EQ(seen[1], seen[2] - 2);
  EXPECT_EQ(seen[0], seen[1] - 2);
}

TEST_F(Wild, ARaceOfLongRoundsEndsSoonAfterItIsStopped) {
  const Landscape landscape = landscapeOf({"right", "slow"});
  Setting where = setting();
  where.sampleSeconds = 0.2;
  bool stop = false;
  LiveLab::Callbacks stopping = callbacks(landscape);
  stopping.stop = [&] { return stop; };
  LiveLab lab(landscape, where, stopping, {});
  ASSERT_EQ(screenOne(lab, 0).status, Status::Ok);
  stop = true;
  const std::vector<Samples> samples = lab.race({0, 1}, 40);
  EXPECT_GE(samples.at(0).size(), 1u);
  EXPECT_LT(samples.at(0).size(), 40u);
  EXPECT_EQ(samples.at(0).size(), samples.at(1).size());
}

TEST_F(Wild, AWorkerThatCannotBeStartedIsNoCandidatesFault) {
  const Landscape landscape = landscapeOf({"right"});
  const Setting where = setting();
  Journal journal(folder_ + "/db.jsonl");
  LiveLab::Callbacks none = callbacks(landscape, &journal);
  const auto errorOf = [&](const std::string& program) -> std::string {
    none.worker = program;
    LiveLab lab(landscape, where, none, {});
    try {
      screenOne(lab, 0);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "it was screened";
  };
  const std::string missing = folder_ + "/no-such-program", broken = folder_ + "/broken";
  EXPECT_EQ(errorOf(missing), "cannot start the worker " + missing + ": No such file or directory");
  std::ofstream(broken) << "#!/bin/sh\necho no such library >&2\nexit 127\n";  // as the dynamic linker
  std::filesystem::permissions(broken, std::filesystem::perms::owner_all);
  EXPECT_EQ(errorOf(broken), "cannot start the worker " + broken + ": no such library");
  EXPECT_TRUE(readDatabase(journal.path())->records.empty());
}

/// Makes a worker that gives these answers, a line each. Returns its path.
std::string workerThatAnswers(const std::string& folder, const std::string& answers) {
  const std::string worker = folder + "/worker";
  std::ofstream(worker)
      << "#!/bin/sh\nwhile read answer; do read request <&3; echo \"$answer\"; done 3<&0 << END\n"
      << answers << "END\n";
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  return worker;
}

/// Returns the error of a lab whose worker gives these answers.
std::string saidOf(const std::string& folder, LiveLab::Callbacks callbacks, const Landscape& landscape,
                   const Setting& where, const std::string& answers) {
  callbacks.worker = workerThatAnswers(folder, answers);
  LiveLab lab(landscape, where, callbacks, {});
  try {
    return lab.screen({0}).at(0).reason;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST_F(Wild, AWorkerOfAnotherVersionIsNoCandidatesFault) {
  const Landscape landscape = landscapeOf({"right"});
  Journal journal(folder_ + "/db.jsonl");
  const auto another = [&](const std::string& request, const std::string& answer) {
    return folder_ + "/worker is of another version of normc: to '" + request + "' it answered " + answer +
           "; install both from one build";
  };
  const auto said = [&](const std::string& answers) {
    return saidOf(folder_, callbacks(landscape, &journal), landscape, setting(), answers);
  };
  EXPECT_EQ(said("{}\n"), another("task", "{}"));
  EXPECT_EQ(said("{\"protocol\":0}\n"), another("task", "{\"protocol\":0}"));
  EXPECT_EQ(said("{\"error\":7}\n"), another("task", "{\"error\":7}"));
  const std::string begin = "{\"protocol\":1}\n{}\n",
                    gate = "{\"trials\":1,\"worst\":0.5,\"failure\":\"\"}\n";
  EXPECT_EQ(said(begin + "{}\n"), another("gate", "{}"));
  for (const std::string samples :
       {"{}", "{\"samples\":[[1]]}", "{\"disturbed\":0,\"samples\":[[1,1,1,1,1],[1,1,1,1,1]]}"})
    EXPECT_EQ(said(begin + gate + samples + "\n"), another("sample", samples));
  EXPECT_TRUE(readDatabase(journal.path())->records.empty());
}

TEST_F(Wild, ANumberThatNoMeasurementGivesIsTheCandidatesFault) {
  const Landscape landscape = landscapeOf({"right"});
  Journal journal(folder_ + "/db.jsonl");
  const std::string begin = "{\"protocol\":1}\n{}\n", gate = R"({"trials":1,"worst":0.5,"failure":""})";
  const auto sample = [](const char* time, const char* disturbed, const char* loop, const char* patience) {
    return std::string(R"({"accepted":0,"disturbed":)") + disturbed + R"(,"loops":[)" + loop +
           R"(,2],"patience":)" + patience + R"(,"samples":[[)" + time + "],[" + time + "]]}";
  };
  int64_t records = 0;
  const auto expect = [&](const std::string& answers, const std::string& last) {
    const std::string said =
        saidOf(folder_, callbacks(landscape, &journal), landscape, setting(), answers + last + "\n");
    EXPECT_EQ(
        said,
        "answered " + nlohmann::json::parse(last).dump() +
            ", with a number that no measurement gives: a kernel may have written over it; so it was ended");
    const auto database = readDatabase(journal.path());
    EXPECT_EQ(database->counts.records, ++records) << last;
    EXPECT_EQ(database->counts.damaged, 0) << last;
  };
  for (const char* trials : {"-1", "1125899906842625", "1e300", "18446744073709551615"})
    expect(begin, std::string(R"({"failure":"","trials":)") + trials + R"(,"worst":0.5})");
  expect(begin, R"({"failure":"","trials":1,"worst":-1})");
  for (const char* time : {"0", "-1e-4"}) expect(begin + gate + "\n", sample(time, "0", "1", "0"));
  for (const char* disturbed : {"-1", "9223372036854775807", "1.5"})
    expect(begin + gate + "\n", sample("1e-4", disturbed, "1", "0"));
  expect(begin + gate + "\n", sample("1e-4", "0", "-1", "0"));
  expect(begin + gate + "\n", sample("1e-4", "0", "1", "1e300"));
}

TEST_F(Wild, ADisturbedSampleThatCountsIsSaid) {
  const Landscape landscape = landscapeOf({"right"});
  const Setting where = setting();
  const auto patient = [&](const std::string& accepted) {
    std::string answers = "{\"protocol\":1}\n{}\n{\"trials\":1,\"worst\":0.5,\"failure\":\"\"}\n";
    for (int round = 0; round < 5; ++round)  // a request each, as long as the length of a round is not known
      answers += R"({"accepted":)" + accepted +
                 R"(,"disturbed":0,"loops":[1,2],"patience":0,"samples":[[1e-4],[1e-4]]})"
                 "\n";
    LiveLab::Callbacks told = callbacks(landscape);
    told.worker = workerThatAnswers(folder_, answers);
    LiveLab lab(landscape, where, told, {});
    EXPECT_EQ(screenOne(lab, 0).status, Status::Ok);
    return lab.patient();
  };
  EXPECT_TRUE(patient("0"));
  EXPECT_FALSE(patient("1")) << "its time was over before the core was free";
}

TEST_F(Wild, AnAnswerThatNestsDeeplyIsNone) {
  const Landscape landscape = landscapeOf({"right"});
  const std::string begin = "{\"protocol\":1}\n{}\n";
  const std::string said =
      saidOf(folder_, callbacks(landscape), landscape, setting(),
             begin + "{\"trials\":" + std::string(100000, '[') + std::string(100000, ']') + "}\n");
  EXPECT_TRUE(contains(said, "which is no JSON object: a kernel may have printed it; so it was ended"));
}

TEST_F(Wild, APathThatIsNotUtf8IsSaid) {
  const Landscape landscape = landscapeOf({"right"});
  const Setting where = setting();
  LiveLab::Callbacks odd = callbacks(landscape);
  odd.make = [](size_t) { return BuiltCandidate{"/tmp/\xff/0.npk", "object"}; };
  LiveLab lab(landscape, where, odd, {});
  try {
    lab.screen({0});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), std::string("normc-worker cannot be told the path \"/tmp/\xef\xbf\xbd/0.npk\" "
                                        "('package'), which is not UTF-8; use another"));
  }
}

}  // namespace
}  // namespace normc::tune::test
