// Calls with the tensors that stand around a norm: their shapes, what may be left out, what may share memory,
// and what refusals say. No norm is needed for that: the kernel has no statistics.
#include <cstring>

#include "tests/runtime/InStep.h"
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

const char* const kForward = "around:forward@f32[*x*x*]";
const char* const kBackward = "around:backward@f32[*x*x*]";
constexpr const char* kRefused = "INVALID_ARGUMENT: ";

const host::Package& package() {
  static const host::Package package =
      openInMemory(packageOf({around("forward"), around("backward")}), context());
  return package;
}

/// The tensors of both entries; each test changes what it is about.
struct Around {
  int64_t segments = 3, rows = 5, features = 4;
  std::vector<float> x, residual, gate, modScale, modShift, dy, dresidualOut;
  std::vector<float> y, residualOut, dx, dgate, dmodScale, dmodShift;
  std::vector<char> workspace;
  Plan forwardPlan{package(), kForward}, backwardPlan{package(), kBackward};

  explicit Around(int64_t rows = 5, int64_t features = 4) : rows(rows), features(features) {
    const size_t all = size_t(segments * rows * features), vectors = size_t(segments * features);
    x = numbers(all, 1), residual = numbers(all, 2), dy = numbers(all, 3), dresidualOut = numbers(all, 4);
    gate = numbers(size_t(features), 5), modScale = numbers(vectors, 6), modShift = numbers(vectors, 7);
    y.resize(all), residualOut.resize(all), dx.resize(all);
    dgate.resize(size_t(features)), dmodScale.resize(vectors), dmodShift.resize(vectors);
    workspace.assign(backwardPlan.workspaceBytes(sizes()), char(0xff));  // NaN
  }

  normc_sizes sizes() const { return Plan::sizes(segments, rows, features); }
  Tensor elements(std::vector<float>& v) const { return {v.data(), {segments, rows, features}}; }
  Tensor ofSegments(std::vector<float>& v) const { return {v.data(), {segments, features}}; }
  Tensor ofFeatures(std::vector<float>& v) const { return {v.data(), {features}}; }

  Call forward() {
    Call call;
    call.x = elements(x), call.residual = elements(residual), call.gate = ofFeatures(gate);
    call.modScale = ofSegments(modScale), call.modShift = ofSegments(modShift);
    call.residualOut = elements(residualOut), call.y = elements(y);
    return call;
  }
  Call backward() {
    Call call;
    call.dy = elements(dy), call.residualOut = elements(residualOut), call.gate = ofFeatures(gate);
    call.modScale = ofSegments(modScale), call.modShift = ofSegments(modShift);
    call.dresidualOut = elements(dresidualOut), call.dx = elements(dx), call.dgate = ofFeatures(dgate);
    call.dmodScale = ofSegments(dmodScale), call.dmodShift = ofSegments(dmodShift);
    call.workspace = workspace;
    return call;
  }
  /// Executes both.
  void run() {
    forwardPlan(forward());
    backwardPlan(backward());
  }

  template <typename Change>
  std::string forward(Change change) {
    Call call = forward();
    change(call);
    return refusal([&] { forwardPlan(call); });
  }
  template <typename Change>
  std::string backward(Change change) {
    Call call = backward();
    change(call);
    return refusal([&] { backwardPlan(call); });
  }
};

TEST(Around, ComputesOfTensorsOfEveryShape) {
  Around a;
  a.run();
  std::vector<double> dgate(size_t(a.features)), dmodScale(a.dmodScale.size()), dmodShift(a.dmodShift.size());
  for (int64_t i = 0; i < int64_t(a.x.size()); ++i) {
    const int64_t f = i % a.features, at = i / (a.rows * a.features) * a.features + f;
    const double h = double(a.x[i]) + a.residual[i], m = (1.0 + a.modScale[at]) * h + a.modShift[at];
    EXPECT_NEAR(a.residualOut[i], h, 1e-6);
    EXPECT_NEAR(a.y[i], a.gate[f] * m, 1e-6);
    const double dm = double(a.dy[i]) * a.gate[f];
    EXPECT_NEAR(a.dx[i], dm * (1.0 + a.modScale[at]) + a.dresidualOut[i], 1e-6);
    dgate[f] += a.dy[i] * m, dmodScale[at] += dm * h, dmodShift[at] += dm;
  }
  for (int64_t f = 0; f < a.features; ++f) EXPECT_NEAR(a.dgate[f], dgate[f], 1e-5);
  for (size_t i = 0; i < dmodScale.size(); ++i) {
    EXPECT_NEAR(a.dmodScale[i], dmodScale[i], 1e-5);
    EXPECT_NEAR(a.dmodShift[i], dmodShift[i], 1e-5);
  }
}

