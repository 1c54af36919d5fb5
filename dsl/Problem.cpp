#include "dsl/Problem.h"

#include <cassert>

namespace normc {

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

std::string Problem::text() const {
  const std::string count = features ? std::to_string(*features) : "*";
  const bool channelsFirst = layout == Layout::ChannelsFirst;
  std::string out = spec->name + ":" + std::string(name(entry)) + "@" + std::string(name(data)) + "[";
  out += channelsFirst ? "*x" + count + "x*" : (segmented ? "*x*x" : "*x") + count;
  out += "]";

  std::string options;
  const auto add = [&options](const std::string& option) {
    options += (options.empty() ? "" : ",") + option;
  };
  for (const auto& [binding, value] : bindings) add(binding + "=" + std::to_string(value));
  if (channelsFirst) add("layout=" + std::string(name(layout)));
  if (mask) add("mask");
  if (params != statistics()) add("params=" + std::string(name(params)));
  return options.empty() ? out : out + "{" + options + "}";
}

int64_t Problem::groups(const Groups& groups) const {
  if (groups.binding.empty()) return groups.count;
  const auto bound = bindings.find(groups.binding);
  assert(bound != bindings.end() && "only for a checked Problem");
  return bound->second;
}

}  // namespace normc
