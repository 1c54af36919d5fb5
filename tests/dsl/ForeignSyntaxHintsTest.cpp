// Hints for users of the syntax of another framework or notation.
#include "dsl/ForeignSyntaxHints.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

/// "message; hint" of each error of a norm over rows with this clause.
std::vector<std::string> said(const std::string& clause) {
  std::vector<std::string> out;
  const auto specs = readNorms("norm n {\n  reduce rows\n  " + clause + "\n}\n", "t.norm");
  for (size_t i = 0; !specs && i < specs.errors().size(); ++i)
    out.push_back(specs.errors()[i].message + "; " + specs.errors()[i].hint);
  return out;
}

TEST(ForeignSyntaxHints, NumbersAreNotComputed) {
  const std::string hint = "write the number itself; a problem can bind a name: 'groups = heads'";
  EXPECT_EQ(said("pre group_scaling(groups = d / 64)"), Texts{"unexpected '/'; " + hint});
  EXPECT_EQ(said("running decay = 1 - 0.1"), Texts{"unexpected '-'; " + hint});
  EXPECT_EQ(said("running decay = 1-momentum"), Texts{"unexpected '-'; " + hint});
  EXPECT_EQ(said("pre group_scaling(groups = 2 * 4)"), Texts{"unexpected '*'; " + hint});
}

TEST(ForeignSyntaxHints, ACommentOfCIsOneError) {
  const Texts once{"unexpected '/*'; a comment starts with //"};
  EXPECT_EQ(said("center none /* c */"), once);
  EXPECT_EQ(said("affine scale, bias /* all of ( them, % */"), once);
  EXPECT_EQ(said("/* two\n  lines; */\n  center none"), once);
  EXPECT_EQ(said("center none /* c */\n  epsilon 1%").size(), 2u) << "what stands behind it is read";
  const std::string open = "unexpected '/*'; a comment starts with //";
  EXPECT_EQ(said("center none /* c\n  moment raw /*"), (Texts{open, open})) << "without an end";
}

TEST(ForeignSyntaxHints, NumbersAreDecimal) {
  EXPECT_EQ(said("epsilon 10^-5"), Texts{"unexpected '^-'; write a power of ten like 1e-5"});
  EXPECT_EQ(said("running decay = 90%"),
            Texts{"unexpected '%'; write a percentage as a fraction: 0.01 for 1%"});
  const std::string noCommas = "a number has no comma: write 4000, or 0.9";
  EXPECT_EQ(said("warmup steps = 4,000"), Texts{"'warmup' has no option '000'; " + noCommas});
  EXPECT_EQ(said("running 0,9"),
            (Texts{"'running' has no option '0'; " + noCommas, "'running' has no option '9'; " + noCommas}));
  EXPECT_EQ(said("epsilon 0,1"), Texts{"'epsilon' takes one value, but a second one follows; " + noCommas});
}

TEST(ForeignSyntaxHints, AClauseIsItsWordAndItsValue) {
  EXPECT_EQ(errorsOf("norm n {\n  reduce = rows\n}\n"),
            "t.norm:2:10: error: a clause has no '=' behind its word\n"
            "    reduce = rows\n"
            "           ^\n"
            "  hint: leave the '=' out\n");
  EXPECT_EQ(said("epsilon = 1e-5"), Texts{"a clause has no '=' behind its word; leave the '=' out"});
  EXPECT_EQ(said("center =\n  moment raw"), Texts{"a clause has no '=' behind its word; leave the '=' out"});
  EXPECT_EQ(errorsOf("norm n {\n  reduce: rows\n}\n"),
            "t.norm:2:9: error: unexpected ':'\n"
            "    reduce: rows\n"
            "          ^\n"
            "  hint: leave the ':' out\n");
  EXPECT_EQ(brief("norm n { reduce: rows }\n"), Texts{"unexpected ':' []"});
  EXPECT_TRUE(errorsOf("norm n { reduce: rows }\n").ends_with("  hint: leave the ':' out\n"));
  EXPECT_EQ(said("running decay: 0.9"), Texts{"unexpected ':'; write '=' for an option: 'decay = 0.9'"});
  EXPECT_EQ(said("center none;"), Texts{"unexpected ';'; a clause ends with its line: leave the ';' out"});
}

