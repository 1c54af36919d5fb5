// bench/gpu/run as it will run on a GPU, against the fake driver; and the folder that prepare makes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/gpu/Records.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::gpu {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

/// A folder as prepare makes it, with kernels that the tests' driver can run.
class GpuDryRun : public testing::Test {
 protected:
  GpuDryRun()
      : folder_(test::temporaryPath("gpu_dry_run." + std::to_string(getpid()))), out_(folder_ / "out") {
    fs::create_directories(folder_);
    fs::copy(NORMC_GPU_PROGRAM, folder_ / "normc-gpu");
    fs::copy_file(NORMC_RUNTIME_LIBRARY, folder_ / "libnormc_runtime.so.0");
    for (const char* script : {"run", "peers.py"})
      fs::copy(fs::path(NORMC_GPU_SCRIPTS) / script, folder_ / script);
    std::ofstream(folder_ / "kernels-sm_90.npk", std::ios::binary) << test::layerNormPackage().bytes();
    EXPECT_EQ(shell("gzip '" + (folder_ / "kernels-sm_90.npk").string() + "'"), 0);
  }
  ~GpuDryRun() override { fs::remove_all(folder_); }

  int run(const std::string& driver, const std::string& more = "") const {
    return shell("'" + (folder_ / "run").string() + "' '" + out_.string() + "' --quick --driver '" + driver +
                 "' " + more + " >/dev/null 2>&1");
  }
  /// What bench found, without the lines that say where a shape began.
  std::vector<Json> timed() const {
    std::vector<Json> records = readRecords(out_ / "bench.jsonl");
    std::erase_if(records, [](const Json& record) { return record.at("kind") != "bench"; });
    return records;
  }
  std::string log() const { return content(out_ / "log.txt"); }

  fs::path folder_, out_;
};

TEST_F(GpuDryRun, WritesEveryResult) {
  EXPECT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_EQ(readRecords(out_ / "facts.json").at(0).at("device"), "Fake GPU (sm_90)");
  EXPECT_EQ(readRecords(out_ / "roofs.json").size(), 2u);
  const Json tests = Json::parse(content(out_ / "tests.json"));
  EXPECT_EQ(tests.at("trials_failed"), 0) << tests;
  EXPECT_EQ(tests.at("kernels"), 2);
  EXPECT_TRUE(tests.at("finished"));
  const std::vector<Json> bench = timed();
  ASSERT_EQ(bench.size(), 2u);
  for (const Json& record : bench) EXPECT_GT(record.at("of_roof").at("value"), 0) << record;
  const std::vector<Json> host = readRecords(out_ / "host.jsonl");
  EXPECT_EQ(host.size(), 5u) << "two plans on one and on eight threads, and the graph";
  EXPECT_TRUE(host.back().value("equal", false)) << host.back();
  const std::string table = content(out_ / "table.md");
  EXPECT_TRUE(contains(table, "2 kernels, "));
  EXPECT_TRUE(contains(table, "| layer_norm:backward@f32[64x128] | "));
  EXPECT_TRUE(contains(table, "the same bits as call by call."));
  EXPECT_TRUE(contains(log(), "sm_90 runs kernels-sm_90.npk.gz"));
}

TEST_F(GpuDryRun, GoesOnFromWhatIsThere) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  const std::string tests = content(out_ / "tests.jsonl"), bench = content(out_ / "bench.jsonl");
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_EQ(content(out_ / "tests.jsonl"), tests);
  EXPECT_EQ(content(out_ / "bench.jsonl"), bench);
}

TEST_F(GpuDryRun, FailsWhereKernelsDoNothing) {
  EXPECT_EQ(run(NORMC_FAKE_CUDA), 1);
  EXPECT_EQ(Json::parse(content(out_ / "tests.json")).at("kernels_wrong"), 2);
  EXPECT_TRUE(contains(log(), "test: failed with code 1"));
  EXPECT_EQ(timed().size(), 2u);
  for (const Json& record : timed()) EXPECT_FALSE(record.contains("us")) << record;
  EXPECT_TRUE(contains(content(out_ / "table.md"), "2 kernels failed"));
}

TEST_F(GpuDryRun, SaysThatThereIsNoDriver) {
  EXPECT_EQ(run("libno_such_driver.so"), 1);
  EXPECT_TRUE(contains(log(), "cannot load the CUDA driver libno_such_driver.so"));
  EXPECT_TRUE(contains(content(out_ / "table.md"), "The device's facts are missing."));
}

