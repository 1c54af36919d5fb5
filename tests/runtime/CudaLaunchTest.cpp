// The driver calls of a CUDA plan: every word of every launch, its entry and its stream, and no other calls.
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using Unsigned = std::vector<unsigned>;

class CudaLaunch : public CudaTest {};

uint64_t word(const DeviceBuffer& buffer) { return reinterpret_cast<uint64_t>(buffer.data()); }

uint64_t word(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

TEST_F(CudaLaunch, HandsOverEveryWordInOrder) {
  const host::Package package = open(forCuda(layerNorm("forward")));
  const Plan plan(package, "layer_norm:forward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(32, 8);
  const Stream stream;
  Call call = norm.forward();
  call.stream = stream.get();
  plan(call);
  ASSERT_EQ(launches().size(), 1u);
  const Launched launch = launches()[0];
  EXPECT_EQ(launch.function, "layer_norm_forward");
  EXPECT_EQ(launch.stream, stream.get());
  EXPECT_EQ(launch.device, 0);
  // 32 rows in chunks of at least 4 and at most 8 chunks: 8 of 4 rows.
  EXPECT_EQ(launch.grid, Unsigned({8, 1, 1}));
  EXPECT_EQ(launch.block, Unsigned({64, 1, 1}));
  EXPECT_EQ(launch.cluster, Unsigned({1, 1, 1}));
  EXPECT_EQ(launch.shared, 0u);
  EXPECT_EQ(launch.words,
            (std::vector<uint64_t>{word(norm.x), word(norm.scale), word(norm.bias), word(norm.y),
                                   word(norm.saved), word(norm.saved) + 128,  // mean, rstd: 32 floats each
                                   0, 8, 0, 8,                                // strides of x, of y
                                   1, 32, 8,                                  // segments, rows, features
                                   word(1e-5),                                // epsilon
                                   32, 4, 8}));                               // units, chunk_units, chunks
}

/// A backward of 2 segments x 4 rows x `features`, with all its tensors.
struct AroundOnCuda {
  explicit AroundOnCuda(const host::Package& package, int64_t features = 8, const char* layout = "")
      : plan(package, std::string("around:backward@f32[*x*x*]") + layout, host::onCuda()) {
    const Tensor elements =
        *layout ? Tensor(wide.floats(), {2, features, 4}) : Tensor(wide.floats(), {2, 4, features});
    const auto vectors = [&](const DeviceBuffer& buffer) {
      return Tensor(buffer.floats(), {2, features}).onCuda();
    };
    call.dy = call.residualOut = elements.onCuda();
    call.dx =
        (*layout ? Tensor(dx.floats(), {2, features, 4}) : Tensor(dx.floats(), {2, 4, features})).onCuda();
    call.gate = Tensor(gate.floats(), {features}).onCuda();
    call.modScale = vectors(scale), call.modShift = vectors(shift);
    call.dgate = Tensor(dgate.floats(), {features}).onCuda();
    call.dmodScale = vectors(dscale), call.dmodShift = vectors(dshift);
    call.workspace = workspace.buffer();
    std::memset(workspace.data(), 0xff, call.workspace.bytes);
  }
  const Plan plan;
  const DeviceBuffer wide{1024}, dx{1024}, gate{64}, scale{128}, shift{128}, dgate{64}, dscale{128},
      dshift{128}, workspace{4096};
  Call call;
};

TEST_F(CudaLaunch, ClearsARowForAnInputThatIsLeftOut) {
  const host::Package package = open(forCuda(around("backward")));
  const AroundOnCuda on(package);
  fake_cuda_clear_record();
  on.plan(on.call);
  EXPECT_TRUE(driverCalls().ends_with("cuMemsetD8Async cuLaunchKernel cuLaunchKernel")) << driverCalls();
  const std::vector<uint64_t> words = launches()[0].words;
  // dy, residual_out, gate, mod_scale, mod_shift, dresidual_out, dx, three gradients, partials: 11 pointers.
  const auto* row = reinterpret_cast<const float*>(words[5]);
  for (int f = 0; f < 8; ++f) EXPECT_EQ(row[f], 0) << f;
  EXPECT_EQ(words[6], word(on.dx));
  EXPECT_EQ(std::vector<uint64_t>(words.begin() + 11, words.begin() + 19),
            (std::vector<uint64_t>{32, 8, 32, 8, 0, 0, 32, 8}))
      << "strides of dy, residual_out, dresidual_out and dx, of no vector";
  EXPECT_EQ(launches()[0].function, "around_backward");

  Call call = on.call;
  call.dresidualOut = call.dy;
  fake_cuda_clear_record();
  on.plan(call);
  EXPECT_FALSE(has(driverCalls(), "cuMemsetD8Async")) << "it is given";
}

TEST_F(CudaLaunch, AlignsTheVectorsOfEachSegment) {
  package::Kernel kernel = forCuda(around("backward"));
  kernel.problem += "{layout=channels_first}";
  kernel.parts.layout = Layout::ChannelsFirst;
  const host::Package package = open(kernel);
  const auto function = [&](int64_t features) {
    const AroundOnCuda on(package, features, "{layout=channels_first}");
    fake_cuda_clear_record();
    on.plan(on.call);
    return launches()[0].function;
  };
  EXPECT_EQ(function(8), "around_backward");
  EXPECT_EQ(function(6), "around_backward_any") << "the second segment's 6 floats begin 24 bytes further";
}

TEST_F(CudaLaunch, TakesFieldsAsTensorsOfTheirOwn) {
  const host::Package package = open(forCuda(powerNorm("backward")));
  const Plan plan(package, "power_norm:backward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(32, 8);
  const DeviceBuffer rstd(32), moment(32), nu(32), next(32), step(8), nextStep(8);
  const Tensor none, stepIn = Tensor(reinterpret_cast<int64_t*>(step.data()), {}).onCuda(),
                     stepOut = Tensor(reinterpret_cast<int64_t*>(nextStep.data()), {}).onCuda();
  Call call = norm.backward();
  call.saved = {}, call.savedFields = {norm.vector(rstd), norm.vector(moment)};
  call.stateInFields = {stepIn, none, norm.vector(nu)};
  call.stateOutFields = {stepOut, none, norm.vector(next)};
  plan(call);
  ASSERT_EQ(launches().size(), 2u);
  const Launched launch = launches()[0];
  EXPECT_EQ(launch.function, "power_norm_backward");
  const std::vector<uint64_t> fields(launch.words.begin() + 3, launch.words.begin() + 6);
  EXPECT_EQ(fields, (std::vector<uint64_t>{word(nu), word(rstd), word(moment)}));
  EXPECT_EQ(launch.words[9], word(next));
  EXPECT_NE(driverCalls().find("cuMemcpyDtoDAsync"), std::string::npos)
      << "of the step, which is not written";
  call.savedFields[1] = Tensor(moment.floats(), {8});
  EXPECT_EQ(
      refusal([&] { plan(call); }),
      "INVALID_ARGUMENT: saved_fields[1] ('second_moment') is on device type 1; this plan runs on cuda:0 "
      "(kDLCUDA, 2)");
}

TEST_F(CudaLaunch, GivesAllPhasesTheSameWords) {
  const host::Package package = open(forCuda(layerNorm("backward")));
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(33, 12);
  plan(norm.backward());
  const std::vector<Launched> all = launches();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(launchedFunctions(), "layer_norm_backward layer_norm_finish");
  EXPECT_EQ(all[0].words, all[1].words);
  EXPECT_EQ(all[0].grid, Unsigned({6, 1, 1})) << "33 rows in 6 chunks of 6";
  EXPECT_EQ(all[1].grid, Unsigned({3, 1, 1})) << "12 features in 3 chunks of 4";
  EXPECT_EQ(all[0].block[0], 64u);
  EXPECT_EQ(all[1].block[0], 65u);
  // x dy scale mean rstd dx dscale dbias, two partials; strides of x, dy, dx; sizes; epsilon; two cuts.
  ASSERT_EQ(all[0].words.size(), 10u + 6 + 3 + 1 + 6);
  const uint64_t workspace = (word(norm.workspace) + 63) / 64 * 64;
  EXPECT_EQ(all[0].words[8], workspace);
  EXPECT_EQ(all[0].words[9], workspace + 6 * 12 * 4 / 64 * 64 + 64);
  EXPECT_EQ(std::vector<uint64_t>(all[0].words.begin() + 20, all[0].words.end()),
            (std::vector<uint64_t>{33, 6, 6, 12, 4, 3}));
}

TEST_F(CudaLaunch, FollowsTheManifestsLaunch) {
  package::Kernel kernel = forCuda(layerNorm("backward"));
  kernel.phases[0].launch = package::Launch{.threads = 512, .columns = 5, .cluster = 4, .shared = 100000};
  kernel.phases[1].launch = package::Launch{.threads = 1024, .columns = 12};
  const host::Package package = open(kernel);
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  plan(CudaLayerNorm(33, 12).backward());
  const std::vector<Launched> all = launches();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].grid, Unsigned({24, 3, 1})) << "6 chunks of 4 blocks, 12 features in threes of 5";
  EXPECT_EQ(all[0].block, Unsigned({512, 1, 1}));
  EXPECT_EQ(all[0].cluster, Unsigned({4, 1, 1}));
  EXPECT_EQ(all[0].shared, 100000u);
  EXPECT_EQ(all[1].grid, Unsigned({3, 1, 1}));
  EXPECT_EQ(all[1].block, Unsigned({1024, 1, 1}));
}

TEST_F(CudaLaunch, LetsAPhaseBeginWhileTheOneBeforeItRuns) {
  package::Kernel kernel = forCuda(layerNorm("backward"));
  kernel.phases[0].launch->cluster = 2;
  kernel.phases[1].launch->dependent = true;
  const host::Package package = open(kernel);
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  plan(CudaLayerNorm(33, 12).backward());
  const std::vector<Launched> all = launches();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].dependent);
  EXPECT_EQ(all[0].cluster[0], 2u);
  EXPECT_TRUE(all[1].dependent);
  EXPECT_EQ(all[1].cluster[0], 1u);
}

