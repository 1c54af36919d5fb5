// The results of calls, for all arguments and all optional ones left out.
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// Layer norm in plain double, to compare with.
std::vector<double> layerNormReference(const LayerNorm& norm) {
  std::vector<double> y(norm.x.size());
  for (int64_t row = 0; row < norm.rows; ++row) {
    const float* x = norm.x.data() + row * norm.features;
    double mean = 0, moment = 0;
    for (int64_t f = 0; f < norm.features; ++f) mean += x[f] / double(norm.features);
    for (int64_t f = 0; f < norm.features; ++f)
      moment += (x[f] - mean) * (x[f] - mean) / double(norm.features);
    for (int64_t f = 0; f < norm.features; ++f)
      y[row * norm.features + f] = (x[f] - mean) / std::sqrt(moment + 1e-5) * norm.scale[f] + norm.bias[f];
  }
  return y;
}

/// sum(dy * y), whose derivatives are what backward gives.
double loss(LayerNorm& norm) {
  norm.forwardPlan(norm.forward());
  double sum = 0;
  for (size_t i = 0; i < norm.y.size(); ++i) sum += double(norm.dy[i]) * norm.y[i];
  return sum;
}

double numericDerivative(LayerNorm& norm, float& parameter) {
  const float before = parameter, step = 1e-2f;
  parameter = before + step;
  const double above = loss(norm);
  parameter = before - step;
  const double below = loss(norm);
  parameter = before;
  return (above - below) / (2 * step);
}

TEST(Execute, ComputesTheForwardOfALayerNorm) {
  LayerNorm norm;
  norm.forwardPlan(norm.forward());
  const std::vector<double> expected = layerNormReference(norm);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(norm.y[i], expected[i], 1e-5) << "element " << i;
}

TEST(Execute, GivesBackwardTheDerivativesOfForward) {
  LayerNorm norm(9, 6);
  norm.forwardPlan(norm.forward());
  norm.backwardPlan(norm.backward());
  for (size_t i = 0; i < norm.x.size(); i += 7)
    EXPECT_NEAR(norm.dx[i], numericDerivative(norm, norm.x[i]), 2e-3);
  for (size_t f = 0; f < norm.scale.size(); ++f) {
    EXPECT_NEAR(norm.dscale[f], numericDerivative(norm, norm.scale[f]), 2e-3);
    EXPECT_NEAR(norm.dbias[f], numericDerivative(norm, norm.bias[f]), 2e-3);
  }
}

TEST(Execute, ComputesTheSameWhateverIsLeftOut) {
  LayerNorm all;
  all.forwardPlan(all.forward());
  all.backwardPlan(all.backward());
  for (int left = 0; left < 7; ++left) {  // every choice of dx, dscale, dbias but none at all
    LayerNorm norm;
    norm.forwardPlan(norm.forward());
    Call call = norm.backward();
    if (left & 1) call.dx = {};
    if (left & 2) call.dscale = {};
    if (left & 4) call.dbias = {};
    norm.backwardPlan(call);
    EXPECT_EQ(norm.dx, left & 1 ? std::vector<float>(all.dx.size()) : all.dx) << left;
    EXPECT_EQ(norm.dscale, left & 2 ? std::vector<float>(all.dscale.size()) : all.dscale) << left;
    EXPECT_EQ(norm.dbias, left & 4 ? std::vector<float>(all.dbias.size()) : all.dbias) << left;
  }
}

TEST(Execute, LeavesOutSavedStatistics) {
  LayerNorm with, without;
  with.forwardPlan(with.forward());
  Call call = without.forward();
  call.saved = {};
  call.workspace = without.workspace;
  without.forwardPlan(call);
  EXPECT_EQ(with.y, without.y);
}

TEST(Execute, NeedsNoWorkspaceWhereNothingUsesAny) {
  LayerNorm norm;
  Call call = norm.forward();
  ASSERT_EQ(call.workspace.data, nullptr);
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }), "accepted");
}

TEST(Execute, TakesAWorkspaceOfAnyAlignment) {
  LayerNorm aligned, odd;
  aligned.forwardPlan(aligned.forward());
  aligned.backwardPlan(aligned.backward());
  odd.forwardPlan(odd.forward());
  std::vector<char> memory(odd.workspace.size() + 64);
  for (int shift = 0; shift < 64; shift += 7) {
    Call call = odd.backward();
    call.workspace = {memory.data() + shift, odd.workspace.size()};
    odd.backwardPlan(call);
    EXPECT_EQ(odd.dscale, aligned.dscale);
  }
}

