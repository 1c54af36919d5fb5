// normc-bench as a program: what it keeps of a run that ends early.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/bench/Files.h"

namespace normc::bench {
namespace {

namespace fs = std::filesystem;

/// Answers as the peer with PyTorch does, until a call of the second heat runs.
const char kDyingPeer[] = R"(#!/bin/sh
prepared=0
while read -r line; do
  case $line in
    *hello*) echo '{"version": "2.0"}' ;;
    *prepare*) prepared=$((prepared + 1)) && echo '{"id": 0}' ;;
    *'"run"'*)
      [ $prepared = 1 ] || exit
      calls=${line#*'"calls":'}
      echo "{\"seconds\": ${calls%%,*}e-6}"
      ;;
    *) echo '{"seconds": 0.1}' ;;
  esac
done
)";

class Program : public testing::Test {
 protected:
  Program() : folder_(fs::temp_directory_path() / ("normc-bench-program-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "peer") << kDyingPeer;
    fs::permissions(folder_ / "peer", fs::perms::owner_all);
  }
  ~Program() override { fs::remove_all(folder_); }

  /// Runs two small heats, and returns the exit code. What is printed is in the file `said`.
  int run(const std::string& more) const {
    const std::string command = "cd '" + folder_.string() +
                                "' && '" NORMC_BENCH_PROGRAM
                                "' --quick --norms layer_norm --features 64 --rows 8,16 --entries forward "
                                "--threads 1 --no-onednn --python ./peer " +
                                more + " >said 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path folder_;
};

TEST_F(Program, KeepsTheHeatsBeforeAPeerDies) {
  EXPECT_EQ(run("--json all.json --report kept"), 1);
  const std::string said = textOf(folder_ / "said");
  const std::string why =
      "all behind forward f32, 8 x 64, 8 rows, 1 thread, since PyTorch: ended unexpectedly";
  EXPECT_NE(said.find("normc-bench: PyTorch: ended unexpectedly\n"), std::string::npos) << said;
  for (const char* file : {"all.json", "kept/report.json"}) {
    const auto json = nlohmann::json::parse(textOf(folder_ / file));
    ASSERT_EQ(json.at("heats").size(), 1u) << file;
    EXPECT_EQ(json.at("heats").at(0).at("not_run").back().get<std::string>(), why);
    EXPECT_EQ(json.at("heats").at(0).at("place"), "8 rows");
  }
  EXPECT_NE(textOf(folder_ / "kept/report.txt").find("  " + why + "\n"), std::string::npos);
}

TEST_F(Program, FindsBeforeTheRacesWhereItCannotWrite) {
  EXPECT_EQ(run("--report said"), 1);
  EXPECT_EQ(textOf(folder_ / "said"), "normc-bench: cannot write said/report.txt: Not a directory\n");
}

}  // namespace
}  // namespace normc::bench
