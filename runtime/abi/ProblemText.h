// A problem's text in parts: the identity of a kernel, as far as it is known without the norm's definition.
//
//   NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}
//   layer_norm:forward@f32[*x1024]          any number of rows, 1024 features
//   layer_norm:forward@f32[64x1024]         64 rows: a request of a host to a package
//   batch_norm:infer@f16[8x64x*]{layout=channels_first}   segments x features x rows
//   power_norm_released:forward@f32[*x*]{heads=16,mask,params=bf16}
//
// The language (dsl/Problem.h) binds it to a norm and checks both together.
#pragma once

#include <map>
#include <string>

#include "runtime/abi/Types.h"

namespace normc {

enum class Entry : uint8_t { Forward, Backward, Infer };
inline constexpr auto kEntries = {Entry::Forward, Entry::Backward, Entry::Infer};

/// Which axis is contiguous in memory.
enum class Layout : uint8_t {
  FeaturesLast,   ///< segments x rows x features, any row and segment stride
  ChannelsFirst,  ///< segments x features x rows (N x C x S)
};
inline constexpr auto kLayouts = {Layout::FeaturesLast, Layout::ChannelsFirst};

std::string_view name(Entry);
std::string_view name(Layout);
/// Returns the entry of a name; empty if there is none.
std::optional<Entry> entryNamed(std::string_view name);

struct ProblemText {
  std::string norm;
  Entry entry = Entry::Forward;
  DType data = DType::F32;    ///< floating, as `params`
  DType params = DType::F32;  ///< not written if it equals statisticsOf(data)
  Layout layout = Layout::FeaturesLast;
  bool segmented = false;  ///< the text has three dimensions; always true for channels-first
  bool mask = false;
  std::optional<int64_t> segments, rows, features;  ///< empty: any, written as *
  std::map<std::string, int64_t> bindings;

  bool channelsFirst() const { return layout == Layout::ChannelsFirst; }
  bool isBackward() const { return entry == Entry::Backward; }
  bool isInfer() const { return entry == Entry::Infer; }

  /// Returns the canonical text. The order of options: bindings by name, layout, mask, params.
  std::string text() const;
  /// Returns the part before the shape, "layer_norm:forward@f32".
  std::string head() const;
  /// Returns the problem of a call. A problem of two dimensions ignores `segments`.
  ProblemText withSizes(int64_t segments, int64_t rows) const;
  /// Returns the problem of a kernel: any number of segments and rows.
  ProblemText withoutSizes() const;
  bool operator==(const ProblemText&) const = default;
};

/// Reads a text with options in any order. Returns nothing if it is not a problem; `why` is then the faulty
/// part and the legal values. Accepts any norm and any binding.
std::optional<ProblemText> parseProblemText(std::string_view text, std::string* why = nullptr);

}  // namespace normc
