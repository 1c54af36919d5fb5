// Sums that a call leaves for the caller, and sums of several calls that a call adds up.
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

constexpr int64_t kFeatures = 5;

class Partials : public ::testing::Test {
 protected:
  /// The sums of so many rows of `value`.
  std::vector<double> reduced(int64_t rows, float value) {
    std::vector<float> x(rows * kFeatures, value);
    std::vector<double> partial(1 + kFeatures, -1);
    Call call;
    call.x = {x.data(), {rows, kFeatures}}, call.partial = partial;
    reduce_(call);
    return partial;
  }
  std::string reduce(const Call& call) {
    return refusal([&] { reduce_(call); });
  }
  std::string commit(const Call& call) {
    return refusal([&] { commit_(call); });
  }
  std::vector<float> psi2() const { return {psi2_.begin(), psi2_.begin() + kFeatures}; }
  Call committing() {
    Call call;
    call.partials = partials_, call.partialCount = 3;
    call.stateIn = call.stateOut = psi2_;
    return call;
  }

  host::Package package_ = openInMemory(packageOf({sums("forward_reduce"), sums("commit")}), context());
  Plan reduce_{package_, "sums:forward_reduce@f32[*x*]"}, commit_{package_, "sums:commit@f32[*x*]"};
  std::vector<double> partials_ = std::vector<double>(3 * (1 + kFeatures), 2);
  std::vector<float> psi2_ = std::vector<float>(16, 1), x_ = std::vector<float>(4 * kFeatures, 1);
};

TEST_F(Partials, AreSumsInDoubleWithoutGaps) {
  EXPECT_EQ(reduce_.partialBytes(kFeatures), 8 * (1 + kFeatures));
  const std::vector<normc_field> fields = reduce_.partialFields(kFeatures);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_STREQ(fields[0].name, "rows");
  EXPECT_EQ(fields[0].offset, 0u);
  EXPECT_EQ(fields[0].ndim, 0);
  EXPECT_STREQ(fields[1].name, "squares");
  EXPECT_EQ(fields[1].offset, 8u);
  EXPECT_EQ(fields[1].bytes, 8u * kFeatures);
  EXPECT_EQ(fields[1].type, NORMC_F64);
  EXPECT_EQ(fields[1].access, NORMC_FIELD_WRITTEN);
  EXPECT_EQ(commit_.partialFields(kFeatures)[1].access, NORMC_FIELD_READ);
  EXPECT_EQ(Plan(standard(), "layer_norm:forward@f32[*x*]").partialBytes(kFeatures), 0u);
  EXPECT_EQ(reduced(4, 3), (std::vector<double>{4, 36, 36, 36, 36, 36}));
}

TEST_F(Partials, AreAddedUpInTheirOrder) {
  partials_.clear();
  for (const auto& [rows, value] : {std::pair<int64_t, float>{4, 3}, {0, 0}, {2, 6}})
    for (const double each : reduced(rows, value)) partials_.push_back(each);
  EXPECT_EQ(commit(committing()), "accepted");
  EXPECT_EQ(psi2(), std::vector<float>(kFeatures, 18));
  // Their sum is one partial.
  std::vector<double> sum(1 + kFeatures);
  for (size_t i = 0; i < partials_.size(); ++i) sum[i % sum.size()] += partials_[i];
  Call one = committing();
  psi2_.assign(16, 1);
  one.partials = sum, one.partialCount = 1;
  EXPECT_EQ(commit(one), "accepted");
  EXPECT_EQ(psi2(), std::vector<float>(kFeatures, 18));
}

TEST_F(Partials, ACommitWritesTheState) {
  Call call = committing();
  call.stateOut = {};
  EXPECT_EQ(commit(call), "INVALID_ARGUMENT: nothing to compute: state_out is null");
}

TEST_F(Partials, TellHowManyFeaturesACommitHas) {
  const Plan five(package_, "sums:commit@f32[*x5]"), three(package_, "sums:commit@f32[7x3]");
  EXPECT_EQ(refusal([&] { five(committing()); }), "accepted");
  EXPECT_EQ(refusal([&] { three(committing()); }),
            "INVALID_ARGUMENT: partials has 144 bytes; with these sizes it has 96");
  Call call = committing();
  call.partialCount = 4;
  EXPECT_EQ(commit(call), "INVALID_ARGUMENT: partials has 144 bytes; with these sizes it has 128");
  call.partialCount = 100;
  EXPECT_EQ(commit(call),
            "INVALID_ARGUMENT: partials has 144 bytes for 100 partials; sums:commit@f32[*x*] takes at "
            "least one partial of at least one feature");
  call.partialCount = 0;
  EXPECT_EQ(refusal([&] { five(call); }), "INVALID_ARGUMENT: partial_count is 0; it must be 1 or more");
}

