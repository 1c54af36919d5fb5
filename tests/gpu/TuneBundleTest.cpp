// A bundle for a GPU, measured by a worker through the fake driver: the whole way from plan to records,
// without a compiler and without a device.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "autotune/tune/Bundle.h"
#include "autotune/tune/ThisDevice.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/gpu/Packed.h"

namespace normc::test {
namespace {

using namespace tune;

class TuneBundle : public testing::Test {
 protected:
  TuneBundle() {
    std::string form = (std::filesystem::temp_directory_path() / "normc-bundle-XXXXXX").string();
    folder_ = mkdtemp(form.data());
    run_.folder = folder_, run_.records = folder_ + "/results.jsonl", run_.worker = NORMC_WORKER;
    run_.cudaLibrary = NORMC_WORKING_DRIVER, run_.budget = 2;
  }
  ~TuneBundle() override { std::filesystem::remove_all(folder_); }

  void pack(const std::string& entry, const std::string& policy) {
    const auto spec = *findNorm("layer_norm");
    Shipped shipped;
    shipped.setting.task = {*parseProblemText("layer_norm:" + entry + "@f32[*x128]"),
                            spec->structuralHash(),
                            1,
                            9,
                            128,
                            1,
                            policy};
    shipped.setting.spec = print(*spec);
    shipped.setting.device = {"cuda", "sm_90", "", {}}, shipped.setting.toolchain = {{"normc", "test"}};
    packTwo(folder_, shipped);
  }

  std::string folder_;
  BundleRun run_;
};

TEST_F(TuneBundle, IsJudgedAndTimedOnADevice) {
  for (const char* entry : {"forward", "backward"})
    for (const char* policy : {"warm", "cold", "pipeline"}) {
      std::filesystem::remove(run_.records);
      pack(entry, policy);
      std::string said;
      run_.say = [&](const std::string& line) { said += line; };
      EXPECT_EQ(runBundle(run_), BundleEnd::Whole) << said;
      const auto database = readDatabase(run_.records);
      ASSERT_TRUE(database);
      int right = 0;
      for (const Record& record : database->records) {
        EXPECT_EQ(record.status, Status::Ok) << record.reason;
        EXPECT_EQ(record.device.kind, "cuda");
        EXPECT_GT(record.device.facts.at("multiprocessors"), 0);
        right += record.kind == RecordKind::Trial && record.stage == "screen" && record.trials > 10;
      }
      EXPECT_EQ(right, 2) << entry << " " << policy;
    }
}

TEST_F(TuneBundle, ADriverThatIsNotThereIsSaid) {
  pack("forward", "warm");
  run_.cudaLibrary = "libnone.so.9";
  try {
    runBundle(run_);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("libnone.so.9"), std::string::npos) << error.what();
  }
}

TEST_F(TuneBundle, ADeviceIsKnownByItsFacts) {
  const Device device = thisCudaDevice(0, NORMC_WORKING_DRIVER);
  EXPECT_EQ(device.kind, "cuda");
  EXPECT_EQ(device.arch, "sm_" + std::to_string(device.facts.at("compute")));
  EXPECT_FALSE(device.name.empty());
}

}  // namespace
}  // namespace normc::test
