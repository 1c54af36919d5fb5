// One test for each rule C28 to C33 of dsl/SPEC.md, of what surrounds a norm: a text that it refuses, with
// the error, and the nearest legal text.
#include <gtest/gtest.h>

#include <limits>

#include "dsl/Check.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(AroundCheck, C28_AnOffsetIsAddedToAScale) {
  Spec spec = specOf(norm({"reduce features", "affine bias"}));
  spec.scaleOffset = 1;
  EXPECT_EQ(text(checkSpec(spec)),
            "error: an offset of 'affine' needs 'scale' [C28]\n"
            "  hint: write 'affine scale(offset = 1)', or leave the offset out\n");
  spec.scale = true;
  EXPECT_EQ(text(checkSpec(spec)), "");
  const std::string hint = "  hint: leave it out where the factor is the scale alone\n";
  spec.scaleOffset = 0;
  EXPECT_EQ(text(checkSpec(spec)), "error: offset is 0 [C28]\n" + hint);
  spec.scaleOffset = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text(checkSpec(spec)), "error: offset is inf [C28]\n" + hint);
  EXPECT_EQ(brief(norm({"reduce features", "affine scale(offset = -1), bias"})), Texts{});
  EXPECT_EQ(brief(norm({"reduce features", "affine scale, bias(offset = 1)"})),
            Texts{"'bias' has no option 'offset' [C28]"});
}

TEST(AroundCheck, C29_OnlyAResidualBeforeTheNormHasAStream) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "residual after(stream = no)"})),
            "t.norm:3:18: error: 'stream' means nothing for 'residual after' [C29]\n"
            "    residual after(stream = no)\n"
            "                   ^~~~~~\n"
            "  hint: what is added behind the norm is part of y: leave it out, or use 'residual before'\n");
  EXPECT_EQ(brief(norm({"reduce features", "residual after(stream = yes)"})),
            Texts{"'stream' means nothing for 'residual after' [C29]"});
  EXPECT_EQ(brief(norm({"reduce features", "residual before(stream = no)"})), Texts{});
  Spec spec = specOf(norm({"reduce features", "residual after"}));
  EXPECT_EQ(text(checkSpec(spec)), "");
  spec.residual->stream = false;
  EXPECT_EQ(text(checkSpec(spec)),
            "error: 'stream' means nothing for 'residual after' [C29]\n"
            "  hint: leave it out, or use 'residual before'\n");
}

TEST(AroundCheck, C30_AModulationHasAScaleOrAShift) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "modulate per = row"})),
            "t.norm:3:3: error: 'modulate' has neither 'scale' nor 'shift' [C30]\n"
            "    modulate per = row\n"
            "    ^~~~~~~~\n"
            "  hint: write 'modulate scale, shift', one of them, or 'modulate none'\n");
  EXPECT_EQ(brief(norm({"reduce features", "modulate scale"})), Texts{});
  EXPECT_EQ(brief(norm({"reduce features", "modulate shift, per = row"})), Texts{});
}

TEST(AroundCheck, C30_AnOffsetIsAddedToItsScale) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "modulate shift(offset = 1)"})),
            "t.norm:3:18: error: 'shift' of 'modulate' has no options [C30]\n"
            "    modulate shift(offset = 1)\n"
            "                   ^~~~~~\n"
            "  hint: an offset belongs to 'scale': write 'modulate scale(offset = 0)'\n");
  EXPECT_EQ(brief(norm({"reduce features", "modulate scale, shift(offset = 0)"})),
            Texts{"'shift' of 'modulate' has no options [C30]"});
  Spec spec = specOf(norm({"reduce features", "modulate shift"}));
  spec.modulate->offset = 0;
  EXPECT_EQ(text(checkSpec(spec)),
            "error: an offset of 'modulate' needs 'scale' [C30]\n"
            "  hint: write 'modulate scale(offset = 0)', or leave the offset out\n");
  spec.modulate->scale = true;
  EXPECT_EQ(text(checkSpec(spec)), "");
  spec.modulate->offset = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text(checkSpec(spec)),
            "error: offset is inf [C30]\n  hint: use 1 for a factor of 1 + scale, 0 for scale alone\n");
}

