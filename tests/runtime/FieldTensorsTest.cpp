// State and saved statistics as one tensor for each field: the same results as one buffer, and each rule's
// refusal.
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// The state and the saved statistics of a power norm, each field in an array of its own.
struct FieldArrays {
  int64_t step = 0;
  std::vector<float> psi2, nu, rstd, moment;

  explicit FieldArrays(int64_t features)
      : psi2(features, 1), nu(features), rstd(features), moment(features) {}

  std::vector<Tensor> state() { return {Tensor(&step, {}), vector(psi2), vector(nu)}; }
  std::vector<Tensor> saved() { return {vector(rstd), vector(moment)}; }
  static Tensor vector(std::vector<float>& values) { return {values.data(), {int64_t(values.size())}}; }
};

class FieldTensors : public ::testing::Test {
 protected:
  Call forward() { return with(norm_.forward()); }
  Call backward() { return with(norm_.backward()); }
  std::string forward(const Call& call) {
    return refusal([&] { norm_.forwardPlan(call); });
  }
  std::string backward(const Call& call) {
    return refusal([&] { norm_.backwardPlan(call); });
  }
  Call with(Call call) {
    call.state = nullptr, call.saved = {};
    call.stateInFields = call.stateOutFields = arrays_.state();
    call.savedFields = arrays_.saved();
    return call;
  }

  PowerNorm norm_;
  FieldArrays arrays_{norm_.features};
};

TEST_F(FieldTensors, GiveTheResultsOfOneBuffer) {
  PowerNorm expected;
  for (int step = 0; step < 3; ++step) {
    expected.forwardPlan(expected.forward());
    expected.backwardPlan(expected.backward());
    norm_.forwardPlan(forward());
    norm_.backwardPlan(backward());
  }
  EXPECT_EQ(norm_.y, expected.y);
  EXPECT_EQ(norm_.dx, expected.dx);
  EXPECT_EQ(norm_.dscale, expected.dscale);
  EXPECT_EQ(arrays_.step, 3);
  EXPECT_EQ(arrays_.psi2, expected.field("psi2"));
  EXPECT_EQ(arrays_.nu, expected.field("nu"));
}

TEST_F(FieldTensors, AreReadAndWrittenApart) {
  FieldArrays out(norm_.features);
  out.step = 7, out.nu.assign(norm_.features, 7);
  arrays_.nu.assign(norm_.features, 5);
  Call call = forward();
  call.stateOutFields = out.state();
  EXPECT_EQ(forward(call), "accepted");
  EXPECT_EQ(arrays_.step, 0);
  EXPECT_EQ(out.step, 1);
  EXPECT_EQ(arrays_.psi2, std::vector<float>(norm_.features, 1));
  EXPECT_NE(out.psi2, arrays_.psi2);
  EXPECT_EQ(out.nu, arrays_.nu) << "a field that forward does not write is copied";
}

TEST_F(FieldTensors, MayBeNullWhereTheEntryDoesNotTouchThem) {
  EXPECT_EQ(forward(forward()), "accepted");
  Call call = backward();
  call.stateInFields = call.stateOutFields = {{}, {}, FieldArrays::vector(arrays_.nu)};
  const std::vector<float> before = arrays_.nu;
  EXPECT_EQ(backward(call), "accepted");
  EXPECT_NE(arrays_.nu, before);
  EXPECT_EQ(arrays_.step, 1);
  call = forward();
  call.stateInFields[2] = call.stateOutFields[2] = {};
  EXPECT_EQ(forward(call), "accepted");
}

TEST_F(FieldTensors, OfTheStateNeedNotBeWritten) {
  Call call = forward();
  call.stateOutFields.clear();
  EXPECT_EQ(forward(call), "accepted");
  EXPECT_EQ(arrays_.step, 0);
}

TEST_F(FieldTensors, OfForwardNeedNotBeSaved) {
  Call call = forward();
  call.savedFields.clear();
  EXPECT_EQ(forward(call), "accepted");
}

TEST_F(FieldTensors, GoWithABufferOfTheOtherKind) {
  PowerNorm expected;
  expected.forwardPlan(expected.forward());
  Call call = norm_.forward();
  call.saved = {}, call.savedFields = arrays_.saved();
  EXPECT_EQ(forward(call), "accepted");
  EXPECT_EQ(norm_.field("psi2"), expected.field("psi2"));
  call = forward();
  call.savedFields.clear(), call.saved = norm_.saved;
  EXPECT_EQ(forward(call), "accepted");
}

TEST_F(FieldTensors, HaveAnyShapeWithTheFieldsElements) {
  LayerNorm norm(12, 6), expected(12, 6);
  expected.forwardPlan(expected.forward());
  expected.backwardPlan(expected.backward());
  std::vector<float> mean(12), rstd(13);
  Call call = norm.forward();
  call.saved = {},
  call.savedFields = {Tensor(mean.data(), {3, 4}), Tensor(rstd.data() + 1, {2, 1, 6}, {6, 99, 1})};
  norm.forwardPlan(call);
  Call backward = norm.backward();
  backward.saved = {}, backward.savedFields = call.savedFields;
  norm.backwardPlan(backward);
  EXPECT_EQ(norm.dx, expected.dx) << "aligned to 4 bytes";
}

