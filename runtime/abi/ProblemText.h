// A problem's text in parts: the identity of a kernel, as far as it is known without the norm's definition.
//
//   NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}
//   layer_norm:forward@f32[*x1024]          any number of rows, 1024 features
//   layer_norm:forward@f32[64x1024]         64 rows: a request of a host to a package
//   batch_norm:infer@f16[8x64x*]{layout=channels_first}   segments x features x rows
//   power_norm_released:forward@f32[*x*]{heads=16,mask,params=bf16}
//   rms_norm:forward@f32[*x4096]{y=bf16}    x in f32, y in bf16
//   rms_norm_residual:forward@bf16[*x4096]{stream=f32}    a residual stream in f32
//   rms_norm:forward@bf16[*x4096]{round=normalized}      as the code of Llama rounds
//
// The language (dsl/Problem.h) binds it to a norm and checks both together.
#pragma once

#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "runtime/abi/Types.h"

namespace normc {

enum class Entry : uint8_t {
  Forward,
  Backward,
  Infer,
  InferBackward,  ///< the gradient of an infer whose statistics come from the state
  // Parts of a forward and a backward whose batch is divided between ranks (docs/many-ranks.md).
  ForwardReduce,
  ForwardApply,
  BackwardReduce,
  BackwardApply,
  Commit,  ///< the state after a step, for norms whose outputs wait for no statistic of the batch
};
inline constexpr auto kEntries = {Entry::Forward,        Entry::Backward,      Entry::Infer,
                                  Entry::InferBackward,  Entry::ForwardReduce, Entry::ForwardApply,
                                  Entry::BackwardReduce, Entry::BackwardApply, Entry::Commit};

/// What an entry does with the saved statistics.
enum class SavedUse : uint8_t { None, Written, Read };

/// What an entry does with partials: the sums of the rows of one rank.
enum class PartialUse : uint8_t {
  None,
  Written,  ///< one, for the caller
  Added,    ///< several of the caller, into the sums of the batch
};

/// The properties of an entry. Code asks for a property where it does not mean one entry alone, so that a
/// further entry is one row here and one name in `kEntries`.
struct EntryInfo {
  Entry entry;
  std::string_view name;
  bool backward;     ///< from dy to gradients; else from x to y
  SavedUse saved;    ///< what it does with the saved statistics of the norm
  bool writesState;  ///< it takes state_out, if the norm has a state
  bool needsState;   ///< it exists only for norms with a state
  PartialUse partials = PartialUse::None;
};

/// In the order of Entry.
inline constexpr EntryInfo kEntryTable[] = {
    {Entry::Forward, "forward", false, SavedUse::Written, true, false},
    {Entry::Backward, "backward", true, SavedUse::Read, true, false},
    {Entry::Infer, "infer", false, SavedUse::None, false, false},
    {Entry::InferBackward, "infer_backward", true, SavedUse::None, false, true},
    {Entry::ForwardReduce, "forward_reduce", false, SavedUse::Written, false, false, PartialUse::Written},
    {Entry::ForwardApply, "forward_apply", false, SavedUse::Written, true, false, PartialUse::Added},
    {Entry::BackwardReduce, "backward_reduce", true, SavedUse::Read, false, false, PartialUse::Written},
    {Entry::BackwardApply, "backward_apply", true, SavedUse::Read, true, false, PartialUse::Added},
    {Entry::Commit, "commit", false, SavedUse::None, true, false, PartialUse::Added},
};
static_assert([] {
  size_t at = 0;
  for (const Entry each : kEntries)
    if (kEntryTable[at].entry != each || size_t(each) != at++) return false;
  return at == std::size(kEntryTable);
}());

constexpr const EntryInfo& infoOf(Entry entry) { return kEntryTable[size_t(entry)]; }
constexpr std::string_view name(Entry entry) { return infoOf(entry).name; }
constexpr bool isBackward(Entry entry) { return infoOf(entry).backward; }
constexpr bool writesState(Entry entry) { return infoOf(entry).writesState; }
constexpr bool usesSaved(Entry entry) { return infoOf(entry).saved != SavedUse::None; }
constexpr bool writesSaved(Entry entry) { return infoOf(entry).saved == SavedUse::Written; }
constexpr bool readsSaved(Entry entry) { return infoOf(entry).saved == SavedUse::Read; }
constexpr bool writesPartial(Entry entry) { return infoOf(entry).partials == PartialUse::Written; }
constexpr bool addsPartials(Entry entry) { return infoOf(entry).partials == PartialUse::Added; }
/// True for the parts of a forward and a backward whose batch is divided.
constexpr bool isOverRanks(Entry entry) { return infoOf(entry).partials != PartialUse::None; }

/// Which axis is contiguous in memory.
enum class Layout : uint8_t {
  FeaturesLast,   ///< segments x rows x features, any row and segment stride
  ChannelsFirst,  ///< segments x features x rows (N x C x S)
};
inline constexpr auto kLayouts = {Layout::FeaturesLast, Layout::ChannelsFirst};

std::string_view name(Layout);
/// Returns the entry of a name; empty if there is none.
std::optional<Entry> entryNamed(std::string_view name);

/// The options of every problem, whatever its norm: no binding has such a name.
inline constexpr std::string_view kProblemOptions[] = {"layout", "mask", "params", "round", "stream", "y"};
constexpr bool isProblemOption(std::string_view name) {
  for (const std::string_view each : kProblemOptions)
    if (each == name) return true;
  return false;
}

struct ProblemText {
  std::string norm;
  Entry entry = Entry::Forward;
  DType data = DType::F32;      ///< floating, as `params`
  DType params = DType::F32;    ///< not written if it equals statisticsOf(data)
  std::optional<DType> output;  ///< floating, of y and dy; empty: that of the data
  std::optional<DType> stream;  ///< floating, of a residual in front of the norm; empty: that of the data
  Layout layout = Layout::FeaturesLast;
  bool segmented = false;  ///< the text has three dimensions; always true for channels-first
  bool mask = false;
  bool roundsNormalized = false;                    ///< forward and infer round x0 to the type of the data
  std::optional<int64_t> segments, rows, features;  ///< empty: any, written as *
  std::map<std::string, int64_t> bindings;

  bool channelsFirst() const { return layout == Layout::ChannelsFirst; }
  bool isBackward() const { return normc::isBackward(entry); }
  bool writesState() const { return normc::writesState(entry); }
  bool usesSaved() const { return normc::usesSaved(entry); }
  bool writesSaved() const { return normc::writesSaved(entry); }
  bool readsSaved() const { return normc::readsSaved(entry); }
  bool writesPartial() const { return normc::writesPartial(entry); }
  bool addsPartials() const { return normc::addsPartials(entry); }
  bool isOverRanks() const { return normc::isOverRanks(entry); }

  /// Returns the types of tensors, as far as the norm does not decide them.
  ElementTypes types() const {
    return {.data = data, .params = params, .output = output.value_or(data), .stream = stream.value_or(data)};
  }

  /// Returns the canonical text. The order of options: bindings by name, layout, mask, params, round, stream,
  /// y.
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
