// Problems of all built-in norms, for suites that judge them on one kind of device.
#pragma once

#include <string>
#include <vector>

#include "dsl/Library.h"
#include "dsl/Problem.h"

namespace normc {

/// The cases that a suite runs for all built-in norms. Problems that the language refuses are left out.
struct Demand {
  std::string dtype = "f32";
  int64_t features = 768;  ///< or the next number of whole groups, pairs and blocks of a norm
  bool mask = false;
  bool channelsFirst = false;
  bool segmented = false;
};

/// Every norm and entry that the language allows; bindings are 4.
inline std::vector<std::string> problemsOf(const Demand& demand) {
  std::vector<std::string> problems;
  for (const BuiltinNorm& norm : builtinNorms()) {
    const bool perSegment = norm.spec->needsSegments();
    Problem any{.spec = norm.spec};
    for (const std::string& binding : bindingNames(*norm.spec)) any.bindings[binding] = 4;
    const int64_t multiple = any.featuresMultiple();
    std::string d = std::to_string((demand.features + multiple - 1) / multiple * multiple), options,
                shape = "*x" + d;
    if (demand.channelsFirst)
      shape = "*x" + d + "x*";
    else if (demand.segmented || perSegment)
      shape = "*x*x" + d;
    auto add = [&](const std::string& option) { options += (options.empty() ? "{" : ",") + option; };
    for (const auto& [binding, value] : any.bindings) add(binding + "=" + std::to_string(value));
    if (demand.channelsFirst) add("layout=channels_first");
    if (demand.mask) add("mask");
    if (!options.empty()) options += "}";
    for (const Entry entry : kEntries) {
      std::string text =
          norm.name + ":" + std::string(name(entry)) + "@" + demand.dtype + "[" + shape + "]" + options;
      if (parseProblem(text, findNorm)) problems.push_back(text);
    }
  }
  return problems;
}

/// The cases that every generator has to pass in f32: `suite(name, demand)` for each shape. Samples take what
/// fits several shapes from the first.
#define NORMC_SHAPES(suite)                                                  \
  suite(Odd, {.features = 100});                                             \
  suite(Wide, {.features = 768});                                            \
  suite(Masked, {.features = 40, .mask = true});                             \
  suite(Segmented, {.features = 72, .segmented = true});                     \
  suite(SegmentedMasked, {.features = 36, .mask = true, .segmented = true}); \
  suite(ChannelsFirst, {.features = 24, .channelsFirst = true});             \
  suite(ChannelsFirstMasked, {.features = 12, .mask = true, .channelsFirst = true})
/// And a CPU's in its other types.
#define NORMC_CPU_TYPES(suite)                     \
  suite(F64, {.dtype = "f64", .features = 52});    \
  suite(BF16, {.dtype = "bf16", .features = 140}); \
  suite(F16, {.dtype = "f16", .features = 140})

/// A test's name: letters, digits and underscores.
inline std::string testName(std::string text) {
  for (char& c : text)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

}  // namespace normc