TEST_F(FieldTensors, OfABatchWithoutRowsHaveNoMemory) {
  LayerNorm norm(0, 6);
  Call call = norm.forward();
  call.saved = {}, call.savedFields = {Tensor(static_cast<float*>(nullptr), {0}), {}};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }), "accepted");
}

TEST_F(FieldTensors, LeaveOutWarmupByTheirStep) {
  const Plan plan(standard(), "warmup:forward@f32[*x*]");
  for (const int64_t now : {0, 3}) {
    int64_t step = now;
    float warmed = 0, x[4] = {}, y[4];
    Call call;
    call.x = Tensor(x, {1, 4}), call.y = Tensor(y, {1, 4});
    call.stateInFields = call.stateOutFields = {Tensor(&step, {}), Tensor(&warmed, {})};
    plan(call);
    EXPECT_EQ(warmed, now == 0 ? 1 : 0);
    call.stateInFields[0] = {}, call.stateOutFields[0] = {};
    EXPECT_EQ(refusal([&] { plan(call); }),
              "INVALID_ARGUMENT: state_in_fields[0] ('step') is null; warmup:forward@f32[*x*] reads it");
  }
}

TEST_F(FieldTensors, AreRefusedIfTheyAreMissing) {
  Call call = forward();
  call.stateInFields[1] = {};
  EXPECT_EQ(forward(call),
            "INVALID_ARGUMENT: state_in_fields[1] ('psi2') is null; power_norm:forward@f32[*x*] reads it");
  call = forward();
  call.stateOutFields[0] = {};
  EXPECT_EQ(forward(call),
            "INVALID_ARGUMENT: state_out_fields[0] ('step') is null; power_norm:forward@f32[*x*] writes it");
  call = forward();
  call.savedFields[1] = {};
  EXPECT_EQ(
      forward(call),
      "INVALID_ARGUMENT: saved_fields[1] ('second_moment') is null; power_norm:forward@f32[*x*] writes it");
  call = backward();
  call.savedFields[0] = {};
  EXPECT_EQ(backward(call),
            "INVALID_ARGUMENT: saved_fields[0] ('rstd') is null; power_norm:backward@f32[*x*] reads it");
  call = forward();
  call.stateInFields[2] = {};
  EXPECT_EQ(forward(call),
            "INVALID_ARGUMENT: state_out_fields[2] ('nu') is given without state_in_fields[2] ('nu'); 'nu' "
            "would have to be copied from it");
  call = forward();
  call.stateInFields.clear();
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: state_in is null; power_norm:forward@f32[*x*] reads the state");
}

TEST_F(FieldTensors, AreRefusedIfTheirNumberIsWrong) {
  Call call = forward();
  call.stateInFields.pop_back();
  call.stateOutFields.pop_back();
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: state_field_count is 2; there are 3 fields");
  call = forward();
  call.savedFields.push_back({});
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: saved_field_count is 3; there are 2 fields");
  call = forward();
  call.stateInFields.pop_back();
  EXPECT_THROW(norm_.forwardPlan(call), std::invalid_argument) << "one count serves both";
  call.stateInFields.assign(33, {}), call.stateOutFields.clear();
  EXPECT_THROW(norm_.forwardPlan(call), std::invalid_argument);
}

TEST_F(FieldTensors, AreRefusedIfTheirTypeShapeOrMemoryIsWrong) {
  const std::vector<float> psi2 = arrays_.psi2;
  const auto refused = [&](const Tensor& tensor) {
    Call call = forward();
    call.stateOutFields[1] = tensor;
    return forward(call);
  };
  std::vector<double> wide(20);
  EXPECT_EQ(refused(Tensor(wide.data(), {10})),
            "INVALID_ARGUMENT: state_out_fields[1] ('psi2') has dtype f64; this plan takes f32");
  std::vector<float> many(40);
  EXPECT_EQ(
      refused(Tensor(many.data(), {11})),
      "INVALID_ARGUMENT: state_out_fields[1] ('psi2') has 11 elements; with these sizes the field has 10");
  EXPECT_EQ(
      refused(Tensor(many.data(), {10}, {2})),
      "INVALID_ARGUMENT: state_out_fields[1] ('psi2') has stride 2 in dimension 0; it must be contiguous");
  EXPECT_EQ(
      refused(Tensor(many.data(), {2, 5}, {6, 1})),
      "INVALID_ARGUMENT: state_out_fields[1] ('psi2') has stride 6 in dimension 0; it must be contiguous");
  EXPECT_EQ(refused(Tensor(many.data(), {10}).onCuda()),
            "INVALID_ARGUMENT: state_out_fields[1] ('psi2') is on device type 2; this plan runs on the CPU "
            "(kDLCPU, 1)");
  EXPECT_EQ(refused(Tensor(static_cast<float*>(nullptr), {10})),
            "INVALID_ARGUMENT: state_out_fields[1] ('psi2') has elements but its data is null");
  EXPECT_EQ(refused(Tensor(reinterpret_cast<float*>(reinterpret_cast<char*>(many.data()) + 2), {10})),
            "INVALID_ARGUMENT: state_out_fields[1] ('psi2') is not aligned to its elements of 4 bytes");
  EXPECT_EQ(refused(Tensor(reinterpret_cast<float*>(many.data()), {-1})),
            "INVALID_ARGUMENT: state_out_fields[1] ('psi2') has size -1 in dimension 0");
  Call call = forward();
  call.stateInFields[0] = Tensor(reinterpret_cast<int64_t*>(many.data() + 1), {});
  EXPECT_EQ(forward(call),
            "INVALID_ARGUMENT: state_in_fields[0] ('step') is not aligned to its elements of 8 bytes");
  EXPECT_EQ(arrays_.psi2, psi2) << "nothing was written";
}

