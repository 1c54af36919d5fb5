// Tests the queries that replace parsing a manifest: numbers, tensors, and the extents and accesses
// of fields.
#include <cstring>
#include <limits>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

normc_number_info numberOf(const Plan& plan, const std::string& name) {
  for (const normc_number_info& number : plan.numbers())
    if (name == number.name) return number;
  return {};
}

/// Returns "x read, y written, ..." of the tensors of a plan.
std::string uses(const Plan& plan) {
  static constexpr const char* names[] = {"read", "ignored", "written", "optional"};
  std::string text;
  for (const normc_tensor_info& tensor : plan.tensors())
    text += (text.empty() ? "" : ", ") + std::string(tensor.name) + " " + names[tensor.use];
  return text;
}

std::string accesses(const std::vector<normc_field>& fields) {
  std::string text;
  for (const normc_field& field : fields)
    text += (text.empty() ? "" : ", ") + std::string(field.name) + " " +
            (field.access & NORMC_FIELD_READ ? "r" : "") + (field.access & NORMC_FIELD_WRITTEN ? "w" : "") +
            (field.access == 0 ? "-" : "");
  return text;
}

TEST(Query, OfNumbersGivesValuesDefaultsAndLegalRanges) {
  const normc_number decay = {"decay", 0.5};
  normc_request request = {};
  request.numbers = &decay, request.number_count = 1;
  const Plan plan(standard(), "power_norm:forward@f32[*x*]", request);
  ASSERT_EQ(plan.numbers().size(), 2u);
  const normc_number_info epsilon = numberOf(plan, "epsilon"), second = numberOf(plan, "decay");
  EXPECT_EQ(epsilon.value, 1e-5);
  EXPECT_EQ(epsilon.default_value, 1e-5);
  EXPECT_EQ(epsilon.above, 0);
  EXPECT_EQ(epsilon.least, -kInfinity);
  EXPECT_EQ(epsilon.below, kInfinity);
  EXPECT_EQ(second.value, 0.5);
  EXPECT_EQ(second.default_value, 0.9);
  EXPECT_EQ(second.least, 0);
  EXPECT_EQ(second.below, 1);
  EXPECT_EQ(second.whole, 0);
  EXPECT_EQ(second.threshold, 0);
}

TEST(Query, OfNumbersFollowsTheEntry) {
  const Plan backward(standard(), "power_norm:backward@f32[*x*]");
  ASSERT_EQ(backward.numbers().size(), 1u);
  EXPECT_STREQ(backward.numbers()[0].name, "backward_decay");
  const Plan warming(standard(), "warmup:forward@f32[*x*]");
  EXPECT_EQ(numberOf(warming, "warmup_steps").whole, 1);
}

TEST(Query, OfNumbersTellsThresholdsOfTheSchedule) {
  package::Kernel kernel = layerNorm("forward");
  kernel.scalars.push_back({std::string(kStreamNumber), 1e6});
  const Plan plan(openInMemory(packageOf(kernel), context()), "layer_norm:forward@f32[*x*]");
  EXPECT_EQ(numberOf(plan, "stream_bytes").threshold, 1);
  EXPECT_EQ(numberOf(plan, "epsilon").threshold, 0);
}

TEST(Query, OfTensorsTellsWhichACallHasToGive) {
  EXPECT_EQ(uses(Plan(standard(), "layer_norm:forward@f32[*x*]")),
            "x read, y written, scale read, bias read");
  EXPECT_EQ(uses(Plan(standard(), "layer_norm:backward@f32[*x*]")),
            "x read, dy read, dx optional, scale read, bias ignored, dscale optional, dbias optional");
  EXPECT_EQ(uses(Plan(standard(), "warmup:backward@f32[*x*]")),
            "x ignored, dy read, dx optional, scale ignored, bias ignored");
  EXPECT_EQ(uses(Plan(standard(), "probe:forward@f32[*x*]{mask}")), "x read, y written, mask read");
}

