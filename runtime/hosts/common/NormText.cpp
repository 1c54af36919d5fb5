#include "runtime/hosts/common/NormText.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace normc::hosts {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument("'" + std::string(text) + "' names no norm: " + why +
                              "; a text is NAME[*xFEATURES]{OPTIONS} NUMBER=VALUE ..., "
                              "e.g. layer_norm[*x768] epsilon=1e-06");
}

/// Removes and returns what stands before the first of `ends`; all if none is there.
std::string_view upTo(std::string_view& rest, std::string_view ends) {
  const size_t at = std::min(rest.find_first_of(ends), rest.size());
  const std::string_view result = rest.substr(0, at);
  rest.remove_prefix(at);
  return result;
}

/// Removes and returns what stands in brackets; an empty view if `rest` does not begin with them.
std::string_view bracketed(std::string_view& rest, char open, char close, std::string_view text) {
  if (rest.empty() || rest[0] != open) return {};
  const size_t end = rest.find(close);
  if (end == rest.npos) refuse(text, std::string(1, close) + " is missing");
  const std::string_view result = rest.substr(1, end - 1);
  rest.remove_prefix(end + 1);
  return result;
}

template <typename T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool isChannelsFirst(std::string_view text) {
  const size_t end = text.find(']');
  return end != text.npos && text.substr(0, end).ends_with("x*");
}

NormText NormText::parse(std::string_view text) {
  NormText result;
  std::string_view rest = text;
  result.name = upTo(rest, "#[ ");
  if (!rest.empty() && rest[0] == '#') result.source = upTo(rest, "[ ").substr(1);
  if (result.name.empty()) refuse(text, "it begins with no name");

  std::string_view shape = bracketed(rest, '[', ']', text);
  std::vector<std::string_view> axes;
  for (std::string_view left = shape; !shape.empty();) {
    axes.push_back(upTo(left, "x"));
    if (left.empty()) break;
    left.remove_prefix(1);
  }
  if (axes.size() != 2 && axes.size() != 3)
    refuse(text, "its shape has " + std::to_string(axes.size()) + " axes");
  result.segmented = axes.size() == 3;
  result.channelsFirst = result.segmented && axes[2] == "*";
  const std::string_view features = axes[result.channelsFirst ? 1 : axes.size() - 1];
  if (!read(features, result.features) || result.features < 1)
    refuse(text, "its number of features is '" + std::string(features) + "'");

  for (const std::string_view& axis : axes)
    if (axis.data() != features.data() && axis != "*")
      refuse(text, "an axis beside its features is '" + std::string(axis) + "', and has to be '*'");

  std::string_view options = bracketed(rest, '{', '}', text);
  while (!options.empty()) {
    const std::string_view option = upTo(options, ",");
    if (!options.empty()) options.remove_prefix(1);
    if (option.starts_with("layout=")) continue;  // the shape says it
    if (option == "round=normalized") {
      result.roundsNormalized = true;
      continue;
    }
    result.options += (result.options.empty() ? "" : ",") + std::string(option);
  }

  while (!rest.empty()) {
    if (rest[0] != ' ') refuse(text, "after the shape stands '" + std::string(rest) + "'");
    rest.remove_prefix(1);
    std::string_view number = upTo(rest, " ");
    const std::string name(upTo(number, "="));
    double value;
    if (number.empty() || !read(number.substr(1), value)) refuse(text, "'" + name + "' has no value");
    if (std::ranges::find(result.numbers, name, &std::pair<std::string, double>::first) !=
        result.numbers.end())
      refuse(text, "'" + name + "' is given twice");
    result.numbers.emplace_back(name, value);
  }
  return result;
}

std::string NormText::problem(std::string_view entry, const Types& types, bool inChannelsFirst) const {
  const std::string size = std::to_string(features);
  const std::string shape = !segmented ? "*x" + size : inChannelsFirst ? "*x" + size + "x*" : "*x*x" + size;
  // A text is for any type of data and any entry. Where the option changes nothing it is no part of a
  // problem.
  const bool computesY = entry.find("backward") == entry.npos;
  const bool rounds = roundsNormalized && computesY && (types.data == "bf16" || types.data == "f16");
  std::string all = options;
  const auto add = [&](const std::string& option) { all += (all.empty() ? "" : ",") + option; };
  if (inChannelsFirst) add("layout=channels_first");
  if (types.mask) add("mask");
  if (!types.params.empty()) add("params=" + std::string(types.params));
  if (rounds) add("round=normalized");
  std::string result = name + ":" + std::string(entry) + "@" + std::string(types.data) + "[" + shape + "]";
  return all.empty() ? result : result + "{" + all + "}";
}

}  // namespace normc::hosts
