#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "bench/cpu/Report.h"
#include "tests/bench/Files.h"
#include "tests/bench/Heats.h"
#include "tools/plot/Gnuplot.h"

namespace normc::bench {
namespace {

namespace fs = std::filesystem;

class Report : public testing::Test {
 protected:
  Report() : folder_(fs::temp_directory_path() / ("normc-report-" + std::to_string(getpid()))) {}
  ~Report() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Report, KeepsTablesAndMediansWithoutSamples) {
  writeReport(folder_, "normc-bench --quick", {heatOf(64), heatOf(128)}, thisMachine(), {"oneDNN 3.2"},
              /*withCliffs=*/false);
  const std::string text = textOf(folder_ / "report.txt");
  EXPECT_EQ(text.rfind("# normc-bench --quick\n", 0), 0u);
  EXPECT_NE(text.find("peer: oneDNN 3.2\n"), std::string::npos);
  EXPECT_NE(text.find("forward f32, 1000 x 128, in cache, 1 thread"), std::string::npos);
  EXPECT_NE(text.find("0.50 [0.50, 0.50]   of 2"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(textOf(folder_ / "report.json"));
  const auto& ours = json.at("heats").at(1).at("entrants").at(0);
  EXPECT_EQ(ours.at("seconds"), 2e-6);
  EXPECT_FALSE(ours.contains("samples"));
  EXPECT_TRUE(std::regex_match(json.at("day").get<std::string>(), std::regex("20\\d\\d-\\d\\d-\\d\\d")));
  if (plot::isThere()) {
    EXPECT_TRUE(fs::exists(folder_ / "forward-f32-in-cache-1-peers.svg"));
  } else {
    EXPECT_NE(text.find("Without pictures: pictures are drawn by gnuplot, which is not on the PATH"),
              std::string::npos);
  }
}

TEST_F(Report, HasTheCostOfOddSizesIfItIsAskedFor) {
  const std::string cost = "Time for an element over that of the better multiple of 64 beside it";
  for (const bool withCliffs : {false, true}) {
    writeReport(folder_, "normc-bench", {heatOf(64), heatOf(65), heatOf(128)}, thisMachine(), {}, withCliffs);
    EXPECT_EQ(textOf(folder_ / "report.txt").find(cost) != std::string::npos, withCliffs);
  }
}

TEST_F(Report, SaysWhatItCannotWrite) {
  std::ofstream(folder_) << "a file";
  const std::string message = "cannot write " + folder_.string() + "/report.txt: Not a directory";
  const auto expectMessage = [&](const auto& write) {
    try {
      write();
      FAIL() << "it wrote into a file";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), message);
    }
  };
  expectMessage([&] { makeReportFolder(folder_); });
  expectMessage([&] { writeReport(folder_, "normc-bench", {heatOf(64)}, thisMachine(), {}, false); });
}

TEST_F(Report, MakingItsFolderKeepsTheOneBefore) {
  makeReportFolder(folder_ / "made");
  std::ofstream(folder_ / "made/report.txt") << "before";
  makeReportFolder(folder_ / "made");
  EXPECT_EQ(textOf(folder_ / "made/report.txt"), "before");
}

}  // namespace
}  // namespace normc::bench
