// Selection among several choices, for `compile --records` and for a tuner.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "autotune/records/Standing.h"
#include "autotune/tune/Choose.h"
#include "autotune/tune/LiveLab.h"
#include "autotune/tune/ThisDevice.h"

namespace normc::tune {
namespace {

Record trial(const std::string& schedule, int64_t stamp, Status status = Status::Ok) {
  Record r;
  r.task = {*parseProblemText("layer_norm:forward@f32[*x64]"), "hash", 1, 32, 64, 1, "warm"};
  r.device = {"cpu", "x86-64-v3", "this one", {{"cores", 2}}};
  r.toolchain = {{"normc", "1"}};
  r.generator = "mlir";
  r.schedule = schedule;
  r.stage = "screen";
  r.status = status;
  if (status == Status::Ok) {
    r.samples = {1};
    r.reference = {1};
  }
  r.session = "s" + std::to_string(stamp);
  r.stamp = stamp;
  return r;
}

Record won(const std::string& schedule, int64_t stamp, double ratio) {
  Record r = trial(schedule, stamp);
  r.kind = RecordKind::Choice;
  r.stage = "race";
  r.number = 9;
  r.conclusion = Conclusion{Verdict::Won, ratio, ratio, ratio};
  return r;
}

Record tied(int64_t stamp) {
  Record r = won("default", stamp, 1);
  r.conclusion->verdict = Verdict::Tie;
  return r;
}

Record again(const std::string& schedule, int64_t stamp, Verdict verdict) {
  Record r = won(schedule, stamp, 1);
  r.kind = RecordKind::Verify;
  r.conclusion->verdict = verdict;
  return r;
}

/// Returns the choice of both selections, which agree for every order of the records.
std::string taken(std::vector<Record> records) {
  const Landscape landscape({{"mlir", "default"}, {"mlir", "a"}, {"mlir", "b"}}, 0);
  Setting setting;
  setting.task = trial("", 0).task;
  setting.device = trial("", 0).device;
  setting.toolchain = trial("", 0).toolchain;
  std::string schedule;
  for (int order = 0; order < 2; ++order) {
    Database database;
    for (const Record& record : records) database.add(lineOf(record) + "\n");
    const auto [choice, point, absentWin] = choiceOf(landscape, records, setting);
    EXPECT_FALSE(absentWin);
    const Pick pick = pickFor(setting.task, {setting.device, setting.toolchain}, database,
                              Standing(database.records), [](const Record&) { return true; });
    EXPECT_EQ(choice && point != 0 ? choice->schedule : "", pick.record ? pick.record->schedule : "");
    schedule = !choice ? "none" : landscape[point].schedule;
    std::reverse(records.begin(), records.end());
  }
  return schedule;
}

TEST(Standing, TheNewestChoiceCountsHoweverLuckyAnOlderOneWas) {
  EXPECT_EQ(taken({won("a", 1, 0.5), won("b", 2, 0.9)}), "b");
  EXPECT_EQ(taken({won("a", 1, 0.5), tied(2)}), "default") << "a tie undoes a win";
  EXPECT_EQ(taken({won("a", 3, 0.9), tied(2)}), "a");
  EXPECT_EQ(taken({won("a", 0, 0.5), won("b", 1, 0.9)}), "b") << "without a stamp it is older";
  EXPECT_EQ(taken({won("a", 0, 0.5), won("b", 0, 0.9)}), "a") << "it is not known which was first";
}

TEST(Standing, OfASessionTheLaterRecordCounts) {
  Record first = won("a", 5, 0.5), second = won("b", 5, 0.9);
  second.number = first.number + 1;
  EXPECT_TRUE(newer(second, first));
  EXPECT_FALSE(newer(first, second));
  EXPECT_FALSE(newer(first, first));
  EXPECT_EQ(taken({first, second}), "b");
}

TEST(Standing, WhatFailedWhenItWasMeasuredAgainDoesNotCount) {
  for (const Verdict verdict :
       {Verdict::Slower, Verdict::Wrong, Verdict::Crashed, Verdict::Hung, Verdict::Refused})
    EXPECT_EQ(taken({won("a", 1, 0.5), again("a", 2, verdict)}), "none") << name(verdict);
  EXPECT_EQ(taken({won("b", 1, 0.7), won("a", 2, 0.5), again("a", 3, Verdict::Slower)}), "b")
      << "the one before it";
  EXPECT_EQ(taken({won("a", 1, 0.5), again("a", 2, Verdict::Slower), again("a", 3, Verdict::Won)}), "a");
  EXPECT_EQ(taken({won("a", 1, 0.5), again("a", 2, Verdict::Slower), won("a", 3, 0.8)}), "a")
      << "it was chosen anew";
  EXPECT_EQ(taken({won("a", 0, 0.5), again("a", 0, Verdict::Slower)}), "none")
      << "of a normc that wrote no stamps";
}

TEST(Standing, WhatTurnedOutWrongDoesNotCount) {
  for (const Status status : {Status::Wrong, Status::Crashed, Status::Hung})
    EXPECT_EQ(taken({won("a", 1, 0.5), trial("a", 2, status)}), "none");
  EXPECT_EQ(taken({won("a", 1, 0.5), trial("a", 2, Status::Refused)}), "a")
      << "something may have been missing";
  EXPECT_EQ(taken({won("a", 1, 0.5), trial("a", 2, Status::Duplicate)}), "a")
      << "the other one may be as fast";
  EXPECT_EQ(taken({trial("a", 1, Status::Wrong), trial("a", 2), won("a", 2, 0.5)}), "a");
  EXPECT_EQ(taken({won("a", 1, 0.5), trial("a", 2, Status::Crashed), trial("a", 3)}), "a")
      << "the newest says so";
  EXPECT_EQ(taken({won("a", 1, 0.5), trial("a", 2, Status::Crashed), trial("a", 3, Status::Refused)}),
            "none");
  EXPECT_EQ(taken({tied(1), trial("default", 2, Status::Hung)}), "default") << "there is always the default";
}

TEST(Standing, WhatWasFoundIsSaid) {
  const Record a = won("a", 1, 0.5);
  const auto reason = [&](const std::vector<Record>& records) { return Standing(records).reasonRejected(a); };
  EXPECT_EQ(reason({a}), "");
  EXPECT_EQ(reason({again("a", 2, Verdict::Slower)}),
            "was slower than the default when it was measured again");
  EXPECT_EQ(reason({again("a", 2, Verdict::Wrong)}), "was wrong when it was measured again");
  EXPECT_EQ(reason({trial("a", 2, Status::Crashed)}), "crashed when it was measured again");
  Record elsewhere = again("a", 2, Verdict::Slower), otherTools = elsewhere, otherRows = elsewhere;
  elsewhere.device.name = "another";
  otherTools.toolchain["normc"] = "2";
  otherRows.task.rows = 33;
  EXPECT_EQ(reason({elsewhere, otherTools, otherRows, again("b", 2, Verdict::Slower)}), "");
}

TEST(Standing, AChoiceIsSupersededByANewerValidOneAlone) {
  const Record a = won("a", 1, 0.5), b = won("b", 2, 0.7);
  const std::vector<Record> both{a, b}, rejected{a, b, again("b", 3, Verdict::Slower)};
  EXPECT_TRUE(Standing(both).isSuperseded(a));
  EXPECT_FALSE(Standing(both).isSuperseded(b));
  EXPECT_FALSE(Standing(rejected).isSuperseded(a));
}

TEST(Here, TheProcessorIsTheSameForAThreadThatIsPinned) {
  const Device whole = thisProcessor("x86-64-v3");
  std::thread([&] {
    cpu_set_t set, one;
    CPU_ZERO(&set);
    CPU_ZERO(&one);
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int core = 0;
    while (!CPU_ISSET(core, &set)) ++core;
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(thisProcessor("x86-64-v3"), whole);
  }).join();
}

TEST(Standing, AStampIsLaterThanAllThatIsKnown) {
  const int64_t now = newStamp({});
  EXPECT_GT(now, int64_t(1) << 40) << "milliseconds since 1970";
  EXPECT_GT(newStamp({trial("a", now + 1000000)}), now + 1000000) << "a clock that went back";
  const Line line = readLine(lineOf(trial("a", newStamp({trial("a", kMostWhole)}))));
  EXPECT_TRUE(line.record) << "however far ahead one was";
}

}  // namespace
}  // namespace normc::tune
