#include <gtest/gtest.h>

#include <thread>

#include "dsl/Check.h"
#include "dsl/Library.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Library, HasTheNormsByName) {
  std::vector<std::string> names;
  for (const BuiltinNorm& norm : builtinNorms()) names.push_back(norm.name);
  EXPECT_EQ(names, (std::vector<std::string>{"adaptive_layer_norm",
                                             "adaptive_layer_norm_zero",
                                             "batch_norm",
                                             "batch_norm_relu",
                                             "batch_norm_unbiased",
                                             "batch_renorm",
                                             "delta_gated_rms_norm",
                                             "gated_rms_norm",
                                             "gemma_rms_norm",
                                             "gemma_sandwich",
                                             "group_norm",
                                             "group_norm_segment",
                                             "group_norm_silu",
                                             "group_scaling",
                                             "instance_norm",
                                             "l2_norm",
                                             "layer_norm",
                                             "layer_norm_channels",
                                             "layer_norm_residual",
                                             "mabn",
                                             "power_norm",
                                             "power_norm_released",
                                             "power_norm_v",
                                             "qk_norm_rope",
                                             "resnet_tail",
                                             "rms_norm",
                                             "rms_norm_residual",
                                             "rms_norm_residual_e4m3_block",
                                             "rms_norm_residual_int8",
                                             "unified_norm"}));
}

TEST(Library, EveryFileIsLegalAndDefinesTheNormOfItsName) {
  for (const BuiltinNorm& norm : builtinNorms()) {
    EXPECT_EQ(errorsOf(norm.text), "");
    EXPECT_EQ(specOf(norm.text).name, norm.name);
    ASSERT_TRUE(norm.spec) << norm.name;
    EXPECT_TRUE(specOf(norm.text) == *norm.spec) << norm.name;
    EXPECT_EQ(text(checkSpec(*norm.spec)), "");
  }
}

TEST(Library, EveryFileSaysWhatItIsAndWhereItIsFrom) {
  for (const BuiltinNorm& norm : builtinNorms()) {
    EXPECT_TRUE(norm.summary.find(": ") != std::string::npos && norm.summary.back() == '.') << norm.summary;
    const size_t second = norm.text.find("\n// ");
    ASSERT_NE(second, std::string::npos) << norm.name;
    EXPECT_NE(norm.text.find(" 20", second), std::string::npos)
        << norm.name << " names no paper with its year";
  }
}

TEST(Library, HoldsThePaperAndTheReleasedPowerNorm) {
  Spec paper;
  paper.name = "power_norm";
  paper.reduce = Reduce::Rows;
  paper.divideBy = DivideBy::Running;
  paper.running.emplace();
  paper.backward = Backward::Approximate;
  paper.scale = paper.bias = true;
  EXPECT_TRUE(**findNorm("power_norm") == paper);

  Spec released = paper;
  released.name = "power_norm_released";
  released.pre = Spec::Pre{{1, "heads"}, 1e-5};
  released.warmup = Spec::Warmup{4000, Accumulate::CumulativeThenDecay};
  released.approximate.scale = BackwardScale::Batch;
  released.padding = Padding::LeaveOutOfStatistics;
  EXPECT_TRUE(**findNorm("power_norm_released") == released);
}

TEST(Library, BothBatchNormsDifferInTheRunningVarianceAlone) {
  Spec unbiased = **findNorm("batch_norm_unbiased");
  EXPECT_TRUE(unbiased.running->unbiased);
  unbiased.running->unbiased = false;
  unbiased.name = "batch_norm";
  EXPECT_TRUE(unbiased == **findNorm("batch_norm"));
}

TEST(Library, SuggestsTheNearestNorm) {
  const auto found = findNorm("powernorm");
  ASSERT_FALSE(found);
  EXPECT_EQ(text(found.errors()),
            "error: there is no norm 'powernorm'\n  hint: did you mean 'power_norm'?\n");
}

TEST(Library, MayBeAskedFromManyThreads) {
  std::vector<std::shared_ptr<const Spec>> found(8);
  std::vector<std::thread> threads;
  for (auto& each : found) threads.emplace_back([&each] { each = *findNorm("mabn"); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : found) EXPECT_EQ(each, found[0]);
}

}  // namespace
}  // namespace normc