TEST(Around, SharesTheMemoryOfResidualAndX) {
  Around apart, inPlace;
  apart.run();
  Call call = inPlace.forward();
  call.residualOut = call.residual, call.y = call.x;
  inPlace.forwardPlan(call);
  EXPECT_EQ(inPlace.residual, apart.residualOut);
  EXPECT_EQ(inPlace.x, apart.y);
}

TEST(Around, BackwardNeedsNeitherXNorResidual) {
  Around a;
  a.run();
  const std::vector<float> dx = a.dx;
  EXPECT_EQ(a.backward([&](Call& c) { c.x = a.elements(a.x), c.residual = a.elements(a.residual); }),
            "accepted")
      << "they are ignored";
  EXPECT_EQ(a.dx, dx);
}

TEST(Around, AGradientThatIsLeftOutCountsAsZeros) {
  for (const int64_t features : {1, 4, 33, 1000}) {
    Around zeros(5, features), without(5, features);
    zeros.dresidualOut.assign(zeros.dresidualOut.size(), 0);
    zeros.run();
    without.forwardPlan(without.forward());
    EXPECT_EQ(without.backward([](Call& c) { c.dresidualOut = {}; }), "accepted");
    EXPECT_EQ(without.dx, zeros.dx) << features;
    EXPECT_EQ(without.dmodShift, zeros.dmodShift) << features;
  }
}

TEST(Around, AGradientThatIsLeftOutCountsAsZerosInEveryPart) {
  Around zeros(5, 1000);
  zeros.dresidualOut.assign(zeros.dresidualOut.size(), 0);
  zeros.run();
  for (const Turns turns : {Turns::Free, Turns::Ascending, Turns::Descending})
    for (const int count : {1, 2, 3, 7}) {
      Around without(5, 1000);
      without.forwardPlan(without.forward());
      Call call = without.backward();
      call.dresidualOut = {};
      const host::detail::Arguments args(call);
      const InStep result = inStep(count, turns, [&](int ith, normc_barrier barrier, void* ctx) {
        return normc_execute_part(without.backwardPlan.get(), args.get(), ith, count, barrier, ctx);
      });
      ASSERT_EQ(result.status(), NORMC_OK) << result.errors[0];
      for (const int waits : result.waits)
        EXPECT_EQ(waits, count == 1 ? 0 : without.backwardPlan.barriers(without.sizes()));
      EXPECT_EQ(without.dx, zeros.dx) << count;
      EXPECT_EQ(without.dgate, zeros.dgate) << count;
    }
}

TEST(Around, LeavesOutEachGradient) {
  Around all;
  all.run();
  const std::pair<Tensor Call::*, std::vector<float> Around::*> gradients[] = {
      {&Call::dx, &Around::dx},
      {&Call::dgate, &Around::dgate},
      {&Call::dmodScale, &Around::dmodScale},
      {&Call::dmodShift, &Around::dmodShift}};
  for (const auto& [kept, values] : gradients) {
    Around some;
    some.forwardPlan(some.forward());
    EXPECT_EQ(some.backward([&, kept = kept](Call& c) {
      for (const auto& [other, unused] : gradients)
        if (other != kept) c.*other = {};
    }),
              "accepted");
    EXPECT_EQ(some.*values, all.*values);
  }
}

TEST(Around, TheWorkspaceIsEnoughForWhateverIsLeftOut) {
  for (const int64_t features : {1, 7, 1000}) {
    Around a(3, features);
    a.forwardPlan(a.forward());
    std::vector<char> guarded(a.workspace.size() + 64, 42);
    for (int out = 0; out < 16; ++out)
      EXPECT_EQ(a.backward([&](Call& c) {
        c.workspace = {guarded.data(), a.workspace.size()};
        if (out & 1) c.dresidualOut = {};
        if (out & 2) c.dgate = {};
        if (out & 4) c.dmodScale = c.dmodShift = {};
        if (out & 8) c.dx = {}, c.dmodShift = a.ofSegments(a.dmodShift);
      }),
                "accepted")
          << features << ", " << out;
    EXPECT_EQ(std::count(guarded.end() - 64, guarded.end(), 42), 64);
  }
}

