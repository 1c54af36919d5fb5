// State and saved statistics: memory of the caller's, and the object that is sugar over it.
#include <cmath>
#include <cstring>

#include "examples/cpp/checkpoint.hpp"
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

TEST(State, PublishesItsFields) {
  const Plan plan(standard(), "power_norm:forward@f32[*x100]");
  const std::vector<normc_field> fields = plan.stateFields();
  ASSERT_EQ(fields.size(), 3u);
  EXPECT_STREQ(fields[0].name, "step");
  EXPECT_EQ(fields[0].type, NORMC_I64);
  EXPECT_EQ(fields[0].ndim, 0);
  EXPECT_EQ(fields[0].bytes, 8u);
  EXPECT_STREQ(fields[1].name, "psi2");
  EXPECT_EQ(fields[1].type, NORMC_F32);
  EXPECT_EQ(fields[1].ndim, 1);
  EXPECT_EQ(fields[1].shape[0], 100);
  EXPECT_EQ(fields[1].offset, 64u);
  EXPECT_EQ(fields[1].init, 1);
  EXPECT_EQ(fields[2].offset, 64u + 448u) << "400 bytes, then the next multiple of 64";
  EXPECT_EQ(plan.stateBytes(), 64u + 2 * 448u);
  const std::vector<normc_field> saved = plan.savedFields(Plan::sizes(1, 7, 100));
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_STREQ(saved[1].name, "second_moment");
  EXPECT_EQ(plan.savedBytes(Plan::sizes(1, 7, 100)), 2 * 448u);
}

TEST(State, AnObjectHasTheFieldsOfItsPlan) {
  const Plan plan(standard(), "power_norm:forward@f32[*x*]");
  const host::State state(plan, 100);
  const std::vector<normc_field> fields = state.fields(), planned = plan.stateFields(100);
  ASSERT_EQ(fields.size(), planned.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    EXPECT_STREQ(fields[i].name, planned[i].name);
    EXPECT_EQ(fields[i].offset, planned[i].offset);
    EXPECT_EQ(fields[i].bytes, planned[i].bytes);
  }
  normc_field field = {};
  field.struct_size = sizeof field;
  EXPECT_EQ(refusal(normc_state_field(state.get(), 3, &field)).substr(0, 13), "OUT_OF_RANGE:");
}

TEST(State, OfSavedStatisticsFollowsTheRows) {
  const Plan plan(standard(), "layer_norm:forward@f32[*x*]");
  const std::vector<normc_field> saved = plan.savedFields(Plan::sizes(1, 20, 8));
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved[0].ndim, 2);
  EXPECT_EQ(saved[0].shape[0] * saved[0].shape[1], 20);
  EXPECT_EQ(saved[1].offset, 128u);
  EXPECT_EQ(plan.stateBytes(8), 0u);
  EXPECT_TRUE(plan.stateFields(8).empty());
}

TEST(State, StartsWithTheInitialValuesOfTheNorm) {
  PowerNorm norm;
  EXPECT_EQ(norm.step(), 0);
  EXPECT_EQ(norm.field("psi2"), std::vector<float>(10, 1));
  EXPECT_EQ(norm.field("nu"), std::vector<float>(10, 0));
  norm.forwardPlan(norm.forward());
  EXPECT_EQ(norm.step(), 1);
  EXPECT_NE(norm.field("psi2"), std::vector<float>(10, 1));
  norm.state.reset();
  EXPECT_EQ(norm.step(), 0);
  EXPECT_EQ(norm.field("psi2"), std::vector<float>(10, 1));
}

TEST(State, HasZerosBetweenItsFields) {
  const Plan plan(standard(), "power_norm:forward@f32[*x*]");
  const normc_sizes sizes = Plan::sizes(1, 0, 10);
  std::vector<unsigned char> memory(plan.stateBytes(10), 9);
  host::check(normc_plan_state_init(plan.get(), &sizes, memory.data(), memory.size()));
  size_t end = 0, between = 0;
  for (const normc_field& field : plan.stateFields(10)) {
    for (; end < field.offset; ++end, ++between) EXPECT_EQ(memory[end], 0) << end;
    end = field.offset + field.bytes;
  }
  EXPECT_GT(between, 0u);
}

