#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/cpu/Report.h"

namespace normc::bench {
namespace {

namespace fs = std::filesystem;

/// Ours takes 2 us, a copy 1 us, the peers 4 and 8.
Heat heatOf(int64_t features, const char* place = "in cache") {
  Heat heat;
  heat.plan = {Entry::Forward, DType::F32, {1, 1000, features}, 1, place};
  heat.entrants = {{Who::Ours, "layer_norm", {1, 1}, {2e-6, 2e-6}, ""},
                   {Who::CachedCopy, "", {1, 1}, {1e-6, 1e-6}, ""},
                   {Who::OneDnn, "layer_norm", {}, {4e-6, 4e-6}, "jit"},
                   {Who::Torch, "layer_norm", {}, {8e-6, 8e-6}, ""}};
  return heat;
}

std::string textOf(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Report : public testing::Test {
 protected:
  Report() : folder_(fs::temp_directory_path() / ("normc-report-" + std::to_string(getpid()))) {}
  ~Report() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Report, DrawsSpeedShareOfCopyAndTheBestPeerOverFeatures) {
  const auto all = pictures({heatOf(64), heatOf(128)});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "forward-f32-in-cache-1-speed");
  EXPECT_EQ(all[1].name, "forward-f32-in-cache-1-copy");
  EXPECT_EQ(all[2].name, "forward-f32-in-cache-1-peers");
  EXPECT_NE(all[0].data.find("64 256.0"), std::string::npos) << all[0].data;  // 2 x 256000 bytes in 2 us
  EXPECT_NE(all[1].data.find("\n64 0.500000\n128 0.500000\n"), std::string::npos) << all[1].data;
  EXPECT_NE(all[2].data.find("\n64 0.500000\n128 0.500000\n"), std::string::npos)
      << "of oneDNN: it is the faster";
  EXPECT_NE(all[2].script.find("title \"layer_norm\""), std::string::npos) << all[2].script;
}

TEST_F(Report, DrawsNothingOfASingleNumberOfFeatures) {
  EXPECT_TRUE(pictures({heatOf(64)}).empty());
  EXPECT_TRUE(pictures({heatOf(64), heatOf(128, "in memory")}).empty()) << "each place has its own";
}

TEST_F(Report, KeepsTablesAndMediansWithoutSamples) {
  writeReport(folder_, "normc-bench --quick", {heatOf(64), heatOf(128)}, thisMachine(), {"oneDNN 3.2"});
  const std::string text = textOf(folder_ / "report.txt");
  EXPECT_EQ(text.rfind("# normc-bench --quick\n", 0), 0u);
  EXPECT_NE(text.find("peer: oneDNN 3.2\n"), std::string::npos);
  EXPECT_NE(text.find("forward f32, 1000 x 128, in cache, 1 thread"), std::string::npos);
  EXPECT_NE(text.find("0.50 [0.50, 0.50]   of 2"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(textOf(folder_ / "report.json"));
  const auto& ours = json.at("heats").at(1).at("entrants").at(0);
  EXPECT_EQ(ours.at("seconds"), 2e-6);
  EXPECT_FALSE(ours.contains("samples"));
  if (plot::isThere()) {
    EXPECT_TRUE(fs::exists(folder_ / "forward-f32-in-cache-1-peers.svg"));
  } else {
    EXPECT_NE(text.find("Without pictures: pictures are drawn by gnuplot, which is not on the PATH"),
              std::string::npos);
  }
}

TEST_F(Report, SaysWhatItCannotWrite) {
  std::ofstream(folder_) << "a file";
  try {
    writeReport(folder_, "normc-bench", {heatOf(64)}, thisMachine(), {});
    FAIL() << "it wrote into a file";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write " + folder_.string() + "/report.json");
  }
}

}  // namespace
}  // namespace normc::bench
