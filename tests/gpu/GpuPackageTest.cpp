// The gate over a package: passes, records, resumption, and the kernel that lost the device.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "autotune/records/Journal.h"
#include "bench/gpu/Trials.h"
#include "dsl/Library.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::gpu {
namespace {

const char kForward[] = "layer_norm:forward@f32[*x128]";
const char kBackward[] = "layer_norm:backward@f32[*x128]";
constexpr int kIllegalAddress = 700;

class GpuPackage : public test::CudaTest {
 protected:
  GpuPackage() {
    fake_cuda_set_launcher(test::runOnCpu, nullptr);
    options_.driver = NORMC_FAKE_CUDA;
    options_.threads = 2;
    options_.record = [this](const Json& record) { records_.push_back(record); };
  }
  ~GpuPackage() override { fake_cuda_set_launcher(nullptr, nullptr); }

  Kernels kernels() const {
    const std::string path = test::temporaryPath("gpu_package.npk");
    std::ofstream(path, std::ios::binary) << package_.bytes();
    return Kernels(path, NORMC_FAKE_CUDA, 0);
  }
  /// A run that goes on from the records of those before, as a new process would.
  TestEnd run() {
    const std::vector<Json> before = records_;
    return testPackage(kernels(), before, options_);
  }
  std::vector<Json> ofKind(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& record : records_)
      if (record.at("kind") == kind) found.push_back(record);
    return found;
  }

  TestOptions options_;
  std::vector<Json> records_;
  package::Writer package_ = test::layerNormPackage();
};

/// Backward kernels fail on the device, the others are right.
int failBackward(void*, const fake_cuda_launch* launch) {
  if (std::string(launch->function).starts_with("layer_norm_backward")) return kIllegalAddress;
  return test::runOnCpu(nullptr, launch);
}

TEST_F(GpuPackage, FindsRightKernelsRight) {
  EXPECT_EQ(run(), TestEnd::Finished);
  EXPECT_EQ(ofKind("test").size(), 4u) << "two kernels in two passes";
  const Json summary = testSummary(records_);
  EXPECT_EQ(summary.at("kernels"), 2);
  EXPECT_EQ(summary.at("trials_failed"), 0) << summary;
  EXPECT_GT(summary.at("trials"), 40);
  EXPECT_GT(summary.at("worst_ratio"), 0);
}

TEST_F(GpuPackage, FindsWrongKernelsWrong) {
  fake_cuda_set_launcher(nullptr, nullptr);
  EXPECT_EQ(run(), TestEnd::Finished);
  const Json summary = testSummary(records_);
  EXPECT_EQ(summary.at("kernels_wrong"), 2);
  EXPECT_GT(summary.at("trials_failed"), 40);
  EXPECT_NE(summary.at("failures").at(0).get<std::string>().find("layer_norm"), std::string::npos);
}

TEST_F(GpuPackage, GoesOnWhereItStopped) {
  options_.threads = 1;
  int asked = 0;
  options_.stop = [&] { return ++asked > 2; };
  EXPECT_EQ(run(), TestEnd::Stopped);
  EXPECT_EQ(ofKind("test").size(), 2u);
  options_.stop = [] { return false; };
  EXPECT_EQ(run(), TestEnd::Finished);
  EXPECT_EQ(ofKind("test").size(), 4u);
  const size_t before = records_.size();
  EXPECT_EQ(run(), TestEnd::Finished);
  EXPECT_EQ(records_.size(), before) << "nothing is left to do";
}

TEST_F(GpuPackage, TriesAKernelForFewRowsWithFewRows) {
  package_ = test::layerNormPackage(/*fewRows=*/16);
  EXPECT_EQ(run(), TestEnd::Finished);
  EXPECT_EQ(testSummary(records_).at("kernels"), 3);
  EXPECT_EQ(testSummary(records_).at("trials_failed"), 0);
  EXPECT_EQ(testSummary(records_).at("pieces_skipped"), 0);
  const std::vector<Json> ended = ofKind("test");
  EXPECT_EQ(std::ranges::count(ended, "few rows",
                               [](const Json& record) { return record.at("schedule").get<std::string>(); }),
            2);
  for (const Json& record : ended) EXPECT_GT(record.at("trials"), 3) << record;
}

