// Tests the list of what is tuned where, from records of two devices.
#include <gtest/gtest.h>

#include "autotune/records/Record.h"
#include "dsl/Library.h"
#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

class RecordsCoverage : public CommandTest {
 protected:
  static tune::Record choice(const std::string& device, int64_t features, int64_t rows, double ratio) {
    tune::Record r;
    r.kind = tune::RecordKind::Choice;
    r.task = {*parseProblemText("layer_norm:forward@f32[*x" + std::to_string(features) + "]"),
              (*findNorm("layer_norm"))->structuralHash(),
              1,
              rows,
              features,
              1,
              "warm"};
    r.device = {"cpu", "x86-64-v3", device, {}};
    r.toolchain = {{"normc", "0.1.0"}};
    r.generator = "mlir", r.schedule = "resident,rows=1", r.stage = "race", r.session = "s";
    r.number = ++numbers_, r.stamp = numbers_;
    r.samples = {ratio}, r.reference = {1};
    r.conclusion = tune::Conclusion{ratio < 1 ? tune::Verdict::Won : tune::Verdict::Tie, ratio, ratio, ratio};
    return r;
  }
  void writeRecords(const std::vector<tune::Record>& records) const {
    std::string text;
    for (const tune::Record& r : records) text += tune::lineOf(r) + "\n";
    write("db.jsonl", text);
  }
  nlohmann::json coverage() const {
    return normc({"records", "coverage", "db.jsonl", "--json"}).json()["devices"];
  }

 private:
  static inline int64_t numbers_ = 0;
};

TEST_F(RecordsCoverage, ListsTheFeaturesOfEachDeviceAndThoseOfOthersAlone) {
  writeRecords({choice("old", 64, 32, 0.5), choice("old", 128, 32, 1), choice("old", 64, 99, 0.125),
                choice("new", 256, 32, 1)});
  const auto devices = coverage();
  ASSERT_EQ(devices.size(), 2u);
  const auto& old = devices[0]["device"] == "old, x86-64-v3" ? devices[0] : devices[1];
  ASSERT_EQ(old["problems"].size(), 1u) << "one problem of any number of features";
  const auto& problem = old["problems"][0];
  EXPECT_EQ(problem["problem"], "layer_norm:forward@f32[*x*]");
  EXPECT_EQ(problem["tasks"], 3);
  EXPECT_EQ(problem["won"], 2);
  EXPECT_DOUBLE_EQ(problem["mean_of_wins"], 4);
  EXPECT_EQ(problem["features"], nlohmann::json({64, 128}));
  EXPECT_EQ(problem["rows"], nlohmann::json({32, 99}));
  EXPECT_EQ(problem["elsewhere_alone"], nlohmann::json({256}));
  const Outcome o = normc({"records", "coverage", "db.jsonl"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "old, x86-64-v3 ("));
  EXPECT_TRUE(contains(o.out, "4.00x  64,128    32,99  256"));
}

TEST_F(RecordsCoverage, NormsOfOneNameAreApart) {
  tune::Record other = choice("old", 64, 32, 0.25);
  other.task.norm = "another hash";
  writeRecords({choice("old", 64, 32, 0.5), other, choice("old", 128, 32, 1)});
  const auto problems = coverage()[0]["problems"];
  ASSERT_EQ(problems.size(), 2u) << problems;
  const auto& mine = problems[0]["norm"] == "another hash" ? problems[0] : problems[1];
  EXPECT_EQ(mine["norm"], "another hash");
  EXPECT_EQ(mine["tasks"], 1);
  EXPECT_EQ(mine["features"], nlohmann::json({64}));
  EXPECT_DOUBLE_EQ(mine["mean_of_wins"], 4);
  EXPECT_TRUE(contains(normc({"records", "coverage", "db.jsonl"}).out, "[*x*]  another "));
}

TEST_F(RecordsCoverage, CountsNoChoiceThatAnotherReplacedOrThatFailedSince) {
  const tune::Record first = choice("old", 64, 32, 0.5), second = choice("old", 64, 32, 0.25);
  tune::Record slower = choice("old", 64, 32, 0.25);
  slower.kind = tune::RecordKind::Verify, slower.stage = "verify",
  slower.conclusion->verdict = tune::Verdict::Slower;
  writeRecords({first, second});
  EXPECT_EQ(coverage()[0]["problems"][0]["tasks"], 1);
  EXPECT_DOUBLE_EQ(coverage()[0]["problems"][0]["mean_of_wins"], 4) << "the newer one";
  writeRecords({second, slower});
  EXPECT_TRUE(coverage().empty());
  EXPECT_EQ(normc({"records", "coverage", "db.jsonl"}).out, "no choice counts\n");
}

}  // namespace
}  // namespace normc::cli
