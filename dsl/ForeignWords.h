// Words of other frameworks and notations, and what to write here instead: tables of hints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normc {

/// A word may have several rows, with another hint in each.
struct ForeignWord {
  std::string_view word;  ///< elsewhere, in any case
  std::string_view
      beside;  ///< the hint is given where this word is legal; most often it is what `word` means
  std::string_view hint;
};

/// Returns the words of norms and problems, in the order of foreignHint.
std::span<const ForeignWord> foreignWords();

/// Returns the hint of the first row of a word that stands where `known` are legal; empty: it has none there,
/// or is one of them.
std::string_view foreignHint(std::span<const ForeignWord>, std::string_view word,
                             const std::vector<std::string>& known);

// Hints for forms as well as for words.
inline constexpr std::string_view kOffsetHint = "write 'affine scale(offset = 1)' for a factor of 1 + w";
inline constexpr std::string_view kModulationHint =
    "write 'modulate scale, shift' for a factor 1 + scale and a shift of each segment, "
    "with 'scale(offset = 0)' for a factor that is the scale alone";

}  // namespace normc
