// State and saved statistics of built-in norms, and of mixes that have fields no built-in one has.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "dsl/Print.h"
#include "dsl/StateFields.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

// "psi2:f32[d]=1 nu:f32[d] ": name, type, shape, initial value where it is not 0.
std::string textOf(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    out += field.name + ":" + std::string(name(field.type)) + "[";
    for (size_t i = 0; i < field.shape.size(); ++i) {
      const char* sizes[] = {"", "segments", "rows", "d"};
      const Extent extent = field.shape[i];
      out += i > 0 ? "," : "";
      out += extent.kind == Extent::Fixed ? std::to_string(extent.value) : sizes[extent.kind];
    }
    out += "]";
    if (field.init != 0) out += "=" + numberText(field.init);
    out += " ";
  }
  return out;
}

std::string stateOf(const std::string& problem) { return textOf(stateFields(problemOf(problem))); }
std::string savedOf(const std::string& problem) { return textOf(savedFields(problemOf(problem))); }

Problem rowsProblem(const std::vector<std::string>& clauses, bool mask) {
  Problem problem;
  problem.spec = std::make_shared<const Spec>(specOf(norm(clauses)));
  problem.mask = mask;
  return problem;
}

TEST(StateFields, OfTheBuiltInNorms) {
  EXPECT_EQ(stateOf("layer_norm:forward@f32[*x8]"), "");
  EXPECT_EQ(stateOf("rms_norm:forward@f32[*x8]"), "");
  EXPECT_EQ(stateOf("instance_norm:forward@f32[*x*x8]"), "");
  EXPECT_EQ(stateOf("group_scaling:forward@f32[*x8]{groups=2}"), "");
  EXPECT_EQ(stateOf("batch_norm:forward@f32[*x8]"), "step:i64[] running_mean:f32[d] running_var:f32[d]=1 ");
  EXPECT_EQ(stateOf("batch_norm_unbiased:forward@f16[*x8]"),
            "step:i64[] running_mean:f32[d] running_var:f32[d]=1 ");
  EXPECT_EQ(stateOf("batch_renorm:forward@f32[*x8]"), "step:i64[] running_mean:f32[d] running_std:f32[d]=1 ");
  EXPECT_EQ(stateOf("power_norm_v:forward@f32[*x8]"), "step:i64[] psi2:f32[d]=1 ");
  EXPECT_EQ(stateOf("power_norm:forward@f64[*x8]"), "step:i64[] psi2:f64[d]=1 nu:f64[d] ");
  EXPECT_EQ(stateOf("power_norm_released:forward@bf16[*x8]{heads=2}"), "step:i64[] psi2:f32[d]=1 nu:f32[d] ");
  EXPECT_EQ(stateOf("mabn:forward@f32[*x8]"),
            "step:i64[] psi2:f32[d]=1 window_psi2:f32[16,d] window_nu:f32[16,d] ");
  EXPECT_EQ(stateOf("unified_norm:forward@f32[*x8]"),
            "step:i64[] psi2:f32[d]=1 window_psi2:f32[4,d] nu:f32[d] window_nu:f32[4,d] ");
}

TEST(StateFields, NuOfAnAverageHasARingOnlyUnderAWindow) {
  EXPECT_EQ(textOf(stateFields(rowsProblem({"reduce rows", "divide_by running", "running init = 0.5",
                                            "backward approximate(nu = average)"},
                                           false))),
            "step:i64[] psi2:f32[d]=0.5 nu:f32[d] ");
  EXPECT_EQ(textOf(stateFields(rowsProblem({"reduce rows", "divide_by window(3)", "running init = 0.5",
                                            "backward approximate(nu = feedback)"},
                                           false))),
            "step:i64[] psi2:f32[d]=0.5 window_psi2:f32[3,d] nu:f32[d] ");
}

