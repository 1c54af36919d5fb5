// `normc run --device cuda:0`, on a device that the emulator plays: files go there and
// come back, state and saved statistics as well.
#ifdef NORMC_FAKE_CUDA

#include <cmath>
#include <cstring>
#include <sstream>

#include "autotune/check/Checker.h"
#include "codegen/Target.h"
#include "codegen/emulator/EmulatedDriver.h"
#include "codegen/targets/cuda/Compile.h"
#include "dsl/Library.h"
#include "tests/cli/Command.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Npy.h"
#include "tools/normc/RunCall.h"

namespace normc::cli {
namespace {

/// Runs in this process, because the fake driver is loaded in it.
class CudaRun : public CommandTest {
 protected:
  void array(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values) const {
    const auto* bytes = reinterpret_cast<const char*>(values.data());
    write(name, npyText({DType::F32, std::move(shape), std::string(bytes, 4 * values.size())}));
  }
  std::vector<float> floats(const std::string& name) const {
    const auto a = parseNpy(read(name), name);
    EXPECT_TRUE(a) << name;
    std::vector<float> values(a ? a->elements() : 0);
    if (a) std::memcpy(values.data(), a->data.data(), a->data.size());
    return values;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// A package for sm_80, and a device sm_90 that runs its PTX.
  void device(const std::string& text) {
    package("n.npk", {text, "--target", "sm_80"});
    driver_ = llvm::cantFail(emulator::EmulatedDriver::open(NORMC_FAKE_CUDA, 9, 0));
    const Problem problem = *parseProblem(text, findNorm);
    const auto target = llvm::cantFail(codegen::findTarget("sm_80"));
    const auto schedule =
        llvm::cantFail(codegen::cuda::parseSchedule(target->bind(problem)->defaults()[0].schedule));
    const auto kernel = llvm::cantFail(codegen::cuda::compileKernel(
        problem, schedule, llvm::cantFail(codegen::cuda::findArch("sm_80")), "k0", {.make = false}));
    std::vector<emulator::EmulatedDriver::Operand> operands;
    for (const package::Operand& o : kernel.manifest.operands) operands.push_back({o.name, true, true});
    driver_->add(kernel.ptx, llvm::cantFail(emulator::Program::compile(kernel.ptx)), operands);
  }
  PlanFlags flags(const std::string& problem) const {
    PlanFlags flags;
    flags.file = path("n.npk"), flags.problem = problem;
    flags.place = {"cuda:0", NORMC_FAKE_CUDA};
    return flags;
  }

  std::unique_ptr<emulator::EmulatedDriver> driver_;
  std::ostringstream results_, talk_;
  Output out_{results_, talk_};
};

TEST_F(CudaRun, NormalizesTwoRowsByHand) {
  device("layer_norm:forward@f32[*x2]");
  array("x.npy", {2, 2}, {3, -1, 5, 7});
  array("scale.npy", {2}, {1, 1});
  array("bias.npy", {2}, {0, 0});
  Planned planned(flags("layer_norm:forward@f32[*x2]"), "run");
  RunCall call(planned, {{"x", path("x.npy")}, {"scale", path("scale.npy")}, {"bias", path("bias.npy")}},
               {{"y", path("y.npy")}}, out_);
  call.upload();
  call.execute();
  call.download();
  call.write();
  // Rows (3, -1) and (5, 7): means 1 and 6, deviations 2 and 1, epsilon 1e-5.
  const float first = 2 / std::sqrt(4 + 1e-5), second = 1 / std::sqrt(1 + 1e-5);
  const std::vector<float> y = floats("y.npy");
  ASSERT_EQ(y.size(), 4u);
  EXPECT_FLOAT_EQ(y[0], first);
  EXPECT_FLOAT_EQ(y[1], -first);
  EXPECT_FLOAT_EQ(y[2], -second);
  EXPECT_FLOAT_EQ(y[3], second);
  EXPECT_EQ(driver_->takeLaunches().size(), planned.kernel().phases.size());
}

TEST_F(CudaRun, BringsStateAndSavedStatisticsBack) {
  device("power_norm:forward@f32[*x2]");
  array("x.npy", {2, 2}, {3, -1, 5, 7});
  array("scale.npy", {2}, {1, 1});
  array("bias.npy", {2}, {0, 0});
  Planned planned(flags("power_norm:forward@f32[*x2]"), "run");
  RunCall call(planned, {{"x", path("x.npy")}, {"scale", path("scale.npy")}, {"bias", path("bias.npy")}}, {},
               out_);
  EXPECT_EQ(call.state().scalar("step"), 0);  // a fresh one came from the device
  call.upload();
  call.execute();
  call.execute();  // from the same state
  call.download();
  writeFields(path("state"), call.stateAfter());
  writeFields(path("saved"), call.saved());
  // psi2' = 0.9 * 1 + 0.1 * mean(x^2), with mean(x^2) = 17 and 25.
  EXPECT_FLOAT_EQ(floats("state/psi2.npy")[0], 2.6f);
  EXPECT_FLOAT_EQ(floats("state/psi2.npy")[1], 3.4f);
  EXPECT_EQ(call.stateAfter().scalar("step"), 1);
  EXPECT_TRUE(exists("saved/rstd.npy"));
}

TEST_F(CudaRun, SaysThatTheDeviceFailed) {
  device("layer_norm:forward@f32[*x2]");
  array("x.npy", {2, 2}, {3, -1, 5, 7});
  array("scale.npy", {2}, {1, 1});
  array("bias.npy", {2}, {0, 0});
  Planned planned(flags("layer_norm:forward@f32[*x2]"), "run");
  RunCall call(planned, {{"x", path("x.npy")}, {"scale", path("scale.npy")}, {"bias", path("bias.npy")}}, {},
               out_);
  driver_->options.maxSteps = 1;  // every launch is a runaway
  call.upload();
  try {
    call.execute();
    FAIL() << "a launch that failed went unnoticed";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::Refused);
    EXPECT_TRUE(contains(failure.what(), "cuda:0"));
    EXPECT_TRUE(contains(failure.what(), "CUDA_ERROR_LAUNCH_FAILED, unspecified launch failure"));
  }
}

TEST_F(CudaRun, CheckJudgesOnTheDevice) {
  device("rms_norm:infer@f32[*x8]");
  const Place place({"cuda:0", NORMC_FAKE_CUDA});
  const gate::PackageFile file(path("n.npk"), 1, place.cudaLibrary());
  check::Checker checker(file, place.cuda());
  const gate::KernelVerdict verdict = *checker.check(0, {});
  EXPECT_EQ(verdict.skipped, "");
  EXPECT_EQ(verdict.failed, 0) << verdict.failures.front();
  EXPECT_GT(verdict.trials, 15);
  EXPECT_FALSE(verdict.emulated);
  EXPECT_TRUE(contains(checker.text(), ", sm_90"));
}

TEST_F(CudaRun, CheckEndsWithTheDevice) {
  device("rms_norm:infer@f32[*x8]");
  const Place place({"cuda:0", NORMC_FAKE_CUDA});
  const gate::PackageFile file(path("n.npk"), 1, place.cudaLibrary());
  check::Checker checker(file, place.cuda());
  driver_->options.maxSteps = 1;
  const gate::KernelVerdict verdict = *checker.check(0, {});
  EXPECT_EQ(verdict.failed, 1);
  EXPECT_TRUE(verdict.deviceLost);
  ASSERT_EQ(verdict.failures.size(), 1u);
  EXPECT_TRUE(contains(verdict.failures[0], "CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_EQ(checker.check(0, {})->skipped, "the device was lost with kernel 0");
}

}  // namespace
}  // namespace normc::cli

#endif
