// The ladder from records to a schedule: each rung, and what is said of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "autotune/tune/Choose.h"

namespace normc::tune {
namespace {

Record choice(int64_t rows, int64_t features, const std::string& schedule, double ratio = 0.8) {
  Record r;
  r.kind = RecordKind::Choice;
  r.task = {*parseProblemText("layer_norm:forward@f32[*x" + std::to_string(features) + "]"),
            "hash",
            1,
            rows,
            features,
            2,
            "warm"};
  r.device = {"cpu", "x86-64-v3", "this one", {{"cores", 2}}};
  r.toolchain = {{"normc", "1"}};
  r.generator = "mlir";
  r.schedule = schedule;
  r.stage = "race";
  r.samples = {ratio};
  r.reference = {1};
  r.conclusion = Conclusion{Verdict::Won, ratio, ratio, ratio};
  r.session = "s";
  r.number = rows + features;
  return r;
}

Record verified(Record r, Verdict verdict) {
  r.kind = RecordKind::Verify;
  r.conclusion->verdict = verdict;
  r.number += 1000000;
  return r;
}

Database databaseOf(const std::vector<Record>& records) {
  Database database;
  for (const Record& record : records) database.add(lineOf(record) + "\n");
  return database;
}

Site here() { return {choice(1, 1, "").device, choice(1, 1, "").toolchain}; }

struct Picked {
  std::string schedule, origin;
  std::vector<std::string> rungs;
};

Picked pick(
    const std::vector<Record>& records, int64_t rows, int64_t features,
    const std::function<bool(const Record&)>& usable = [](const Record&) { return true; }) {
  const Database database = databaseOf(records);
  const Pick pick =
      pickFor(choice(rows, features, "").task, here(), database, Standing(database.records), usable);
  return {pick.record ? pick.record->schedule : "", pick.origin, pick.rungs};
}

TEST(Choose, ExactComesFirst) {
  const Picked p =
      pick({choice(2048, 1024, "a"), choice(2040, 1024, "b"), choice(4096, 1024, "c")}, 2048, 1024);
  EXPECT_EQ(p.schedule, "a");
  EXPECT_TRUE(p.origin.starts_with("record ")) << p.origin;
  EXPECT_TRUE(p.origin.ends_with(", exact, 1.25x the default")) << p.origin;
  ASSERT_EQ(p.rungs.size(), 1u);
  EXPECT_TRUE(p.rungs[0].ends_with("(2048 rows of 1024 features, warm) chose a, 1.25x the default"))
      << p.rungs[0];
}

TEST(Choose, TakesACallWithoutRowsAsOneOfOneRow) {
  // A distance that is no number has no order, and sorting by it may read anywhere.
  std::vector<Record> records;
  for (int64_t i = 0; i < 40; ++i) records.push_back(choice(i % 3, 1024, "s" + std::to_string(i % 3)));
  const Picked none = pick(records, 0, 1024);
  EXPECT_TRUE(none.schedule == "s0" || none.schedule == "s1") << none.schedule;
  EXPECT_NE(none.origin.find(", exact, "), std::string::npos) << none.origin;
  EXPECT_EQ(pick(records, 2, 1024).schedule, "s2");
}

TEST(Choose, ThenTheBucketThenTheNearestNeighbour) {
  const Picked bucket = pick({choice(2060, 1024, "b"), choice(5000, 1024, "c")}, 2048, 1024);
  EXPECT_EQ(bucket.schedule, "b");
  EXPECT_EQ(bucket.rungs.at(0), "exact: no choice is recorded");
  EXPECT_TRUE(bucket.rungs.at(1).starts_with("bucket: record "));
  EXPECT_EQ(pick({choice(16000, 1024, "far"), choice(5000, 1024, "near")}, 2048, 1024).schedule, "near");
  EXPECT_EQ(pick({choice(2048, 1023, "f"), choice(2048, 800, "g")}, 2048, 1000).schedule, "f")
      << "the same half octave";
}

TEST(Choose, WhatIsFarAwayIsNoNeighbour) {
  for (const auto& [rows, features] :
       {std::pair(2048 * 9, 1024), std::pair(2048, 2050), std::pair(200, 1024)}) {
    const Picked p = pick({choice(rows, features, "a")}, 2048, 1024);
    EXPECT_EQ(p.schedule, "") << rows << " " << features;
    EXPECT_EQ(p.origin, "default");
    EXPECT_EQ(p.rungs.back(), "default: by the sizes alone");
  }
}

TEST(Choose, AnotherDeviceOfTheArchitectureIsTheLastRung) {
  Record elsewhere = choice(2048, 1024, "e");
  elsewhere.device.name = "another";
  EXPECT_EQ(pick({elsewhere, choice(9000, 1024, "near")}, 2048, 1024).schedule, "near");
  const Picked p = pick({elsewhere}, 2048, 1024);
  EXPECT_EQ(p.schedule, "e");
  EXPECT_EQ(p.rungs.size(), 4u);
  EXPECT_TRUE(p.rungs.back().starts_with("same architecture: record "));
  elsewhere.device.arch = "aarch64";
  EXPECT_EQ(pick({elsewhere}, 2048, 1024).schedule, "");
}

TEST(Choose, ATieKeepsTheDefaultAndSaysSo) {
  Record tie = choice(2048, 1024, "d", 1);
  tie.conclusion->verdict = Verdict::Tie;
  const Picked p = pick({tie, choice(4096, 1024, "c")}, 2048, 1024);
  EXPECT_EQ(p.schedule, "");
  EXPECT_TRUE(p.origin.starts_with("default, tied in record ")) << p.origin;
  EXPECT_TRUE(p.rungs.at(0).ends_with("found nothing faster than the default")) << p.rungs[0];
}

TEST(Choose, WhatLostWhenItWasVerifiedIsPassedOver) {
  const Record a = choice(2048, 1024, "a");
  EXPECT_EQ(pick({a, verified(a, Verdict::Won)}, 2048, 1024).schedule, "a");
  const Picked p = pick({a, verified(a, Verdict::Slower)}, 2048, 1024);
  EXPECT_EQ(p.schedule, "");
  EXPECT_TRUE(p.rungs.at(0).ends_with("was slower than the default when it was measured again"))
      << p.rungs[0];
}

TEST(Choose, WhatCannotBeMadeIsPassedOver) {
  const auto usable = [](const Record& r) { return r.schedule != "a"; };
  EXPECT_EQ(pick({choice(2048, 1024, "a"), choice(4096, 1024, "c")}, 2048, 1024, usable).schedule, "c");
  const Picked p = pick({choice(2048, 1024, "a")}, 2048, 1024, usable);
  EXPECT_TRUE(p.rungs.at(0).ends_with("chose a, which cannot be made for this problem here")) << p.rungs[0];
}

TEST(Choose, AnotherToolchainAnotherNormOrAnotherKindOfProblemIsNoChoice) {
  Record stale = choice(2048, 1024, "a"), norm = stale, dtype = stale, options = stale;
  stale.toolchain["normc"] = "0";
  norm.task.norm = "other";
  dtype.task.problem = *parseProblemText("layer_norm:forward@bf16[*x1024]");
  options.task.problem.mask = true;
  for (const Record& record : {norm, dtype, options}) EXPECT_EQ(pick({record}, 2048, 1024).origin, "default");
  EXPECT_EQ(pick({stale}, 2048, 1024).rungs.back(),
            "default: by the sizes alone; 1 choices are of another toolchain: tune again");
}

TEST(Choose, DoesNotDependOnTheOrderOfRecords) {
  std::vector<Record> records;
  for (int64_t rows : {1024, 1500, 2047, 2049, 4096})
    for (const char* schedule : {"a", "b", "c"})
      records.push_back(choice(rows, 1024, schedule, 0.5 + 0.1 * double(schedule[0] - 'a')));
  for (size_t i = 0; i < records.size(); ++i) records[i].number = int64_t(i);
  const Picked first = pick(records, 2048, 1024);
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(pick(records, 2048, 1024).origin, first.origin);
  EXPECT_EQ(first.schedule, "a") << "of equally near ones that with the better interval";
}

TEST(Choose, TunedSizesAreThoseOfTheProblemAscending) {
  Record other = choice(77, 1024, "x");
  other.device.arch = "aarch64";
  const Database database = databaseOf(
      {choice(4096, 1024, "a"), choice(64, 1024, "b"), choice(64, 1024, "c"), choice(5, 512, "d"), other});
  const auto sizes =
      tunedSizes(database, *parseProblemText("layer_norm:forward@f32[*x1024]"), "hash", here().device);
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0].rows, 64);
  EXPECT_EQ(sizes[1].rows, 4096);
}

