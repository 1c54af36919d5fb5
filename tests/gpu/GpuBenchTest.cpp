// The tools of bench/gpu: the roof's kernels, cold buffers, timers, one norm on many buffers.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "autotune/records/Database.h"
#include "autotune/tune/Bundle.h"
#include "autotune/tune/ThisDevice.h"
#include "autotune/worker/WorkerRequests.h"
#include "bench/gpu/Bench.h"
#include "bench/gpu/Facts.h"
#include "bench/gpu/Host.h"
#include "bench/gpu/Shapes.h"
#include "bench/kit/TrainingCall.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "tests/gpu/CpuKernels.h"
#include "tests/gpu/Packed.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::gpu {
namespace {

using gate::CudaDevice;
using gate::CudaMemory;

class GpuBench : public test::CudaTest {
 protected:
  GpuBench() { fake_cuda_set_launcher(test::runOnCpu, nullptr); }
  ~GpuBench() override { fake_cuda_set_launcher(nullptr, nullptr); }

  static std::string packageFile() {
    const std::string path = test::temporaryPath("gpu_bench.npk"), bytes = test::layerNormPackage().bytes();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static Kernels kernels() { return Kernels(packageFile(), NORMC_FAKE_CUDA, 0); }
  static ProblemText shape(const std::string& entry) {
    return *parseProblemText("layer_norm:" + entry + "@f32[9x128]");
  }
};

std::vector<float> download(const CudaDevice& device, const CudaMemory& memory) {
  std::vector<float> values(size_t(memory.bytes()) / 4);
  device.download(values.data(), memory.address(), memory.bytes());
  device.synchronize();
  return values;
}

TEST_F(GpuBench, FactsAreThoseOfTheDriver) {
  const fake_cuda_device small = {8, 0, 108, 0};
  fake_cuda_set_devices(1, &small);
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const Json facts = factsOf(device);
  EXPECT_EQ(archOf(device), "sm_80");
  EXPECT_EQ(facts.at("multiprocessors"), 108);
  EXPECT_EQ(facts.at("memory_bytes"), 1 << 30);
  EXPECT_EQ(facts.at("cuda_version_of_driver"), 13000);
}

TEST_F(GpuBench, ColdSetsOutgrowTheCacheTwice) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const int64_t cache = device.attribute(cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(coldSets(device, 10 * cache), 2);
  EXPECT_EQ(coldSets(device, 1), 64);
  for (const int64_t bytes : {cache / 20, cache / 3, cache, 2 * cache})
    EXPECT_GT(coldSets(device, bytes) * bytes, 2 * cache);
}

TEST_F(GpuBench, RoofEntriesStandInItsText) {
  const std::string text = Roof::ptx();
  for (const int inFlight : Roof::kInFlight)
    for (const char* kind : {"copy_", "triad_", "read_"})
      EXPECT_NE(text.find(".entry " + (kind + std::to_string(inFlight)) + "("), text.npos)
          << kind << inFlight;
}

TEST_F(GpuBench, RoofAssemblesWithoutSpillsIn16ByteAccesses) {
  if (std::string(NORMC_PTXAS).empty()) GTEST_SKIP() << "no ptxas";
  const std::string ptx = test::temporaryPath("roof.ptx"), log = test::temporaryPath("roof.log");
  std::ofstream(ptx) << Roof::ptx();
  for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
    const std::string command =
        std::string(NORMC_PTXAS) + " -v -arch=" + arch + " " + ptx + " -o /dev/null >" + log + " 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream stream(log);
    const std::string said(std::istreambuf_iterator<char>(stream), {});
    EXPECT_NE(said.find(" 0 bytes spill stores"), said.npos) << said;
  }
  // Every access of global memory is one of four words.
  const std::string text = Roof::ptx();
  for (const std::string access : {"ld.global", "st.global"})
    for (size_t at = text.find(access); at != text.npos; at = text.find(access, at + 1))
      EXPECT_NE(text.substr(at, text.find(' ', at) - at).find(".v4.f32"), std::string::npos);
}

TEST_F(GpuBench, RoofCopiesAndAddsWhatItIsGiven) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const Roof roof(device);
  const CudaMemory a = filled(device, DType::F32, 4000, 1), b = filled(device, DType::F32, 4000, 2);
  const CudaMemory to(device, 4000);
  const RoofBuffers buffers = {to.address(), a.address(), b.address(), 4000};
  roof.enqueue(RoofKind::Copy, {256, 1, 2}, buffers);
  const std::vector<float> first = download(device, a), second = download(device, b);
  EXPECT_EQ(download(device, to), first);
  roof.enqueue(RoofKind::Triad, {256, 1, 4}, buffers);
  EXPECT_FLOAT_EQ(download(device, to)[999], first[999] + 0.5f * second[999]);
  const std::vector<test::Launched> all = test::launches();
  EXPECT_EQ(all.at(0).function, "copy_2");
  EXPECT_EQ(all.at(1).function, "triad_4");
}

