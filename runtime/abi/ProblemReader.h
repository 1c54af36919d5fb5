// The one reader of a problem's text. It reads all that it can and lists what is wrong, with the place; the
// runtime makes one sentence of the first fault (ProblemText.h), the language a diagnostic of each
// (dsl/ProblemParser.cpp).
#pragma once

#include <vector>

#include "runtime/abi/ProblemText.h"

namespace normc {

/// A piece of the text and where it begins.
struct TextPart {
  size_t offset = 0;
  std::string_view text;
  /// Returns what is left without the first `count` characters.
  TextPart after(size_t count) const { return {offset + count, text.substr(count)}; }
};

// What the grammar expects where a size, or an option, is missing.
inline constexpr std::string_view kExpectedSize = "'*' or a number", kExpectedOption = "an option";

struct ProblemFault {
  enum Kind {
    Grammar,                  ///< `expected` does not follow here
    Word,                     ///< the part is no `expected`: entry, dtype or layout
    Twice,                    ///< the option stands there before
    MaskValue,                ///< `mask=1`
    NoValue,                  ///< `heads`
    NoNumber,                 ///< the part is no number
    TooLarge,                 ///< nor one that 64 bits hold
    Dimensions,               ///< the shape has fewer than two or more than three
    ChannelsFirstDimensions,  ///< or not three
  };
  Kind kind;
  TextPart part;  ///< of an option without its value, or with a wrong one: the value's
  std::string_view expected = {};
  std::string_view option = {};  ///< its name, where the fault is of one
};

struct ProblemReading {
  TextPart norm, entry, data;
  std::vector<TextPart> shape, options;  ///< "*" or digits; "mask", "heads=16"
  ProblemText problem;
  std::vector<ProblemFault>
      faults;  ///< a fault of the grammar is alone; the others are in the order of the text, the shape last
};

/// Reads a text, its options in any order. Any norm and any binding is taken; a number may be 0.
ProblemReading readProblem(std::string_view text);

}  // namespace normc
