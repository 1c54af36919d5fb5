#include "dsl/ForeignWords.h"

#include <algorithm>

#include "dsl/Nearest.h"

namespace normc {
namespace {

constexpr std::string_view kMomentum =
    "decay is the weight of the old value. If your momentum is the weight of the new one, write decay = 1 - "
    "momentum: 0.9 for 0.1";
constexpr std::string_view kRunningMomentum =
    "write 'running decay = ...'; decay is the weight of the old value. If your momentum is the weight of "
    "the new one, write decay = 1 - momentum: 0.9 for 0.1";
constexpr std::string_view kChannels =
    "write 'rows' for one statistic per channel, over all rows of the batch; 'features' is one per row, over "
    "its channels";
constexpr std::string_view kResidual =
    "write 'residual before' for a sum in front of the norm, 'residual after' for one behind it";
constexpr std::string_view kStreamScale =
    "write 'gate identity(at = before, per = feature)' beside it: the gate is the factor of x, so x is what "
    "is "
    "scaled, and the residual the other";
constexpr std::string_view kGateSide =
    "write 'gate silu' for a gate behind the norm, 'gate silu(at = before)' for one in front of it";
constexpr std::string_view kFeatureGate =
    "write 'gate identity(at = before, per = feature)': one number for each feature, with 'residual before' "
    "behind it";
constexpr std::string_view kDropout =
    "nothing here is random: give mask / (1 - p) as the tensor of 'gate identity(at = before)', see "
    "docs/language.md";
constexpr std::string_view kNothing =
    "no clause does that: docs/language.md lists what cannot be said, and what to do instead";
constexpr std::string_view kReduce = "'reduce' says what one statistic is taken over";
constexpr std::string_view kGroups = "write 'reduce features(groups = 4)'";
constexpr std::string_view kPadding =
    "to let padded rows count in everything, leave the mask out of the problem; "
    "'leave_out_of_statistics' transforms them without counting them";
constexpr std::string_view kSide = "write 'before' or 'after'";
constexpr std::string_view kNoFeature =
    "parameters of each feature belong to the affine: write 'affine scale, bias'";

constexpr std::string_view kRope =
    "write 'rope half' for pairs l and l + k / 2, as NeoX and Llama have them, "
    "'rope interleaved' for 2 l and 2 l + 1, as GPT-J has them";
constexpr std::string_view kHalf = "write 'half': the pairs l and l + k / 2";
constexpr std::string_view kInterleaved = "write 'interleaved': the pairs 2 l and 2 l + 1";
constexpr std::string_view kPairsFirst = "write the pairs first: 'rope half' or 'rope interleaved'";
constexpr std::string_view kTurned = "write 'features = 64' for the first 64 of each group";
constexpr std::string_view kAngles =
    "nothing here computes angles: the caller gives their cosines and sines, the tensors rope_cos and "
    "rope_sin";

constexpr std::string_view kQuantize =
    "write 'quantize int8' or 'quantize e4m3' for codes in place of y, with a scale of each row, block or "
    "tensor";
constexpr std::string_view kTypeOfCodes =
    "8-bit codes are declared in the norm; the type here is of a tensor of numbers: "
    "write 'quantize int8' or 'quantize e4m3' as a clause";
constexpr std::string_view kNoCode =
    "the types of codes are int8 and e4m3: docs/language.md has what to do instead";

constexpr std::string_view kFeaturesLast =
    "write 'features_last', or leave the layout out: it is the default";

// The words for codes come first: some of the others mean something else beside them. Beside 'sigmoid' are
// the functions, of an activation and of a gate.
constexpr ForeignWord kWords[] = {
    {"quant", "quantize", kQuantize},
    {"quantise", "quantize", kQuantize},
    {"quantization", "quantize", kQuantize},
    {"quantized", "quantize", kQuantize},
    {"int8", "quantize", kQuantize},
    {"i8", "quantize", kQuantize},
    {"e4m3", "quantize", kQuantize},
    {"fp8", "quantize", kQuantize},
    {"float8", "quantize", kQuantize},
    {"w8a8", "quantize", kQuantize},
    {"mxfp8", "quantize", "write 'quantize e4m3(per = block, size = 32, scale = power_of_two)'"},
    {"i8", "int8", "write 'int8'"},
    {"s8", "int8", "write 'int8'"},
    {"fp8", "e4m3", "write 'e4m3'"},
    {"float8", "e4m3", "write 'e4m3'"},
    {"fp8_e4m3", "e4m3", "write 'e4m3'"},
    {"e4m3fn", "e4m3", "write 'e4m3'"},
    {"float8_e4m3fn", "e4m3", "write 'e4m3'"},
    {"mxfp8", "e4m3", "write 'e4m3(per = block, size = 32, scale = power_of_two)'"},
    {"e5m2", "e4m3", kNoCode},
    {"uint8", "int8", kNoCode},
    {"u8", "int8", kNoCode},
    {"int4", "int8", kNoCode},
    {"nvfp4", "e4m3", kNoCode},
    {"e2m1", "e4m3", kNoCode},
    {"int8", "f32", kTypeOfCodes},
    {"i8", "f32", kTypeOfCodes},
    {"e4m3", "f32", kTypeOfCodes},
    {"fp8", "f32", kTypeOfCodes},
    {"float8_e4m3fn", "f32", kTypeOfCodes},
    {"group", "block", "write 'per = block, size = 128' for a scale of each 128 features"},
    {"segment", "block", "write 'per = row', or 'per = tensor' for one scale of all rows"},
    {"channel", "block", "write 'per = row': the scale of a feature could not leave the sum of a product"},
    {"feature", "block", "write 'per = row': the scale of a feature could not leave the sum of a product"},
    {"block_size", "size", "write 'size'"},
    {"group_size", "size", "write 'size'"},
    {"groups", "size", "write 'per = block, size = 128': the features of a block, not their number"},
    {"eps", "floor", "write 'floor'"},
    {"epsilon", "floor", "write 'floor'"},
    {"f32", "power_of_two", "write 'float'"},
    {"fp32", "power_of_two", "write 'float'"},
    {"pow2", "power_of_two", "write 'power_of_two'"},
    {"e8m0", "power_of_two", "write 'power_of_two'"},
    {"ue8m0", "power_of_two", "write 'power_of_two'"},
    {"skip", "residual", kResidual},
    {"shortcut", "residual", kResidual},
    {"add", "residual", kResidual},
    {"residual", "group_scaling", kResidual},
    {"stream", "residual", "write 'residual before': the sum is an output, but with 'stream = no'"},
    {"residual_out", "residual", "write 'residual before': the sum is an output, but with 'stream = no'"},
    {"residual_out", "stream", "write 'stream'"},
    {"prenorm", "residual", "write 'residual before': the sum is an output, but with 'stream = no'"},
    {"prenorm", "stream", "write 'stream'"},
    {"alpha", "stream", kStreamScale},
    {"beta", "stream", kStreamScale},
    {"scale", "stream", kStreamScale},
    {"weight", "stream", kStreamScale},
    {"pre", "before", "write 'before'"},
    {"post", "after", "write 'after'"},
    {"add", "after", kSide},
    {"in", "after", kSide},
    {"gated", "gate", kGateSide},
    {"gate", "group_scaling", kGateSide},
    {"norm_before_gate", "gate", kGateSide},
    {"norm_before_gate", "at", "write 'at = after' where the norm is before the gate, else 'at = before'"},
    {"before", "at", "write 'at = before'"},
    {"after", "at", "write 'at = after'"},
    {"before", "identity", "write the function first: 'gate silu(at = before)'"},
    {"after", "identity", "write the function first: 'gate silu'"},
    {"linear", "identity", "write 'identity'"},
    {"relu", "identity", "a gate has no relu: 'activation relu' ends a norm"},
    {"gelu_tanh", "identity", "a gate has only the exact 'gelu', by erf"},
    {"layer_scale", "gate", kFeatureGate},
    {"drop_path", "gate",
     "write 'gate identity(at = before, per = segment)': one number of a segment, repeated"},
    {"row", "per", "write 'per = row'"},
    {"segment", "per", "write 'per = segment'"},
    {"feature", "per", "write 'per = feature'"},
    {"token", "row", "write 'row'"},
    {"layer", "rows", "write 'features': one statistic per row"},
    {"token", "rows", "write 'features': one statistic per row"},
    {"last", "rows", "write 'features': one statistic per row"},
    {"group", "rows", kGroups},
    {"group", "feature", kNothing},
    {"instance", "segment", "write 'segment': one statistic per segment and feature"},
    {"none", "segment_features", kNothing},
    {"sample", "segment_features", "write 'segment_features': one statistic per segment"},
    {"sample", "segment", "write 'segment'"},
    {"channel", "feature", "write 'feature'"},
    {"channel", "row", kNoFeature},
    {"feature", "row", kNoFeature},
    {"per", "offset",
     "'per' stands behind the list of 'modulate': 'modulate scale, per = row'; an affine has a number for "
     "each feature, see docs/language.md"},
    {"ada", "modulate", kModulationHint},
    {"adaln", "modulate", kModulationHint},
    {"adain", "modulate", kModulationHint},
    {"film", "modulate", kModulationHint},
    {"conditional", "modulate", kModulationHint},
    {"modulation", "modulate", "write 'modulate'"},
    {"shift", "modulate",
     "write 'modulate shift' for one of each segment or row, 'affine bias' for one of each feature"},
    {"shift", "bias", "write 'bias'; one of each segment or row is 'modulate shift'"},
    {"bias", "shift", "write 'shift'"},
    {"beta", "shift", "write 'shift'"},
    {"gamma", "shift", "write 'scale'"},
    {"offset", "shift", "write 'scale(offset = 1)', which is the default, or another number there"},
    {"l2", "sum", "write 'sum': the sum of squares"},
    {"abs", "sum", kNothing},
    {"l1", "sum", kNothing},
    {"dropout", "gate", kDropout},
    {"dropout", "identity", kDropout},
    {"rotary", "rope", kRope},
    {"rotary_emb", "rope", kRope},
    {"rotary_embedding", "rope", kRope},
    {"rotate", "rope", kRope},
    {"rotate_half", "rope", "write 'rope half'"},
    {"rotate_every_two", "rope", "write 'rope interleaved'"},
    {"theta", "rope", kAngles},
    {"rope_theta", "rope", kAngles},
    {"inv_freq", "rope", kAngles},
    {"position_ids", "rope", kAngles},
    {"rope", "identity", "write 'rope half' or 'rope interleaved', a clause of its own"},
    {"neox", "half", kHalf},
    {"gpt_neox", "half", kHalf},
    {"llama", "half", kHalf},
    {"rotate_half", "half", kHalf},
    {"split", "half", kHalf},
    {"gptj", "interleaved", kInterleaved},
    {"gpt_j", "interleaved", kInterleaved},
    {"interleave", "interleaved", kInterleaved},
    {"rotate_every_two", "interleaved", kInterleaved},
    {"complex", "interleaved", kInterleaved},
    {"groups", "interleaved", kPairsFirst},
    {"features", "interleaved", kPairsFirst},
    {"heads", "groups", "write 'groups = heads', or their number"},
    {"num_heads", "groups", "write 'groups = heads', or their number"},
    {"n_heads", "groups", "write 'groups = heads', or their number"},
    {"head_dim", "groups", "write 'groups = heads', or their number: the features of a head follow from it"},
    {"dim", "features", "write 'features'"},
    {"dim", "rows", "write 'features'"},
    {"partial", "features", kTurned},
    {"partial", "groups", kNothing},
    {"rotary_dim", "features", kTurned},
    {"rot_dim", "features", kTurned},
    {"rope_dim", "features", kTurned},
    {"rotary_pct", "features", kTurned},
    {"partial_rotary_factor", "features", kTurned},
    {"theta", "features", kAngles},
    {"rope_theta", "features", kAngles},
    {"base", "features", kAngles},
    {"scaling", "features", kAngles},
    {"position", "features", kAngles},
    {"cos", "features", kAngles},
    {"sin", "features", kAngles},
    {"half", "features", kPairsFirst},
    {"interleave", "features", kPairsFirst},
    {"interleaved", "features", kPairsFirst},
    {"neox", "features", kPairsFirst},
    {"is_neox_style", "features", kPairsFirst},
    {"eps", "epsilon", "write 'epsilon'"},
    {"momentum", "decay", kMomentum},
    {"momentum", "running", kRunningMomentum},
    {"weight", "bias", "write 'scale'"},  // beside bias alone: the 'scale' of backward is another
    {"weight", "affine", "write 'affine scale'"},
    {"scale", "affine", "write 'affine scale'"},
    {"bias", "affine", "write 'affine bias'"},
    {"gamma", "bias", "write 'scale'"},
    {"gamma", "clamp_gamma", "write 'clamp_gamma'"},
    {"gamma", "affine", "write 'affine scale'"},
    {"beta", "bias", "write 'bias'"},
    {"beta", "affine", "write 'affine bias'"},
    {"weight_offset", "bias", kOffsetHint},  // beside bias: an item of affine
    {"weight_offset", "offset", "write 'offset'"},
    {"weight_offset", "affine", kOffsetHint},
    {"zero_centered_gamma", "bias", kOffsetHint},
    {"zero_centered_gamma", "offset", "write 'offset = 1'"},
    {"zero_centered_gamma", "affine", kOffsetHint},
    {"offset", "bias", kOffsetHint},
    {"offset", "affine", kOffsetHint},
    {"swish", "silu", "write 'silu'"},
    {"swish", "activation", "write 'activation silu'"},
    {"relu", "activation", "write 'activation relu'"},
    {"silu", "activation", "write 'activation silu'"},
    {"gelu", "activation", "write 'activation gelu'"},
    {"gelu_new", "gelu_tanh", "write 'gelu_tanh'"},
    {"gelu_pytorch_tanh", "gelu_tanh", "write 'gelu_tanh'"},
    {"logistic", "sigmoid", "write 'sigmoid'"},
    {"relu6", "sigmoid", kNothing},
    {"relu2", "sigmoid", kNothing},
    {"squared_relu", "sigmoid", kNothing},
    {"relu_squared", "sigmoid", kNothing},
    {"swiglu", "gelu_tanh", "a gate is a tensor of its own: write 'gate silu(at = before)'"},
    {"geglu", "gelu_tanh", "a gate is a tensor of its own: write 'gate gelu(at = before)'"},
    {"leaky_relu", "sigmoid", kNothing},
    {"prelu", "sigmoid", kNothing},
    {"elu", "sigmoid", kNothing},
    {"selu", "sigmoid", kNothing},
    {"celu", "sigmoid", kNothing},
    {"softplus", "sigmoid", kNothing},
    {"mish", "sigmoid", kNothing},
    {"hardtanh", "sigmoid", kNothing},
    {"hard_tanh", "sigmoid", kNothing},
    {"hardswish", "sigmoid", kNothing},
    {"hard_swish", "sigmoid", kNothing},
    {"hardsigmoid", "sigmoid", kNothing},
    {"hard_sigmoid", "sigmoid", kNothing},
    {"quick_gelu", "sigmoid", kNothing},
    {"act", "activation", "write 'activation'"},
    {"nonlinearity", "activation", "write 'activation'"},
    {"variance", "central", "write 'central'"},
    {"variance", "moment", "write 'moment central'"},
    {"var", "central", "write 'central'"},
    {"var", "moment", "write 'moment central'"},
    {"std", "central", "write 'central'"},
    {"centered", "central", "write 'central'"},
    {"std", "window", "write 'current'"},
    {"batch", "rows", "write 'rows': one statistic per feature, over all rows of the batch"},
    {"batch", "current", "write 'current'"},
    {"mean", "window", "write 'current': the moment of this batch, which 'moment' names"},
    {"mean", "center", "write 'center current', or 'center none'"},
    {"mean", "current", "write 'current'"},
    {"yes", "current", "write 'current'"},
    {"no", "none", "write 'none'"},
    {"zero", "none", "write 'none'"},
    {"channel", "rows", kChannels},
    {"channels", "rows", kChannels},
    {"axis", "reduce", kReduce},
    {"dim", "reduce", kReduce},
    {"groups", "reduce", kGroups},
    {"heads", "reduce", kGroups},
    {"decay", "running", "write 'running decay = 0.9'"},
    {"ema", "average", "write 'average'"},
    {"ema", "running", "write 'running'"},
    {"approx", "approximate", "write 'approximate'"},
    {"none", "frozen", "write 'frozen'"},
    {"detach", "frozen", "write 'frozen'"},
    {"include", "exclude", kPadding},
    {"none", "exclude", kPadding},
    {"ignore", "exclude", kPadding},
    {"mask", "exclude", kPadding},
    {"mask", "padding", "a mask belongs to the problem: layer_norm:forward@f32[*x1024]{mask}"},
    {"dtype", "reduce", "a type belongs to the problem: layer_norm:forward@bf16[*x1024]"},
    {"nchw", "channels_first", "write 'channels_first', with the features in the middle: [*x64x*]"},
    {"nhwc", "features_last", kFeaturesLast},
    {"channels_last", "features_last", kFeaturesLast},
    {"fwd", "forward", "write 'forward'"},
    {"bwd", "backward", "write 'backward'"},
    {"inference", "infer", "write 'infer'"},
    {"float", "f32", "write 'f32'"},
    {"float32", "f32", "write 'f32'"},
    {"double", "f64", "write 'f64'"},
    {"float64", "f64", "write 'f64'"},
    {"half", "f16", "write 'f16'"},
    {"float16", "f16", "write 'f16'"},
    {"bfloat16", "bf16", "write 'bf16'"},
};

}  // namespace

std::span<const ForeignWord> foreignWords() { return kWords; }

std::string_view foreignHint(std::span<const ForeignWord> words, std::string_view word,
                             const std::vector<std::string>& known) {
  const auto isKnown = [&](std::string_view each) { return std::ranges::count(known, each) > 0; };
  if (isKnown(word)) return "";
  for (const ForeignWord& foreign : words)
    if (word.size() == foreign.word.size() && editDistance(word, foreign.word, 0) == 0 &&
        isKnown(foreign.beside))
      return foreign.hint;
  return "";
}

}  // namespace normc