TEST_F(GpuBench, ARoofThatReadsMovesEachByteOnceAndLoadsAsACopyDoes) {
  EXPECT_EQ(bytesMoved(RoofKind::Read, 4096), 4096);
  const std::string text = Roof::ptx();
  const auto loadsOf = [&](const std::string& entry) {
    const size_t begin = text.find(".entry " + entry + "("), end = text.find("ret;", begin);
    int count = 0;
    for (size_t at = text.find("ld.global", begin); at < end; at = text.find("ld.global", at + 1)) ++count;
    return count;
  };
  for (const int inFlight : Roof::kInFlight)
    EXPECT_EQ(loadsOf("read_" + std::to_string(inFlight)), loadsOf("copy_" + std::to_string(inFlight)));
}

TEST_F(GpuBench, RoofTriesManyLaunches) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const Roof roof(device);
  const CudaMemory from = filled(device, DType::F32, 1 << 16, 1), to(device, 1 << 16);
  fake_cuda_clear_record();
  const RoofLaunch best = roof.tuned(RoofKind::Copy, {{to.address(), from.address(), 0, 1 << 16}});
  std::set<std::pair<std::string, unsigned>> tried;
  for (const test::Launched& launch : test::launches()) {
    tried.emplace(launch.function, launch.block.at(0));
    EXPECT_GE(int64_t(launch.grid.at(0)) * launch.block.at(0) * 16 * 4, 1 << 16);
  }
  EXPECT_EQ(tried.size(), 9u) << "three blocks with one, two and four accesses in flight";
  EXPECT_TRUE(tried.contains({"copy_" + std::to_string(best.inFlight), unsigned(best.block)}));
}

TEST_F(GpuBench, ARoofOrAStopwatchThatFailsHalfWayLeavesNothing) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const size_t before = fake_cuda_live_objects();
  fake_cuda_fail("cuModuleGetFunction", 2, cuda::CUDA_ERROR_OUT_OF_MEMORY, FAKE_CUDA_ONCE);
  EXPECT_THROW(Roof{device}, gate::CudaError);
  EXPECT_EQ(fake_cuda_live_objects(), before);
  fake_cuda_fail("cuEventCreate", 2, cuda::CUDA_ERROR_OUT_OF_MEMORY, FAKE_CUDA_ONCE);
  EXPECT_THROW(Stopwatch{device}, gate::CudaError);
  EXPECT_EQ(fake_cuda_live_objects(), before);
}

TEST_F(GpuBench, FilledMemoryIsFiniteAndVaries) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const std::vector<float> values = download(device, filled(device, DType::F32, 9 << 20, 7));
  std::set<float> different(values.begin(), values.begin() + 1000);
  EXPECT_GT(different.size(), 990u);
  for (const float value : values) ASSERT_LT(std::abs(value), 4);
}

TEST_F(GpuBench, TimerCallsEverySetEquallyOften) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  std::vector<int> calls(3);
  const CudaTimer timer(device, [&](int set) { ++calls[size_t(set)]; }, 3, 1e-9);
  EXPECT_EQ(timer.calls() % 3, 0);
  EXPECT_EQ(calls[0], calls[1]);
  EXPECT_EQ(calls[1], calls[2]);
  EXPECT_GE(timer.sample(), 0);
}

