// Errors of the reference for calls that it cannot evaluate.
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

struct Complaint {
  Problem problem;
  ReferenceCall call;

  explicit Complaint(const Spec& spec, Extents extents = {1, 2, 4}) {
    Layer layer(spec, extents);
    layer.forward(Vector(extents.totalRows() * extents.features, 1));
    problem = layer.problem;
    problem.data = problem.params = DType::F32;
    call = layer.call;
  }
  std::string text() const {
    Result<ReferenceResult> result = evaluate(problem, call);
    return result ? "no complaint" : normc::text(result.errors());
  }
};

void expectText(const Complaint& complaint, const std::string& part) {
  const std::string text = complaint.text();
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(ReferenceArguments, AreCompleteAfterAForward) {
  EXPECT_EQ(Complaint(powerNorm()).text(), "no complaint");
}

TEST(ReferenceArguments, NamesTheTensorOfWrongLength) {
  Complaint x(layerNorm());
  x.call.x.pop_back();
  expectText(x, "x has 7 elements, not 8");
  expectText(x, "x is [segments, rows, features]");

  Complaint dy(layerNorm());
  dy.problem.entry = Entry::Backward;
  expectText(dy, "dy has 0 elements, not 8");

  Complaint scale(rmsNorm());
  scale.call.scale = {1};
  expectText(scale, "scale has 1 elements, not 4");
  scale.call.scale = {1, 1, 1, 1};
  scale.call.bias = {1, 1, 1, 1};
  expectText(scale, "bias has 4 elements, not 0");
  expectText(scale, "rms_norm:forward@f32[*x*] takes no bias");
}

TEST(ReferenceArguments, WantsABiasInTheBackwardOfAnActivationOnly) {
  for (Activation activation : {Activation::None, Activation::Silu}) {
    Spec spec = layerNorm();
    spec.activation = activation;
    Complaint complaint(spec);
    complaint.problem.entry = Entry::Backward;
    complaint.call.dy = Vector(8, 1);
    EXPECT_EQ(complaint.text(), "no complaint");
    complaint.call.bias.clear();
    if (activation == Activation::None) {
      EXPECT_EQ(complaint.text(), "no complaint");
    } else {
      expectText(complaint, "bias has 0 elements, not 4");
    }
    complaint.call.bias = {1};
    expectText(complaint, "bias has 1 elements, not 4");
  }
  Spec spec = rmsNorm();
  spec.activation = Activation::Silu;
  Complaint complaint(spec);
  complaint.problem.entry = Entry::Backward;
  complaint.call.dy = Vector(8, 1);
  EXPECT_EQ(complaint.text(), "no complaint");
}

using enum Side;

// A norm with everything around it, and its backward.
Complaint surrounded(Side residual, Side gate, Activation activation) {
  Spec spec = layerNorm();
  spec.residual = Spec::Residual{.side = residual};
  spec.gate = Spec::Gate{.function = Activation::Silu, .side = gate, .per = Per::Segment};
  spec.modulate = Spec::Modulate{.scale = true, .shift = true, .per = Per::Row};
  spec.activation = activation;
  return Complaint(spec, {2, 2, 4});
}
void makeBackward(Complaint& complaint) {
  complaint.problem.entry = Entry::Backward;
  complaint.call.dy = Vector(16, 1);
}

TEST(ReferenceArguments, NamesWhatStandsAroundANorm) {
  Complaint forward = surrounded(Before, Before, Activation::None);
  expectText(forward, "residual_out has 16 elements, not 0");  // forward writes it
  forward.call.residualOut.clear();
  EXPECT_EQ(forward.text(), "no complaint");
  forward.call.gate.pop_back(), forward.call.modScale.clear(), forward.call.modShift.push_back(1);
  forward.call.residual.clear(), forward.call.dresidualOut = Vector(16);
  expectText(forward, "gate has 7 elements, not 8\n  hint: gate is [segments, features]");
  expectText(forward, "mod_scale has 0 elements, not 16\n  hint: mod_scale is [segments, rows, features]");
  expectText(forward, "mod_shift has 17 elements, not 16");
  expectText(forward, "residual has 0 elements, not 16");
  expectText(forward, "dresidual_out has 16 elements, not 0");
  Complaint bare(layerNorm());
  bare.call.residual = Vector(8), bare.call.gate = Vector(8);
  expectText(bare, "takes no residual");
  expectText(bare, "takes no gate");
}

TEST(ReferenceArguments, OfABackwardMayLackWhatItDoesNotNeed) {
  const auto needs = [](Complaint complaint, Vector ReferenceCall::* input) {
    makeBackward(complaint);
    EXPECT_EQ(complaint.text(), "no complaint");
    (complaint.call.*input).push_back(1);
    EXPECT_NE(complaint.text(), "no complaint");  // given, it has its length
    (complaint.call.*input).clear();
    return complaint.text() != "no complaint";
  };
  using enum Activation;
  // Behind a stream only a gate reads x again.
  EXPECT_TRUE(needs(surrounded(Before, Before, None), &ReferenceCall::x));
  EXPECT_FALSE(needs(surrounded(Before, After, None), &ReferenceCall::x));
  EXPECT_TRUE(needs(surrounded(After, After, None), &ReferenceCall::x));
  EXPECT_FALSE(needs(surrounded(Before, Before, Tanh), &ReferenceCall::residual));
  EXPECT_FALSE(needs(surrounded(After, Before, None), &ReferenceCall::residual));
  EXPECT_TRUE(needs(surrounded(After, Before, Tanh), &ReferenceCall::residual));
  EXPECT_FALSE(needs(surrounded(Before, Before, None), &ReferenceCall::modShift));
  EXPECT_TRUE(needs(surrounded(Before, Before, Tanh), &ReferenceCall::modShift));
  EXPECT_TRUE(needs(surrounded(Before, After, None), &ReferenceCall::modShift));
  for (auto always : {&ReferenceCall::residualOut, &ReferenceCall::gate, &ReferenceCall::modScale,
                      &ReferenceCall::scale, &ReferenceCall::bias})
    EXPECT_TRUE(needs(surrounded(Before, Before, None), always));
  Complaint gradient = surrounded(Before, Before, None);
  makeBackward(gradient);
  gradient.call.dresidualOut = Vector(16);
  EXPECT_EQ(gradient.text(), "no complaint");
}

TEST(ReferenceArguments, OfABackwardWithoutAStreamAreBothTerms) {
  Spec spec = layerNorm();
  spec.residual = Spec::Residual{.side = Side::Before, .stream = false};
  Complaint complaint(spec, {2, 2, 4});
  makeBackward(complaint);
  EXPECT_EQ(complaint.text(), "no complaint");
  complaint.call.residual.clear();
  expectText(complaint, "residual has 0 elements, not 16");
  complaint.call.residualOut = Vector(16);
  expectText(complaint, "takes no residual_out");
}

TEST(ReferenceArguments, ListsEverythingThatIsWrong) {
  Complaint complaint(layerNorm());
  complaint.call.x.clear();
  complaint.call.bias.clear();
  expectText(complaint, "x has 0 elements");
  expectText(complaint, "bias has 0 elements");
}

TEST(ReferenceArguments, WantsAMaskWhereTheProblemHasOne) {
  Complaint complaint(layerNorm());
  complaint.problem.mask = true;
  expectText(complaint, "mask has 0 elements, not 2");
  complaint.problem.mask = false;
  complaint.call.mask = {1, 1};
  expectText(complaint, "takes no mask");
}

TEST(ReferenceArguments, NamesTheFieldThatIsMissingOrShort) {
  Complaint complaint(powerNorm());
  complaint.call.state.erase("psi2");
  complaint.call.state["nu"] = {0};
  expectText(complaint, "state.psi2 is missing");
  expectText(complaint, "power_norm needs it in forward");
  expectText(complaint, "state.nu has 1 elements, not 4");

  Complaint backward(layerNorm());
  backward.problem.entry = Entry::Backward;
  backward.call.dy = Vector(8, 1);
  backward.call.saved.clear();
  expectText(backward, "saved.rstd is missing");
}

TEST(ReferenceArguments, RefusesAStepThatIsNone) {
  Complaint complaint(powerNorm());
  complaint.call.state["step"] = {-1};
  expectText(complaint, "state.step is -1");

  Complaint backward(mabn(2, 2));
  backward.problem.entry = Entry::Backward;
  backward.call.dy = Vector(8, 1);
  backward.call.saved["step"] = {0};
  expectText(backward, "saved.step is 0");
}

TEST(ReferenceArguments, RefusesAShapeThatIsNone) {
  Complaint complaint(layerNorm());
  complaint.call.extents.rows = -2;
  expectText(complaint, "1 segments, -2 rows and 4 features are not a shape");
}

TEST(ReferenceArguments, ChecksTheFeatureCount) {
  Complaint complaint(layerNorm());
  complaint.problem.features = 5;
  expectText(complaint, "the call has 4 features, the problem 5");
  Spec grouped = layerNorm();
  grouped.groups.count = 3;
  Complaint groups(grouped, {1, 2, 6});
  groups.call.extents.features = 4;
  expectText(groups, "3 groups do not divide 4 features");
}

TEST(ReferenceArguments, KnowsItsNumbers) {
  Complaint complaint(powerNorm());
  complaint.call.numbers["decai"] = 1;
  expectText(complaint, "power_norm has no number decai");
  expectText(complaint, "its numbers are epsilon, decay, backward_decay");
}

}  // namespace
}  // namespace normc
