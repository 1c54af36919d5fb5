// A command that is killed in a system call about a file: no half file remains, records hold each measurement
// but the one at hand, and the same command ends as if nothing had been. scripts/kill does it at random
// times.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "autotune/records/Database.h"
#include "tests/cli/Faults.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;

using Kill = FaultyTest;

constexpr int kKilled = 128 + SIGKILL;
/// A fault that no call has: the command runs as usual, with the same folder for temporary files.
const Fault kNone{"fsync", 1 << 20, "kill"};

const std::vector<std::string> kCompile{"compile", "rms_norm:infer@f32[*x64]", "--threads", "1", "-o", "out"};

TEST_F(Kill, ACompilationThatIsKilledLeavesNoHalfFile) {
  ASSERT_EQ(normc(kCompile).code, 0);
  const std::string want = read("out");
  int kills = 0;
  for (const char* what : {"kill", "half"})
    for (const char* kind : {"write", "fsync", "link", "close", "rename", "start"}) {
      if (what == std::string("half") && kind != std::string("write")) continue;
      for (int call = 1;; ++call) {
        write("out", "what was there");
        const Outcome o = normcWith({kind, call, what}, kCompile);
        if (met().empty()) break;
        SCOPED_TRACE(std::string(what) + " in " + kind + " " + std::to_string(call) + ", " + met()[0]);
        EXPECT_EQ(o.code, kKilled);
        ++kills;
        EXPECT_EQ(read("out"), "what was there");
        fs::remove(folder_ + "/out");
        for (const std::string& file : files()) {
          EXPECT_TRUE(read(file) == want) << file << " is whole, under a temporary name";
          fs::remove(folder_ + "/" + file);
        }
        EXPECT_EQ(normcWith(kNone, kCompile).code, 0);
        EXPECT_TRUE(read("out") == want);
      }
    }
  EXPECT_GE(kills, 6);
}

TEST_F(Kill, ATuningThatIsKilledHasItsMeasurementsButTheOneAtHand) {
  const std::vector<std::string> tune{"tune",      "rms_norm", "--features", "64",       "--entry",
                                      "infer",     "--rows",   "32",         "--budget", "100ms",
                                      "--threads", "1",        "--records",  "db.jsonl"};
  const std::string journal = folder_ + "/db.jsonl";
  tune::Counts before;
  int torn = 0, kills = 0;
  const auto ofJournal = [&](const std::vector<std::string>& paths) {
    return std::count(paths.begin(), paths.end(), fs::canonical(journal).string());
  };
  write("db.jsonl", "");
  for (const auto& [kind, call, what] :
       {std::tuple("write", 4, "kill"), std::tuple("write", 8, "kill"), std::tuple("write", 10, "half"),
        std::tuple("write", 11, "half"), std::tuple("write", 12, "half"), std::tuple("fsync", 1, "kill"),
        std::tuple("open", 20, "kill")}) {
    const std::string old = read("db.jsonl");
    const Outcome o = normcWith({kind, call, what}, tune);
    SCOPED_TRACE(std::string(what) + " in " + kind + " " + std::to_string(call) +
                 (met().empty() ? "" : ", " + met()[0]));
    EXPECT_EQ(o.code, met().empty() ? 0 : kKilled) << o.err;
    kills += o.code == kKilled;
    EXPECT_TRUE(read("db.jsonl").starts_with(old));
    const auto database = tune::readDatabase(journal);
    ASSERT_TRUE(database);
    if (kind == std::string("write")) {
      EXPECT_EQ(database->counts.records, before.records + ofJournal(called()) - ofJournal(met()));
    }
    if (read("db.jsonl") != old) torn += database->counts.torn;  // else that line was torn before
    EXPECT_LE(database->counts.damaged + database->counts.torn, torn) << "a line that was torn, and no other";
    before = database->counts;
  }
  EXPECT_GE(kills, 3) << "each tuning makes 4 writes, an fsync and 20 opens";
  const Outcome o = normcWith(kNone, tune);
  EXPECT_EQ(o.code, 0) << o.err;
  for (const std::string& left : leftBehind())  // files of a linker may stay
    EXPECT_FALSE(left.starts_with("normc-tune-")) << "the next tuning removes the folders of those before";
  const auto database = tune::readDatabase(journal);
  EXPECT_GT(database->counts.records, before.records);
  EXPECT_EQ(database->counts.damaged, torn);
  EXPECT_FALSE(database->counts.torn);
}

}  // namespace
}  // namespace normc::cli