TEST(State, IsTheSameInCallersMemory) {
  PowerNorm norm, raw;
  const normc_sizes sizes = norm.sizes();
  std::vector<double> memory(norm.state.buffer().bytes / sizeof(double), 9);
  host::check(
      normc_plan_state_init(norm.forwardPlan.get(), &sizes, memory.data(), norm.state.buffer().bytes));
  for (int step = 0; step < 3; ++step) {
    norm.forwardPlan(norm.forward());
    norm.backwardPlan(norm.backward());
    Call forward = raw.forward(), backward = raw.backward();
    for (Call* call : {&forward, &backward}) {
      call->state = nullptr;
      call->stateIn = call->stateOut = memory;
    }
    raw.forwardPlan(forward);
    raw.backwardPlan(backward);
  }
  EXPECT_EQ(norm.step(), 3);
  EXPECT_EQ(std::memcmp(memory.data(), norm.state.buffer().data, norm.state.buffer().bytes), 0);
  EXPECT_EQ(norm.dx, raw.dx);
}

TEST(State, IsReadAndWrittenApartWithTheUntouchedFieldsCopied) {
  PowerNorm inPlace, apart;
  const int64_t steps = 41;
  inPlace.state.write("step", &steps, 1);
  apart.state.copyFrom(inPlace.state);
  inPlace.forwardPlan(inPlace.forward());
  apart.forwardPlan(apart.forward());

  State out(apart.forwardPlan, apart.features);
  Call call = apart.backward();
  call.state = nullptr;
  call.stateIn = apart.state.buffer();
  call.stateOut = out.buffer();
  apart.backwardPlan(call);
  inPlace.backwardPlan(inPlace.backward());
  EXPECT_EQ(std::memcmp(out.buffer().data, inPlace.state.buffer().data, out.buffer().bytes), 0)
      << "nu is written, psi2 and step are copied";
  EXPECT_EQ(apart.field("nu"), std::vector<float>(10, 0)) << "state_in is only read";
}

TEST(State, DoesNotChangeWhereStateOutIsNull) {
  PowerNorm norm, again;
  norm.forwardPlan(norm.forward());
  Call call = again.forward();
  call.state = nullptr;
  call.stateIn = again.state.buffer();
  again.forwardPlan(call);
  EXPECT_EQ(again.y, norm.y);
  EXPECT_EQ(again.step(), 0);
  EXPECT_EQ(again.field("psi2"), std::vector<float>(10, 1));
}

TEST(State, ARecomputedForwardHasToSeeTheStateOfBefore) {
  PowerNorm norm, again;
  Call first = again.forward();
  first.state = nullptr;
  first.stateIn = again.state.buffer();
  again.forwardPlan(first);  // the first pass leaves the state, the second updates it
  const std::vector<float> y = again.y;
  const std::vector<char> saved = again.saved;
  again.forwardPlan(again.forward());
  again.backwardPlan(again.backward());
  norm.forwardPlan(norm.forward());
  norm.backwardPlan(norm.backward());
  EXPECT_EQ(again.y, y);
  EXPECT_EQ(again.saved, saved);
  EXPECT_EQ(again.dx, norm.dx);
  EXPECT_EQ(std::memcmp(again.state.buffer().data, norm.state.buffer().data, norm.state.buffer().bytes), 0);
  again.forwardPlan(first);  // the other way round a step is counted that was not made
  EXPECT_NE(again.y, y);
}

