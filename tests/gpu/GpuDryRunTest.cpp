// bench/gpu/run as it will run on a GPU, against the fake driver; and the folder that prepare makes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "autotune/tune/Bundle.h"
#include "bench/gpu/Records.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/gpu/Packed.h"
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
    fs::copy(NORMC_BUNDLE_PROGRAM, folder_ / "normc-bundle");
    fs::copy(NORMC_WORKER, folder_ / "normc-worker");
    fs::copy_file(NORMC_RUNTIME_LIBRARY, folder_ / "libnormc_runtime.so.0");
    for (const char* script : {"run", "peers.py"})
      fs::copy(fs::path(NORMC_GPU_SCRIPTS) / script, folder_ / script);
    std::ofstream(folder_ / "kernels-sm_90.npk", std::ios::binary) << test::layerNormPackage().bytes();
    EXPECT_EQ(shell("xz -0 '" + (folder_ / "kernels-sm_90.npk").string() + "'"), 0);
    packBundle();
  }
  ~GpuDryRun() override { fs::remove_all(folder_); }

  /// Two candidates for each shape of --quick, of the same code: either may be faster by chance.
  void packBundle() const {
    const auto spec = *findNorm("layer_norm");
    std::vector<tune::Shipped> tasks;
    const fs::path bundle = folder_ / "bundle";
    fs::create_directories(bundle);
    for (const char* entry : {"forward", "backward"}) {
      tune::Shipped task;
      task.setting.task = {*parseProblemText("layer_norm:" + std::string(entry) + "@f32[*x128]"),
                           spec->structuralHash(),
                           1,
                           64,
                           128,
                           0,
                           "cold"};
      task.setting.spec = print(*spec), task.setting.toolchain = {{"normc", "test"}};
      task.setting.device = {"cuda", "sm_90", "", {}};
      for (const char* schedule : {"default", "other"}) {
        task.points.push_back({"hand", schedule, 1, {0, int(task.points.size())}});
        task.made.push_back(test::packed(bundle.string(), schedule));
      }
      tasks.push_back(task);
    }
    std::ofstream(bundle / "plan.json") << tune::planText(tasks);
    EXPECT_EQ(
        shell("tar -C '" + bundle.string() + "' -cJf '" + (folder_ / "bundle-sm_90.tar.xz").string() + "' ."),
        0);
    fs::remove_all(bundle);
  }

  int run(const std::string& driver, const std::string& more = "") const {
    return shell("'" + (folder_ / "run").string() + "' '" + out_.string() + "' --quick --driver '" + driver +
                 "' " + more + " >/dev/null 2>&1");
  }
  /// Returns the records of one kind about the device and the host: facts, roof, enqueue, graph.
  std::vector<Json> ofDevice(const std::string& kind) const {
    std::vector<Json> records = readRecords(out_ / "device.jsonl");
    std::erase_if(records, [&](const Json& record) { return record.at("kind") != kind; });
    return records;
  }
  /// Returns the results of bench, without the lines that say where a shape began.
  std::vector<Json> timed() const {
    std::vector<Json> records = readRecords(out_ / "bench.jsonl");
    std::erase_if(records, [](const Json& record) { return record.at("kind") != "bench"; });
    return records;
  }
  /// Returns the decisions of tuning.
  std::vector<tune::Record> choices() const {
    const auto database = tune::readDatabase((out_ / "tuned.jsonl").string());
    std::vector<tune::Record> list;
    if (database)
      for (const tune::Record& record : database->records)
        if (record.kind == tune::RecordKind::Choice) list.push_back(record);
    return list;
  }
  std::string log() const { return content(out_ / "log.txt"); }

  fs::path folder_, out_;
};

TEST_F(GpuDryRun, WritesEveryResult) {
  EXPECT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_EQ(ofDevice("facts").at(0).at("device"), "Fake GPU (sm_90)");
  EXPECT_EQ(ofDevice("roof").size(), 2u);
  const Json tests = Json::parse(content(out_ / "tests.json"));
  EXPECT_EQ(tests.at("trials_failed"), 0) << tests;
  EXPECT_EQ(tests.at("kernels"), 2);
  EXPECT_TRUE(tests.at("finished"));
  const std::vector<Json> bench = timed();
  ASSERT_EQ(bench.size(), 2u);
  for (const Json& record : bench) EXPECT_GT(record.at("of_roof").at("value"), 0) << record;
  EXPECT_EQ(ofDevice("enqueue").size(), 4u) << "two plans on one and on eight threads";
  const std::vector<Json> graphs = ofDevice("graph");
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_TRUE(graphs[0].value("equal", false)) << graphs[0];
  const std::string table = content(out_ / "table.md");
  EXPECT_TRUE(contains(table, "2 kernels, "));
  EXPECT_TRUE(contains(table, "| layer_norm:backward@f32[64x128] | "));
  EXPECT_TRUE(contains(table, "the same bits as call by call."));
  EXPECT_TRUE(contains(log(), "sm_90 runs kernels-sm_90.npk.xz"));
}

