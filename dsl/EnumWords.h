// The words of the language, one table for each enumeration: what the parser accepts and the printer writes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Spec.h"

namespace normc {

template <typename Enum>
struct Word {
  std::string_view text;
  Enum value;
};

inline constexpr Word<Reduce> kReduceWords[] = {
    {"rows", Reduce::Rows},
    {"features", Reduce::Features},
    {"segment", Reduce::Segment},
    {"segment_features", Reduce::SegmentFeatures},
};
inline constexpr Word<Center> kCenterWords[] = {
    {"none", Center::None}, {"current", Center::Current}, {"running", Center::Running}};
inline constexpr Word<Moment> kMomentWords[] = {
    {"raw", Moment::Raw}, {"central", Moment::Central}, {"sum", Moment::Sum}};
inline constexpr Word<DivideBy> kDivideByWords[] = {
    {"current", DivideBy::Current}, {"running", DivideBy::Running}, {"window", DivideBy::Window}};
inline constexpr Word<WindowMean> kWindowMeanWords[] = {{"arithmetic", WindowMean::Arithmetic},
                                                        {"geometric", WindowMean::Geometric}};
inline constexpr Word<Backward> kBackwardWords[] = {
    {"exact", Backward::Exact}, {"approximate", Backward::Approximate}, {"frozen", Backward::Frozen}};
inline constexpr Word<Nu> kNuWords[] = {
    {"feedback", Nu::Feedback}, {"average", Nu::Average}, {"window", Nu::Window}};
inline constexpr Word<BackwardScale> kBackwardScaleWords[] = {{"forward", BackwardScale::Forward},
                                                              {"batch", BackwardScale::Batch}};
inline constexpr Word<EpsilonMode> kEpsilonModeWords[] = {
    {"add", EpsilonMode::Add}, {"max", EpsilonMode::Max}, {"outside", EpsilonMode::Outside}};
inline constexpr Word<Accumulate> kAccumulateWords[] = {
    {"decay", Accumulate::Decay},
    {"cumulative", Accumulate::Cumulative},
    {"cumulative_then_decay", Accumulate::CumulativeThenDecay},
};
inline constexpr Word<Renorm> kRenormWords[] = {
    {"none", Renorm::None}, {"std", Renorm::Std}, {"moment", Renorm::Moment}};
inline constexpr Word<Activation> kActivationWords[] = {
    {"none", Activation::None}, {"relu", Activation::Relu},          {"silu", Activation::Silu},
    {"gelu", Activation::Gelu}, {"gelu_tanh", Activation::GeluTanh}, {"sigmoid", Activation::Sigmoid},
    {"tanh", Activation::Tanh},
};
/// Where the residual is added; what is absent is `none`.
inline constexpr Word<std::optional<Side>> kResidualWords[] = {
    {"none", std::nullopt}, {"before", Side::Before}, {"after", Side::After}};
/// The functions of a gate; what is absent is `none`.
inline constexpr Word<std::optional<Activation>> kGateWords[] = {
    {"none", std::nullopt},     {"silu", Activation::Silu}, {"sigmoid", Activation::Sigmoid},
    {"tanh", Activation::Tanh}, {"gelu", Activation::Gelu}, {"identity", Activation::None},
};
/// `at` of a gate.
inline constexpr Word<Side> kAtWords[] = {{"after", Side::After}, {"before", Side::Before}};
inline constexpr Word<Per> kPerWords[] = {
    {"row", Per::Row}, {"segment", Per::Segment}, {"feature", Per::Feature}};
inline constexpr Word<Per> kModulatePerWords[] = {{"segment", Per::Segment}, {"row", Per::Row}};
/// The pairs of `rope`; what is absent is `none`.
inline constexpr Word<std::optional<Pairs>> kRopeWords[] = {
    {"none", std::nullopt}, {"half", Pairs::Half}, {"interleaved", Pairs::Interleaved}};
/// The types of codes; what is absent is `none`.
inline constexpr Word<std::optional<Codes>> kQuantizeWords[] = {
    {"none", std::nullopt}, {"int8", Codes::Int8}, {"e4m3", Codes::E4M3}};
inline constexpr Word<QuantizePer> kQuantizePerWords[] = {
    {"row", QuantizePer::Row}, {"tensor", QuantizePer::Tensor}, {"block", QuantizePer::Block}};
/// `scale` of `quantize`: true is a power of two.
inline constexpr Word<bool> kQuantizeScaleWords[] = {{"float", false}, {"power_of_two", true}};
inline constexpr Word<Padding> kPaddingWords[] = {{"exclude", Padding::Exclude},
                                                  {"leave_out_of_statistics", Padding::LeaveOutOfStatistics}};
inline constexpr Word<bool> kYesNoWords[] = {{"yes", true}, {"no", false}};

template <typename Enum, size_t N>
std::string wordOf(const Word<Enum> (&words)[N], Enum value) {
  for (const Word<Enum>& word : words) {
    if (word.value == value) return std::string(word.text);
  }
  return "";
}

template <typename Enum, size_t N>
std::optional<Enum> valueOf(const Word<Enum> (&words)[N], std::string_view text) {
  for (const Word<Enum>& word : words) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

template <typename Enum, size_t N>
std::vector<std::string> allOf(const Word<Enum> (&words)[N]) {
  std::vector<std::string> out;
  for (const Word<Enum>& word : words) out.emplace_back(word.text);
  return out;
}

}  // namespace normc