TEST(State, LetsSeveralForwardsBeOpen) {
  PowerNorm norm, reference;
  norm.forwardPlan(norm.forward());
  const std::vector<char> firstSaved = norm.saved;
  std::vector<char> secondSaved(norm.saved.size());
  Call second = norm.forward();
  second.saved = secondSaved;
  norm.forwardPlan(second);
  norm.backwardPlan(norm.backward());  // of the first
  reference.forwardPlan(reference.forward());
  reference.backwardPlan(reference.backward());
  EXPECT_EQ(norm.dx, reference.dx);
  EXPECT_NE(firstSaved, secondSaved);
}

/// Returns the message with which the loading of a checkpoint refuses it.
std::string refusalOf(const example::Checkpoint& checkpoint, State& state) {
  try {
    example::load(checkpoint, state);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Checkpoint, OfTheReleasedCodeFillsAState) {
  PowerNorm norm;
  std::vector<float> phi = numbers(10, 5);
  const std::vector<float> gz = numbers(10, 6);
  for (float& value : phi) value *= value;
  const example::Checkpoint checkpoint = {phi, gz, 4321, 0.75};
  example::load(checkpoint, norm.state);
  EXPECT_EQ(norm.step(), 4321);
  EXPECT_EQ(norm.field("psi2"), phi);
  for (int f = 0; f < 10; ++f) EXPECT_EQ(norm.field("nu")[f], 0.25f * gz[f]);

  const auto loading = [&](auto change) {
    example::Checkpoint changed = checkpoint;
    change(changed);
    return refusalOf(changed, norm.state);
  };
  EXPECT_EQ(loading([](auto& c) { c.runningPhi.resize(9); }),
            "the checkpoint's running_phi has 9 features; the state has 10");
  EXPECT_EQ(loading([](auto& c) { c.emaGz = {}; }),
            "the checkpoint's ema_gz has 0 features; the state has 10");
  EXPECT_EQ(loading([](auto& c) { c.iters = -1; }), "the checkpoint's iters is -1; it counts steps");
  EXPECT_EQ(loading([](auto& c) { c.backwardDecay = 1; }),
            "the checkpoint's backward_decay is 1; it must be at least 0 and less than 1 (0.9 in the "
            "released scripts)");
  EXPECT_EQ(loading([](auto& c) { c.runningPhi[3] = -1; }),
            "the checkpoint's running_phi is -1 at feature 3; a mean of squares is finite and not negative");
  EXPECT_NE(loading([](auto& c) { c.runningPhi[3] = NAN; }), "accepted");
  EXPECT_NE(loading([](auto& c) { c.runningPhi[3] = INFINITY; }), "accepted");
  EXPECT_EQ(norm.step(), 4321) << "what is refused changes nothing";
  EXPECT_EQ(norm.field("psi2"), phi);
}

TEST(Checkpoint, IsRefusedByAStateOfAnotherNorm) {
  const Plan other(standard(), "warmup:forward@f32[*x*]");
  State foreign(other, 2);
  EXPECT_EQ(refusalOf({{1, 2}, {3, 4}, 7, 0.9}, foreign),
            "a checkpoint of PowerNorm holds step, psi2 and nu; the state holds step, warmed");
  int64_t step = -1;
  foreign.read("step", &step, 1);
  EXPECT_EQ(step, 0);
}

TEST(Checkpoint, IsRefusedByAStateWithAWindow) {
  package::Kernel windowed = powerNorm("forward");
  windowed.state.push_back({"window_psi2", DType::F32, {package::kFeatures}});
  const Plan plan(openInMemory(packageOf(windowed), context()), "power_norm:forward@f32[*x*]");
  State state(plan, 2);
  EXPECT_EQ(refusalOf({{1, 2}, {3, 4}, 7, 0.9}, state),
            "a checkpoint of PowerNorm holds step, psi2 and nu; the state holds step, psi2, nu, window_psi2");
}

TEST(Checkpoint, FillsAStateInDouble) {
  package::Kernel wide = powerNorm("forward");
  for (package::Field& field : wide.state)
    if (field.type == DType::F32) field.type = DType::F64;
  for (package::Operand& operand : wide.operands)
    if ((operand.role == package::Role::StateIn || operand.role == package::Role::StateOut) &&
        operand.type == DType::F32)
      operand.type = DType::F64;
  const Plan plan(openInMemory(packageOf(wide), context()), "power_norm:forward@f32[*x*]");
  State state(plan, 2);
  example::load({{1, 2}, {3, 4}, 7, 0.75}, state);
  std::vector<double> nu(2);
  state.read("nu", nu.data(), 2);
  EXPECT_EQ(nu, (std::vector<double>{0.75, 1}));
}

TEST(State, RefusesWhatDoesNotBelongToIt) {
  PowerNorm norm, wide(33, 12);
  const Plan warm(standard(), "warmup:forward@f32[*x*]");
  State foreign(warm, 10);
  float values[10];
  EXPECT_EQ(refusal([&] { norm.state.read("psi", values, 10); }),
            "NOT_FOUND: the state of power_norm has no field 'psi'; it has: step:i64[], psi2:f32[features], "
            "nu:f32[features]");
  EXPECT_EQ(normc_state_get(norm.state.get(), nullptr, values, sizeof values), NORMC_INVALID_ARGUMENT);
  EXPECT_STREQ(normc_last_error(), "field is null");
  EXPECT_EQ(normc_state_set(norm.state.get(), nullptr, values, sizeof values), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(refusal([&] { norm.state.write("psi2", values, 9); }),
            "INVALID_ARGUMENT: the field 'psi2' has 40 bytes, not 36");
  EXPECT_EQ(refusal([&] { norm.state.copyFrom(foreign); }),
            "INVALID_ARGUMENT: the states differ: power_norm (step:i64[], psi2:f32[features], "
            "nu:f32[features]) with 10 "
            "features, and warmup (step:i64[], warmed:f32[]) with 10 features");
  EXPECT_EQ(refusal([&] { State(Plan(standard(), "layer_norm:forward@f32[*x*]"), 8); }),
            "FAILED_PRECONDITION: layer_norm:forward@f32[*x*] has no state");
  const normc_sizes sizes = norm.sizes();
  const size_t bytes = norm.state.buffer().bytes;
  EXPECT_EQ(refusal(normc_plan_state_init(norm.forwardPlan.get(), &sizes, values, bytes - 1)),
            "INVALID_ARGUMENT: memory has " + std::to_string(bytes - 1) + " bytes; the state has " +
                std::to_string(bytes));
  EXPECT_EQ(refusal([&] { State(norm.forwardPlan, 0); }),
            "INVALID_ARGUMENT: sizes.features is 0 and power_norm:forward@f32[*x*] leaves the features open");

  Call call = norm.forward();
  call.state = &foreign;
  EXPECT_EQ(
      refusal([&] { norm.forwardPlan(call); }),
      "INVALID_ARGUMENT: the state is one of warmup (step:i64[], warmed:f32[]); this plan is for power_norm "
      "(step:i64[], psi2:f32[features], nu:f32[features])");
  call.state = &wide.state;
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: the state has 12 features; the call has 10");
  LayerNorm layer;
  call = layer.forward();
  call.state = &norm.state;
  EXPECT_EQ(refusal([&] { layer.forwardPlan(call); }),
            "INVALID_ARGUMENT: the state is one of power_norm (step:i64[], psi2:f32[features], "
            "nu:f32[features]); this "
            "plan is for layer_norm, which has none");
}

TEST(State, RefusesBuffersThatAreNotTheState) {
  PowerNorm norm;
  const host::Buffer good = norm.state.buffer();
  const auto with = [&](auto change) {
    Call call = norm.forward();
    call.state = nullptr;
    call.stateIn = call.stateOut = good;
    change(call);
    return refusal([&] { norm.forwardPlan(call); });
  };
  EXPECT_EQ(with([](Call&) {}), "accepted");
  EXPECT_EQ(with([](Call& c) { c.stateIn = {}; }),
            "INVALID_ARGUMENT: state_in is null; power_norm:forward@f32[*x*] reads the state");
  EXPECT_EQ(with([](Call& c) { c.stateIn.bytes = 64; }),
            "INVALID_ARGUMENT: state_in has 64 bytes; with these sizes it has 192");
  EXPECT_EQ(with([](Call& c) { c.stateOut.bytes = 256; }),
            "INVALID_ARGUMENT: state_out has 256 bytes; with these sizes it has 192");
  std::vector<char> memory(400);
  EXPECT_EQ(with([&](Call& c) {
              c.stateIn = {memory.data() + (reinterpret_cast<uintptr_t>(memory.data()) % 8 ? 0 : 4), 192};
            }),
            "INVALID_ARGUMENT: state_in is not aligned to 8 bytes");
  EXPECT_EQ(with([&](Call& c) { c.state = &norm.state; }),
            "INVALID_ARGUMENT: state and state_in are both given; a state object stands for state_in and "
            "state_out");

  Call call = norm.backward();
  call.saved = {};
  EXPECT_EQ(refusal([&] { norm.backwardPlan(call); }),
            "INVALID_ARGUMENT: saved is null; power_norm:backward@f32[*x*] needs what the forward of the "
            "same batch wrote "
            "there");
  call = norm.backward();
  call.saved.bytes = 64;
  EXPECT_EQ(refusal([&] { norm.backwardPlan(call); }),
            "INVALID_ARGUMENT: saved has 64 bytes; with these sizes it has 128");
  LayerNorm layer;
  call = layer.forward();
  call.stateIn = good;
  EXPECT_EQ(refusal([&] { layer.forwardPlan(call); }),
            "INVALID_ARGUMENT: state_in is given, but layer_norm:forward@f32[*x*] has no state");
  const Plan plain(standard(), "probe:forward@f32[*x*]");
  call = {};
  call.x = layer.matrix(layer.x), call.y = layer.matrix(layer.y), call.saved = layer.saved;
  EXPECT_EQ(refusal([&] { plain(call); }),
            "INVALID_ARGUMENT: saved is given, but probe:forward@f32[*x*] saves nothing; leave it null");
}

TEST(State, RefusesToWriteAStateItCannotComplete) {
  PowerNorm norm;
  norm.forwardPlan(norm.forward());
  const Plan warm(standard(), "warmup:backward@f32[*x*]");
  State state(warm, 10);
  std::vector<int64_t> saved(8, 1);
  Call call;
  call.dy = norm.matrix(norm.dy), call.dx = norm.matrix(norm.dx), call.saved = saved;
  call.stateOut = state.buffer();
  EXPECT_EQ(refusal([&] { warm(call); }),
            "INVALID_ARGUMENT: state_out is given without state_in; 'step' would have to be copied from it");
}

TEST(State, TheGradientOfInferOnlyReadsItAndTakesNoSavedStatistics) {
  package::Kernel kernel = powerNorm("backward");
  const std::string problem = "power_norm:infer_backward@f32[*x*]";
  kernel.problem = problem, kernel.parts.entry = Entry::InferBackward;
  const auto refusedPackage = [&] { return refusal([&] { openInMemory(packageOf(kernel), context()); }); };
  EXPECT_EQ(
      refusedPackage(),
      "DATA_LOSS: the manifest of the package is not valid: kernels[0].operands[4].name is \"rstd\"; there "
      "is no field of this name");
  std::erase_if(kernel.operands, [](const auto& operand) { return operand.role == package::Role::Saved; });
  EXPECT_EQ(
      refusedPackage(),
      "DATA_LOSS: the manifest of the package is not valid: kernels[0].operands[7].role is \"state_out\"; "
      "this entry does not write the state");
  std::erase_if(kernel.operands, [](const auto& operand) { return operand.role == package::Role::StateOut; });

  const Plan plan(openInMemory(packageOf(kernel), context()), problem);
  const normc_sizes sizes = Plan::sizes(1, 4, 6);
  EXPECT_EQ(plan.savedBytes(sizes), 0u);
  EXPECT_TRUE(plan.savedFields(sizes).empty());
  EXPECT_EQ(plan.stateFields(6)[2].access, NORMC_FIELD_READ);
  EXPECT_EQ(plan.tensors().size(), 7u);
  PowerNorm norm;
  const auto refused = [&](auto change) {
    Call call = norm.backward();
    call.saved = {}, call.state = nullptr, call.stateOut = {}, call.stateIn = norm.state.buffer();
    change(call);
    return refusal([&] { plan(call); });
  };
  EXPECT_EQ(refused([&](Call& c) { c.saved = norm.saved; }),
            "INVALID_ARGUMENT: saved is given, but " + problem + " reads no saved statistics; leave it null");
  EXPECT_EQ(
      refused([&](Call& c) { c.stateOut = norm.state.buffer(); }),
      "INVALID_ARGUMENT: state_out is given, but " + problem + " does not write the state; leave it null");
  EXPECT_EQ(refused([](Call& c) { c.stateIn = {}; }),
            "INVALID_ARGUMENT: state_in is null; " + problem + " reads the state");
  EXPECT_EQ(refused([](Call& c) { c.dx = c.dscale = c.dbias = {}; }),
            "INVALID_ARGUMENT: nothing to compute: dx, dscale, dbias are all null");
  EXPECT_EQ(refused([](Call& c) { c.dy = {}; }), "INVALID_ARGUMENT: dy is null; " + problem + " needs it");
}

TEST(State, InferOnlyReadsItAndSavesNothing) {
  package::Kernel kernel =
      probe("features_last", false, false);  // infer, listed as forward's packages list it
  kernel.parts.entry = Entry::Infer, kernel.problem = "probe:infer@f32[*x*]";
  kernel.state = powerNorm("forward").state, kernel.saved = layerNorm("forward").saved;
  const Plan plan(openInMemory(packageOf(kernel), context()), "probe:infer@f32[*x*]");
  const normc_sizes sizes = Plan::sizes(1, 4, 6);
  EXPECT_EQ(plan.savedBytes(sizes), 0u);
  EXPECT_TRUE(plan.savedFields(sizes).empty());

  LayerNorm norm(4, 6);
  State state(plan, 6);
  const auto called = [&](auto change) {
    norm.y.assign(norm.y.size(), 7);
    Call call;
    call.x = norm.matrix(norm.x), call.y = norm.matrix(norm.y), call.stateIn = state.buffer();
    change(call);
    const std::string text = refusal([&] { plan(call); });
    EXPECT_EQ(norm.y == std::vector<float>(norm.y.size(), 7), text != "accepted");
    return text;
  };
  EXPECT_EQ(called([&](Call& c) { c.saved = norm.saved; }),
            "INVALID_ARGUMENT: saved is given, but probe:infer@f32[*x*] saves nothing; leave it null");
  EXPECT_EQ(called([&](Call& c) { c.stateOut = state.buffer(); }),
            "INVALID_ARGUMENT: state_out is given, but probe:infer@f32[*x*] does not write the state; leave "
            "it null");
  EXPECT_EQ(called([](Call&) {}), "accepted");
  EXPECT_EQ(called([&](Call& c) { c.stateIn = {}, c.state = &state; }), "accepted");

  kernel.operands.push_back({package::Role::Saved, "mean"});
  const std::string bytes = packageOf(kernel).bytes();
  EXPECT_EQ(refusal([&] { host::Package(context(), bytes.data(), bytes.size()); }),
            "DATA_LOSS: the manifest of the package is not valid: kernels[0].operands[2].name is \"mean\"; "
            "there is no "
            "field of this name");
}

}  // namespace
}  // namespace normc::test