TEST(ForeignSyntaxHints, ABaseStandsBehindFrom) {
  EXPECT_EQ(errorsOf("norm a : layer_norm { }\n"),
            "t.norm:1:8: error: unexpected ':'\n"
            "  norm a : layer_norm { }\n"
            "         ^\n"
            "  hint: write 'norm a from layer_norm { ... }'\n");
  EXPECT_TRUE(errorsOf("norm b {\n  reduce rows\n}\nnorm a: b {\n}\n")
                  .ends_with("  hint: write 'norm a from b { ... }'\n"));
  EXPECT_TRUE(errorsOf("norm a : {\n}\n").ends_with("  hint: write 'norm a from BASE { ... }'\n"));
}

TEST(ForeignSyntaxHints, NamesAreWordsWithoutQuotes) {
  EXPECT_EQ(errorsOf("norm my-norm {\n  reduce rows\n}\n"),
            "t.norm:1:8: error: unexpected '-'\n"
            "  norm my-norm {\n"
            "         ^\n"
            "  hint: a name has letters, digits and _: write my_norm for my-norm\n");
  EXPECT_EQ(errorsOf("norm 2d {\n  reduce rows\n}\n"),
            "t.norm:1:6: error: '2d' is no name\n"
            "  norm 2d {\n"
            "       ^~\n"
            "  hint: a name begins with a letter or _\n");
  EXPECT_EQ(brief("norm n from 2d {\n  reduce rows\n}\n"), Texts{"'2d' is no name []"});
  for (const char* mark : {"\"", "'", "`"}) {
    const std::string error = "unexpected '" + std::string(mark) + "'; names and words stand without quotes";
    EXPECT_EQ(said("center " + std::string(mark) + "none" + mark), (Texts{error, error}));
  }
}

TEST(ForeignSyntaxHints, WordsOfOtherFrameworksAreTranslated) {
  EXPECT_EQ(said("eps 1e-5"), Texts{"unknown clause 'eps'; write 'epsilon'"});
  EXPECT_EQ(said("affine weight, beta"), (Texts{"'affine' has no option 'weight'; write 'scale'",
                                                "'affine' has no option 'beta'; write 'bias'"}));
  EXPECT_EQ(said("Gamma yes"), Texts{"unknown clause 'Gamma'; write 'affine scale'"});
  EXPECT_EQ(said("moment variance"),
            Texts{"expected raw, central or sum, found 'variance'; write 'central'"});
  EXPECT_EQ(said("var current"), Texts{"unknown clause 'var'; write 'moment central'"});
  EXPECT_EQ(said("divide_by batch"),
            Texts{"expected current, running or window, found 'batch'; write 'current'"});
  EXPECT_EQ(said("backward approx"),
            Texts{"expected exact, approximate or frozen, found 'approx'; write 'approximate'"});
  EXPECT_EQ(said("backward approximate(nu = ema)"),
            Texts{"expected feedback, average or window, found 'ema'; write 'average'"});
  EXPECT_EQ(said("pre group_scaling(groups = 4, eps = 1)"),
            Texts{"'pre group_scaling' has no option 'eps'; write 'epsilon'"});
  EXPECT_EQ(hintFor("batch", {"rows", "features"}, ""),
            "write 'rows': one statistic per feature, over all rows of the batch");
  EXPECT_EQ(hintFor("channels", {"rows", "features"}, ""),
            "write 'rows' for one statistic per channel, over all rows of the batch; 'features' is one per "
            "row, over its channels");
}

