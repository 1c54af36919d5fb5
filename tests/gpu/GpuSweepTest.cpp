// A sweep over the candidates of a bundle, on the fake driver with kernels in plain C++.
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/gpu/Sweep.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/gpu/Packed.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::gpu {
namespace {

class GpuSweep : public test::CudaTest {
 protected:
  GpuSweep() {
    fake_cuda_set_launcher(test::runOnCpu, nullptr);
    std::filesystem::create_directories(folder_);
    tune::Shipped task;
    task.setting.task = {*parseProblemText("layer_norm:forward@f32[*x128]"), "hash", 1, 9, 128, 1, "cold"};
    task.setting.device = {"cuda", "sm_80", "", {}}, task.setting.toolchain = {{"normc", "test"}};
    test::packTwo(folder_, task);
  }
  ~GpuSweep() override {
    fake_cuda_set_launcher(nullptr, nullptr);
    std::filesystem::remove_all(folder_);
  }

  /// Returns the records of a sweep after those of `before`.
  std::vector<Json> swept(const std::vector<Json>& before = {}, const std::string& only = "") const {
    std::vector<Json> records;
    SweepOptions options;
    options.rounds = 3, options.sampleSeconds = 1e-6, options.driver = NORMC_FAKE_CUDA, options.only = only;
    options.record = [&](const Json& record) { records.push_back(record); };
    sweepBundle(gate::CudaDevice(0, NORMC_FAKE_CUDA), folder_, before, options);
    return records;
  }

  std::string folder_ = test::temporaryPath("gpu_sweep");
};

TEST_F(GpuSweep, TimesEachCandidateBesideTheRoof) {
  const std::vector<Json> records = swept();
  ASSERT_EQ(records.size(), 4u);
  for (size_t i : {0u, 2u}) {
    const Json &begin = records[i], &result = records[i + 1];
    EXPECT_EQ(begin.at("kind"), "begin");
    EXPECT_EQ(result.at("kind"), "sweep");
    EXPECT_EQ(result.at("shape"), "layer_norm:forward@f32[9x128]");
    EXPECT_EQ(result.at("schedule"), i ? "other" : "default");
    EXPECT_EQ(result.at("default"), i == 0);
    EXPECT_GT(result.at("us").at("median"), 0) << result;
    EXPECT_GT(result.at("roof_time_over_ours").at("value"), 0);
  }
}

TEST_F(GpuSweep, GoesOnBehindWhatIsDone) {
  std::vector<Json> before = swept();
  EXPECT_TRUE(swept(before).empty());
  before.pop_back();  // the last candidate began, and did not end
  const std::vector<Json> records = swept(before);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("schedule"), "other");
  EXPECT_EQ(records[0].at("error"), "it did not end");
  before.push_back(records[0]);
  EXPECT_TRUE(swept(before).empty()) << "nor is it tried again";
}

TEST_F(GpuSweep, TakesTheProblemsThatAreAskedForAlone) {
  EXPECT_EQ(swept({}, "forward@f32").size(), 4u);
  EXPECT_TRUE(swept({}, "backward").empty());
}

TEST_F(GpuSweep, SaysOfACandidateWhyItCannotRun) {
  std::filesystem::remove(folder_ + "/other.npk");
  const std::vector<Json> records = swept();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_GT(records[1].at("us").at("median"), 0);
  EXPECT_NE(records[3].at("error").get<std::string>().find("other.npk"), std::string::npos) << records[3];
}

}  // namespace
}  // namespace normc::gpu