TEST_F(GpuDryRun, TunesBeforeItMeasuresAndShowsWhatWasChosen) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_TRUE(contains(log(), "tune: done"));
  ASSERT_EQ(choices().size(), 2u);
  for (const tune::Record& choice : choices()) {
    EXPECT_EQ(choice.device.name, "Fake GPU (sm_90)");
    EXPECT_EQ(choice.task.rows, 64);
  }
  for (const Json& record : timed()) {
    ASSERT_TRUE(record.contains("tuned")) << record;
    const Json& tuned = record.at("tuned");
    EXPECT_EQ(tuned.contains("us"), tuned.at("verdict") == "won") << tuned;
    EXPECT_TRUE(tuned.at("schedule") == "default" || tuned.at("schedule") == "other") << tuned;
  }
  const std::set<std::string> known = {"device.jsonl", "tests.json",  "tests.jsonl", "tuned.jsonl",
                                       "bench.jsonl",  "peers.jsonl", "table.md",    "log.txt"};
  for (const auto& entry : fs::directory_iterator(out_))
    EXPECT_TRUE(known.contains(entry.path().filename()))
        << entry.path() << ": packages and candidates do not go home";
}

TEST_F(GpuDryRun, TuningGoesOnFromItsRecords) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER, "--tune 1"), 0) << log();
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  const std::string records = content(out_ / "tuned.jsonl");
  EXPECT_EQ(choices().size(), 2u);
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_EQ(content(out_ / "tuned.jsonl"), records);
  EXPECT_TRUE(contains(log(), "known from its records"));
}

TEST_F(GpuDryRun, WhatIsTunedLaterIsMeasuredAgain) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER, "--tune 0"), 0) << log();
  EXPECT_TRUE(contains(log(), "tune: left out, as --tune 0 says"));
  for (const Json& record : timed()) EXPECT_FALSE(record.contains("tuned")) << record;
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  ASSERT_EQ(timed().size(), 4u) << "each shape before and after tuning";
  EXPECT_TRUE(timed().back().contains("tuned"));
  const std::string table = content(out_ / "table.md"), row = "| layer_norm:backward@f32[64x128] | ";
  const size_t first = table.find(row);
  ASSERT_NE(first, table.npos) << table;
  EXPECT_EQ(table.find(row, first + 1), table.npos) << "the table has each shape once";
}

TEST_F(GpuDryRun, TunesNothingWithoutABundle) {
  fs::remove(folder_ / "bundle-sm_90.tar.xz");
  EXPECT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_TRUE(contains(log(), "tune: left out; there is no bundle for sm_90 or older"));
}

TEST_F(GpuDryRun, GoesOnFromWhatIsThere) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  const std::string tests = content(out_ / "tests.jsonl"), bench = content(out_ / "bench.jsonl");
  ASSERT_EQ(run(NORMC_WORKING_DRIVER), 0) << log();
  EXPECT_EQ(content(out_ / "tests.jsonl"), tests);
  EXPECT_EQ(content(out_ / "bench.jsonl"), bench);
}

TEST_F(GpuDryRun, KeepsTheFactsWhereTheDeviceIsGone) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER, "--seconds 2"), 0) << log();
  const std::string device = content(out_ / "device.jsonl");
  EXPECT_EQ(run("libno_such_driver.so"), 1);
  EXPECT_EQ(content(out_ / "device.jsonl"), device);
  EXPECT_TRUE(contains(content(out_ / "table.md"), "Fake GPU (sm_90)"));
}

TEST_F(GpuDryRun, RefusesResultsOfAnotherKitOrDevice) {
  ASSERT_EQ(run(NORMC_WORKING_DRIVER, "--seconds 2"), 0) << log();
  const std::string device = content(out_ / "device.jsonl"), first = log();
  std::smatch kit;
  ASSERT_TRUE(std::regex_search(first, kit, std::regex("\nkit (\\d+) Fake GPU \\(sm_90\\)\n"))) << first;
  const std::string number = kit[1];
  const auto expectRefusal = [&](const std::string& line, const std::string& known) {
    std::ofstream(out_ / "log.txt") << line;
    EXPECT_EQ(run(NORMC_WORKING_DRIVER, "--seconds 2"), 1);
    EXPECT_TRUE(contains(log(), "has results of another kit or device (" + known + "; this is " + number +
                                    " Fake GPU (sm_90)); name another folder"));
    EXPECT_EQ(content(out_ / "device.jsonl"), device);
  };
  expectRefusal("kit " + number + " Another GPU\n", number + " Another GPU");
  expectRefusal("kit 1 Fake GPU (sm_90)\n", "1 Fake GPU (sm_90)");
  expectRefusal("", "unknown");
  std::ofstream(out_ / "log.txt") << first;
  EXPECT_EQ(run(NORMC_WORKING_DRIVER, "--seconds 2"), 0) << log();
  std::ofstream(folder_ / "kernels-sm_90.npk.xz", std::ios::app) << "more";
  EXPECT_EQ(run(NORMC_WORKING_DRIVER, "--seconds 2"), 1) << "other kernels are another kit";
}