TEST(Around, ScratchOfAVectorForEachSegmentIsAsLongAsTheTensor) {
  Around all(5, 40), some(5, 40);
  all.run();
  some.forwardPlan(some.forward());
  // Too little scratch for the gradients of the modulation would overlap the partials of dgate.
  EXPECT_EQ(some.backward([](Call& c) { c.dmodScale = c.dmodShift = {}; }), "accepted");
  EXPECT_EQ(some.dgate, all.dgate);
  Call none = some.backward();
  none.workspace.bytes = 0;
  const auto needed = [&](Call call) {
    const std::string text = refusal([&] { some.backwardPlan(call); });
    return std::stoll(text.substr(text.find("needs ") + 6));
  };
  Call without = none;
  without.dmodScale = {};
  EXPECT_EQ(needed(without) - needed(none), 3 * 40 * 4 + 32) << "a multiple of 64 bytes";
  without = none;
  without.dresidualOut = {};
  EXPECT_EQ(needed(without) - needed(none), 40 * 4 + 32) << "one row";
}

TEST(Around, RefusesVectorsOfOtherShapes) {
  Around a;
  EXPECT_EQ(a.forward([&](Call& c) { c.modScale = {a.modScale.data(), {12}}; }),
            std::string(kRefused) +
                "mod_scale must have a vector of features for each segment, 3 x 4; it has 12 elements in 1 "
                "dimension");
  EXPECT_EQ(a.forward([&](Call& c) { c.modShift = {a.modShift.data(), {4, 3}}; }),
            std::string(kRefused) +
                "mod_shift must have a vector of features for each segment, 3 x 4; it has 12 elements in 2 "
                "dimensions");
  EXPECT_EQ(a.forward([&](Call& c) { c.modScale = {a.x.data(), {3, 4}, {8, 1}}; }),
            std::string(kRefused) + "mod_scale has stride 8 in dimension 0; it must be contiguous");
  EXPECT_EQ(a.backward([&](Call& c) { c.dmodScale = {a.dmodScale.data(), {3, 4}, {1, 3}}; }),
            std::string(kRefused) + "dmod_scale has stride 3 in dimension 1; it must be contiguous");
  EXPECT_EQ(a.forward([&](Call& c) { c.gate = a.elements(a.x); }),
            std::string(kRefused) + "gate has 3 dimensions; it must have one, the features");
  EXPECT_EQ(
      a.forward([&](Call& c) { c.residual = {a.residual.data(), {3, 4, 4}}; }),
      std::string(kRefused) + "residual has size 4 in dimension 1, x has 5; they must have the same shape");
  EXPECT_EQ(a.backward([&](Call& c) { c.dresidualOut = {a.dresidualOut.data(), {3, 4, 4}}; }),
            std::string(kRefused) +
                "dresidual_out has size 4 in dimension 1, dy has 5; they must have the same shape");
  const std::vector<double> wide(12);
  EXPECT_EQ(a.forward([&](Call& c) { c.modScale = {wide.data(), {3, 4}}; }),
            std::string(kRefused) + "mod_scale has dtype f64; this plan takes f32");
}

TEST(Around, TakesASegmentVectorWithAnyStrideOfAnAxisOfOne) {
  Around a;
  a.segments = 1;
  for (auto* values : {&a.x, &a.residual, &a.y, &a.residualOut}) values->resize(20);
  EXPECT_EQ(a.forward([&](Call& c) { c.modScale = {a.modScale.data(), {1, 4}, {99, 1}}; }), "accepted");
}

TEST(Around, RefusesTensorsThatAreMissingOrOfNoUse) {
  Around a;
  EXPECT_EQ(a.forward([](Call& c) { c.residual = {}; }),
            std::string(kRefused) + "residual is null; around:forward@f32[*x*x*] needs it");
  EXPECT_EQ(a.forward([](Call& c) { c.residualOut = {}; }),
            std::string(kRefused) + "residual_out is null; around:forward@f32[*x*x*] writes it");
  EXPECT_EQ(a.backward([](Call& c) { c.residualOut = {}; }),
            std::string(kRefused) + "residual_out is null; around:backward@f32[*x*x*] needs it");
  EXPECT_EQ(a.backward([](Call& c) { c.modShift = {}; }),
            std::string(kRefused) + "mod_shift is null; around:backward@f32[*x*x*] needs it");
  EXPECT_EQ(a.forward([&](Call& c) { c.dresidualOut = a.elements(a.dresidualOut); }),
            std::string(kRefused) +
                "dresidual_out is given, but around:forward@f32[*x*x*] does not take it; leave it null");
  EXPECT_EQ(a.backward([&](Call& c) { c.scale = a.ofFeatures(a.gate); }),
            std::string(kRefused) +
                "scale is given, but around:backward@f32[*x*x*] does not take it; leave it null");
  EXPECT_EQ(a.backward([](Call& c) { c.dx = c.dgate = c.dmodScale = c.dmodShift = {}; }),
            std::string(kRefused) + "nothing to compute: dx, dgate, dmod_scale, dmod_shift are all null");
}

