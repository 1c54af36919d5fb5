// The gate on a device's memory: what it sees there, and what becomes of a device that fails.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autotune/gate/Gate.h"
#include "dsl/Library.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using gate::CudaDevice;
using gate::CudaError;
using gate::Trial;
using gate::Verdict;

const char kForward[] = "layer_norm:forward@f32[*x128]";
const char kBackward[] = "layer_norm:backward@f32[*x128]";
constexpr int kOutOfMemory = 2, kIllegalAddress = 700;

/// A launcher that runs the kernel and then does what a test wants.
struct Mischief {
  std::function<int(const fake_cuda_launch&)> after;
  static int run(void* user, const fake_cuda_launch* launch) {
    runOnCpu(nullptr, launch);
    return static_cast<Mischief*>(user)->after(*launch);
  }
};

class DeviceGate : public CudaTest {
 protected:
  DeviceGate() { fake_cuda_set_launcher(runOnCpu, nullptr); }
  ~DeviceGate() override { fake_cuda_set_launcher(nullptr, nullptr); }

  void also(std::function<int(const fake_cuda_launch&)> mischief) {
    mischief_.after = std::move(mischief);
    fake_cuda_set_launcher(Mischief::run, &mischief_);
  }
  static Problem problemOf(const char* text) { return *parseProblem(text, findNorm); }
  static Trial plain() { return {.extents = {1, 5, 128}}; }

  Verdict judge(const char* problem, const Trial& trial, const CudaDevice& device) {
    const host::Package package = open(layerNormPackage());
    const host::Plan plan(package, problem, host::onCuda());
    return gate::judge(plan.get(), problemOf(problem), trial, &device);
  }
  std::string failure(const char* problem, const Trial& trial) {
    const CudaDevice device(0, NORMC_FAKE_CUDA);
    const Verdict verdict = judge(problem, trial, device);
    return verdict.ok ? "right" : verdict.text;
  }

 private:
  Mischief mischief_;
};

/// The word of a launch as floats.
float* floatsOf(const fake_cuda_launch& launch, size_t word) {
  return reinterpret_cast<float*>(static_cast<const uint64_t*>(launch.parameters)[word]);
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

TEST_F(DeviceGate, PassesRightKernelsInEveryTrial) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  for (const char* text : {kForward, kBackward}) {
    const host::Package package = open(layerNormPackage());
    const host::Plan plan(package, text, host::onCuda());
    for (const Trial& trial : gate::standardTrials(problemOf(text), 128)) {
      const Verdict verdict = gate::judge(plan.get(), problemOf(text), trial, &device);
      EXPECT_TRUE(verdict.ok) << verdict.text;
    }
  }
}

TEST_F(DeviceGate, GivesMemoryOfTheDeviceAndItsStream) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  int onDevice = 0, aligned = 0;
  also([&](const fake_cuda_launch& launch) {
    for (size_t operand = 0; operand < 6; ++operand) {  // x, scale, bias, y, mean, rstd
      const auto address = reinterpret_cast<uint64_t>(floatsOf(launch, operand));
      fake_cuda_allocation allocation;
      onDevice += fake_cuda_allocation_of(address, &allocation);
      aligned += address % 64 == 0;
    }
    return 0;
  });
  ASSERT_TRUE(judge(kForward, plain(), device).ok);
  EXPECT_EQ(onDevice, 12) << "in each of two runs";
  EXPECT_EQ(aligned, 12);
  EXPECT_EQ(launches().at(0).stream, device.stream());
  EXPECT_EQ(launches().at(0).function, "layer_norm_forward");
}

TEST_F(DeviceGate, MisalignsTheDevicesMemory) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  Trial trial = plain();
  trial.placement.misalign = 1;
  ASSERT_TRUE(judge(kForward, trial, device).ok);
  EXPECT_EQ(launches().at(0).words[0] % 64, 4u);
  EXPECT_EQ(launches().at(0).function, "layer_norm_forward_any");
}

TEST_F(DeviceGate, SeesAWrongNumber) {
  also([](const fake_cuda_launch& launch) {
    floatsOf(launch, 3)[128] += 1;
    return 0;
  });
  EXPECT_TRUE(contains(failure(kForward, plain()), "y: "));
}

TEST_F(DeviceGate, SeesWhatIsNeverWritten) {
  fake_cuda_set_launcher(nullptr, nullptr);
  EXPECT_NE(failure(kForward, plain()), "right");
}