TEST_F(GpuBench, TimerEndsACaptureThatFails) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  int calls = 0;
  const auto enqueue = [&](int) {
    if (++calls > 4) throw std::runtime_error("refused");  // two warm up, two are timed, then the capture
  };
  EXPECT_THROW(CudaTimer(device, enqueue, 2, 1e-9), std::runtime_error);
  EXPECT_TRUE(device.alive()) << "the stream is not left in a capture";
}

TEST_F(GpuBench, RaceTakesTurns) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const CudaTimer one(device, [](int) {}, 2, 1e-9), other(device, [](int) {}, 2, 1e-9);
  const auto samples = race({&one, &other}, 5);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].size(), 5u);
  EXPECT_EQ(samples[1].size(), 5u);
}

TEST_F(GpuBench, ACallRunsOnEverySet) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const Kernels package = kernels();
  for (const char* entry : {"forward", "backward"}) {
    const TrainingCall call(device, package, shape(entry), 3);
    std::set<std::vector<char>> wide;
    call.startAfresh();
    for (int set = 0; set < call.sets(); ++set) {
      call.enqueue(set);
      const auto outputs = call.outputs(set);
      float value;
      std::memcpy(&value, outputs.at(0).data(), 4);
      EXPECT_TRUE(std::isfinite(value)) << entry << set;
      wide.insert(outputs.at(0));
    }
    EXPECT_EQ(wide.size(), 3u) << "each set has an x of its own";
  }
}

TEST_F(GpuBench, TheRoofHasTheBytesOfASet) {
  const Kernels package = kernels();
  const auto bytesOfSet = [&](const char* entry) {
    return Buffers::bytesOfSet(package.problem(shape(entry).withoutSizes().text()), {1, 9, 128});
  };
  EXPECT_EQ(bytesOfSet("forward"), bytesMoved(RoofKind::Copy, 9 * 128 * 4));
  EXPECT_EQ(bytesOfSet("backward"), bytesMoved(RoofKind::Triad, 9 * 128 * 4));
}

TEST_F(GpuBench, RecordsEveryShapeBesideItsRoof) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  std::vector<Json> records;
  BenchOptions options;
  options.rounds = 3, options.sampleSeconds = 1e-6;
  options.record = [&](const Json& record) { records.push_back(record); };
  benchAll(device, kernels(), {shape("forward"), shape("backward")}, {}, options);
  ASSERT_EQ(records.size(), 4u) << "each begins and ends";
  EXPECT_EQ(records[0], Json({{"kind", "begin"}, {"shape", "layer_norm:forward@f32[9x128]"}}));
  EXPECT_EQ(records[1].at("shape"), "layer_norm:forward@f32[9x128]");
  EXPECT_EQ(records[1].at("roof").at("kind"), "copy");
  EXPECT_EQ(records[3].at("roof").at("kind"), "triad");
  for (const Json& record : {records[1], records[3]}) {
    EXPECT_FALSE(record.contains("wrong")) << record;
    EXPECT_GT(record.at("us").at("median"), 0);
    EXPECT_LE(record.at("of_roof").at("low"), record.at("of_roof").at("high"));
  }
}

/// The worker's own words, in this process: what it launches can be seen.
class GpuWorker : public GpuBench {
 protected:
  void begin(const std::string& entry, const std::string& policy) {
    const auto spec = *findNorm("layer_norm");
    worker_ = std::make_unique<tune::WorkerRequests>();
    say({{"do", "task"},
         {"problem", "layer_norm:" + entry + "@f32[*x128]"},
         {"spec", print(*spec)},
         {"segments", 1},
         {"rows", 64},
         {"features", 128},
         {"threads", 1},
         {"policy", policy},
         {"sample_seconds", 1e-6},
         {"device", "cuda"},
         {"cuda_library", NORMC_FAKE_CUDA}});
    say({{"do", "load"}, {"name", "a"}, {"package", packageFile()}});
  }
  Json say(const Json& request) {
    const Json answer = worker_->answer(request);
    EXPECT_FALSE(answer.contains("error")) << answer;
    return answer;
  }
  std::unique_ptr<tune::WorkerRequests> worker_;
};