TEST(ForeignSyntaxHints, AFactorOfOnePlusWeightIsAnOffset) {
  const std::string hint = "; write 'affine scale(offset = 1)' for a factor of 1 + w";
  EXPECT_EQ(said("affine 1 + weight"), Texts{"unexpected '+'" + hint});
  EXPECT_EQ(said("affine scale, offset = 1"), Texts{"'affine' has no option 'offset'" + hint});
  EXPECT_EQ(said("affine scale, weight_offset = 1"), Texts{"'affine' has no option 'weight_offset'" + hint});
  EXPECT_EQ(said("affine zero_centered_gamma"), Texts{"'affine' has no option 'zero_centered_gamma'" + hint});
  EXPECT_EQ(said("zero_centered_gamma yes"), Texts{"unknown clause 'zero_centered_gamma'" + hint});
  EXPECT_EQ(said("weight_offset 1"), Texts{"unknown clause 'weight_offset'" + hint});
  EXPECT_EQ(said("offset 1"), Texts{"unknown clause 'offset'" + hint});
  EXPECT_EQ(said("affine scale(weight_offset = 1)"),
            Texts{"'affine scale' has no option 'weight_offset'; write 'offset'"});
  EXPECT_EQ(said("affine scale(zero_centered_gamma = 1)"),
            Texts{"'affine scale' has no option 'zero_centered_gamma'; write 'offset = 1'"});
  EXPECT_EQ(said("affine scale(offset = 1 + w)"), Texts{"unexpected '+'" + hint});
}

TEST(ForeignSyntaxHints, ActivationsOfOtherFrameworksAreTranslated) {
  EXPECT_EQ(said("act silu"), Texts{"unknown clause 'act'; write 'activation'"});
  EXPECT_EQ(said("swish yes"), Texts{"unknown clause 'swish'; write 'activation silu'"});
  EXPECT_EQ(said("ReLU yes"), Texts{"unknown clause 'ReLU'; write 'activation relu'"});
  const std::string expected = "expected none, relu, silu, gelu, gelu_tanh, sigmoid or tanh, found ";
  EXPECT_EQ(said("activation swish"), Texts{expected + "'swish'; write 'silu'"});
  EXPECT_EQ(said("activation gelu_new"), Texts{expected + "'gelu_new'; write 'gelu_tanh'"});
  EXPECT_EQ(said("activation logistic"), Texts{expected + "'logistic'; write 'sigmoid'"});
}

TEST(ForeignSyntaxHints, WordsForWhatSurroundsANormAreTranslated) {
  const std::string residual =
      "write 'residual before' for a sum in front of the norm, 'residual after' for one behind it";
  for (const char* clause : {"skip", "shortcut", "add"})
    EXPECT_EQ(said(clause), Texts{"unknown clause '" + std::string(clause) + "'; " + residual});
  EXPECT_EQ(said("pre residual"), Texts{"expected none or group_scaling, found 'residual'; " + residual});
  EXPECT_EQ(said("residual pre"), Texts{"expected none, before or after, found 'pre'; write 'before'"});
  EXPECT_EQ(said("residual post"), Texts{"expected none, before or after, found 'post'; write 'after'"});
  EXPECT_EQ(said("residual before(residual_out = no)"),
            Texts{"'residual before' has no option 'residual_out'; write 'stream'"});
  const std::string gate =
      "write 'gate silu' for a gate behind the norm, 'gate silu(at = before)' for one in front of it";
  EXPECT_EQ(said("norm_before_gate yes"), Texts{"unknown clause 'norm_before_gate'; " + gate});
  EXPECT_EQ(
      said("gate silu(norm_before_gate = no)"),
      Texts{"'gate silu' has no option 'norm_before_gate'; write 'at = after' where the norm is before the "
            "gate, else 'at = before'"});
  EXPECT_EQ(said("gate silu(before)"), Texts{"'gate silu' has no option 'before'; write 'at = before'"});
  EXPECT_EQ(said("gate silu(segment)"), Texts{"'gate silu' has no option 'segment'; write 'per = segment'"});
  const std::string functions = "expected none, silu, sigmoid, tanh, gelu or identity, found ";
  EXPECT_EQ(said("gate before"),
            Texts{functions + "'before'; write the function first: 'gate silu(at = before)'"});
  EXPECT_EQ(said("gate relu"),
            Texts{functions + "'relu'; a gate has no relu: 'activation relu' ends a norm"});
  EXPECT_EQ(said("gate gelu_tanh"),
            Texts{functions + "'gelu_tanh'; a gate has only the exact 'gelu', by erf"});
  EXPECT_EQ(said("gate swish"), Texts{functions + "'swish'; write 'silu'"});
  EXPECT_EQ(said("gate silu(per = channel)"),
            Texts{"expected row, segment or feature, found 'channel'; write 'feature'"});
}

