// Every call that execute refuses: what it says, and that it wrote nothing.
#include <cstring>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// Refusals of a layer norm's forward or backward with one thing changed; outputs must stay as they were.
class Refusal : public ::testing::Test {
 protected:
  LayerNorm norm{4, 6};
  std::vector<float> other = std::vector<float>(64);

  void SetUp() override { norm.forwardPlan(norm.forward()); }

  template <typename Change>
  std::string forward(Change change) {
    return check(norm.forwardPlan, norm.forward(), change);
  }
  template <typename Change>
  std::string backward(Change change) {
    return check(norm.backwardPlan, norm.backward(), change);
  }

 private:
  template <typename Change>
  std::string check(const Plan& plan, Call call, Change change) {
    const std::vector<float> poison(norm.y.size(), 7), ofFeatures(norm.dscale.size(), 7);
    norm.y = norm.dx = poison, norm.dscale = norm.dbias = ofFeatures;
    const std::vector<char> saved = norm.saved;
    change(call);
    const std::string text = refusal([&] { plan(call); });
    EXPECT_EQ(norm.y, poison) << "y was written";
    EXPECT_EQ(norm.dx, poison) << "dx was written";
    EXPECT_EQ(norm.dscale, ofFeatures) << "dscale was written";
    EXPECT_EQ(norm.dbias, ofFeatures) << "dbias was written";
    EXPECT_EQ(norm.saved, saved) << "saved was written";
    return text;
  }
};

TEST_F(Refusal, OfTensorsThatAreMissing) {
  EXPECT_EQ(forward([](Call& c) { c.x = {}; }),
            "INVALID_ARGUMENT: x is null; layer_norm:forward@f32[*x*] needs it");
  EXPECT_EQ(forward([](Call& c) { c.y = {}; }),
            "INVALID_ARGUMENT: y is null; layer_norm:forward@f32[*x*] writes it");
  EXPECT_EQ(forward([](Call& c) { c.bias = {}; }),
            "INVALID_ARGUMENT: bias is null; layer_norm:forward@f32[*x*] needs it");
  EXPECT_EQ(backward([](Call& c) { c.dy = {}; }),
            "INVALID_ARGUMENT: dy is null; layer_norm:backward@f32[*x*] needs it");
  EXPECT_EQ(backward([](Call& c) { c.dx = c.dscale = c.dbias = {}; }),
            "INVALID_ARGUMENT: nothing to compute: dx, dscale, dbias are all null");
}

TEST_F(Refusal, OfTensorsThatWouldBeIgnored) {
  EXPECT_EQ(forward([&](Call& c) { c.dx = norm.matrix(norm.dx); }),
            "INVALID_ARGUMENT: dx is given, but layer_norm:forward@f32[*x*] does not take it; leave it null");
  const std::vector<uint8_t> mask(4, 1);
  EXPECT_EQ(
      forward([&](Call& c) { c.mask = {mask.data(), {4}}; }),
      "INVALID_ARGUMENT: mask is given, but layer_norm:forward@f32[*x*] does not take it; leave it null");
  EXPECT_EQ(backward([&](Call& c) { c.y = norm.matrix(norm.y); }),
            "INVALID_ARGUMENT: y is given, but layer_norm:backward@f32[*x*] does not take it; leave it null");
}

TEST(Backward, IgnoresInputsItDoesNotNeed) {
  LayerNorm norm;
  norm.forwardPlan(norm.forward());
  Call call = norm.backward();
  call.bias = norm.vector(norm.bias);
  EXPECT_EQ(refusal([&] { norm.backwardPlan(call); }), "accepted");
}