TEST_F(FieldTensors, AreRefusedBesideABuffer) {
  const std::string rule = "; give buffers, or one tensor for each field";
  std::vector<double> memory(100);
  Call call = forward();
  call.stateIn = memory;
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: state_in and state_in_fields are both given" + rule);
  call = forward();
  call.stateInFields.clear(), call.stateIn = memory;
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: state_in and state_out_fields are both given" + rule);
  call = forward();
  call.stateOutFields.clear(), call.stateOut = memory;
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: state_out and state_in_fields are both given" + rule);
  call = forward();
  call.saved = norm_.saved;
  EXPECT_EQ(forward(call), "INVALID_ARGUMENT: saved and saved_fields are both given" + rule);
  call = forward();
  call.state = &norm_.state;
  EXPECT_EQ(
      forward(call),
      "INVALID_ARGUMENT: state and state_in_fields are both given; a state object stands for state_in and "
      "state_out");
}

TEST_F(FieldTensors, AreRefusedByPlansWithoutThem) {
  LayerNorm norm;
  Call call = norm.forward();
  call.stateInFields = arrays_.state();
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: state_in_fields is given, but layer_norm:forward@f32[*x*] has no state");
  const Plan probe(standard(), "probe:forward@f32[*x*]");
  Call other;
  other.x = norm.matrix(norm.x), other.y = norm.matrix(norm.y);
  other.savedFields = arrays_.saved();
  EXPECT_EQ(
      refusal([&] { probe(other); }),
      "INVALID_ARGUMENT: saved_fields is given, but probe:forward@f32[*x*] saves nothing; leave it null");

  package::Kernel kernel = powerNorm("forward");
  kernel.problem = "power_norm:infer@f32[*x*]", kernel.parts.entry = Entry::Infer;
  kernel.saved.clear();
  std::erase_if(kernel.operands, [](const package::Operand& operand) {
    return operand.role == package::Role::Saved || operand.role == package::Role::StateOut;
  });
  const Plan infer(openInMemory(packageOf(kernel), context()), kernel.problem);
  call = norm_.forward();
  call.saved = {}, call.state = nullptr;
  call.stateInFields = call.stateOutFields = arrays_.state();
  EXPECT_EQ(refusal([&] { infer(call); }),
            "INVALID_ARGUMENT: state_out_fields is given, but power_norm:infer@f32[*x*] does not write the "
            "state; leave it null");
}

TEST_F(FieldTensors, AreRefusedIfTheyOverlap) {
  std::vector<float> memory(3 * norm_.features);
  Call call = forward();
  call.stateOutFields[1] = Tensor(memory.data(), {norm_.features});
  call.savedFields[0] = Tensor(memory.data() + 4, {norm_.features});
  EXPECT_EQ(
      forward(call),
      "INVALID_ARGUMENT: saved_fields[0] ('rstd') is written and overlaps state_out_fields[1] ('psi2'); "
      "they must lie in different memory");
  call = forward();
  call.stateInFields[1] = Tensor(memory.data(), {norm_.features});
  call.stateOutFields[1] = Tensor(memory.data() + 4, {norm_.features});
  EXPECT_EQ(
      forward(call),
      "INVALID_ARGUMENT: state_out_fields[1] ('psi2') and state_in_fields[1] ('psi2') overlap but are not "
      "the same memory; make them the same or apart");
  call = forward();
  call.stateOutFields[1] = call.stateInFields[2];
  EXPECT_EQ(
      forward(call),
      "INVALID_ARGUMENT: state_out_fields[1] ('psi2') is written and overlaps state_in_fields[2] ('nu'); "
      "they must lie in different memory");
  call = forward();
  call.savedFields[1] = Tensor(norm_.y.data(), {norm_.features});
  EXPECT_EQ(forward(call),
            "INVALID_ARGUMENT: saved_fields[1] ('second_moment') is written and overlaps y; they must lie in "
            "different memory");
}

}  // namespace
}  // namespace normc::test
