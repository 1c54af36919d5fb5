#include "dsl/ForeignSyntaxHints.h"

#include <algorithm>
#include <iterator>

#include "dsl/Nearest.h"

namespace normc {
namespace {

struct ForeignWord {
  std::string_view word;   // elsewhere
  std::string_view means;  // here: the hint is given where this is legal
  std::string_view hint;
};

constexpr std::string_view kMomentum =
    "write 'decay = 1 - momentum' as a number, 0.9 for a momentum of 0.1: decay weighs the old value, and "
    "where momentum "
    "weighs the new one, its number copied would be wrong";
constexpr std::string_view kRunningMomentum =
    "write 'running decay = 0.9' for a momentum of 0.1: decay weighs the old value, and where momentum "
    "weighs the new one, "
    "its number copied would be wrong";
constexpr std::string_view kChannels =
    "write 'rows' for one statistic per channel, over all rows of the batch; 'features' is one per row, over "
    "its channels";
constexpr std::string_view kOffset = "write 'affine scale(offset = 1)' for a factor of 1 + w";

constexpr ForeignWord kForeignWords[] = {
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

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_'; }

// True if the text ends in a word, not in a number or a blank.
bool endsInWord(std::string_view text) {
  const auto start =
      std::find_if_not(text.rbegin(), text.rend(), [](char c) { return isLetter(c) || isDigit(c); });
  return start != text.rbegin() && isLetter(*start.base());
}

}  // namespace

std::string hintFor(std::string_view word, const std::vector<std::string>& known,
                    const std::string& otherwise) {
  const bool isKnown = std::find(known.begin(), known.end(), word) != known.end();
  for (const ForeignWord& foreign : kForeignWords) {
    const bool legal = std::find(known.begin(), known.end(), foreign.means) != known.end();
    if (!isKnown && legal && word.size() == foreign.word.size() && editDistance(word, foreign.word) == 0)
      return std::string(foreign.hint);
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
    case '+':
      return before.find("affine") != before.npos ? std::string(kOffset) : kCompute;
    case ';':
      return "a clause ends with its line: leave the ';' out";
    case ':':
      return "write 'reduce rows' for a clause, 'decay = 0.9' for an option";
    case '^':
      return "write a power of ten like 1e-5";
    case '%':
      return "write a part of a hundred like 0.9";
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