TEST_F(CudaLaunch, MakesNoPhaseDependOnWhatIsNotOfItsCall) {
  package::Kernel kernel = forCuda(layerNorm("backward"));
  for (package::Phase& phase : kernel.phases) phase.launch->dependent = true;
  const host::Package package = open(kernel);
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  plan(CudaLayerNorm(0, 8).backward());
  EXPECT_EQ(launchedFunctions(), "layer_norm_finish");
  EXPECT_FALSE(launches()[0].dependent) << "the phase before it had no units";
  plan(CudaLayerNorm(33, 8).backward());
  ASSERT_EQ(launches().size(), 3u);
  EXPECT_FALSE(launches()[1].dependent) << "what comes before a call on the stream is another's";
  EXPECT_TRUE(launches()[2].dependent);
}

TEST_F(CudaLaunch, AsksForLargeClustersAndSharedMemoryWhenThePlanIsMade) {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  kernel.phases[0].launch = package::Launch{.threads = 128, .cluster = 16, .shared = 227 << 10};
  const host::Package package = open(kernel);
  fake_cuda_clear_record();
  const Plan plan(package, "layer_norm:forward@f32[*x*]", host::onCuda());
  EXPECT_EQ(fake_cuda_call_count("cuFuncSetAttribute"), 4u) << "two entries, two attributes";
  plan(CudaLayerNorm().forward());
  EXPECT_EQ(launches()[0].cluster[0], 16u);
}

