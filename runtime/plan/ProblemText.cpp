#include "runtime/plan/ProblemText.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "runtime/core/Error.h"

namespace normc::runtime {
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

bool isOneOf(std::string_view text, std::initializer_list<std::string_view> legal) {
  return std::find(legal.begin(), legal.end(), text) != legal.end();
}

bool floatNamed(std::string_view text, DType& type) {
  const std::optional<DType> found = typeNamed(text);
  if (!found || !isFloat(*found)) return false;
  type = *found;
  return true;
}

/// `seen`: the names of the options before it.
normc_status option(std::string_view text, ProblemRequest& request, std::vector<std::string_view>& seen) {
  std::string_view value = text;
  const std::string_view key = cut(value, '=');
  const bool hasValue = key.size() < text.size();
  ProblemParts& parts = request.parts;
  if (std::find(seen.begin(), seen.end(), key) != seen.end())
    return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: option `", key,
                "` stands twice; leave one of them out");
  seen.push_back(key);
  if (key == "mask" && !hasValue) {
    parts.mask = true;
  } else if (key == "layout" && hasValue) {
    if (!isOneOf(value, {"features_last", "channels_first"}))
      return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: layout `", value,
                  "` must be features_last or channels_first");
    parts.layout = value;
  } else if (key == "params" && hasValue) {
    if (!floatNamed(value, parts.params))
      return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: params `", value,
                  "` must be f32, f64, bf16 or f16");
  } else {
    int64_t bound;
    if (!hasValue || key.empty() || key == "mask" || !number(value, bound) || bound < 1)
      return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: option `", text,
                  "` must be mask, layout=..., params=... or NAME=COUNT");
    parts.bindings[std::string(key)] = bound;
  }
  return NORMC_OK;
}

/// What stands between the braces: one option, or several with commas between them.
normc_status options(std::string_view text, ProblemRequest& request) {
  std::vector<std::string_view> seen;
  for (bool more = true; more;) {
    more = text.find(',') != text.npos;
    NORMC_TRY(option(cut(text, ','), request, seen));
  }
  return NORMC_OK;
}

normc_status dimension(std::string_view text, const ProblemRequest& request, std::optional<int64_t>& size) {
  int64_t value;
  if (text == "*") return NORMC_OK;
  if (!number(text, value))
    return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: size `", text,
                "` must be a number or *");
  size = value;
  return NORMC_OK;
}

normc_status shape(std::string_view text, ProblemRequest& request) {
  ProblemParts& parts = request.parts;
  const auto crosses = std::count(text.begin(), text.end(), 'x');
  if (crosses != 1 && crosses != 2)
    return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: shape [", text,
                "] must be [ROWSxFEATURES] or [SEGMENTSxROWSxFEATURES]");
  parts.segmented = crosses == 2;
  const bool channelsFirst = parts.channelsFirst();
  if (channelsFirst && !parts.segmented)
    return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text,
                "`: channels_first needs three sizes, [SEGMENTSxFEATURESxROWS]");
  if (parts.segmented) NORMC_TRY(dimension(cut(text, 'x'), request, request.segments));
  const std::string_view first = cut(text, 'x'), second = text;
  NORMC_TRY(dimension(channelsFirst ? second : first, request, request.rows));
  NORMC_TRY(dimension(channelsFirst ? first : second, request, parts.features));
  if (parts.features == 0)
    return fail(NORMC_INVALID_ARGUMENT, "problem `", request.text, "`: there must be at least one feature");
  return NORMC_OK;
}

DType usualParams(DType data) { return data == DType::F64 ? DType::F64 : DType::F32; }

}  // namespace

std::string ProblemRequest::compiledAs() const {
  const std::string features = parts.features ? std::to_string(*parts.features) : "*";
  std::string options;
  const auto add = [&](const std::string& option) { options += (options.empty() ? "" : ",") + option; };
  for (const auto& [name, count] : parts.bindings) add(name + "=" + std::to_string(count));
  if (parts.channelsFirst()) add("layout=" + parts.layout);
  if (parts.mask) add("mask");
  if (parts.params != usualParams(parts.data)) add("params=" + std::string(name(parts.params)));
  return parts.norm + ":" + parts.entry + "@" + std::string(name(parts.data)) + "[*x" + (parts.segmented && !parts.channelsFirst() ? "*x" : "") +
         features + (parts.channelsFirst() ? "x*]" : "]") + (options.empty() ? "" : "{" + options + "}");
}

std::optional<int64_t> ProblemRequest::totalRows() const {
  if (!rows || (parts.segmented && !segments)) return std::nullopt;
  return parts.segmented ? multiply(*segments, *rows) : *rows;
}

normc_status parseProblemText(std::string_view text, ProblemRequest& request) {
  request.text = text;
  const size_t colon = text.find(':'), at = text.find('@'), open = text.find('['), close = text.find(']');
  const std::string_view tail = close < text.size() ? text.substr(close + 1) : std::string_view();
  const bool braces = tail.size() >= 2 && tail.front() == '{' && tail.back() == '}';
  if (colon == 0 || colon > at || at > open || open > close || close == text.npos ||
      (!tail.empty() && !braces))
    return fail(NORMC_INVALID_ARGUMENT, "problem `", text, "` must have the form ", kForm);

  ProblemParts& parts = request.parts;
  parts.norm = text.substr(0, colon);
  parts.entry = text.substr(colon + 1, at - colon - 1);
  const std::string_view data = text.substr(at + 1, open - at - 1);
  parts.layout = "features_last";
  if (!isOneOf(parts.entry, {"forward", "backward", "infer"}))
    return fail(NORMC_INVALID_ARGUMENT, "problem `", text, "`: entry `", parts.entry,
                "` must be forward, backward or infer");
  if (!floatNamed(data, parts.data))
    return fail(NORMC_INVALID_ARGUMENT, "problem `", text, "`: dtype `", data,
                "` must be f32, f64, bf16 or f16");
  parts.params = usualParams(parts.data);
  if (braces) NORMC_TRY(options(tail.substr(1, tail.size() - 2), request));
  return shape(text.substr(open + 1, close - open - 1), request);
}

}  // namespace normc::runtime