TEST(Execute, TakesTensorsAlignedToTheirElementsAlone) {
  LayerNorm norm;
  norm.forwardPlan(norm.forward());
  for (int shift = 1; shift < 16; ++shift) {
    std::vector<float> x(norm.x.size() + shift), y(norm.y.size() + shift);
    std::copy(norm.x.begin(), norm.x.end(), x.begin() + shift);
    Call call = norm.forward();
    call.x = {x.data() + shift, {norm.rows, norm.features}};
    call.y = {y.data() + shift, {norm.rows, norm.features}};
    norm.forwardPlan(call);
    ASSERT_TRUE(std::equal(norm.y.begin(), norm.y.end(), y.begin() + shift)) << shift;
  }
}

TEST(Execute, WalksStridedRows) {
  LayerNorm norm;
  norm.forwardPlan(norm.forward());
  const int64_t pitch = norm.features + 3;
  std::vector<float> x(norm.rows * pitch, 7), y(norm.rows * pitch, 7);
  for (int64_t row = 0; row < norm.rows; ++row)
    std::memcpy(&x[row * pitch], &norm.x[row * norm.features], norm.features * sizeof(float));
  Call call = norm.forward();
  call.x = {x.data(), {norm.rows, norm.features}, {pitch, 1}};
  call.y = {y.data(), {norm.rows, norm.features}, {pitch, 1}};
  norm.forwardPlan(call);
  for (int64_t row = 0; row < norm.rows; ++row) {
    for (int64_t f = 0; f < norm.features; ++f)
      ASSERT_EQ(y[row * pitch + f], norm.y[row * norm.features + f]);
    for (int64_t f = norm.features; f < pitch; ++f) ASSERT_EQ(y[row * pitch + f], 7) << "padding was written";
  }
}

TEST(Execute, WalksRowsThatAreBroadcastOrReversed) {
  LayerNorm norm;
  for (int64_t row = 1; row < norm.rows; ++row)
    std::memcpy(&norm.dy[row * norm.features], &norm.dy[0], norm.features * sizeof(float));
  norm.forwardPlan(norm.forward());
  norm.backwardPlan(norm.backward());
  const std::vector<float> expected = norm.dx;
  Call call = norm.backward();
  call.dy = {norm.dy.data(), {norm.rows, norm.features}, {0, 1}};
  norm.backwardPlan(call);
  EXPECT_EQ(norm.dx, expected);

  const std::vector<float> forwards = norm.y;
  call = norm.forward();
  call.x = {&norm.x[(norm.rows - 1) * norm.features], {norm.rows, norm.features}, {-norm.features, 1}};
  norm.forwardPlan(call);
  for (int64_t row = 0; row < norm.rows; ++row)
    ASSERT_EQ(norm.y[row * norm.features], forwards[(norm.rows - 1 - row) * norm.features]);
}

TEST(Execute, TakesSeveralLeadingDimensionsAsRows) {
  LayerNorm norm(24, 10);
  norm.forwardPlan(norm.forward());
  const std::vector<float> expected = norm.y;
  Call call = norm.forward();
  call.x = {norm.x.data(), {2, 3, 4, 10}};
  call.y = {norm.y.data(), {2, 3, 4, 10}};
  norm.forwardPlan(call);
  EXPECT_EQ(norm.y, expected);
}

