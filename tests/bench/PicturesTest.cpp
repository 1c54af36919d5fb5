// Pictures from the JSON of a report.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/cpu/Pictures.h"
#include "bench/cpu/Table.h"
#include "tests/bench/Heats.h"

namespace normc::bench {
namespace {

namespace fs = std::filesystem;

nlohmann::json reportOf(const std::vector<Heat>& heats) {
  return toJson(heats, thisMachine(), {"oneDNN 3.2.0", "PyTorch 2.15.0"});
}

TEST(Pictures, ShowSpeedShareOfCopyAndTheBestPeerOverFeatures) {
  const auto all = pictures(reportOf({heatOf(64), heatOf(128)}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "forward-f32-in-cache-1-speed");
  EXPECT_EQ(all[1].name, "forward-f32-in-cache-1-copy");
  EXPECT_EQ(all[2].name, "forward-f32-in-cache-1-peers");
  EXPECT_NE(all[0].data.find("64 256.0"), std::string::npos) << all[0].data;  // 2 x 256000 bytes in 2 us
  EXPECT_NE(all[1].data.find("\n64 0.500000\n128 0.500000\n"), std::string::npos)
      << "of the faster copy with as many transfers: " << all[1].data;
  EXPECT_NE(all[2].data.find("\n64 0.500000\n128 0.500000\n"), std::string::npos)
      << "of oneDNN: it is the faster";
  EXPECT_NE(all[2].script.find("title \"layer_norm\""), std::string::npos) << all[2].script;
}

TEST(Pictures, SayWhereWhenBesideWhatAndWhatIsBetter) {
  auto report = reportOf({heatOf(64), heatOf(128)});
  report["day"] = "2026-11-22", report["machine"]["processor"] = "A processor";
  report["machine"]["isa"] = "x86-64-v4";
  const auto all = pictures(report);
  EXPECT_NE(all[2].script.find(
                "\"Time over that of the best peer, forward f32, in cache, 1 thread; lower is "
                "better\\nA processor, x86-64-v4, 2026-11-22; peers: oneDNN 3.2.0, PyTorch 2.15.0\""),
            std::string::npos)
      << all[2].script;
  EXPECT_NE(all[0].script.find("; higher is better"), std::string::npos);
  report.erase("day");
  EXPECT_NE(pictures(report)[0].script.find("x86-64-v4; peers"), std::string::npos) << "of an older report";
}

TEST(Pictures, LeaveOddFeaturesOutOfTheLines) {
  const auto all = pictures(reportOf({heatOf(64), heatOf(65), heatOf(128)}));
  EXPECT_NE(all[1].data.find("$line1 << EOD\n64 0.500000\n128 0.500000\nEOD"), std::string::npos)
      << all[1].data;
  EXPECT_NE(all[1].data.find("$odd1 << EOD\n65 0.500000\nEOD"), std::string::npos);
  EXPECT_NE(all[1].script.find("$odd1 with points linetype 1 pointtype 1 pointsize 1.6 notitle"),
            std::string::npos)
      << all[1].script;
}

TEST(Pictures, ShowNothingOfASingleNumberOfFeatures) {
  EXPECT_TRUE(pictures(reportOf({heatOf(64)})).empty());
  EXPECT_TRUE(pictures(reportOf({heatOf(64), heatOf(128, "in memory")})).empty()) << "each place has its own";
}

TEST(Pictures, AreDrawnAgainFromAReportThatIsKept) {
  if (!plot::isThere()) GTEST_SKIP() << "gnuplot is not on the PATH";
  const fs::path folder = fs::temp_directory_path() / ("normc-pictures-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "report.json") << reportOf({heatOf(64), heatOf(128)});
  EXPECT_EQ(drawAgain(folder).size(), 6u) << "SVG and PNG";
  EXPECT_TRUE(fs::exists(folder / "forward-f32-in-cache-1-peers.svg"));
  std::ofstream(folder / "report.json") << "{}";
  EXPECT_THROW(
      {
        try {
          drawAgain(folder);
        } catch (const std::runtime_error& error) {
          EXPECT_NE(std::string(error.what()).find("report.json is no report of normc-bench: "),
                    std::string::npos);
          throw;
        }
      },
      std::runtime_error);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace normc::bench