TEST(ForeignSyntaxHints, WordsForAModulationAreTranslated) {
  const std::string modulation =
      "write 'modulate scale, shift' for a factor 1 + scale and a shift of each segment, with 'scale(offset "
      "= 0)' "
      "for a factor that is the scale alone";
  for (const char* clause : {"ada", "AdaLN", "film"})
    EXPECT_EQ(said(clause), Texts{"unknown clause '" + std::string(clause) + "'; " + modulation});
  EXPECT_EQ(said("modulate 1 + scale"), Texts{"unexpected '+'; " + modulation});
  EXPECT_EQ(said("affine scale\n  modulate 1 + scale"), Texts{"unexpected '+'; " + modulation});
  EXPECT_EQ(said("affine scale\n  running decay = 1 + 2"),
            Texts{"unexpected '+'; write the number itself; a problem can bind a name: 'groups = heads'"});
  EXPECT_EQ(said("modulate scale, bias"), Texts{"'modulate' has no option 'bias'; write 'shift'"});
  EXPECT_EQ(said("modulate scale(1)"), Texts{"'modulate scale' has no option '1'; write 'offset = 1'"});
  EXPECT_EQ(said("modulate scale(per = row)"),
            Texts{"'modulate scale' has no option 'per'; 'per' stands behind the list of 'modulate': "
                  "'modulate scale, per = "
                  "row'; an affine has a number for each feature, see docs/language.md"});
  for (const char* word : {"feature", "channel"})
    EXPECT_EQ(said("modulate scale, per = " + std::string(word)),
              Texts{"expected segment or row, found '" + std::string(word) +
                    "'; parameters of each feature belong to the affine: write 'affine scale, bias'"});
  EXPECT_EQ(
      said("affine scale, shift"),
      Texts{"'affine' has no option 'shift'; write 'bias'; one of each segment or row is 'modulate shift'"});
}

TEST(ForeignSyntaxHints, WhatNoClauseDoesIsSaid) {
  const std::string nothing =
      "no clause does that: docs/language.md lists what cannot be said, and what to do instead";
  EXPECT_EQ(said("moment abs"), Texts{"expected raw, central or sum, found 'abs'; " + nothing});
  EXPECT_EQ(said("moment l2"),
            Texts{"expected raw, central or sum, found 'l2'; write 'sum': the sum of squares"});
  EXPECT_EQ(
      said("dropout 0.1"),
      Texts{"unknown clause 'dropout'; nothing here is random: give mask / (1 - p) as the tensor of 'gate "
            "identity(at = before)', see docs/language.md"});
}

TEST(ForeignSyntaxHints, ARotationHasAClause) {
  for (const char* word : {"rotary", "Rotary", "rotary_emb", "rotary_embedding", "rotate"})
    EXPECT_EQ(said(word), Texts{"unknown clause '" + std::string(word) +
                                "'; write 'rope half' for pairs l and l + k / 2, as NeoX and Llama have "
                                "them, 'rope interleaved' for 2 l and 2 l + 1, as GPT-J has them"});
  EXPECT_EQ(said("rotate_half yes"), Texts{"unknown clause 'rotate_half'; write 'rope half'"});
  EXPECT_EQ(said("rotate_every_two yes"),
            Texts{"unknown clause 'rotate_every_two'; write 'rope interleaved'"});
  EXPECT_EQ(said("gate rope"),
            Texts{"expected none, silu, sigmoid, tanh, gelu or identity, found 'rope'; write 'rope half' or "
                  "'rope interleaved', a clause of its own"});
  const std::string pairs = "expected none, half or interleaved, found '";
  for (const char* word : {"neox", "NeoX", "gpt_neox", "llama", "rotate_half", "split"})
    EXPECT_EQ(said("rope " + std::string(word)),
              Texts{pairs + word + "'; write 'half': the pairs l and l + k / 2"});
  for (const char* word : {"gptj", "GPTJ", "gpt_j", "interleave", "rotate_every_two", "complex"})
    EXPECT_EQ(said("rope " + std::string(word)),
              Texts{pairs + word + "'; write 'interleaved': the pairs 2 l and 2 l + 1"});
  for (const char* word : {"groups", "features"})
    EXPECT_EQ(said("rope " + std::string(word)),
              Texts{pairs + word + "'; write the pairs first: 'rope half' or 'rope interleaved'"});
}

