#include "runtime/abi/ProblemText.h"

#include "runtime/abi/ProblemReader.h"

namespace normc {
namespace {

constexpr std::string_view kForm = "NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. layer_norm:forward@f32[*x1024]";

std::string quoted(const char* what, std::string_view text, const std::string& rule) {
  return std::string(what) + " '" + std::string(text) + "' " + rule;
}

/// Returns the names of all entries, "a, b or c".
std::string entryNames() {
  std::string names;
  for (const EntryInfo& each : kEntryTable)
    names.append(&each == kEntryTable                 ? ""
                 : &each + 1 == std::end(kEntryTable) ? " or "
                                                      : ", ")
        .append(each.name);
  return names;
}

/// Returns the first fault of a reading as one sentence; empty if there is none.
std::string faultOf(const ProblemReading& reading) {
  const std::string types = "must be " + namesOf(kFloatTypes);
  constexpr const char* kOptions =
      "must be mask, layout=..., params=..., round=..., stream=..., y=... or NAME=COUNT";
  constexpr const char* kSize = "must be a number or *";
  for (const ProblemFault& fault : reading.faults) {
    const std::string_view part = fault.part.text, option = fault.option;
    switch (fault.kind) {
      case ProblemFault::Grammar:
        if (fault.expected == kExpectedSize && part.find(']') != part.npos)
          return quoted("size", part.substr(0, part.find_first_of("x]")), kSize);
        if (fault.expected == kExpectedOption && part.find('}') != part.npos)
          return quoted("option", part.substr(0, part.find_first_of(",}")), kOptions);
        return "must have the form " + std::string(kForm);
      case ProblemFault::Word:
        if (option == "layout") return quoted("layout", part, "must be features_last or channels_first");
        if (option == "round") return quoted("round", part, "must be normalized");
        if (!option.empty()) return quoted(std::string(option).c_str(), part, types);
        return part.data() == reading.data.text.data() ? quoted("dtype", part, types)
                                                       : quoted("entry", part, "must be " + entryNames());
      case ProblemFault::Twice:
        return quoted("option", part, "stands twice; leave one of them out");
      case ProblemFault::NoNumber:
      case ProblemFault::TooLarge:
        if (option.empty()) return quoted("size", part, kSize);
        [[fallthrough]];
      case ProblemFault::MaskValue:
      case ProblemFault::NoValue:  // the part from the name to the end of the value
        return quoted("option", {option.data(), size_t(part.data() + part.size() - option.data())}, kOptions);
      case ProblemFault::Dimensions:
        return "shape [" + std::string(part) + "] must be [ROWSxFEATURES] or [SEGMENTSxROWSxFEATURES]";
      case ProblemFault::ChannelsFirstDimensions:
        return "channels_first needs three sizes, [SEGMENTSxFEATURESxROWS]";
    }
  }
  for (const auto& [name, count] : reading.problem.bindings)
    if (name.empty() || count < 1) return quoted("option", name + "=" + std::to_string(count), kOptions);
  return reading.problem.features == 0 ? "there must be at least one feature" : "";
}

}  // namespace

std::string_view name(Layout layout) {
  return layout == Layout::FeaturesLast ? "features_last" : "channels_first";
}

std::optional<Entry> entryNamed(std::string_view name) {
  for (const Entry each : kEntries)
    if (normc::name(each) == name) return each;
  return std::nullopt;
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
  if (roundsNormalized) add("round=normalized");
  if (stream && *stream != data) add("stream=" + std::string(name(*stream)));
  if (output && *output != data) add("y=" + std::string(name(*output)));
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
  ProblemReading reading = readProblem(text);
  const std::string fault = faultOf(reading);
  if (fault.empty()) return std::move(reading.problem);
  if (why) *why = "problem '" + std::string(text) + "'" + (fault.starts_with("must") ? " " : ": ") + fault;
  return std::nullopt;
}

}  // namespace normc
