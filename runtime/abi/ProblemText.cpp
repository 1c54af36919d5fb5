#include "runtime/abi/ProblemText.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace normc {
namespace {

constexpr std::string_view kForm = "NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. layer_norm:forward@f32[*x1024]";

/// Cuts `text` at the first `separator`; what is before it, or everything.
std::string_view cut(std::string_view& text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return before;
}

bool number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

template <typename Enum>
bool named(std::string_view text, std::initializer_list<Enum> legal, Enum& out) {
  for (const Enum each : legal)
    if (name(each) == text) return out = each, true;
  return false;
}

/// Each function returns true if its part is right, and keeps what it says.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool read() {
    const size_t colon = text_.find(':'), at = text_.find('@'), open = text_.find('['),
                 close = text_.find(']');
    const std::string_view tail = close < text_.size() ? text_.substr(close + 1) : std::string_view();
    const bool braces = tail.size() >= 2 && tail.front() == '{' && tail.back() == '}';
    if (colon == 0 || colon > at || at > open || open > close || close == text_.npos ||
        (!tail.empty() && !braces)) {
      why = "problem `" + std::string(text_) + "` must have the form " + std::string(kForm);
      return false;
    }
    parts.norm = text_.substr(0, colon);
    const std::string_view entry = text_.substr(colon + 1, at - colon - 1),
                           data = text_.substr(at + 1, open - at - 1);
    if (!named(entry, kEntries, parts.entry))
      return wrong("entry", entry, "must be forward, backward or infer");
    if (!named(data, kFloatTypes, parts.data)) return wrong("dtype", data, "must be f32, f64, bf16 or f16");
    parts.params = statisticsOf(parts.data);
    return (!braces || options(tail.substr(1, tail.size() - 2))) &&
           shape(text_.substr(open + 1, close - open - 1));
  }

  ProblemText parts;
  std::string why;

 private:
  bool fails(const std::string& message) {
    why = "problem `" + std::string(text_) + "`: " + message;
    return false;
  }
  bool wrong(const char* what, std::string_view text, const char* rule) {
    return fails(std::string(what) + " `" + std::string(text) + "` " + rule);
  }

  /// What stands between the braces: one option, or several with commas between them.
  bool options(std::string_view text) {
    for (bool more = true; more;) {
      more = text.find(',') != text.npos;
      if (!option(cut(text, ','))) return false;
    }
    return true;
  }

  bool option(std::string_view text) {
    std::string_view value = text;
    const std::string_view key = cut(value, '=');
    const bool hasValue = key.size() < text.size();
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end())
      return wrong("option", key, "stands twice; leave one of them out");
    seen_.push_back(key);
    if (key == "mask" && !hasValue) {
      parts.mask = true;
    } else if (key == "layout" && hasValue) {
      if (!named(value, kLayouts, parts.layout))
        return wrong("layout", value, "must be features_last or channels_first");
    } else if (key == "params" && hasValue) {
      if (!named(value, kFloatTypes, parts.params))
        return wrong("params", value, "must be f32, f64, bf16 or f16");
    } else {
      int64_t bound;
      if (!hasValue || key.empty() || key == "mask" || !number(value, bound) || bound < 1)
        return wrong("option", text, "must be mask, layout=..., params=... or NAME=COUNT");
      parts.bindings[std::string(key)] = bound;
    }
    return true;
  }

  bool shape(std::string_view text) {
    const auto crosses = std::count(text.begin(), text.end(), 'x');
    if (crosses != 1 && crosses != 2)
      return fails("shape [" + std::string(text) + "] must be [ROWSxFEATURES] or [SEGMENTSxROWSxFEATURES]");
    parts.segmented = crosses == 2;
    const bool channelsFirst = parts.channelsFirst();
    if (channelsFirst && !parts.segmented)
      return fails("channels_first needs three sizes, [SEGMENTSxFEATURESxROWS]");
    if (parts.segmented && !dimension(cut(text, 'x'), parts.segments)) return false;
    const std::string_view first = cut(text, 'x'), second = text;
    if (!dimension(channelsFirst ? second : first, parts.rows)) return false;
    if (!dimension(channelsFirst ? first : second, parts.features)) return false;
    return parts.features != 0 || fails("there must be at least one feature");
  }

  bool dimension(std::string_view text, std::optional<int64_t>& size) {
    int64_t value;
    if (text == "*") return true;
    if (!number(text, value)) return wrong("size", text, "must be a number or *");
    size = value;
    return true;
  }

  std::string_view text_;
  std::vector<std::string_view> seen_;  // names of options
};

}  // namespace

std::string_view name(Entry entry) {
  switch (entry) {
    case Entry::Forward:
      return "forward";
    case Entry::Backward:
      return "backward";
    case Entry::Infer:
      return "infer";
  }
  return "";
}

std::string_view name(Layout layout) {
  return layout == Layout::FeaturesLast ? "features_last" : "channels_first";
}

std::optional<Entry> entryNamed(std::string_view name) {
  Entry entry;
  return named(name, kEntries, entry) ? std::optional(entry) : std::nullopt;
}

std::string ProblemText::head() const {
  return norm + ":" + std::string(name(entry)) + "@" + std::string(name(data));
}

std::string ProblemText::text() const {
  const auto size = [](std::optional<int64_t> count) { return count ? std::to_string(*count) : "*"; };
  const std::string shape =
      channelsFirst() ? size(features) + "x" + size(rows) : size(rows) + "x" + size(features);
  std::string options;
  const auto add = [&options](const std::string& option) {
    options += (options.empty() ? "" : ",") + option;
  };
  for (const auto& [binding, count] : bindings) add(binding + "=" + std::to_string(count));
  if (channelsFirst()) add("layout=" + std::string(name(layout)));
  if (mask) add("mask");
  if (params != statisticsOf(data)) add("params=" + std::string(name(params)));
  return head() + "[" + (segmented || channelsFirst() ? size(segments) + "x" : "") + shape + "]" +
         (options.empty() ? "" : "{" + options + "}");
}

ProblemText ProblemText::withSizes(int64_t segments, int64_t rows) const {
  ProblemText result = *this;
  if (segmented) result.segments = segments;
  result.rows = rows;
  return result;
}

ProblemText ProblemText::withoutSizes() const {
  ProblemText result = *this;
  result.segments = result.rows = std::nullopt;
  return result;
}

std::optional<ProblemText> parseProblemText(std::string_view text, std::string* why) {
  Reader reader(text);
  if (reader.read()) return std::move(reader.parts);
  if (why) *why = std::move(reader.why);
  return std::nullopt;
}

}  // namespace normc