TEST(Choose, WhereRowsLieInRunsTheirLengthCountsToo) {
  const auto channels = [](int64_t segments, int64_t rows, const char* schedule) {
    Record r = choice(rows, 64, schedule);
    r.task.problem = *parseProblemText("batch_norm:forward@f32[*x64x*]{layout=channels_first}");
    r.task.segments = segments;
    r.number = segments;
    return r;
  };
  const std::vector<Record> records{channels(1, 8192, "a"), channels(8, 1024, "b"), channels(9, 1000, "c")};
  const Database database = databaseOf(records);
  const auto picked = [&](int64_t segments, int64_t rows) {
    return pickFor(channels(segments, rows, "").task, here(), database, Standing(database.records),
                   [](const Record&) { return true; });
  };
  EXPECT_EQ(picked(1, 8192).record->schedule, "a");
  EXPECT_EQ(picked(8, 1024).record->schedule, "b") << "as many rows of all segments";
  EXPECT_TRUE(picked(8, 1024).origin.ends_with(", exact, 1.25x the default")) << picked(8, 1024).origin;
  EXPECT_EQ(picked(9, 1016).record->schedule, "c") << "the same octaves, and the nearest there";
  EXPECT_EQ(picked(128, 64).record, nullptr) << "runs of a sixteenth";
  EXPECT_EQ(tunedSizes(database, records[0].task.problem, "hash", here().device).size(), 3u)
      << "two of 8192 rows";
}

}  // namespace
}  // namespace normc::tune
