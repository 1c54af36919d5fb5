// A problem's text taken apart: what identifies a kernel, as far as it can be known without the norm's
// definition.
//
//   NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}
//   layer_norm:forward@f32[*x1024]          any number of rows, 1024 features
//   layer_norm:forward@f32[64x1024]         64 rows: what a host may ask a package for
//   batch_norm:infer@f16[8x64x*]{layout=channels_first}   segments x features x rows
//   power_norm_released:forward@f32[*x*]{heads=16,mask,params=bf16}
//
// The language (dsl/Problem.h) binds it to a norm and checks the two together.
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
/// Returns the entry of a name; absent if there is none.
std::optional<Entry> entryNamed(std::string_view name);

struct ProblemText {
  std::string norm;
  Entry entry = Entry::Forward;
  DType data = DType::F32;    ///< floating, as `params`
  DType params = DType::F32;  ///< not written where it is statisticsOf(data)
  Layout layout = Layout::FeaturesLast;
  bool segmented = false;  ///< three dimensions are written; always so for channels-first
  bool mask = false;
  std::optional<int64_t> segments, rows, features;  ///< absent: any, written as *
  std::map<std::string, int64_t> bindings;

  bool channelsFirst() const { return layout == Layout::ChannelsFirst; }
  bool isBackward() const { return entry == Entry::Backward; }
  bool isInfer() const { return entry == Entry::Infer; }

  /// Returns the canonical text. Options stand in the order: bindings by name, layout, mask, params.
  std::string text() const;
  /// Returns what stands before the shape, "layer_norm:forward@f32".
  std::string head() const;
  /// Returns the problem of a call. A problem of two dimensions has no number of segments; `segments` is
  /// ignored then.
  ProblemText withSizes(int64_t segments, int64_t rows) const;
  /// Returns the problem that a kernel is compiled for: any number of segments and rows.
  ProblemText withoutSizes() const;
  bool operator==(const ProblemText&) const = default;
};

/// Reads a text, its options in any order. Returns nothing if it is no problem; `why` then says which part is
/// wrong and what would be legal. Any norm and any binding is taken.
std::optional<ProblemText> parseProblemText(std::string_view text, std::string* why = nullptr);

}  // namespace normc