TEST_F(Refusal, OfTypesAndDevices) {
  std::vector<double> wide(24);
  EXPECT_EQ(forward([&](Call& c) { c.x = {wide.data(), {4, 6}}; }),
            "INVALID_ARGUMENT: x has dtype f64; this plan takes f32");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), DLDataType{kDLBfloat, 16, 1}, {4, 6}}; }),
            "INVALID_ARGUMENT: x has dtype bf16; this plan takes f32");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), DLDataType{kDLFloat, 32, 4}, {4, 6}}; }),
            "INVALID_ARGUMENT: x has dtype f32 x 4; this plan takes f32");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), DLDataType{kDLInt, 32, 1}, {4, 6}}; }),
            "INVALID_ARGUMENT: x has dtype i32; this plan takes f32");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), DLDataType{9, 8, 1}, {4, 6}}; }),
            "INVALID_ARGUMENT: x has dtype code 9 of 8; this plan takes f32");
  EXPECT_EQ(forward([&](Call& c) { c.scale = {wide.data(), {6}}; }),
            "INVALID_ARGUMENT: scale has dtype f64; this plan takes f32");

  int64_t shape[] = {4, 6};
  DLTensor tensor = {norm.x.data(), {kDLCUDA, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  normc_args args = {};
  args.struct_size = sizeof args;
  args.x = &tensor;
  const auto refused = [&] { return refusal(normc_execute(norm.forwardPlan.get(), &args)); };
  EXPECT_EQ(refused(), "INVALID_ARGUMENT: x is on device type 2; this plan runs on the CPU (kDLCPU, 1)");
  const int metal = 8;  // from a newer dlpack.h
  std::memcpy(&tensor.device.device_type, &metal, sizeof metal);
  EXPECT_EQ(refused(), "INVALID_ARGUMENT: x is on device type 8; this plan runs on the CPU (kDLCPU, 1)");
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 99;
  EXPECT_EQ(refused(), "INVALID_ARGUMENT: x has 99 dimensions; at most 16 are allowed");
  tensor.ndim = 2;
  tensor.shape = nullptr;
  EXPECT_EQ(refused(), "INVALID_ARGUMENT: x has 2 dimensions but no shape");
  tensor.shape = shape;
  tensor.data = nullptr;
  EXPECT_EQ(refused(), "INVALID_ARGUMENT: x has elements but its data is null");
  int dummy;
  args.stream = &dummy;
  EXPECT_EQ(refused(), "INVALID_ARGUMENT: stream is given, but this plan runs on the CPU; leave it null");
}

TEST_F(Refusal, OfShapes) {
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), {24}}; }),
            "INVALID_ARGUMENT: x has 1 dimension; this plan takes rows x features");
  EXPECT_EQ(forward([&](Call& c) { c.y = {other.data(), {4, 5}}; }),
            "INVALID_ARGUMENT: y has size 5 in dimension 1, x has 6; they must have the same shape");
  EXPECT_EQ(forward([&](Call& c) { c.y = {other.data(), {2, 2, 6}}; }),
            "INVALID_ARGUMENT: y has 3 dimensions, x has 2; they must have the same shape");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), {4, 0}}; }), "INVALID_ARGUMENT: x has no features");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), {-4, 6}}; }),
            "INVALID_ARGUMENT: x has size -4 in dimension 0");
  EXPECT_EQ(forward([&](Call& c) { c.scale = {other.data(), {7}}; }),
            "INVALID_ARGUMENT: scale has 7 elements; there are 6 features");
  EXPECT_EQ(forward([&](Call& c) { c.scale = {other.data(), {1, 6}}; }),
            "INVALID_ARGUMENT: scale has 2 dimensions; it must have one, the features");
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), {INT64_MAX / 8, 6}}; }),
            "INVALID_ARGUMENT: x has more elements than a 64-bit machine can hold");
  // No elements at all, but sizes whose products no integer holds.
  package::Kernel kernel = probe("features_last", true, false);
  kernel.phases[0].units = {package::kRows, package::kFeatures};
  const host::Package package = openInMemory(packageOf(kernel), host::Context(oneThread()));
  const Plan plan(package, "probe:forward@f32[*x*x*]");
  Call call;
  call.x = {other.data(), {0, int64_t{1} << 62, 8}}, call.y = call.x;
  EXPECT_EQ(refusal([&] { plan(call); }), "INVALID_ARGUMENT: the tensors have more rows than can be counted");
}