TEST(Query, OfTensorsAgreesWithExecute) {
  LayerNorm norm;
  Call call = norm.backward();
  call.bias = norm.vector(norm.bias);
  EXPECT_EQ(refusal([&] { norm.backwardPlan(call); }), "accepted") << "bias is ignored";
  call.dx = call.dscale = call.dbias = {};
  call.dbias = norm.vector(norm.dbias);
  EXPECT_EQ(refusal([&] { norm.backwardPlan(call); }), "accepted") << "dx and dscale are optional";
}

TEST(Query, OfTensorsGivesTypesAndShapes) {
  const Plan plan(standard(), "probe:forward@f32[*x*]{mask}");
  const std::vector<normc_tensor_info> tensors = plan.tensors();
  EXPECT_EQ(tensors[0].dtype.code, kDLFloat);
  EXPECT_EQ(tensors[0].dtype.bits, 32);
  EXPECT_EQ(tensors[0].shape, NORMC_TENSOR_ELEMENTS);
  EXPECT_EQ(tensors[2].dtype.code, kDLUInt);
  EXPECT_EQ(tensors[2].dtype.bits, 8);
  EXPECT_EQ(tensors[2].shape, NORMC_TENSOR_PER_ROW);
  EXPECT_EQ(Plan(standard(), "layer_norm:forward@f32[*x*]").tensors()[2].shape, NORMC_TENSOR_PER_FEATURE);
}

TEST(Query, OfTensorsTellsTheTypesOfDataAndParams) {
  package::Kernel kernel = layerNorm("forward");
  kernel.problem = "layer_norm:forward@bf16[*x*]{params=f16}";
  kernel.parts.data = DType::BF16, kernel.parts.params = DType::F16;
  for (package::Operand& operand : kernel.operands) {
    if (operand.role != package::Role::Tensor) continue;
    operand.type = operand.name == "x" || operand.name == "y" ? DType::BF16 : DType::F16;
  }
  const Plan plan(openInMemory(packageOf(kernel), context()), kernel.problem);
  const std::vector<normc_tensor_info> tensors = plan.tensors();
  EXPECT_EQ(tensors[0].dtype.code, kDLBfloat);
  EXPECT_EQ(tensors[2].dtype.code, kDLFloat);
  EXPECT_EQ(tensors[2].dtype.bits, 16);
}

TEST(Query, OfFieldsTellsWhatAnEntryReadsAndWrites) {
  const Plan forward(standard(), "power_norm:forward@f32[*x*]"),
      backward(standard(), "power_norm:backward@f32[*x*]");
  EXPECT_EQ(accesses(forward.stateFields(8)), "step rw, psi2 rw, nu -");
  EXPECT_EQ(accesses(backward.stateFields(8)), "step -, psi2 -, nu rw");
  EXPECT_EQ(accesses(forward.savedFields(Plan::sizes(1, 4, 8))), "rstd w, second_moment w");
  EXPECT_EQ(accesses(backward.savedFields(Plan::sizes(1, 4, 8))), "rstd r, second_moment r");
  EXPECT_EQ(accesses(State(forward, 8).fields()), "step -, psi2 -, nu -") << "a state has no entry";
}

TEST(Query, OfFieldsCountsTheStepThatLeavesOutWarmup) {
  package::Kernel kernel = warmup("forward");
  std::erase_if(kernel.operands, [](const package::Operand& operand) { return operand.name == "step"; });
  const Plan plan(openInMemory(packageOf(kernel), context()), "warmup:forward@f32[*x*]");
  EXPECT_EQ(accesses(plan.stateFields(8)), "step r, warmed w");
}

TEST(Query, OfFieldsIsOfAllKernelsOfThePlan) {
  package::Kernel few = layerNorm("backward");
  few.limits.rowsMax = 8;
  package::Kernel any = layerNorm("backward");
  std::erase_if(any.operands, [](const package::Operand& operand) { return operand.name == "mean"; });
  const Plan plan(openInMemory(packageOf({few, any}), context()), "layer_norm:backward@f32[*x*]");
  EXPECT_EQ(accesses(plan.savedFields(Plan::sizes(1, 100, 8))), "mean r, rstd r");
}

