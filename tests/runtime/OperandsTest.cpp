// The table of operands: which tensors a call takes, and that normc_args names the same ones in the same
// order.
#include <gtest/gtest.h>

#include "runtime/core/TensorArguments.h"

namespace normc {
namespace {

std::string namesOf(Entry entry, const Has& has) {
  std::string names;
  for (const Tensor tensor : operandsOf(entry, has))
    names += (names.empty() ? "" : " ") + std::string(name(tensor));
  return names;
}

TEST(Operands, FollowFromTheEntryAndWhatTheNormHas) {
  const Has all = {.scale = true, .bias = true, .mask = true};
  EXPECT_EQ(namesOf(Entry::Forward, all), "x y scale bias mask");
  EXPECT_EQ(namesOf(Entry::Infer, all), "x y scale bias mask");
  EXPECT_EQ(namesOf(Entry::Backward, all), "x dy dx scale dscale dbias mask");
  const Has active = {.scale = true, .bias = true, .mask = true, .recomputesOutput = true};
  EXPECT_EQ(namesOf(Entry::Forward, active), "x y scale bias mask");
  EXPECT_EQ(namesOf(Entry::Infer, active), "x y scale bias mask");
  EXPECT_EQ(namesOf(Entry::Backward, active), "x dy dx scale bias dscale dbias mask");
  for (const Has& each : {all, active})
    EXPECT_EQ(namesOf(Entry::InferBackward, each), namesOf(Entry::Backward, each));
  EXPECT_EQ(namesOf(Entry::Backward, {.scale = true, .recomputesOutput = true}), "x dy dx scale dscale");
  EXPECT_EQ(namesOf(Entry::Forward, {}), "x y");
  EXPECT_EQ(namesOf(Entry::Backward, {.scale = true}), "x dy dx scale dscale");
}

TEST(Operands, AreFoundByTheirNames) {
  for (const TensorInfo& each : kTensorTable) EXPECT_EQ(tensorNamed(each.name), each.tensor);
  EXPECT_EQ(tensorNamed("weight"), std::nullopt);
  EXPECT_EQ(tensorNamed(""), std::nullopt);
}

TEST(Operands, HaveTheTypeOfTheirRule) {
  const ElementTypes types{DType::BF16, DType::F32, DType::F16, DType::F64, DType::E4M3, DType::E8M0};
  EXPECT_EQ(typeOf(kDx, types), DType::BF16);
  EXPECT_EQ(typeOf(kDbias, types), DType::F32);
  EXPECT_EQ(typeOf(kMask, types), DType::U8);
  EXPECT_EQ(typeOf(kY, types), DType::F16);
  EXPECT_EQ(typeOf(kDy, types), DType::F16);
  for (const Tensor each : {kResidual, kResidualOut, kDresidualOut, kDresidual})
    EXPECT_EQ(typeOf(each, types), DType::F64) << name(each);
  EXPECT_EQ(typeOf(kCodes, types), DType::E4M3);
  EXPECT_EQ(typeOf(kQuantScale, types), DType::F32);
  EXPECT_EQ(typeOf(kQuantScaleOut, types), DType::E8M0);
}

/// A norm with everything that stands in front of it.
constexpr Has kBefore = {.residual = true,
                         .residualBefore = true,
                         .stream = true,
                         .gate = true,
                         .gateBefore = true,
                         .ownResidualGradient = true};
/// One with everything that stands behind it.
constexpr Has kAfter = {.recomputesOutput = true,
                        .residual = true,
                        .gate = true,
                        .modScale = true,
                        .modShift = true,
                        .ownResidualGradient = true,
                        .gateShape = TensorShape::PerFeature};

TEST(Operands, OfWhatStandsAroundTheNorm) {
  EXPECT_EQ(namesOf(Entry::Forward, kBefore), "x y residual residual_out gate");
  EXPECT_EQ(namesOf(Entry::Infer, kBefore), namesOf(Entry::Forward, kBefore));
  EXPECT_EQ(namesOf(Entry::Backward, kBefore),
            "x dy dx residual residual_out gate dresidual_out dresidual dgate");
  EXPECT_EQ(namesOf(Entry::Forward, kAfter), "x y residual gate mod_scale mod_shift");
  EXPECT_EQ(namesOf(Entry::Backward, kAfter),
            "x dy dx residual gate mod_scale mod_shift dresidual dgate dmod_scale dmod_shift");
  EXPECT_EQ(namesOf(Entry::Forward, {.residual = true}), "x y residual");
  EXPECT_EQ(namesOf(Entry::Backward, {.residual = true}), "x dy dx residual");
}

// Where the batch is divided, what enters the statistics is read by the first call, and what it becomes is
// written by the second.
TEST(Operands, OfReductionsAreThoseThatEnterTheStatistics) {
  Has before = kBefore, after = kAfter;
  before.waits = after.waits = true;
  EXPECT_EQ(namesOf(Entry::ForwardReduce, before), "x residual gate");
  EXPECT_EQ(namesOf(Entry::ForwardApply, before), "x y residual residual_out gate");
  EXPECT_EQ(namesOf(Entry::BackwardReduce, before), "x dy residual residual_out gate");
  EXPECT_EQ(namesOf(Entry::BackwardApply, before), namesOf(Entry::Backward, before));
  EXPECT_EQ(namesOf(Entry::ForwardReduce, after), "x");
  EXPECT_EQ(namesOf(Entry::BackwardReduce, after),
            "x dy residual gate mod_scale mod_shift dmod_scale dmod_shift");
  EXPECT_EQ(namesOf(Entry::BackwardApply, after),
            "x dy dx residual gate mod_scale mod_shift dresidual dgate");
  EXPECT_EQ(namesOf(Entry::Commit, before), "");
}

TEST(Operands, ThatForwardPassesAreReadByBackward) {
  EXPECT_TRUE(infoOf(kResidualOut).written(Entry::Forward));
  EXPECT_TRUE(infoOf(kResidualOut).written(Entry::Infer));
  EXPECT_FALSE(infoOf(kResidualOut).written(Entry::Backward));
  EXPECT_TRUE(infoOf(kDresidualOut).mayBeLeftOut());
  EXPECT_FALSE(infoOf(kDresidualOut).written(Entry::Backward));
}

TEST(Operands, HaveTheShapeThatTheNormDecides) {
  const Has has = {.gateShape = TensorShape::PerFeature, .modulationShape = TensorShape::Elements};
  EXPECT_EQ(shapeOf(kGate, has), TensorShape::PerFeature);
  EXPECT_EQ(shapeOf(kDgate, has), TensorShape::PerFeature);
  for (const Tensor each : {kModScale, kModShift, kDmodScale, kDmodShift})
    EXPECT_TRUE(isXSized(each, has)) << name(each);
  EXPECT_EQ(shapeOf(kModScale, {}), TensorShape::PerSegment);
  EXPECT_TRUE(isXSized(kResidualOut, has));
}

TEST(Operands, TheGradientOfTheResidual) {
  EXPECT_EQ(Has{}.gradientOfResidual(), std::nullopt);
  EXPECT_EQ((Has{.residual = true}.gradientOfResidual()), kDy);
  EXPECT_EQ((Has{.residual = true, .residualBefore = true}.gradientOfResidual()), kDx);
  EXPECT_EQ(kBefore.gradientOfResidual(), kDresidual);
}

TEST(Operands, ThatMayComeAlongAreInputsOfTheForward) {
  const Has has = {.bias = true, .residual = true};
  std::string names;
  for (const TensorInfo& each : kTensorTable)
    if (mayComeAlong(each, Entry::Backward, has)) names += std::string(each.name) + " ";
  EXPECT_EQ(names, "x bias residual ");
  for (const TensorInfo& each : kTensorTable) EXPECT_FALSE(mayComeAlong(each, Entry::Forward, has));
}

TEST(Operands, OfOneMemoryHaveOneShapeAndType) {
  for (const TensorInfo& each : kTensorTable) {
    if (!each.mayBe) continue;
    const TensorInfo& input = infoOf(*each.mayBe);
    for (const Entry entry : {Entry::Forward, Entry::Backward})
      if (each.written(entry)) EXPECT_FALSE(input.written(entry)) << each.name;
    EXPECT_EQ(each.shape, input.shape) << each.name;
    EXPECT_EQ(each.shapeOf, input.shapeOf) << each.name;
    // y and dy have a type of their own: a call may share memory where it is that of x.
    const auto alike = [](TypeRule rule) { return rule == TypeRule::Output ? TypeRule::Data : rule; };
    EXPECT_EQ(alike(each.type), alike(input.type)) << each.name;
  }
}

TEST(Operands, StandInTheOrderOfTheArguments) {
  const normc_args args{};
  const auto placeOf = [&](size_t i) { return reinterpret_cast<const char*>(&(args.*kTensorArguments[i])); };
  for (size_t i = 1; i < kTensorCount; ++i) EXPECT_LT(placeOf(i - 1), placeOf(i)) << kTensorTable[i].name;
  EXPECT_EQ(&(args.*kTensorArguments[kDscale]), &args.dscale);
  EXPECT_EQ(&(args.*kTensorArguments[kMask]), &args.mask);
}

}  // namespace
}  // namespace normc