TEST_F(Refusal, OfShapesThatThePlanIsNotFor) {
  const Plan exact(standard(), "layer_norm:forward@f32[*x8]");
  EXPECT_EQ(refusal([&] { exact(norm.forward()); }),
            "FAILED_PRECONDITION: x has 6 features (dimension 1); this plan is for 8");
  const Plan rows(standard(), "layer_norm:forward@f32[5x*]");
  EXPECT_EQ(refusal([&] { rows(norm.forward()); }),
            "FAILED_PRECONDITION: the call has 4 rows; this plan (layer_norm:forward@f32[5x*]) is for 5");
  const Plan segments(standard(), "probe:forward@f32[2x*x*]");
  Call call;
  call.x = norm.matrix(norm.x), call.y = norm.matrix(norm.y);
  EXPECT_EQ(refusal([&] { segments(call); }),
            "INVALID_ARGUMENT: x has 2 dimensions; this plan takes segments x rows x features");
  call.x = {norm.x.data(), {1, 4, 6}}, call.y = {norm.y.data(), {1, 4, 6}};
  EXPECT_EQ(refusal([&] { segments(call); }),
            "FAILED_PRECONDITION: the call has 1 segments; this plan (probe:forward@f32[2x*x*]) is for 2");
  const Plan channels(standard(), "probe:forward@f32[*x*x*]{layout=channels_first}");
  call.x = norm.matrix(norm.x);
  EXPECT_EQ(refusal([&] { channels(call); }),
            "INVALID_ARGUMENT: x has 2 dimensions; this plan takes segments x features x rows");

  package::Kernel limited = layerNorm("forward");
  limited.limits.rowsMin = 8;
  limited.limits.rowsMax = 16;
  const host::Package package = openInMemory(packageOf(limited), host::Context(oneThread()));
  const Plan plan(package, "layer_norm:forward@f32[8x*]");
  EXPECT_EQ(refusal([&] {
              size_t bytes;
              const normc_sizes sizes = norm.sizes();
              host::check(normc_plan_workspace_bytes(plan.get(), &sizes, &bytes));
            }),
            "FAILED_PRECONDITION: the call has 4 rows; this plan (layer_norm:forward@f32[8x*]) is for 8");
}

TEST_F(Refusal, OfStrides) {
  EXPECT_EQ(forward([&](Call& c) { c.x = {other.data(), {4, 6}, {12, 2}}; }),
            "INVALID_ARGUMENT: x has stride 2 in dimension 1, along its features; it must be 1 there");
  EXPECT_EQ(forward([&](Call& c) { c.scale = {other.data(), {6}, {2}}; }),
            "INVALID_ARGUMENT: scale has stride 2; it must be contiguous");
  EXPECT_EQ(forward([&](Call& c) { c.y = {norm.y.data(), {4, 6}, {5, 1}}; }),
            "INVALID_ARGUMENT: y is written, but its strides make elements share memory");
  EXPECT_EQ(forward([&](Call& c) { c.y = {norm.y.data(), {4, 6}, {0, 1}}; }),
            "INVALID_ARGUMENT: y is written, but its strides make elements share memory");
  EXPECT_EQ(
      forward([&](Call& c) { c.x = {other.data(), {4, 6}, {int64_t{1} << 60, 1}}; }),
      "INVALID_ARGUMENT: x has a stride of 1152921504606846976 elements: it reaches past the end of memory");
  EXPECT_EQ(forward([&](Call& c) {
              c.x = {other.data(), {2, 2, 6}, {16, 6, 1}};
              c.y = {norm.y.data(), {2, 2, 6}};
            }),
            "INVALID_ARGUMENT: x cannot be walked with one stride along dimensions 0 and 1 (sizes 2 and 2, "
            "strides 16 and "
            "6); make it contiguous there");
  const Plan channels(standard(), "probe:forward@f32[*x*x*]{layout=channels_first}");
  Call call;
  call.x = {norm.x.data(), {2, 3, 4}, {12, 1, 3}}, call.y = {norm.y.data(), {2, 3, 4}};
  EXPECT_EQ(refusal([&] { channels(call); }),
            "INVALID_ARGUMENT: x has stride 3 in dimension 2, along its rows; it must be 1 there");
}

TEST_F(Refusal, OfAlignment) {
  const char* bytes = reinterpret_cast<const char*>(other.data());
  EXPECT_EQ(forward([&](Call& c) { c.x = {bytes + 1, host::dtypeOf<float>(), {4, 6}}; }),
            "INVALID_ARGUMENT: x is not aligned to its elements of 4 bytes");
}