TEST(SavedFields, OfTheBuiltInNorms) {
  EXPECT_EQ(savedOf("layer_norm:forward@f32[*x8]"), "mean:f32[segments,rows,1] rstd:f32[segments,rows,1] ");
  EXPECT_EQ(savedOf("layer_norm:forward@f32[*x8]{mask}"),
            "mean:f32[segments,rows,1] rstd:f32[segments,rows,1] ");
  EXPECT_EQ(savedOf("rms_norm:forward@f64[*x8]"), "rstd:f64[segments,rows,1] ");
  EXPECT_EQ(savedOf("group_norm:forward@f32[*x8]{groups=4}"),
            "mean:f32[segments,rows,4] rstd:f32[segments,rows,4] ");
  EXPECT_EQ(savedOf("group_norm:forward@f32[*x8x*]{groups=4,layout=channels_first}"),
            "mean:f32[segments,4,rows] rstd:f32[segments,4,rows] ");
  EXPECT_EQ(savedOf("instance_norm:forward@f32[*x*x8]{mask}"),
            "mean:f32[segments,d] rstd:f32[segments,d] count:f32[segments] ");
  EXPECT_EQ(savedOf("group_norm_segment:forward@f32[*x*x8]{groups=4}"),
            "mean:f32[segments,4] rstd:f32[segments,4] ");
  EXPECT_EQ(savedOf("batch_norm:forward@f16[*x8]{mask}"), "mean:f32[d] rstd:f32[d] count:f32[] ");
  EXPECT_EQ(savedOf("power_norm_v:forward@f32[*x8]"), "rstd:f32[d] ");
  EXPECT_EQ(savedOf("power_norm:forward@f32[*x8]"), "rstd:f32[d] second_moment:f32[d] ");
  EXPECT_EQ(savedOf("power_norm_released:forward@f32[*x8]{heads=2}"),
            "rstd:f32[d] batch_rstd:f32[d] second_moment:f32[d] ");
  EXPECT_EQ(savedOf("batch_renorm:forward@f32[*x8]"),
            "mean:f32[d] rstd:f32[d] renorm_scale:f32[d] renorm_shift:f32[d] step:i64[] ");
  EXPECT_EQ(savedOf("mabn:forward@f32[*x8]"), "rstd:f32[d] renorm_scale:f32[d] step:i64[] ");
}

TEST(SavedFields, GammaIsNotTheSavedMomentWherePaddedRowsEnterBackwardOnly) {
  EXPECT_EQ(savedOf("power_norm_released:forward@f32[*x8]{heads=2,mask}"),
            "rstd:f32[d] batch_rstd:f32[d] count:f32[] ");
  EXPECT_EQ(savedOf("power_norm:forward@f32[*x8]{mask}"), "rstd:f32[d] second_moment:f32[d] count:f32[] ");
}

TEST(SavedFields, WhatTheExactSecondMomentTermNeeds) {
  EXPECT_EQ(textOf(savedFields(rowsProblem({"reduce rows", "moment central"}, false))),
            "rstd:f32[d] batch_mean:f32[d] ");
  EXPECT_EQ(textOf(savedFields(rowsProblem({"reduce rows", "epsilon 1e-3 (mode = max)"}, false))),
            "rstd:f32[d] second_moment:f32[d] ");
  EXPECT_EQ(textOf(savedFields(
                rowsProblem({"reduce rows", "epsilon 1e-3 (mode = max)", "backward frozen"}, false))),
            "rstd:f32[d] ");
}

TEST(Field, CountsItsElementsAndBytes) {
  const Extents extents{2, 3, 8};
  const Field perRow = savedFields(problemOf("group_norm:forward@f64[*x8]{groups=4}"))[0];
  EXPECT_EQ(perRow.elements(extents), 2 * 3 * 4);
  EXPECT_EQ(perRow.bytes(extents), 2 * 3 * 4 * 8);
  EXPECT_EQ(extents.totalRows(), 6);
}

}  // namespace
}  // namespace normc