TEST(Execute, HonoursByteOffsets) {
  LayerNorm norm;
  norm.forwardPlan(norm.forward());
  const std::vector<float> expected = norm.y;
  std::vector<float> shifted(norm.x.size() + 5);
  std::copy(norm.x.begin(), norm.x.end(), shifted.begin() + 5);
  int64_t shape[] = {norm.rows, norm.features};
  DLTensor x = {shifted.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 5 * sizeof(float)};
  DLTensor y = {norm.y.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  int64_t features[] = {norm.features};
  DLTensor scaleView = {norm.scale.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, features, nullptr, 0};
  DLTensor biasView = {norm.bias.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, features, nullptr, 0};
  normc_args args = {};
  args.struct_size = sizeof args;
  args.x = &x, args.y = &y, args.scale = &scaleView, args.bias = &biasView;
  args.saved = norm.saved.data();
  args.saved_bytes = norm.saved.size();
  EXPECT_EQ(refusal(normc_execute(norm.forwardPlan.get(), &args)), "accepted");
  EXPECT_EQ(norm.y, expected);
}

TEST(Execute, ServesNoRows) {
  LayerNorm norm(0, 10);
  norm.dscale.assign(10, 7);
  Call call = norm.forward();
  norm.forwardPlan(call);
  norm.backwardPlan(norm.backward());
  EXPECT_EQ(norm.dscale, std::vector<float>(10, 0)) << "an empty sum is zero";
  PowerNorm power(0, 10);
  power.forwardPlan(power.forward());
  EXPECT_EQ(power.step(), 0);
  EXPECT_EQ(power.field("psi2"), std::vector<float>(10, 1));
}

TEST(Execute, TakesNoElementsWithAnyStrides) {
  LayerNorm norm;  // NumPy gives an empty array strides of 0
  Call call = norm.forward();
  call.x = {norm.x.data(), {0, 10}, {0, 0}}, call.y = {norm.y.data(), {0, 10}, {0, 0}}, call.saved = {};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }), "accepted");
  call.x = {norm.x.data(), {3, 0, 10}, {7, 5, -2}}, call.y = {norm.y.data(), {3, 0, 10}, {0, 0, 0}};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }), "accepted") << "rows of several dimensions";
  int64_t shape[] = {0, 10};
  const DLTensor none = {nullptr, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 56};
  normc_args args = {};
  args.struct_size = sizeof args, args.x = args.y = &none;
  const Plan probe(standard(), "probe:forward@f32[*x*]");
  EXPECT_EQ(refusal(normc_execute(probe.get(), &args)), "accepted") << "no address is computed from null";
  call = norm.backward();
  call.x = call.dy = {norm.x.data(), {0, 10}, {0, 0}}, call.dx = {norm.dx.data(), {0, 10}, {0, 0}};
  EXPECT_TRUE(has(refusal([&] { norm.backwardPlan(call); }), "saved has ")) << "all else is judged as ever";
  call.saved = {norm.saved.data(), 0};
  EXPECT_EQ(refusal([&] { norm.backwardPlan(call); }), "accepted");

  const Plan masked(standard(), "probe:forward@f32[*x*x*]{layout=channels_first,mask}");
  const std::vector<uint8_t> mask(4, 1);
  call = {};
  call.x = {norm.x.data(), {2, 3, 0}, {0, 0, 0}}, call.y = {norm.y.data(), {2, 3, 0}, {0, 0, 0}};
  call.mask = {mask.data(), {2, 0}, {0, 0}};
  EXPECT_EQ(refusal([&] { masked(call); }), "accepted");
  call.x = {norm.x.data(), {2, 3, 0, 4}, {1, 0, 0, 9}}, call.y = {norm.y.data(), {2, 3, 0, 4}, {0, 0, 0, 0}};
  call.mask = {mask.data(), {2, 0, 4}, {0, 0, 3}};
  EXPECT_EQ(refusal([&] { masked(call); }), "accepted");
}

TEST(Execute, WritesInPlaceExactly) {
  LayerNorm apart, same;
  apart.forwardPlan(apart.forward());
  apart.backwardPlan(apart.backward());
  same.forwardPlan(same.forward());
  Call call = same.backward();
  call.dx = same.matrix(same.dy);
  same.backwardPlan(call);
  EXPECT_EQ(same.dy, apart.dx);
  PowerNorm power, powerInPlace;
  power.forwardPlan(power.forward());
  call = powerInPlace.forward();
  call.y = powerInPlace.matrix(powerInPlace.x);
  powerInPlace.forwardPlan(call);
  EXPECT_EQ(powerInPlace.x, power.y);
  EXPECT_EQ(powerInPlace.field("psi2"), power.field("psi2"));
}

TEST(Execute, WalksSegmentsOfBothLayouts) {
  const int64_t segments = 3, rows = 4, features = 5;
  std::vector<float> x = numbers(segments * rows * features), y(x.size());
  const Plan plain(standard(), "probe:forward@f32[*x*x*]");
  Call call;
  call.x = {x.data(), {segments, rows, features}}, call.y = {y.data(), {segments, rows, features}};
  plain(call);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]);

  // Every other segment of a larger array, N x C x H x W.
  const Plan channelsFirst(standard(), "probe:forward@f32[*x*x*]{layout=channels_first}");
  std::vector<float> wide(2 * x.size(), 1);
  call.x = {x.data(), {segments, features, 2, 2}};
  call.y = {wide.data(), {segments, features, 2, 2}, {2 * features * rows, rows, 2, 1}};
  channelsFirst(call);
  for (int64_t s = 0; s < segments; ++s)
    for (int64_t i = 0; i < rows * features; ++i) {
      ASSERT_EQ(wide[2 * s * rows * features + i], 2 * x[s * rows * features + i]);
      ASSERT_EQ(wide[(2 * s + 1) * rows * features + i], 1) << "between the segments";
    }
}