TEST_F(GpuDryRun, ATuningWithoutItsWorkerFailsAndTheRestGoesOn) {
  fs::remove(folder_ / "normc-worker");
  EXPECT_EQ(run(NORMC_WORKING_DRIVER), 1);
  EXPECT_TRUE(contains(log(), "tune: failed with code 3; its last words: normc-bundle: error: "));
  EXPECT_EQ(timed().size(), 2u);
}

TEST_F(GpuDryRun, AFailureIsNotCalledTooLittleTime) {
  const std::string package = (folder_ / "kernels.npk").string(), results = (folder_ / "of.jsonl").string();
  std::ofstream(package, std::ios::binary) << test::layerNormPackage().bytes();
  const auto endsWith = [&](const std::string& verb, const std::string& before) {
    std::ofstream(results) << before;
    return shell("'" NORMC_GPU_PROGRAM "' --driver '" NORMC_FAKE_CUDA "' " + verb + " '" + package +
                 "' -o '" + results + "' --seconds 0 >/dev/null 2>&1");
  };
  constexpr int kFailed = 1, kMore = 3;
  EXPECT_EQ(endsWith("test", ""), kMore);
  EXPECT_EQ(endsWith("test", R"({"kind": "test", "problem": "p", "isa": "sm_90", "trials": 9, "failed": 1})"),
            kFailed);
  EXPECT_EQ(endsWith("bench --quick", ""), kMore);
  EXPECT_EQ(endsWith("bench --quick", R"({"kind": "bench", "shape": "s", "wrong": "y: off"})"), kFailed);
}

TEST_F(GpuDryRun, FailsWhereKernelsDoNothing) {
  EXPECT_EQ(run(NORMC_FAKE_CUDA), 1);
  EXPECT_EQ(Json::parse(content(out_ / "tests.json")).at("kernels_wrong"), 2);
  EXPECT_TRUE(contains(log(), "test: failed with code 1"));
  EXPECT_TRUE(contains(log(), "tune: failed with code 1"));
  EXPECT_TRUE(contains(log(), "the default could not be measured: "));
  EXPECT_TRUE(choices().empty());
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
  EXPECT_EQ(ofDevice("facts").size(), 1u);
  EXPECT_TRUE(contains(log(), "roofs: out of time"));
  EXPECT_FALSE(fs::exists(out_ / "bench.jsonl"));
  EXPECT_FALSE(content(out_ / "table.md").empty());
}

TEST_F(GpuDryRun, SaysThatAPackageIsDamaged) {
  fs::resize_file(folder_ / "kernels-sm_90.npk.xz", 100);
  EXPECT_EQ(run(NORMC_WORKING_DRIVER), 1);
  EXPECT_TRUE(contains(log(), "kernels-sm_90.npk.xz cannot be unpacked: "));
}

TEST_F(GpuDryRun, RefusesADeviceThatNoPackageFits) {
  fs::rename(folder_ / "kernels-sm_90.npk.xz", folder_ / "kernels-sm_100.npk.xz");
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
  EXPECT_EQ(said("facts -o /no/such/file"),
            "normc-gpu: cannot write /no/such/file: No such file or directory\n");
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
  // The result is one file that the machine with the compiler reads.
  EXPECT_EQ(shell(std::string("'") + NORMC_BUILD_FOLDER + "/bin/normc' tune import '" +
                  (out_ / "tuned.jsonl").string() + "' --records '" + (folder_ / "home.jsonl").string() +
                  "' >/dev/null 2>&1"),
            0);
  EXPECT_TRUE(contains(content(folder_ / "home.jsonl"), "layer_norm:backward@f32[*x128]"));
  // All that programs load lies beside them, but for the system's own.
  for (const char* file : {"liblzma.so.5", "xz"}) EXPECT_TRUE(fs::exists(made / file)) << file;
  EXPECT_TRUE(contains(log(), "tune: failed with code 1"));
  EXPECT_TRUE(
      contains(log(), "layer_norm:backward@f32[*x128], 64 rows, 1 thread, cold: the default could not"));
}
#endif

}  // namespace
}  // namespace normc::gpu