TEST_F(GpuWorker, APipelineTimesTheReaderOfEachOutput) {
  for (const char* entry : {"forward", "backward"}) {
    SCOPED_TRACE(entry);
    begin(entry, "pipeline");
    say({{"do", "sample"}, {"names", {"a"}}, {"rounds", 1}});  // decides how the reader is launched
    fake_cuda_clear_record();
    const Json answer = say({{"do", "sample"}, {"names", {"a"}}, {"rounds", 2}});
    for (const double seconds : answer.at("samples").at(0)) EXPECT_GT(seconds, 0);
    std::vector<std::string> order;
    for (const test::Launched& launch : test::launches()) order.push_back(launch.function);
    const auto readers =
        std::ranges::count_if(order, [](const auto& name) { return name.starts_with("read_"); });
    const std::string last = std::string(entry) == "forward" ? "layer_norm_forward" : "layer_norm_finish";
    EXPECT_GT(readers, 0);
    for (size_t i = 0; i < order.size(); ++i)
      if (order[i].starts_with("read_")) EXPECT_TRUE(i > 0 && order[i - 1].starts_with(last)) << order[i - 1];
  }
}

TEST_F(GpuWorker, WarmAndColdReadNothingBeside) {
  for (const char* policy : {"warm", "cold"}) {
    begin("forward", policy);
    fake_cuda_clear_record();
    say({{"do", "sample"}, {"names", {"a"}}, {"rounds", 1}});
    for (const test::Launched& launch : test::launches())
      EXPECT_TRUE(launch.function.starts_with("layer_norm_forward")) << policy << ": " << launch.function;
  }
}

TEST_F(GpuWorker, HasTheRoofOfItsBuffers) {
  begin("forward", "cold");
  EXPECT_GT(say({{"do", "copy"}, {"reads", 1}, {"writes", 1}}).at("seconds"), 0);
  EXPECT_EQ(say({{"do", "copy"}, {"reads", 2}, {"writes", 1}}).at("seconds"), 0)
      << "no such loop for a forward";
  EXPECT_TRUE(
      std::ranges::any_of(test::launches(), [](const auto& l) { return l.function.starts_with("copy_"); }));
  begin("backward", "warm");
  fake_cuda_clear_record();
  EXPECT_GT(say({{"do", "copy"}, {"reads", 2}, {"writes", 1}}).at("seconds"), 0);
  EXPECT_TRUE(
      std::ranges::any_of(test::launches(), [](const auto& l) { return l.function.starts_with("triad_"); }));
}

TEST_F(GpuWorker, ACopyBeforeAnythingIsLoadedIsSaid) {
  tune::WorkerRequests fresh;
  EXPECT_EQ(fresh.answer({{"do", "copy"}, {"reads", 1}, {"writes", 1}}).at("error"),
            "nothing is loaded yet that could be copied");
}

/// A bundle of two candidates for the forward of shape(), and records in which the second one has `verdict`.
class GpuTuned : public GpuBench {
 protected:
  GpuTuned() {
    std::filesystem::create_directories(folder_);
    task_.setting.task = {*parseProblemText("layer_norm:forward@f32[*x128]"), "hash", 1, 9, 128, 0, "cold"};
    task_.setting.device = {"cuda", "sm_80", "", {}}, task_.setting.toolchain = {{"normc", "test"}};
    test::packTwo(folder_, task_);
  }
  ~GpuTuned() override { std::filesystem::remove_all(folder_); }