TEST(Execute, HandsMasksToTheKernel) {
  const int64_t segments = 2, rows = 3, features = 4;
  std::vector<float> x(segments * rows * features, 1), y(x.size());
  std::vector<uint8_t> mask = {1, 0, 1, 9, 0, 1, 1, 9};  // two segments of three rows, four bytes apart
  for (const char* problem :
       {"probe:forward@f32[*x*x*]{mask}", "probe:forward@f32[*x*x*]{layout=channels_first,mask}"}) {
    const bool channelsFirst = std::string(problem).find("layout") != std::string::npos;
    const Plan plan(standard(), problem);
    Call call;
    call.x = channelsFirst ? Tensor(x.data(), {segments, features, rows})
                           : Tensor(x.data(), {segments, rows, features});
    call.y = channelsFirst ? Tensor(y.data(), {segments, features, rows})
                           : Tensor(y.data(), {segments, rows, features});
    call.mask = {mask.data(), {segments, rows}, {4, 1}};
    plan(call);
    for (int64_t s = 0; s < segments; ++s)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t f = 0; f < features; ++f)
          ASSERT_EQ(y[s * rows * features + (channelsFirst ? f * rows + r : r * features + f)],
                    mask[s * 4 + r] ? 2 : 0);
  }
  // Two dimensions of rows, masked as they are, or as one.
  const Plan plan(standard(), "probe:forward@f32[*x*]{mask}");
  const std::vector<uint8_t> ones = {1, 0, 1, 0, 1, 1};
  for (const Tensor& shaped :
       {Tensor(ones.data(), {2, 3}), Tensor(ones.data(), DLDataType{kDLBool, 8, 1}, {6})}) {
    Call call;
    call.x = {x.data(), {2, 3, 4}}, call.y = {y.data(), {2, 3, 4}}, call.mask = shaped;
    plan(call);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], ones[i / 4] ? 2 : 0);
  }
}

TEST(Execute, UsesTheNumbersOfThePlan) {
  std::vector<float> x = numbers(8), y(8);
  const normc_number factor = {"factor", -3};
  normc_request request = {};
  request.numbers = &factor;
  request.number_count = 1;
  const Plan plan(standard(), "probe:forward@f32[*x*]", request);
  Call call;
  call.x = {x.data(), {2, 4}}, call.y = {y.data(), {2, 4}};
  plan(call);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], -3 * x[i]);
}

TEST(Execute, TellsTheNumbersOfThePlan) {
  const normc_number factor = {"factor", -3};
  const Plan plan(standard(), "probe:forward@f32[*x*]", {.numbers = &factor, .number_count = 1});
  EXPECT_EQ(plan.number("factor"), -3);
  EXPECT_EQ(plan.number("masked"), 0);
  double value = 5;
  EXPECT_EQ(refusal(normc_plan_number(plan.get(), "large_bytes", &value)),
            "NOT_FOUND: probe:forward@f32[*x*] has no number 'large_bytes'; it has: factor, masked, "
            "channels_first");
  EXPECT_EQ(value, 5) << "outputs are untouched";
}

TEST(Execute, FlushesDenormalsUnlessThePlanKeepsThem) {
  std::vector<float> x(4, 1e-40f), y(4);
  Call call;
  call.x = {x.data(), {1, 4}}, call.y = {y.data(), {1, 4}};
  normc_request request = {};
  Plan(standard(), "probe:forward@f32[*x*]", request)(call);
  EXPECT_EQ(y[0], 0.0f);
  request.denormals = NORMC_DENORMALS_KEEP;
  Plan(standard(), "probe:forward@f32[*x*]", request)(call);
  EXPECT_EQ(y[0], 2 * x[0]);
}

#if defined(__x86_64__)
TEST(Execute, RestoresTheHostsFloatMode) {
  const unsigned host = _mm_getcsr();
  std::vector<float> x = {1e-40f, 3e38f}, y(2);
  Call call;
  call.x = {x.data(), {1, 2}}, call.y = {y.data(), {1, 2}};
  const Plan plan(standard(), "probe:forward@f32[*x*]");
  const unsigned odd = 0x7f80;  // rounding toward zero, no flags raised
  _mm_setcsr(odd);
  plan(call);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(host);
  EXPECT_EQ(after, odd) << "mode and flags are as they were";
  EXPECT_EQ(y[1], INFINITY) << "the kernel itself rounds to nearest";
}
#endif