TEST_F(GpuPackage, TriesOnlyWhatIsAskedFor) {
  options_.only = "backward";
  run();
  for (const Json& record : ofKind("test")) EXPECT_EQ(record.at("problem"), kBackward);
  EXPECT_EQ(ofKind("test").size(), 2u);
}

TEST_F(GpuPackage, BlamesWhoLosesTheDeviceAlone) {
  fake_cuda_set_launcher(failBackward, nullptr);
  int runs = 0;
  TestEnd end;
  do {
    fake_cuda_reset();  // a new process
    fake_cuda_set_launcher(failBackward, nullptr);
    end = run();
  } while (end == TestEnd::DeviceLost && ++runs < 10);
  EXPECT_EQ(end, TestEnd::Finished);
  EXPECT_GE(runs, 2) << "together, then alone";
  const std::vector<Json> ended = ofKind("test");
  EXPECT_EQ(ended.size(), 4u);
  for (const Json& record : ended)
    EXPECT_EQ(record.at("failed") > 0, record.at("problem") == kBackward) << record;
  const Json summary = testSummary(records_);
  EXPECT_EQ(summary.at("kernels_wrong"), 1);
  EXPECT_EQ(summary.at("failures").at(0), "tried alone, it lost the device or never ended");
  EXPECT_NE(ofKind("note").at(0).at("text").get<std::string>().find("CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos);
}

TEST_F(GpuPackage, TriesAloneWhoHadNotEnded) {
  records_ = {{{"kind", "begin"},
               {"problem", kForward},
               {"isa", "sm_90"},
               {"schedule", "scalar"},
               {"pass", "first"}}};
  run();
  const std::vector<Json> begun = ofKind("begin");
  EXPECT_TRUE(begun.at(1).value("alone", false));
  EXPECT_EQ(begun.at(1).at("problem"), kForward);
}

TEST_F(GpuPackage, SaysThatThereIsNoDevice) {
  const Kernels opened = kernels();
  fake_cuda_fail("cuDevicePrimaryCtxRetain", 1, 2, FAKE_CUDA_STICKY);
  options_.threads = 1;
  EXPECT_EQ(testPackage(opened, {}, options_), TestEnd::DeviceLost);
  EXPECT_NE(ofKind("note").at(0).at("text").get<std::string>().find("CUDA_ERROR_OUT_OF_MEMORY"),
            std::string::npos);
}

TEST(GpuTrials, PassesShareAllOfTheGatesTrials) {
  const Problem problem = *parseProblem(kBackward, findNorm);
  const size_t all = gate::standardTrials(problem, 128).size();
  const size_t first = trialsOf(problem, 128, true).size(), rest = trialsOf(problem, 128, false).size();
  EXPECT_EQ(first + rest, all);
  EXPECT_GT(first, 2u);
  EXPECT_LT(first, rest);
}

TEST(GpuTrials, HugeRowsAreTriedInSmallNumbers) {
  Problem problem = *parseProblem("layer_norm:forward@f32[*x131072]", findNorm);
  for (const gate::Trial& trial : trialsOf(problem, 131072, false))
    EXPECT_LE(trial.extents.rows, 3) << trial.text(problem);
}

TEST(GpuRecords, SurviveALineThatWasCutOff) {
  const std::string path = test::temporaryPath("records.jsonl");
  std::filesystem::remove(path);
  tune::Journal(path).appendLine(R"({"kind": "one"})");
  std::ofstream(path, std::ios::app) << R"({"kind": "tw)";
  tune::Journal(path).appendLine(R"({"kind": "three"})");
  const std::vector<Json> records = readRecords(path);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at("kind"), "one");
  EXPECT_EQ(records[1].at("kind"), "three");
  EXPECT_TRUE(readRecords(path + ".none").empty());
}

}  // namespace
}  // namespace normc::gpu