TEST_F(Refusal, OfMasks) {
  const Plan plan(standard(), "probe:forward@f32[*x*]{mask}");
  std::vector<uint8_t> mask(64, 1);
  Call call;
  call.x = norm.matrix(norm.x), call.y = norm.matrix(norm.y);
  const auto with = [&](Tensor tensor) {
    call.mask = tensor;
    return refusal([&] { plan(call); });
  };
  EXPECT_EQ(with({}), "INVALID_ARGUMENT: mask is null; probe:forward@f32[*x*]{mask} needs it");
  EXPECT_EQ(with({mask.data(), {5}}),
            "INVALID_ARGUMENT: mask must have the shape of x without features, 4 rows; it has 5 elements in "
            "1 dimensions");
  EXPECT_EQ(with({mask.data(), {4}, {2}}),
            "INVALID_ARGUMENT: mask has stride 2 along its rows; it must be contiguous there");
  EXPECT_EQ(with({norm.x.data(), {4}}), "INVALID_ARGUMENT: mask has dtype f32; this plan takes u8 or bool");
  const Plan segmented(standard(), "probe:forward@f32[*x*x*]{mask}");
  call.x = {norm.x.data(), {2, 2, 6}}, call.y = {norm.y.data(), {2, 2, 6}}, call.mask = {mask.data(), {4}};
  EXPECT_EQ(refusal([&] { segmented(call); }),
            "INVALID_ARGUMENT: mask must have the shape of x without features, 2 segments x 2 rows; it has 4 "
            "elements in 1 "
            "dimensions");
}

TEST_F(Refusal, SaysSizesAsTheyAreGiven) {
  EXPECT_EQ(forward([](Call& c) { c.saved.bytes = SIZE_MAX; }),
            "INVALID_ARGUMENT: saved has 18446744073709551615 bytes; with these sizes it has 128");
  std::vector<char> memory(4096);
  EXPECT_EQ(refusal([&] {
              Call call = norm.backward();
              call.workspace = {memory.data(), SIZE_MAX};  // all memory from there on
              norm.backwardPlan(call);
            }),
            "accepted");
  PowerNorm power;
  EXPECT_EQ(refusal(normc_state_set(power.state.get(), "psi2", memory.data(), SIZE_MAX)),
            "INVALID_ARGUMENT: the field 'psi2' has 40 bytes, not 18446744073709551615");
  EXPECT_EQ(
      forward([&](Call& c) { c.x = {other.data(), {4, 6}, {INT64_MIN, 1}}; }),
      "INVALID_ARGUMENT: x has a stride of -9223372036854775808 elements: it reaches past the end of memory");
}

TEST_F(Refusal, OfWorkspaceThatIsTooSmall) {
  std::vector<char> memory(4096);
  char* const start = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  EXPECT_EQ(backward([&](Call& c) { c.workspace = {}; }),
            "INVALID_ARGUMENT: workspace has 0 bytes; this call needs 128 (normc_plan_workspace_bytes tells "
            "what is enough "
            "for any call)");
  EXPECT_EQ(backward([&](Call& c) { c.workspace = {nullptr, 1 << 20}; }),
            "INVALID_ARGUMENT: workspace is null, and workspace_bytes is 1048576; this call needs 128 bytes "
            "of memory");
  EXPECT_EQ(backward([&](Call& c) { c.workspace = {start + 8, 128}; }),
            "INVALID_ARGUMENT: workspace has 128 bytes; this call needs 184 (normc_plan_workspace_bytes "
            "tells what is "
            "enough for any call)");
}