TEST_F(DeviceGate, SeesAWriteBehindATensor) {
  also([](const fake_cuda_launch& launch) {
    floatsOf(launch, 3)[5 * 128] = 0;
    return 0;
  });
  EXPECT_TRUE(contains(failure(kForward, plain()), "memory around y was written"));
}

TEST_F(DeviceGate, SeesAWriteBetweenRows) {
  also([](const fake_cuda_launch& launch) {
    floatsOf(launch, 3)[128] = 0;
    return 0;
  });
  Trial trial = plain();
  trial.placement.rowPadding = 3;
  EXPECT_TRUE(contains(failure(kForward, trial), "memory between rows of y was written"));
}

TEST_F(DeviceGate, SeesAWriteBehindTheSavedStatistics) {
  also([](const fake_cuda_launch& launch) {
    floatsOf(launch, 5)[16] = 0;  // rstd: 5 numbers, padded to 64 bytes
    return 0;
  });
  EXPECT_TRUE(
      contains(failure(kForward, plain()), "memory around state, saved statistics, partials or workspace"));
}

TEST_F(DeviceGate, SeesThatTheSecondRunDiffers) {
  int runs = 0;
  also([&](const fake_cuda_launch& launch) {
    if (++runs == 2) floatsOf(launch, 3)[0] = std::nextafter(floatsOf(launch, 3)[0], 1e9f);
    return 0;
  });
  EXPECT_TRUE(contains(failure(kForward, plain()), "y differs from run to run"));
}

TEST_F(DeviceGate, ReportsAKernelThatFails) {
  also([](const fake_cuda_launch&) { return kIllegalAddress; });
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  EXPECT_TRUE(device.alive());
  const Verdict verdict = judge(kForward, plain(), device);
  EXPECT_FALSE(verdict.ok);
  EXPECT_TRUE(contains(verdict.text, std::string(kForward) + " on 5x128"));
  EXPECT_TRUE(contains(verdict.text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_FALSE(device.alive());
}

TEST_F(DeviceGate, ReportsThatMemoryRanOut) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const host::Package package = open(layerNormPackage());
  const host::Plan plan(package, kForward, host::onCuda());
  fake_cuda_fail("cuMemAlloc_v2", 3, kOutOfMemory, FAKE_CUDA_ONCE);
  const Verdict verdict = gate::judge(plan.get(), problemOf(kForward), plain(), &device);
  EXPECT_TRUE(contains(verdict.text, "allocating "));
  EXPECT_TRUE(contains(verdict.text, "CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_F(DeviceGate, ReportsALaunchThatIsRefused) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const host::Package package = open(layerNormPackage());
  const host::Plan plan(package, kForward, host::onCuda());
  for (const char* launch : {"cuLaunchKernel", "cuLaunchKernelEx"})
    fake_cuda_fail(launch, 1, 701, FAKE_CUDA_ONCE);
  const Verdict verdict = gate::judge(plan.get(), problemOf(kForward), plain(), &device);
  EXPECT_TRUE(contains(verdict.text, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  EXPECT_TRUE(device.alive());
}

TEST_F(DeviceGate, GivesAllMemoryBack) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const size_t before = fake_cuda_live_allocations();
  ASSERT_TRUE(judge(kBackward, plain(), device).ok);
  EXPECT_EQ(fake_cuda_live_allocations(), before);
}

std::string whyNoDevice(int index, const std::string& library) {
  try {
    const CudaDevice device(index, library);
    return "a device";
  } catch (const CudaError& error) {
    return error.what();
  }
}

TEST_F(DeviceGate, SaysWhyThereIsNoDevice) {
  EXPECT_TRUE(
      contains(whyNoDevice(0, "libno_such_driver.so"), "cannot load the CUDA driver libno_such_driver.so"));
  EXPECT_TRUE(contains(whyNoDevice(0, "libm.so.6"), "libm.so.6 has no function cuInit"));
  EXPECT_EQ(whyNoDevice(3, NORMC_FAKE_CUDA), "there is no device cuda:3; this machine has 1");
  fake_cuda_fail("cuInit", 1, 100, FAKE_CUDA_ONCE);
  EXPECT_TRUE(contains(whyNoDevice(0, NORMC_FAKE_CUDA), "CUDA_ERROR_NO_DEVICE"));
}

}  // namespace
}  // namespace normc::test
