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
  const Has active = {.scale = true, .bias = true, .mask = true, .activation = true};
  EXPECT_EQ(namesOf(Entry::Forward, active), "x y scale bias mask");
  EXPECT_EQ(namesOf(Entry::Infer, active), "x y scale bias mask");
  EXPECT_EQ(namesOf(Entry::Backward, active), "x dy dx scale bias dscale dbias mask");
  for (const Has& each : {all, active})
    EXPECT_EQ(namesOf(Entry::InferBackward, each), namesOf(Entry::Backward, each));
  EXPECT_EQ(namesOf(Entry::Backward, {.scale = true, .activation = true}), "x dy dx scale dscale");
  EXPECT_EQ(namesOf(Entry::Forward, {}), "x y");
  EXPECT_EQ(namesOf(Entry::Backward, {.scale = true}), "x dy dx scale dscale");
}

TEST(Operands, AreFoundByTheirNames) {
  for (const TensorInfo& each : kTensorTable) EXPECT_EQ(tensorNamed(each.name), each.tensor);
  EXPECT_EQ(tensorNamed("weight"), std::nullopt);
  EXPECT_EQ(tensorNamed(""), std::nullopt);
}

TEST(Operands, HaveTheTypeOfTheirRule) {
  EXPECT_EQ(typeOf(kDx, DType::BF16, DType::F32), DType::BF16);
  EXPECT_EQ(typeOf(kDbias, DType::BF16, DType::F32), DType::F32);
  EXPECT_EQ(typeOf(kMask, DType::BF16, DType::F32), DType::U8);
}

TEST(Operands, OfOneMemoryHaveOneShapeAndType) {
  for (const TensorInfo& each : kTensorTable) {
    if (!each.mayBe) continue;
    const TensorInfo& input = infoOf(*each.mayBe);
    EXPECT_TRUE(each.written() && !input.written()) << each.name;
    EXPECT_EQ(each.shape, input.shape) << each.name;
    EXPECT_EQ(each.type, input.type) << each.name;
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