TEST(Query, OfFieldsTellsTheExtentOfEachDimension) {
  const Plan layer(standard(), "layer_norm:forward@f32[*x*]"),
      power(standard(), "power_norm:forward@f32[*x*]");
  const normc_field mean = layer.savedFields(Plan::sizes(1, 20, 8))[0];
  ASSERT_EQ(mean.ndim, 2);
  EXPECT_EQ(mean.extent[0], NORMC_EXTENT_SEGMENTS);
  EXPECT_EQ(mean.extent[1], NORMC_EXTENT_ROWS);
  EXPECT_EQ(mean.dtype.code, kDLFloat);
  EXPECT_EQ(mean.dtype.bits, 32);
  const std::vector<normc_field> state = power.stateFields(8);
  EXPECT_EQ(state[1].extent[0], NORMC_EXTENT_FEATURES);
  EXPECT_EQ(state[0].dtype.code, kDLInt);
  EXPECT_EQ(state[0].dtype.bits, 64);

  package::Kernel kernel = powerNorm("forward");
  kernel.state[2].shape = {{package::Factor::Fixed, 3}};
  const Plan fixed(openInMemory(packageOf(kernel), context()), "power_norm:forward@f32[*x*]");
  EXPECT_EQ(fixed.stateFields(8)[2].extent[0], NORMC_EXTENT_FIXED);
  EXPECT_EQ(fixed.stateFields(8)[2].shape[0], 3);
}

TEST(Query, EndsPastTheLast) {
  const Plan plan(standard(), "layer_norm:forward@f32[*x*]");
  normc_number_info number = {};
  normc_tensor_info tensor = {};
  EXPECT_EQ(refusal(normc_plan_number_info(plan.get(), 1, &number)),
            "OUT_OF_RANGE: there is no number 1; there are 1");
  EXPECT_EQ(refusal(normc_plan_tensor_info(plan.get(), 4, &tensor)),
            "OUT_OF_RANGE: there is no tensor 4; there are 4");
}

TEST(Query, RefusesNullAndStructsWithoutTheirSize) {
  const Plan plan(standard(), "layer_norm:forward@f32[*x*]");
  normc_number_info number = {};
  normc_tensor_info tensor = {};
  EXPECT_EQ(refusal(normc_plan_number_info(nullptr, 0, &number)), "INVALID_ARGUMENT: plan is null");
  EXPECT_EQ(refusal(normc_plan_number_info(plan.get(), 0, nullptr)), "INVALID_ARGUMENT: info is null");
  EXPECT_EQ(refusal(normc_plan_tensor_info(nullptr, 0, &tensor)), "INVALID_ARGUMENT: plan is null");
  EXPECT_EQ(refusal(normc_plan_tensor_info(plan.get(), 0, nullptr)), "INVALID_ARGUMENT: info is null");
  EXPECT_EQ(
      refusal(normc_plan_number_info(plan.get(), 0, &number)),
      "INVALID_ARGUMENT: normc_number_info.struct_size is 0; set it to sizeof(normc_number_info), 64 with "
      "this header");
  EXPECT_EQ(
      refusal(normc_plan_tensor_info(plan.get(), 0, &tensor)),
      "INVALID_ARGUMENT: normc_tensor_info.struct_size is 0; set it to sizeof(normc_tensor_info), 64 with "
      "this header");
}

TEST(Query, FillsTheFieldOfAnOlderHeader) {
  const Plan plan(standard(), "power_norm:forward@f32[*x*]");
  normc_field field;
  std::memset(&field, 0x55, sizeof field);
  field.struct_size = offsetof(normc_field, dtype);  // the last that it has is `init`
  const normc_sizes sizes = Plan::sizes(1, 0, 8);
  EXPECT_EQ(refusal(normc_plan_state_field(plan.get(), &sizes, 1, &field)), "accepted");
  EXPECT_EQ(field.init, 1);
  EXPECT_EQ(field.access, 0x55555555) << "beyond what the caller's header knows";
}

}  // namespace
}  // namespace normc::test