TEST(AroundCheck, C30_AModulationIsOfASegmentOrARow) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "modulate scale, per = feature"})),
            "t.norm:3:25: error: expected segment or row, found 'feature' [C30]\n"
            "    modulate scale, per = feature\n"
            "                          ^~~~~~~\n"
            "  hint: parameters of each feature belong to the affine: write 'affine scale, bias'\n");
  Spec spec = specOf(norm({"reduce features", "modulate scale"}));
  spec.modulate->per = Per::Feature;
  EXPECT_EQ(text(checkSpec(spec)),
            "error: 'modulate' is per segment or per row [C30]\n"
            "  hint: the factor of a feature is 'affine scale', what is added to it 'affine bias'\n");
  spec.modulate->per = Per::Row;
  EXPECT_EQ(text(checkSpec(spec)), "");
}

TEST(AroundCheck, C31_AGateHasAFunctionOfItsOwn) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "gate relu"})),
            "t.norm:3:8: error: expected none, silu, sigmoid, tanh, gelu or identity, found 'relu' [C31]\n"
            "    gate relu\n"
            "         ^~~~\n"
            "  hint: a gate has no relu: 'activation relu' ends a norm\n");
  EXPECT_EQ(brief(norm({"reduce features", "gate gelu_tanh(at = before)"})),
            Texts{"expected none, silu, sigmoid, tanh, gelu or identity, found 'gelu_tanh' [C31]"});
  Spec spec = specOf(norm({"reduce features", "gate silu"}));
  for (const Activation function : {Activation::Relu, Activation::GeluTanh}) {
    spec.gate->function = function;
    EXPECT_EQ(text(checkSpec(spec)),
              std::string("error: a gate has no function '") +
                  (function == Activation::Relu ? "relu" : "gelu_tanh") +
                  "' [C31]\n  hint: use 'silu', 'sigmoid', 'tanh', 'gelu' or 'identity'\n");
  }
  for (const char* function : {"silu", "sigmoid", "tanh", "gelu", "identity"})
    EXPECT_EQ(brief(norm({"reduce features", std::string("gate ") + function})), Texts{}) << function;
}

TEST(AroundCheck, C32_ASumOfSquaresIsOfRowsOrSegmentsAndAboutZero) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "moment sum"})),
            "t.norm:3:10: error: 'moment sum' does not go with 'reduce rows' [C32]\n"
            "    moment sum\n"
            "           ^~~\n"
            "  hint: a sum grows with the batch, so a state could not hold it: use 'moment raw', or another "
            "'reduce'\n");
  EXPECT_EQ(
      errorsOf(norm({"reduce features", "center current", "moment sum"})),
      "t.norm:4:10: error: 'moment sum' needs 'center none', but center is 'current' [C32]\n"
      "    moment sum\n"
      "           ^~~\n"
      "  hint: it is the sum of u^2, about 0: write 'center none', or use 'moment central', a mean about "
      "the centre\n");
  for (const char* reduce : {"features", "segment", "segment_features(groups = 2)"})
    EXPECT_EQ(brief(norm({std::string("reduce ") + reduce, "moment sum"})), Texts{}) << reduce;
}

TEST(AroundCheck, NeighboursMixWithEveryReduction) {
  for (const char* reduce : {"rows", "features", "segment", "segment_features"})
    for (const char* per : {"row", "segment", "feature"})
      for (const char* at : {"before", "after"})
        for (const char* residual : {"before", "after"})
          EXPECT_EQ(brief(norm({std::string("reduce ") + reduce, std::string("residual ") + residual,
                                std::string("gate silu(at = ") + at + ", per = " + per + ")",
                                "modulate scale, shift, per = row", "activation relu"})),
                    Texts{});
}

// The error of a clause 'quantize' with this rest.
std::string ofQuantize(const std::string& rest) {
  return errorsOf(norm({"reduce features", "quantize " + rest}));
}
Spec quantized(const Spec::Quantize& quantize) {
  Spec spec = specOf(norm({"reduce features"}));
  spec.quantize = quantize;
  return spec;
}