TEST(Around, SaysWhichTensorIsTheGradientOfTheResidual) {
  Around a;
  EXPECT_EQ(
      a.backward([&](Call& c) { c.dresidual = a.elements(a.y); }),
      std::string(kRefused) +
          "dresidual is given, but around:backward@f32[*x*x*] does not write it, because it is equal to "
          "dx; leave it null and use dx");
  package::Kernel after = around("backward");
  after.same = {{"dresidual", "dy"}};
  const Plan plan(openInMemory(packageOf(after), context()), kBackward);
  Call call = a.backward();
  call.dresidual = a.elements(a.y);
  EXPECT_TRUE(has(refusal([&] { plan(call); }), "because it is equal to dy; leave it null and use dy"));
}

TEST(Around, RefusesMemoryThatOverlaps) {
  Around a;
  std::vector<float> both(a.x.size() + 4);
  EXPECT_EQ(a.forward([&](Call& c) {
    c.residual = a.elements(both);
    c.residualOut = {both.data() + 4, {3, 5, 4}};
  }),
            std::string(kRefused) +
                "residual_out and residual overlap but are not the same memory with the same strides; make "
                "them the same or apart");
  EXPECT_EQ(
      a.forward([&](Call& c) { c.residualOut = c.x; }),
      std::string(kRefused) + "residual_out is written and overlaps x; they must lie in different memory");
  EXPECT_EQ(a.forward([&](Call& c) { c.y = c.residual; }),
            std::string(kRefused) + "y is written and overlaps residual; they must lie in different memory");
  EXPECT_EQ(a.backward([&](Call& c) { c.dmodScale = c.modScale; }),
            std::string(kRefused) +
                "dmod_scale is written and overlaps mod_scale; they must lie in different memory");
  EXPECT_EQ(
      a.backward([&](Call& c) { c.dx = c.dresidualOut; }),
      std::string(kRefused) + "dx is written and overlaps dresidual_out; they must lie in different memory");
  EXPECT_EQ(a.backward([&](Call& c) { c.dresidualOut = c.dy; }), "accepted") << "both are only read";
}

std::string uses(const Plan& plan) {
  static constexpr const char* names[] = {"read", "ignored", "written", "optional", "if given", "same"};
  static constexpr const char* shapes[] = {"", " of features", " of rows", " of segments"};
  std::string text;
  for (const normc_tensor_info& info : plan.tensors())
    text += (text.empty() ? "" : ", ") + std::string(info.name) + " " + names[info.use] +
            (info.same_as ? std::string(" as ") + info.same_as : "") + shapes[info.shape];
  return text;
}

TEST(Around, IsDescribedByThePlan) {
  EXPECT_EQ(
      uses(Plan(package(), kForward)),
      "x read, y written, residual read, residual_out written, gate read of features, mod_scale read of "
      "segments, mod_shift read of segments");
  EXPECT_EQ(uses(Plan(package(), kBackward)),
            "x ignored, dy read, dx optional, residual ignored, residual_out read, gate read of features, "
            "mod_scale read of segments, mod_shift read of segments, dresidual_out if given, dresidual same "
            "as dx, dgate optional of features, dmod_scale optional of segments, dmod_shift optional of "
            "segments");
  package::Kernel kernel = around("backward");
  std::erase_if(kernel.operands, [](const package::Operand& operand) { return operand.name == "mod_shift"; });
  kernel.ignored = {"mod_shift"};
  EXPECT_TRUE(has(uses(Plan(openInMemory(packageOf(kernel), context()), kBackward)),
                  "mod_shift ignored of segments"));
}

TEST(Around, KernelsOfOnePlanHaveTensorsOfOneShape) {
  package::Kernel few = around("forward"), any = around("forward");
  few.limits.rowsMax = 4;
  few.operands[2].shape = {package::kSegments, package::kFeatures};
  const Plan plan(openInMemory(packageOf({few, any}), context()), kForward);
  EXPECT_TRUE(has(plan.describe(), "takes other tensors than kernel 1")) << plan.describe();
}

}  // namespace
}  // namespace normc::test