TEST_F(Partials, AreRefusedWhereTheyAreWrong) {
  Call call;
  call.x = {x_.data(), {4, kFeatures}};
  EXPECT_EQ(reduce(call),
            "INVALID_ARGUMENT: partial is null; sums:forward_reduce@f32[*x*] writes the sums of the "
            "call there");
  call.partial = {partials_.data(), 40};
  EXPECT_EQ(reduce(call), "INVALID_ARGUMENT: partial has 40 bytes; with these sizes it has 48");
  call.partial = {reinterpret_cast<char*>(partials_.data()) + 4, 48};
  EXPECT_EQ(reduce(call), "INVALID_ARGUMENT: partial is not aligned to 8 bytes");
  call.partial = {x_.data(), 48};
  EXPECT_TRUE(has(reduce(call), "INVALID_ARGUMENT: partial") && has(reduce(call), "x")) << reduce(call);
  call.partial = {partials_.data(), 48}, call.partials = {partials_.data() + 6, 48};
  EXPECT_EQ(reduce(call),
            "INVALID_ARGUMENT: partials is given, but sums:forward_reduce@f32[*x*] does not add any up; "
            "leave it null");

  const Plan five(package_, "sums:commit@f32[*x5]");
  const auto refused = [&](auto change) {
    Call wrong = committing();
    change(wrong);
    return refusal([&] { five(wrong); });
  };
  EXPECT_EQ(refused([](Call& c) { c.partials = {}; }),
            "INVALID_ARGUMENT: partials is null; sums:commit@f32[*x5] adds them up");
  EXPECT_EQ(refused([](Call& c) { c.partials.bytes = 48; }),
            "INVALID_ARGUMENT: partials has 48 bytes; with these sizes it has 144");
  EXPECT_EQ(refused([&](Call& c) { c.partial = {x_.data(), 48}; }),
            "INVALID_ARGUMENT: partial is given, but sums:commit@f32[*x5] does not write one; leave it null");
  EXPECT_EQ(refused([&](Call& c) { c.x = {x_.data(), {4, kFeatures}}; }),
            "INVALID_ARGUMENT: x is given, but sums:commit@f32[*x5] does not take it; leave it null");
  EXPECT_TRUE(has(refused([&](Call& c) { c.stateOut = {partials_.data(), 64}; }), "partials"));
}

TEST_F(Partials, OfOtherEntriesAreRefused) {
  const Plan plan(standard(), "layer_norm:forward@f32[*x*]");
  Call call;
  call.partial = {partials_.data(), 48};
  EXPECT_EQ(refusal([&] { plan(call); }),
            "INVALID_ARGUMENT: x is null; layer_norm:forward@f32[*x*] needs it");
  std::vector<float> y(x_.size()), one(kFeatures, 1);
  call.x = {x_.data(), {4, kFeatures}}, call.y = {y.data(), {4, kFeatures}};
  call.scale = call.bias = Tensor(one.data(), {kFeatures});
  EXPECT_EQ(refusal([&] { plan(call); }),
            "INVALID_ARGUMENT: partial is given, but layer_norm:forward@f32[*x*] does "
            "not write one; leave it null");
}

std::string opened(const package::Kernel& kernel) {
  return refusal([&] { openInMemory(packageOf(kernel), context()); });
}

TEST(PartialsOfAManifest, AreOfEntriesOverRanks) {
  EXPECT_EQ(opened(sums("commit")), "accepted");
  package::Kernel kernel = sums("commit");
  kernel.partial[1].type = kernel.operands[1].type = DType::F32;
  EXPECT_TRUE(has(opened(kernel), "partial[1].type is \"f32\"; sums of partials are f64")) << opened(kernel);
  kernel = sums("commit");
  kernel.operands[0].role = package::Role::Partial, kernel.operands[0].access = package::Access::Write;
  EXPECT_TRUE(has(opened(kernel), "operands[0].role is \"partial\"; this entry takes no such operand"))
      << opened(kernel);
  kernel = sums("commit");
  kernel.operands[1].name = "cubes";
  EXPECT_TRUE(has(opened(kernel), "operands[1].name is \"cubes\"; there is no field of this name"))
      << opened(kernel);
  kernel = layerNorm("forward");
  kernel.partial = {{"rows", DType::F64}};
  EXPECT_TRUE(has(opened(kernel), "; this entry has no partials")) << opened(kernel);
}

}  // namespace
}  // namespace normc::test