  void decide(tune::Verdict verdict, const std::string& schedule, const std::string& device = "") {
    tune::Record record;
    record.kind = tune::RecordKind::Choice, record.stage = "race", record.task = task_.setting.task,
    record.task.threads = 1;
    record.device = tune::thisCudaDevice(0, NORMC_FAKE_CUDA), record.device.arch = "sm_80";
    if (!device.empty()) record.device.name = device;
    record.toolchain = task_.setting.toolchain, record.generator = "hand", record.schedule = schedule;
    record.conclusion = {verdict, 0.8, 0.7, 0.9}, record.samples = {8e-6}, record.reference = {1e-5};
    tune::Journal(folder_ + "/tuned.jsonl").append(record);
  }
  Choices tuned() const { return choicesOf(folder_, folder_ + "/tuned.jsonl", NORMC_FAKE_CUDA, 0); }
  Json timed(const std::vector<Json>& before = {}) const {
    const CudaDevice device(0, NORMC_FAKE_CUDA);
    Json last;
    BenchOptions options;
    options.rounds = 3, options.sampleSeconds = 1e-6, options.driver = NORMC_FAKE_CUDA;
    options.tuned = tuned();
    options.record = [&](const Json& record) { last = record; };
    benchAll(device, kernels(), {shape("forward")}, before, options);
    return last;
  }

  std::string folder_ = test::temporaryPath("gpu_tuned");
  tune::Shipped task_;
};

TEST_F(GpuTuned, WhatWonIsTimedBesideTheDefault) {
  decide(tune::Verdict::Won, "other");
  const Json record = timed();
  EXPECT_EQ(record.at("tuned").at("verdict"), "won") << record;
  EXPECT_EQ(record.at("tuned").at("schedule"), "other");
  EXPECT_GT(record.at("tuned").at("us").at("median"), 0);
  EXPECT_GT(record.at("tuned").at("default_over_tuned").at("value"), 0);
  EXPECT_GT(record.at("us").at("median"), 0);
}

TEST_F(GpuTuned, ATieLeavesTheDefaultAlone) {
  decide(tune::Verdict::Tie, "default");
  EXPECT_EQ(timed().at("tuned"), Json({{"verdict", "tie"}, {"schedule", "default"}}));
}

TEST_F(GpuTuned, ChoicesOfAnotherDeviceAreNone) {
  decide(tune::Verdict::Won, "other", "Another GPU");
  EXPECT_TRUE(tuned().empty());
  EXPECT_FALSE(timed().contains("tuned"));
}

TEST_F(GpuTuned, AShapeIsMeasuredAgainOnceTuningHasDecidedOnIt) {
  const Json begin = {{"kind", "begin"}, {"shape", shape("forward").text()}}, untuned = timed();
  EXPECT_TRUE(timed({begin, untuned}).is_null()) << "nothing is new";
  decide(tune::Verdict::Won, "other");
  const Json tuned = timed({begin, untuned});
  EXPECT_TRUE(tuned.contains("tuned")) << tuned;
  EXPECT_TRUE(timed({begin, untuned, begin, tuned}).is_null());
  EXPECT_EQ(timed({begin, untuned, begin}).at("error"), "it did not end");
}

TEST_F(GpuBench, DoesNotTimeWhatIsWrong) {
  fake_cuda_set_launcher(nullptr, nullptr);
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  Json last;
  BenchOptions options;
  options.rounds = 3, options.sampleSeconds = 1e-6;
  options.record = [&](const Json& record) { last = record; };
  benchAll(device, kernels(), {shape("forward")}, {}, options);
  EXPECT_TRUE(last.contains("wrong"));
  EXPECT_FALSE(last.contains("us"));
  options.evenWrong = true;
  benchAll(device, kernels(), {shape("forward")}, {}, options);
  EXPECT_TRUE(last.contains("wrong"));
  EXPECT_TRUE(last.contains("us"));
}

TEST_F(GpuBench, LeavesOutWhatIsDoneAndSaysWhatCannotBe) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  std::vector<Json> records;
  BenchOptions options;
  options.record = [&](const Json& record) { records.push_back(record); };
  ProblemText missing = shape("forward");
  missing.features = 256;
  const std::vector<Json> before = {{{"kind", "begin"}, {"shape", shape("forward").text()}},
                                    {{"kind", "bench"}, {"shape", shape("forward").text()}},
                                    {{"kind", "begin"}, {"shape", shape("backward").text()}}};
  benchAll(device, kernels(), {shape("forward"), shape("backward"), missing}, before, options);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].at("shape"), shape("backward").text());
  EXPECT_EQ(records[0].at("error"), "it did not end");
  EXPECT_EQ(records[2].at("shape"), missing.text());
  EXPECT_NE(records[2].at("error").get<std::string>().find("no kernel"), std::string::npos) << records[2];
}