TEST_F(GpuDryRun, StopsInTimeAndKeepsWhatItHas) {
  EXPECT_EQ(run(NORMC_WORKING_DRIVER, "--seconds 2"), 0) << log();
  EXPECT_TRUE(fs::exists(out_ / "facts.json"));
  EXPECT_TRUE(contains(log(), "roofs: out of time"));
  EXPECT_FALSE(fs::exists(out_ / "bench.jsonl"));
  EXPECT_FALSE(content(out_ / "table.md").empty());
}

TEST_F(GpuDryRun, RefusesADeviceThatNoPackageFits) {
  fs::rename(folder_ / "kernels-sm_90.npk.gz", folder_ / "kernels-sm_100.npk.gz");
  EXPECT_EQ(run(NORMC_WORKING_DRIVER), 1);
  EXPECT_TRUE(contains(log(), "there is no package for sm_90 or older"));
}

TEST_F(GpuDryRun, ScriptsRefuseWhatTheyDoNotKnow) {
  const auto said = [&](const std::string& command) {
    const fs::path file = folder_ / "said.txt";
    EXPECT_NE(shell(NORMC_GPU_SCRIPTS "/" + command + " >'" + file.string() + "' 2>&1"), 0) << command;
    return content(file);
  };
  EXPECT_TRUE(contains(said("run --quik"), "run: unknown argument '--quik'; run --help lists them"));
  EXPECT_TRUE(contains(said("run --seconds"), "run: --seconds needs a number"));
  EXPECT_TRUE(contains(said("prepare"), "prepare: where to? prepare FOLDER"));
  EXPECT_TRUE(contains(said("prepare a b"), "prepare: one folder, not 'a' and 'b'"));
  EXPECT_TRUE(
      contains(said("prepare a --build /no/such"), "prepare: /no/such/bin/normc is missing: build it with"));
  EXPECT_TRUE(contains(said("prepare a --quik"), "prepare: unknown argument '--quik'; known are"));
}

TEST_F(GpuDryRun, ProgramSaysWhatIsWrongInOneLine) {
  const auto said = [&](const std::string& arguments) {
    const fs::path file = folder_ / "said.txt";
    EXPECT_EQ(shell("'" + std::string(NORMC_GPU_PROGRAM) + "' --driver '" NORMC_FAKE_CUDA "' " + arguments +
                    " >'" + file.string() + "' 2>&1"),
              1);
    return content(file);
  };
  EXPECT_TRUE(contains(said("test /no/such.npk"), "normc-gpu: "));
  EXPECT_TRUE(contains(said("test /no/such.npk"), "/no/such.npk"));
  EXPECT_EQ(said("facts --device 3"), "normc-gpu: there is no device cuda:3; this machine has 1\n");
  EXPECT_EQ(said("facts -o /no/such/file"), "normc-gpu: cannot write /no/such/file\n");
}

#ifdef NORMC_BUILD_FOLDER
TEST_F(GpuDryRun, RunsInTheFolderThatPrepareMakes) {
  const fs::path made = folder_ / "made";
  ASSERT_EQ(shell(std::string("'") + NORMC_GPU_SCRIPTS + "/prepare' '" + made.string() +
                  "' --quick --targets sm_80,sm_90 --build '" + NORMC_BUILD_FOLDER + "' >'" +
                  (folder_ / "prepare.log").string() + "' 2>&1"),
            0)
      << content(folder_ / "prepare.log");
  // Nothing computes here, so every kernel is found wrong; what is tested is that they load and are called.
  EXPECT_EQ(shell("'" + (made / "run").string() + "' '" + out_.string() +
                  "' --quick --even-wrong --driver '" + NORMC_FAKE_CUDA + "' >/dev/null 2>&1"),
            1);
  EXPECT_EQ(Json::parse(content(out_ / "tests.json")).at("kernels_wrong"), 2);
  const std::vector<Json> bench = timed();
  ASSERT_EQ(bench.size(), 2u);
  for (const Json& record : bench) {
    EXPECT_TRUE(record.contains("us")) << record;
    EXPECT_EQ(record.value("isa", ""), "sm_90");
  }
}
#endif

}  // namespace
}  // namespace normc::gpu
