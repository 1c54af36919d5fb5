#include "dsl/ForeignSyntaxHints.h"

#include <algorithm>
#include <iterator>

#include "dsl/Nearest.h"
#include "runtime/abi/Letters.h"

namespace normc {
namespace {

struct ForeignWord {
  std::string_view word;   // elsewhere
  std::string_view means;  // here: the hint is given where this is legal
  std::string_view hint;
};

constexpr std::string_view kMomentum =
    "decay is the weight of the old value. If your momentum is the weight of the new one, write decay = 1 - "
    "momentum: 0.9 for 0.1";
constexpr std::string_view kRunningMomentum =
    "write 'running decay = ...'; decay is the weight of the old value. If your momentum is the weight of "
    "the "
    "new one, write decay = 1 - momentum: 0.9 for 0.1";
constexpr std::string_view kChannels =
    "write 'rows' for one statistic per channel, over all rows of the batch; 'features' is one per row, over "
    "its channels";
constexpr std::string_view kOffset = "write 'affine scale(offset = 1)' for a factor of 1 + w";

constexpr std::string_view kModulation =
    "write 'modulate scale, shift' for a factor 1 + scale and a shift of each segment, "
    "with 'scale(offset = 0)' for a factor that is the scale alone";
constexpr std::string_view kResidual =
    "write 'residual before' for a sum in front of the norm, 'residual after' for one behind it";
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

// The words for codes come first: some of the others mean something else beside them.
constexpr ForeignWord kForeignWords[] = {
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
    {"pre", "before", "write 'before'"},
    {"post", "after", "write 'after'"},
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
    {"sample", "segment", "write 'segment'"},
    {"channel", "feature", "write 'feature'"},
    {"channel", "row", kNoFeature},
    {"feature", "row", kNoFeature},
    {"per", "offset", "write it behind the list: 'modulate scale, per = row'"},
    {"ada", "modulate", kModulation},
    {"adaln", "modulate", kModulation},
    {"adain", "modulate", kModulation},
    {"film", "modulate", kModulation},
    {"conditional", "modulate", kModulation},
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
    {"gamma", "bias", "write 'scale'"},
    {"gamma", "clamp_gamma", "write 'clamp_gamma'"},
    {"gamma", "affine", "write 'affine scale'"},
    {"beta", "bias", "write 'bias'"},
    {"beta", "affine", "write 'affine bias'"},
    {"weight_offset", "bias", kOffset},  // beside bias: an item of affine
    {"weight_offset", "offset", "write 'offset'"},
    {"weight_offset", "affine", kOffset},
    {"zero_centered_gamma", "bias", kOffset},
    {"zero_centered_gamma", "offset", "write 'offset = 1'"},
    {"zero_centered_gamma", "affine", kOffset},
    {"offset", "bias", kOffset},
    {"offset", "affine", kOffset},
    {"swish", "silu", "write 'silu'"},
    {"swish", "activation", "write 'activation silu'"},
    {"relu", "activation", "write 'activation relu'"},
    {"silu", "activation", "write 'activation silu'"},
    {"gelu", "activation", "write 'activation gelu'"},
    {"gelu_new", "gelu_tanh", "write 'gelu_tanh'"},
    {"gelu_pytorch_tanh", "gelu_tanh", "write 'gelu_tanh'"},
    {"logistic", "sigmoid", "write 'sigmoid'"},
    {"act", "activation", "write 'activation'"},
    {"nonlinearity", "activation", "write 'activation'"},
    {"variance", "central", "write 'central'"},
    {"variance", "moment", "write 'moment central'"},
    {"var", "central", "write 'central'"},
    {"var", "moment", "write 'moment central'"},
    {"batch", "rows", "write 'rows': one statistic per feature, over all rows of the batch"},
    {"batch", "current", "write 'current'"},
    {"channel", "rows", kChannels},
    {"channels", "rows", kChannels},
    {"ema", "average", "write 'average'"},
    {"ema", "running", "write 'running'"},
    {"approx", "approximate", "write 'approximate'"},
    {"nchw", "channels_first", "write 'channels_first', with the features in the middle: [*x64x*]"},
    {"nhwc", "features_last", "write 'features_last', or leave the layout out: it is the default"},
};

// The options that a number without a name is most likely meant for, in this order.
constexpr std::string_view kNumberOptions[] = {"decay", "groups", "steps", "rmax", "limit", "offset"};

constexpr const char* kCompute = "write the number itself; a problem can bind a name: 'groups = heads'";

// True if the text is one word, with blanks around it.
bool isWord(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t\r");
  return begin != text.npos && std::all_of(text.begin() + begin, text.begin() + end + 1,
                                           [](char c) { return isLetter(c) || isDigit(c); });
}

// True if the text ends in a word, not in a number or a blank.
bool endsInWord(std::string_view text) {
  const auto start =
      std::find_if_not(text.rbegin(), text.rend(), [](char c) { return isLetter(c) || isDigit(c); });
  return start != text.rbegin() && isLetter(*start.base());
}

}  // namespace

std::string hintFor(std::string_view word, const std::vector<std::string>& known,
                    const std::string& otherwise) {
  const auto isKnown = [&known](std::string_view each) {
    return std::find(known.begin(), known.end(), each) != known.end();
  };
  const bool isOwn = isKnown(word), ofReduce = isKnown("rows");
  for (const ForeignWord& foreign : kForeignWords) {
    if (isOwn || word.size() != foreign.word.size() || editDistance(word, foreign.word, 0) > 0) continue;
    // 'features' is an option of `rope` and a value of `reduce`.
    if (ofReduce && foreign.means == "features" && foreign.word != "dim") continue;
    if (isKnown(foreign.means)) return std::string(foreign.hint);
  }
  return didYouMean(word, known, otherwise);
}

std::string nameHint(const Token& value, const std::vector<std::string>& options) {
  const bool takesNumber = !options.empty() && std::find(std::begin(kNumberOptions), std::end(kNumberOptions),
                                                         options[0]) != std::end(kNumberOptions);
  if (!takesNumber || (value.kind != Token::Number && options[0] != "groups")) return "";
  return "write '" + options[0] + " = " + std::string(value.text) + "'";
}

std::string formHint(std::string_view before, std::string_view strange, std::string_view after) {
  const size_t next = after.find_first_not_of(" \t");
  switch (strange[0]) {
    case '#':
      return "a comment starts with //";
    case '/':
      return strange.size() == 1 && next != after.npos && isDigit(after[next]) ? kCompute
                                                                               : "a comment starts with //";
    case '-':
      if (!endsInWord(before) || after.empty() || !isLetter(after[0])) return kCompute;
      return "a name has letters, digits and _: write my_norm for my-norm";
    case '*':
      return after.starts_with('/') ? "a comment starts with //" : kCompute;
    case '+': {
      const std::string_view line = before.substr(before.rfind('\n') + 1);
      if (line.find("modulate") != line.npos) return std::string(kModulation);
      return line.find("affine") != line.npos ? std::string(kOffset) : kCompute;
    }
    case ';':
      return "a clause ends with its line: leave the ';' out";
    case ':':
      return isWord(before.substr(before.find_last_of("{\n") + 1)) ? "leave the ':' out"
                                                                   : "write '=' for an option: 'decay = 0.9'";
    case '^':
      return "write a power of ten like 1e-5";
    case '%':
      return "write a percentage as a fraction: 0.01 for 1%";
    case '"':
    case '\'':
    case '`':
      return "names and words stand without quotes";
    default:
      break;
  }
  return static_cast<unsigned char>(strange[0]) < 0x80
             ? ""
             : "words have letters from a to z, digits and _; comments may have any";
}

}  // namespace normc