TEST_F(GpuBench, StopsWhenTheDeviceIsLost) {
  fake_cuda_set_launcher([](void*, const fake_cuda_launch*) { return 700; }, nullptr);
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  std::vector<Json> records;
  BenchOptions options;
  options.record = [&](const Json& record) { records.push_back(record); };
  benchAll(device, kernels(), {shape("forward"), shape("backward")}, {}, options);
  ASSERT_EQ(records.size(), 2u) << "the second shape is not blamed for it";
  EXPECT_NE(records[1].at("wrong").get<std::string>().find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
}

TEST_F(GpuBench, GraphGivesTheSameBits) {
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const Kernels package = kernels();
  const std::vector<ProblemText> shapes = smallShapes(package);
  ASSERT_EQ(shapes.size(), 2u);
  const Json result = testGraph(device, package, shapes);
  EXPECT_TRUE(result.value("equal", false)) << result;
  EXPECT_EQ(result.at("plans"), 2);
}

TEST_F(GpuBench, GraphOfKernelsThatDoNothingIsNoProof) {
  fake_cuda_set_launcher(nullptr, nullptr);
  const CudaDevice device(0, NORMC_FAKE_CUDA);
  const Kernels package = kernels();
  const Json result = testGraph(device, package, {shape("forward")});
  EXPECT_EQ(result.value("error", ""), "layer_norm:forward@f32[9x128] wrote nothing");
}

TEST_F(GpuBench, EnqueueIsTimedOnOneAndOnEightThreads) {
  fake_cuda_set_launcher(nullptr, nullptr);
  std::vector<Json> records;
  benchEnqueue(NORMC_FAKE_CUDA, kernels(), {shape("forward")}, 5,
               [&](const Json& r) { records.push_back(r); });
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at("threads"), 1);
  EXPECT_EQ(records[1].at("threads"), 8);
  for (const Json& record : records) EXPECT_GT(record.at("us").at("median"), 0) << record;
}

TEST(GpuShapes, AreAllLegalProblems) {
  std::set<std::string> texts;
  for (const ProblemText& shape : allShapes(false)) {
    const auto problem = parseProblem(shape.withoutSizes().text(), findNorm);
    EXPECT_TRUE(problem) << shape.text();
    EXPECT_TRUE(texts.insert(shape.text()).second) << shape.text() << " is there twice";
    EXPECT_GT(*shape.rows, 0);
  }
}

TEST(GpuShapes, OfTheBundleAreMeasuredWithTheDefaultsToo) {
  const std::vector<std::string> arguments = argumentsToExport(false);
  ASSERT_EQ(arguments.size(), 82u) << "four norms, two entries, two types, five numbers of features";
  ASSERT_EQ(arguments[0], "--elements");
  const int64_t elements = std::stoll(arguments[1]);
  const std::vector<ProblemText> shapes = allShapes(false);
  for (size_t i = 2; i < arguments.size(); ++i)
    EXPECT_TRUE(std::ranges::any_of(shapes, [&](const ProblemText& shape) {
      return shape.withoutSizes().text() == arguments[i] &&
             shape.rows == int64_t(std::bit_floor(uint64_t(elements / *shape.features)));
    })) << arguments[i];
}

TEST(GpuShapes, HaveTheirKernelsCompiled) {
  const std::vector<std::string> problems = problemsToCompile(false);
  const std::set<std::string> compiled(problems.begin(), problems.end());
  for (const ProblemText& call : allShapes(false)) {
    ProblemText shape = call.withoutSizes();
    EXPECT_TRUE(compiled.contains(shape.text())) << shape.text();
    shape.entry = Entry::Forward;
    EXPECT_TRUE(compiled.contains(shape.text())) << "the forward of a backward: " << shape.text();
  }
  for (const BuiltinNorm& norm : builtinNorms())
    EXPECT_TRUE(std::ranges::any_of(problems, [&](const std::string& p) {
      return p.starts_with(norm.name + ":backward@") && p.find("[*x*") != p.npos;
    })) << norm.name;
}

}  // namespace
}  // namespace normc::gpu