TEST(ForeignSyntaxHints, OptionsOfARotationAreTranslated) {
  const auto ofOption = [](const std::string& option) { return said("rope half(" + option + " = 8)"); };
  const std::string has = "'rope half' has no option '";
  for (const char* option : {"heads", "num_heads", "n_heads"})
    EXPECT_EQ(ofOption(option), Texts{has + option + "'; write 'groups = heads', or their number"});
  EXPECT_EQ(ofOption("head_dim"), Texts{has + "head_dim'; write 'groups = heads', or their number: the "
                                              "features of a head follow from it"});
  EXPECT_EQ(ofOption("dim"), Texts{has + "dim'; write 'features'"});
  for (const char* option : {"rotary_dim", "rot_dim", "rope_dim", "rotary_pct", "partial_rotary_factor"})
    EXPECT_EQ(ofOption(option),
              Texts{has + option + "'; write 'features = 64' for the first 64 of each group"});
  for (const char* option : {"neox", "interleaved", "interleave", "half", "is_neox_style"})
    EXPECT_EQ(ofOption(option),
              Texts{has + option + "'; write the pairs first: 'rope half' or 'rope interleaved'"});
  const std::string angles =
      "; nothing here computes angles: the caller gives their cosines and sines, the tensors rope_cos and "
      "rope_sin";
  for (const char* option : {"theta", "rope_theta", "base", "scaling", "position", "cos", "sin"})
    EXPECT_EQ(ofOption(option), Texts{has + option + "'" + angles});
  for (const char* clause : {"theta", "rope_theta", "inv_freq", "position_ids"})
    EXPECT_EQ(said(clause), Texts{"unknown clause '" + std::string(clause) + "'" + angles});
  EXPECT_EQ(said("rope half(64)"), Texts{has + "64'; its options are features or groups"});
  EXPECT_EQ(said("rope half(heads)"), Texts{has + "heads'; write 'groups = heads', or their number"});
  const std::string behind = "options stand behind a value: 'reduce features(groups = 4)'";
  EXPECT_EQ(said("rope(groups = heads)"), Texts{"expected a word or a number, found '('; " + behind});
}

TEST(ForeignSyntaxHints, OptionsOfARotationAreNoValuesOfReduce) {
  const std::vector<std::string> reduce = {"rows", "features", "segment", "segment_features"};
  for (const char* word : {"theta", "base", "position", "cos", "sin", "half", "interleaved", "rotary_dim"})
    EXPECT_EQ(hintFor(word, reduce, ""), "") << word;
  EXPECT_EQ(hintFor("dim", reduce, ""), "write 'features'");
}