TEST_F(CudaLaunch, CallsForNothingButTheLaunch) {
  const host::Package package = open(forCuda(layerNorm("forward")));
  const Plan plan(package, "layer_norm:forward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm;
  const Stream stream;
  Call call = norm.forward();
  call.stream = stream.get();
  fake_cuda_clear_record();
  plan(call);
  EXPECT_EQ(driverCalls(), "cuStreamGetCtx cuLaunchKernel");
  EXPECT_EQ(fake_cuda_call_count("cuCtxPushCurrent_v2"), 1u);
  EXPECT_EQ(fake_cuda_call_count("cuCtxPopCurrent_v2"), 1u);
  const Current current;
  fake_cuda_clear_record();
  plan(call);
  EXPECT_EQ(fake_cuda_call_count(nullptr), 3u) << "with the context already current it only looks";
  call.stream = nullptr;
  fake_cuda_clear_record();
  plan(call);
  EXPECT_EQ(driverCalls(), "cuLaunchKernel") << "the default stream belongs to every context";
}

TEST_F(CudaLaunch, LeavesOutPhasesWithoutUnits) {
  const host::Package package = open(forCuda(layerNorm("backward")));
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  plan(CudaLayerNorm(0, 8).backward());
  EXPECT_EQ(launchedFunctions(), "layer_norm_finish");
}

TEST_F(CudaLaunch, GivesNullForAnXSizedOutputAndScratchForOthers) {
  const host::Package package = open(forCuda(layerNorm("backward")));
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(33, 12);
  Call call = norm.backward();
  call.dx = {};
  plan(call);
  const Launched noDx = launches()[0];
  EXPECT_EQ(noDx.words[5], 0u);
  EXPECT_EQ(noDx.words[14], 0u) << "its strides";
  EXPECT_EQ(noDx.words[15], 0u);

  call = norm.backward();
  call.dscale = {};
  plan(call);
  const Launched noScale = launches()[2];
  const uint64_t begin = word(norm.workspace);
  EXPECT_GE(noScale.words[6], begin);
  EXPECT_LT(noScale.words[6], begin + (1 << 16));
  EXPECT_EQ(noScale.words[6] % 64, 0u);
  EXPECT_NE(noScale.words[6], noScale.words[8]);

  const host::Package forward = open(forCuda(layerNorm("forward")));
  call = norm.forward();
  call.saved = {};
  call.workspace = norm.workspace.buffer();
  Plan(forward, "layer_norm:forward@f32[*x*]", host::onCuda())(call);
  const Launched noSaved = launches()[4];
  EXPECT_EQ(noSaved.words[4], (begin + 63) / 64 * 64);
  EXPECT_EQ(noSaved.words[5], noSaved.words[4] + 192) << "33 floats, rounded up";
}

TEST_F(CudaLaunch, NeedsNoScratchForAnXSizedOutput) {
  package::Kernel kernel = forCuda(warmup("backward"));
  const host::Package package = open(kernel);
  const Plan plan(package, "warmup:backward@f32[*x*]", host::onCuda());
  EXPECT_EQ(plan.workspaceBytes(Plan::sizes(1, 1000, 1000)), 64u + 63) << "'warmed' of state_out alone";
}

/// The entry of a layer norm's forward after a change of the call.
class CudaAlignment : public CudaTest {
 protected:
  template <typename Change>
  std::string chosen(Change change, int64_t features = 8, int64_t alignment = 16) {
    package::Kernel kernel = forCuda(layerNorm("forward"));
    kernel.alignment = alignment;
    const host::Package package = open(kernel);
    const Plan plan(package, "layer_norm:forward@f32[*x*]", host::onCuda());
    const CudaLayerNorm norm(4, features);
    Call call = norm.forward();
    change(norm, call);
    fake_cuda_clear_record();
    plan(call);
    return launchedFunctions();
  }
  const std::string aligned = "layer_norm_forward", any = "layer_norm_forward_any";
};

TEST_F(CudaAlignment, OfWholeTensorsTakesTheAlignedEntry) {
  EXPECT_EQ(chosen([](auto&, Call&) {}), aligned);
}

TEST_F(CudaAlignment, OfFeaturesDecides) {
  EXPECT_EQ(chosen([](auto&, Call&) {}, 9), any);
  EXPECT_EQ(chosen([](auto&, Call&) {}, 10), any);
  EXPECT_EQ(chosen([](auto&, Call&) {}, 12), aligned);
  EXPECT_EQ(chosen([](auto&, Call&) {}, 12, 32), any);
  EXPECT_EQ(chosen([](auto&, Call&) {}, 9, 0), aligned) << "a kernel that asks for nothing";
  EXPECT_EQ(chosen([](auto&, Call&) {}, 9, 4), aligned);
}

TEST_F(CudaAlignment, OfEveryPointerDecides) {
  const auto shifted = [](const DeviceBuffer& buffer, const CudaLayerNorm& norm, int64_t rows) {
    return Tensor(buffer.floats(1), {rows, norm.features}).onCuda();
  };
  // Three rows, so that the shifted tensor still ends inside.
  const auto three = [](const CudaLayerNorm& norm, Call& call) {
    for (auto [tensor, buffer] : {std::pair{&call.x, &norm.x}, {&call.y, &norm.y}})
      *tensor = Tensor(buffer->floats(), {3, norm.features}).onCuda();
    call.saved = {norm.saved.data(), 128};
  };
  EXPECT_EQ(chosen(three), aligned);
  EXPECT_EQ(chosen([&](const CudaLayerNorm& norm, Call& call) {
              three(norm, call);
              call.x = shifted(norm.x, norm, 3);
            }),
            any);
  EXPECT_EQ(chosen([&](const CudaLayerNorm& norm, Call& call) {
              three(norm, call);
              call.y = shifted(norm.y, norm, 3);
            }),
            any);
  EXPECT_EQ(chosen([&](const CudaLayerNorm& norm, Call& call) {
              call.scale = Tensor(norm.workspace.floats(1), {norm.features}).onCuda();
            }),
            any);
  EXPECT_EQ(chosen([&](const CudaLayerNorm& norm, Call& call) {
              call.saved = {norm.workspace.data() + 8, call.saved.bytes};
            }),
            any);
  for (const int shift : {0, 1})
    EXPECT_EQ(chosen([&](const CudaLayerNorm& norm, Call& call) {
                call.saved = {};
                call.savedFields = {Tensor(norm.saved.floats(), {4}).onCuda(),
                                    Tensor(norm.workspace.floats(shift), {4}).onCuda()};
              }),
              shift == 0 ? aligned : any);
}

TEST_F(CudaAlignment, OfStridesDecides) {
  const auto strided = [](const CudaLayerNorm& norm, int64_t rows, int64_t stride) {
    return Tensor(norm.workspace.floats(), {rows, norm.features}, {stride, 1}).onCuda();
  };
  EXPECT_EQ(chosen([&](auto& norm, Call& call) { call.x = strided(norm, 4, 12); }), aligned);
  EXPECT_EQ(chosen([&](auto& norm, Call& call) { call.x = strided(norm, 4, 13); }), any);
  EXPECT_EQ(chosen([&](auto& norm, Call& call) {
              call.x = strided(norm, 1, 13);
              call.y = Tensor(norm.y.floats(), {1, norm.features}).onCuda();
              call.saved = {norm.saved.data(), 128};
            }),
            aligned)
      << "the stride of an axis of one element means nothing";
}

TEST_F(CudaAlignment, OfPhasesWithoutAnotherEntryDoesNotMatter) {
  package::Kernel kernel = forCuda(layerNorm("backward"));
  kernel.phases[1].unaligned.reset();
  const host::Package package = open(kernel);
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  plan(CudaLayerNorm(4, 9).backward());
  EXPECT_EQ(launchedFunctions(), "layer_norm_backward_any layer_norm_finish");
}

TEST_F(CudaAlignment, OfChannelsFirstIsThatOfTheRows) {
  const host::Package package = open(forCuda(probe("channels_first", true, true)));
  const Plan plan(package, "probe:forward@f32[*x*x*]{layout=channels_first,mask}", host::onCuda());
  const DeviceBuffer x(4 * 5 * 8 * 4), y(4 * 5 * 8 * 4), mask(64);
  const auto run = [&](int64_t features, int64_t rows) {
    Call call;
    call.x = Tensor(x.floats(), {2, features, rows}).onCuda();
    call.y = Tensor(y.floats(), {2, features, rows}).onCuda();
    call.mask = Tensor(mask.data() + 1, DLDataType{kDLBool, 8, 1}, {2, rows}).onCuda();
    fake_cuda_clear_record();
    plan(call);
    return launches()[0];
  };
  EXPECT_EQ(run(5, 8).function, "probe_forward") << "a mask may begin anywhere";
  const Launched odd = run(8, 5);
  EXPECT_EQ(odd.function, "probe_forward_any");
  // x y mask; strides of x, y and mask; segments, rows, features.
  EXPECT_EQ(std::vector<uint64_t>(odd.words.begin() + 3, odd.words.begin() + 12),
            (std::vector<uint64_t>{40, 5, 40, 5, 5, 0, 2, 5, 8}));
}

TEST_F(CudaLaunch, HasAsManyBlocksAsThePhaseAsksForAtLeast) {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  kernel.phases[0].launch->least = 9;
  const host::Package package = open(kernel);
  const Plan plan(package, "layer_norm:forward@f32[*x*]", host::onCuda());
  plan(CudaLayerNorm(32, 8).forward());
  ASSERT_EQ(launches().size(), 1u);
  EXPECT_EQ(launches()[0].grid, Unsigned({9, 1, 1})) << "8 chunks, and one without units";
  EXPECT_EQ(launches()[0].words.back(), 8u) << "the cut stays what it is";
}

TEST_F(CudaLaunch, RefusesMoreFeaturesThanTheGridHolds) {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  kernel.phases[0].launch->columns = 1;
  const host::Package package = open(kernel);
  const Plan plan(package, "layer_norm:forward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(1, 65536);
  EXPECT_EQ(refusal([&] { plan(norm.forward()); }),
            "FAILED_PRECONDITION: the call has 65536 features; the kernel of this plan takes at most 65535, "
            "65535 blocks of 1");
  EXPECT_EQ(fake_cuda_launch_count(), 0u);
}

TEST_F(CudaLaunch, RefusesMoreBlocksThanALaunchHolds) {
  package::Kernel kernel = forCuda(probe("features_last", false, false));
  kernel.phases[0].maxChunks = 1 << 30;
  kernel.phases[0].launch->cluster = 16;
  const host::Package package = open(kernel);
  const Plan plan(package, "probe:forward@f32[*x*]", host::onCuda());
  // Memory at these addresses is never accessed.
  char* const nowhere = reinterpret_cast<char*>(uintptr_t{1} << 40);
  Call call;
  call.x = Tensor(reinterpret_cast<float*>(nowhere), {1 << 28, 8}, {0, 1}).onCuda();
  call.y = Tensor(reinterpret_cast<float*>(nowhere + 64), {1 << 28, 8}).onCuda();
  EXPECT_EQ(refusal([&] { plan(call); }),
            "FAILED_PRECONDITION: phase 0 of this call would have 4294967296 blocks; a launch has at most "
            "2147483647");
}

}  // namespace
}  // namespace normc::test