TEST_F(Refusal, OfOverlaps) {
  EXPECT_EQ(forward([&](Call& c) {
              c.y = {norm.x.data() + 1, {4, 5}};
              c.x = {norm.x.data(), {4, 5}};
            }),
            "INVALID_ARGUMENT: scale has 6 elements; there are 5 features");
  std::vector<float> buffer(200, 7);
  EXPECT_EQ(forward([&](Call& c) {
              c.x = {buffer.data(), {4, 6}};
              c.y = {buffer.data() + 6, {4, 6}};
            }),
            "INVALID_ARGUMENT: y and x overlap but are not the same memory with the same strides; make them "
            "the same or "
            "apart");
  EXPECT_EQ(forward([&](Call& c) {
              c.x = {buffer.data(), {4, 6}};
              c.y = {buffer.data(), {4, 6}, {8, 1}};
            }),
            "INVALID_ARGUMENT: y and x overlap but are not the same memory with the same strides; make them "
            "the same or "
            "apart");
  EXPECT_EQ(backward([&](Call& c) { c.dx = norm.matrix(norm.x); }),
            "INVALID_ARGUMENT: dx is written and overlaps x; they must lie in different memory");
  EXPECT_EQ(forward([&](Call& c) {
              c.y = {buffer.data(), {4, 6}};
              c.scale = {buffer.data() + 23, {6}};
            }),
            "INVALID_ARGUMENT: y is written and overlaps scale; they must lie in different memory");
  EXPECT_EQ(backward([&](Call& c) { c.dbias = norm.vector(norm.dscale); }),
            "INVALID_ARGUMENT: dbias is written and overlaps dscale; they must lie in different memory");
  std::vector<double> memory(1024);
  EXPECT_EQ(backward([&](Call& c) {
              c.saved.data = memory.data();
              c.workspace = {memory.data(), 4096};
            }),
            "INVALID_ARGUMENT: workspace is written and overlaps saved; they must lie in different memory");
  EXPECT_EQ(buffer, std::vector<float>(200, 7));
}

TEST(Overlap, OfStateIsRefusedUnlessExact) {
  PowerNorm norm;
  std::vector<double> memory(64);
  const size_t bytes = norm.state.buffer().bytes;
  Call call = norm.forward();
  call.state = nullptr;
  call.stateIn = {memory.data(), bytes}, call.stateOut = {memory.data() + 8, bytes};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: state_out and state_in overlap but are not the same memory; make them the "
            "same or apart");
  call.stateOut = call.stateIn;
  call.saved = {memory.data(), norm.saved.size()};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: saved is written and overlaps state_in; they must lie in different memory");
}

TEST(Overlap, OfRangesAloneIsNone) {
  // Columns of one matrix, even and odd rows, every other segment: the ranges overlap, the elements do not.
  std::vector<float> buffer(400);
  const Plan plan(standard(), "probe:forward@f32[*x*]");
  const auto run = [&](Tensor x, Tensor y) {
    Call call;
    call.x = x, call.y = y;
    return refusal([&] { plan(call); });
  };
  float* const b = buffer.data();
  EXPECT_EQ(run({b, {5, 6}, {16, 1}}, {b + 6, {5, 6}, {16, 1}}), "accepted");
  EXPECT_EQ(run({b + 8, {5, 6}, {16, 1}}, {b, {5, 6}, {16, 1}}), "accepted");
  EXPECT_EQ(run({b, {5, 6}, {12, 1}}, {b + 6, {5, 6}, {12, 1}}), "accepted");
  EXPECT_EQ(run({b + 64, {5, 6}, {-16, 1}}, {b + 6, {5, 6}, {16, 1}}), "accepted");
  const std::string overlaps =
      "INVALID_ARGUMENT: y and x overlap but are not the same memory with the same strides; make them the "
      "same or apart";
  EXPECT_EQ(run({b, {5, 6}, {16, 1}}, {b + 5, {5, 6}, {16, 1}}), overlaps);
  EXPECT_EQ(run({b, {5, 6}, {16, 1}}, {b + 11, {5, 6}, {16, 1}}), overlaps) << "wraps into the next row";
  EXPECT_EQ(run({b, {5, 6}, {16, 1}}, {b + 6, {5, 6}, {15, 1}}), overlaps) << "pitches differ";

  const Plan segmented(standard(), "probe:forward@f32[*x*x*]");
  Call call;
  call.x = {b, {4, 3, 5}, {30, 5, 1}}, call.y = {b + 15, {4, 3, 5}, {30, 5, 1}};
  EXPECT_EQ(refusal([&] { segmented(call); }), "accepted");
  call.y = {b + 14, {4, 3, 5}, {30, 5, 1}};
  EXPECT_EQ(refusal([&] { segmented(call); }), overlaps);
  call.x = {b, {4, 3, 5}, {30, 10, 1}}, call.y = {b + 5, {4, 3, 5}, {30, 10, 1}};
  EXPECT_EQ(refusal([&] { segmented(call); }), "accepted") << "both strides are multiples of the pitch";
}

}  // namespace
}  // namespace normc::test