TEST(AroundCheck, C33_ASizeIsOfABlock) {
  EXPECT_EQ(ofQuantize("int8(size = 128)"),
            "t.norm:3:17: error: 'size' means nothing for 'per = row' [C33]\n"
            "    quantize int8(size = 128)\n"
            "                  ^~~~\n"
            "  hint: leave it out, or write 'per = block'\n");
  EXPECT_EQ(brief(norm({"reduce features", "quantize e4m3(size = 64, per = tensor)"})),
            Texts{"'size' means nothing for 'per = tensor' [C33]"});
  EXPECT_EQ(ofQuantize("int8(per = block, size = 0)"),
            "t.norm:3:37: error: a block of 0 features [C33]\n"
            "    quantize int8(per = block, size = 0)\n"
            "                                      ^\n"
            "  hint: use 1 or more, e.g. 128\n");
  EXPECT_EQ(ofQuantize("int8(per = block, size = 1)"), "");
  EXPECT_EQ(ofQuantize("int8(per = block)"), "");
  EXPECT_EQ(brief(norm({"reduce features", "quantize int8(per = block, size = 1.5)"})),
            Texts{"'1.5' is no whole number [C26]"});
  EXPECT_EQ(
      text(checkSpec(quantized({.per = QuantizePer::Row, .size = 64}))),
      "error: 'size' means nothing for 'per = row' [C33]\n  hint: leave it out, or write 'per = block'\n");
}

TEST(AroundCheck, C33_TheScaleOfATensorIsGiven) {
  const std::string hint = "  hint: the caller gives that scale: leave it out, or write 'per = row'\n";
  EXPECT_EQ(ofQuantize("int8(per = tensor, scale = power_of_two)"),
            "t.norm:3:31: error: 'scale' means nothing for 'per = tensor' [C33]\n"
            "    quantize int8(per = tensor, scale = power_of_two)\n"
            "                                ^~~~~\n" +
                hint);
  EXPECT_EQ(ofQuantize("int8(floor = 1e-10, per = tensor)"),
            "t.norm:3:17: error: 'floor' means nothing for 'per = tensor' [C33]\n"
            "    quantize int8(floor = 1e-10, per = tensor)\n"
            "                  ^~~~~\n" +
                hint);
  EXPECT_EQ(ofQuantize("int8(per = tensor)"), "");
  EXPECT_EQ(text(checkSpec(quantized({.per = QuantizePer::Tensor, .powerOfTwo = true}))),
            "error: 'scale' means nothing for 'per = tensor' [C33]\n" + hint);
  EXPECT_EQ(text(checkSpec(quantized({.per = QuantizePer::Tensor, .floor = 1}))),
            "error: 'floor' means nothing for 'per = tensor' [C33]\n" + hint);
}

TEST(AroundCheck, C33_TheScaleOfAFloorDivides) {
  const std::string hint =
      "  hint: use 1e-30 or more, e.g. 1e-10: a row of zeros has a scale too, which divides in f32\n";
  EXPECT_EQ(ofQuantize("e4m3(floor = 0)"),
            "t.norm:3:25: error: floor is 0 [C33]\n"
            "    quantize e4m3(floor = 0)\n"
            "                          ^\n" +
                hint);
  EXPECT_EQ(brief(norm({"reduce features", "quantize e4m3(floor = -1)"})), Texts{"floor is -1 [C33]"});
  EXPECT_EQ(brief(norm({"reduce features", "quantize e4m3(floor = 9e-31)"})), Texts{"floor is 9e-31 [C33]"});
  EXPECT_EQ(ofQuantize("e4m3(floor = 1e-30)"), "");
  for (const double floor : {std::numeric_limits<double>::infinity(), -1.0})
    EXPECT_EQ(text(checkSpec(quantized({.floor = floor}))),
              std::string("error: floor is ") + (floor < 0 ? "-1" : "inf") + " [C33]\n" + hint);
}

TEST(AroundCheck, C33_AnUnknownPerIsTheOnlyError) {
  EXPECT_EQ(brief(norm({"reduce features", "quantize int8(per = blok, size = 64)"})),
            Texts{"expected row, tensor or block, found 'blok' []"});
}

TEST(AroundCheck, C33_QuantizeMixesWithEveryReductionAndNeighbour) {
  for (const char* base : {"power_norm_released", "layer_norm", "instance_norm", "mabn", "resnet_tail",
                           "adaptive_layer_norm_zero", "delta_gated_rms_norm"})
    for (const char* codes : {"int8", "e4m3(per = tensor)", "int8(per = block, scale = power_of_two)"})
      EXPECT_EQ(errorsOf(std::string("norm n from ") + base + " {\n  quantize " + codes + "\n}\n"), "");
}

}  // namespace
}  // namespace normc