TEST(Execute, LeavesOutWarmupPhasesWhenWarmupIsOver) {
  const Plan plan(standard(), "warmup:forward@f32[*x*]");  // warmup_steps = 3
  std::vector<float> x = numbers(8), y(8);
  State state(plan, 4);
  Call call;
  call.x = {x.data(), {2, 4}}, call.y = {y.data(), {2, 4}}, call.state = &state;
  for (int64_t step = 0; step < 6; ++step) {
    state.write("step", &step, 1);
    plan(call);
  }
  float warmed;
  state.read("warmed", &warmed, 1);
  EXPECT_EQ(warmed, 3) << "the forwards after steps 0, 1 and 2 are steps 1, 2 and 3";
}

TEST(Execute, RefusesASteadyPlanBeforeWarmupIsOver) {
  normc_request request = {};
  request.steady = 1;
  const Plan plan(standard(), "warmup:forward@f32[*x*]", request);  // warmup_steps = 3
  EXPECT_NE(plan.describe().find("steady: phases of warmup are left out\n"), std::string::npos);
  std::vector<float> x = numbers(8), y(8);
  State state(plan, 4);
  Call call;
  call.x = {x.data(), {2, 4}}, call.y = {y.data(), {2, 4}}, call.state = &state;
  int64_t step = 2;
  state.write("step", &step, 1);
  EXPECT_EQ(refusal([&] { plan(call); }),
            "FAILED_PRECONDITION: warmup is not over: 'step' of state_in is 2, warmup_steps is 3; this plan "
            "is steady, "
            "use one that is not");
  EXPECT_EQ(y, std::vector<float>(8)) << "nothing was written";
  step = 3;
  state.write("step", &step, 1);
  plan(call);
  EXPECT_EQ(y, x);
  float warmed;
  state.read("warmed", &warmed, 1);
  EXPECT_EQ(warmed, 0);

  const Plan backward(standard(), "warmup:backward@f32[*x*]", request);
  std::vector<int64_t> saved(backward.savedBytes(Plan::sizes(1, 2, 4)) / sizeof(int64_t));
  saved[0] = 3;
  Call back;
  back.dy = call.x, back.dx = call.y, back.state = &state, back.saved = saved;
  EXPECT_EQ(refusal([&] { backward(back); }),
            "FAILED_PRECONDITION: warmup is not over: 'step' of saved is 3, warmup_steps is 3; this plan is "
            "steady, use "
            "one that is not");
  saved[0] = 4;
  EXPECT_EQ(refusal([&] { backward(back); }), "accepted");
}

TEST(Execute, RefusesASteadyPlanThatIsNotToldItsStep) {
  package::Kernel kernel = warmup("backward");
  kernel.saved[0].name = kernel.operands[1].name = "count";
  const host::Package package = openInMemory(packageOf(kernel), host::Context(oneThread()));
  normc_request request = {};
  request.steady = 1;
  EXPECT_EQ(refusal([&] { Plan(package, "warmup:backward@f32[*x*]", request); }),
            "FAILED_PRECONDITION: request.steady is set, but warmup:backward@f32[*x*] is not told its step, "
            "so warmup "
            "may not be over; leave it 0");
  EXPECT_EQ(refusal([&] { Plan(standard(), "layer_norm:forward@f32[*x*]", request); }), "accepted")
      << "where there is no warmup, steady changes nothing";
}

TEST(Execute, JudgesTheWarmupOfBackwardByItsForward) {
  const Plan plan(standard(), "warmup:backward@f32[*x*]");
  std::vector<float> dy = numbers(8), dx(8);
  State state(plan, 4);
  std::vector<int64_t> saved(plan.savedBytes(Plan::sizes(1, 2, 4)) / sizeof(int64_t));
  const int64_t manyForwards = 100;
  state.write("step", &manyForwards, 1);
  Call call;
  call.dy = {dy.data(), {2, 4}}, call.dx = {dx.data(), {2, 4}}, call.state = &state, call.saved = saved;
  for (saved[0] = 1; saved[0] <= 6; ++saved[0]) plan(call);
  float warmed;
  state.read("warmed", &warmed, 1);
  EXPECT_EQ(warmed, 3) << "forwards 1, 2 and 3 were warmup";
}

}  // namespace
}  // namespace normc::test