TEST(ForeignSyntaxHints, CodesHaveAClause) {
  const std::string clause =
      "write 'quantize int8' or 'quantize e4m3' for codes in place of y, with a scale of each row, block or "
      "tensor";
  for (const char* word : {"fp8", "FP8", "int8", "e4m3", "quant", "quantise", "quantization"})
    EXPECT_EQ(said(word), Texts{"unknown clause '" + std::string(word) + "'; " + clause});
  EXPECT_EQ(said("mxfp8"), Texts{"unknown clause 'mxfp8'; write 'quantize e4m3(per = block, size = 32, scale "
                                 "= power_of_two)'"});
  const std::string codes = "expected none, int8 or e4m3, found '";
  for (const char* word : {"fp8", "float8_e4m3fn"})
    EXPECT_EQ(said("quantize " + std::string(word)), Texts{codes + word + "'; write 'e4m3'"});
  EXPECT_EQ(said("quantize i8"), Texts{codes + "i8'; write 'int8'"});
  for (const char* word : {"e5m2", "uint8", "nvfp4"})
    EXPECT_EQ(said("quantize " + std::string(word)),
              Texts{codes + word +
                    "'; the types of codes are int8 and e4m3: docs/language.md has what to do instead"});
  EXPECT_EQ(said("quantize int8(per = token)"),
            Texts{"expected row, tensor or block, found 'token'; write 'row'"});
  EXPECT_EQ(said("quantize int8(per = group)"), Texts{"expected row, tensor or block, found 'group'; write "
                                                      "'per = block, size = 128' for a scale of each 128 "
                                                      "features"});
  EXPECT_EQ(said("quantize int8(per = channel)"),
            Texts{"expected row, tensor or block, found 'channel'; write 'per = row': the scale of a feature "
                  "could not leave the sum of a product"});
  EXPECT_EQ(said("quantize int8(scale = ue8m0)"),
            Texts{"expected float or power_of_two, found 'ue8m0'; write 'power_of_two'"});
  EXPECT_EQ(said("quantize int8(scale = f32)"),
            Texts{"expected float or power_of_two, found 'f32'; write 'float'"});
  EXPECT_EQ(said("quantize int8(eps = 1)"), Texts{"'quantize int8' has no option 'eps'; write 'floor'"});
  EXPECT_EQ(said("quantize int8(group_size = 64)"),
            Texts{"'quantize int8' has no option 'group_size'; write 'size'"});
}

TEST(ForeignSyntaxHints, ADecayIsNoCopyOfAMomentum) {
  EXPECT_EQ(errorsOf("norm n {\n  reduce rows\n  running momentum = 0.1\n}\n"),
            "t.norm:3:11: error: 'running' has no option 'momentum'\n"
            "    running momentum = 0.1\n"
            "            ^~~~~~~~\n"
            "  hint: decay is the weight of the old value. If your momentum is the weight of the new one, "
            "write decay = 1 - momentum: 0.9 for 0.1\n");
  EXPECT_EQ(said("momentum 0.1"),
            Texts{"unknown clause 'momentum'; write 'running decay = ...'; decay is the weight of the old "
                  "value. If your momentum is the weight of the new one, write decay = 1 - momentum: 0.9 for "
                  "0.1"});
}

TEST(ForeignSyntaxHints, ANumberWithoutANameGetsOne) {
  EXPECT_EQ(said("running 0.9"), Texts{"'running' has no option '0.9'; write 'decay = 0.9'"});
  EXPECT_EQ(said("warmup 4000"), Texts{"'warmup' has no option '4000'; write 'steps = 4000'"});
  EXPECT_EQ(said("renorm std(3)"), Texts{"'renorm std' has no option '3'; write 'rmax = 3'"});
  const std::string options = "; its options are decay, init or unbiased";
  EXPECT_EQ(said("running yes"), Texts{"'running' has no option 'yes'" + options});
  EXPECT_EQ(said("running 0.9, 1"), (Texts{"'running' has no option '0.9'; write 'decay = 0.9'",
                                           "'running' has no option '1'" + options}));
  EXPECT_EQ(said("running decay = 0.9, 1"), Texts{"'running' has no option '1'" + options});
  EXPECT_EQ(errorsOf("norm n {\n  reduce features(32)\n}\n"),
            "t.norm:2:19: error: 'reduce features' has no option '32'\n"
            "    reduce features(32)\n"
            "                    ^~\n"
            "  hint: write 'groups = 32'\n");
}

TEST(ForeignSyntaxHints, AWordOfTheLanguageIsNotTranslatedWhereItStands) {
  EXPECT_EQ(hintFor("batch", {"batch", "current"}, ""), "did you mean 'batch'?");
  EXPECT_EQ(hintFor("momentun", {"moment"}, ""), "did you mean 'moment'?");
}

}  // namespace
}  // namespace normc
