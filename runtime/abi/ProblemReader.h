// The only reader of a problem's text. It reads as much as it can and lists all faults with their places. The
// runtime makes one sentence of the first fault (ProblemText.h); the language makes a diagnostic of each
// (dsl/ProblemParser.cpp).
#pragma once

#include <vector>

#include "runtime/abi/ProblemText.h"

namespace normc {

/// A part of the text and its offset.
struct TextPart {
  size_t offset = 0;
  std::string_view text;
  /// Returns the part without its first `count` characters.
  TextPart after(size_t count) const { return {offset + count, text.substr(count)}; }
};

// The expected text if a size or an option is missing.
inline constexpr std::string_view kExpectedSize = "'*' or a number", kExpectedOption = "an option";

struct ProblemFault {
  enum Kind {
    Grammar,                  ///< `expected` is missing here
    Word,                     ///< the part is not an `expected`: entry, dtype or layout
    Twice,                    ///< the option is repeated
    MaskValue,                ///< `mask=1`
    NoValue,                  ///< `heads`
    NoNumber,                 ///< the part is not a number
    TooLarge,                 ///< the number does not fit into 64 bits
    Dimensions,               ///< the shape has fewer than two or more than three
    ChannelsFirstDimensions,  ///< channels-first, and the shape has not three
  };
  Kind kind;
  TextPart part;  ///< of a fault of an option's value: the value
  std::string_view expected = {};
  std::string_view option = {};  ///< name of the faulty option
};

struct ProblemReading {
  TextPart norm, entry, data;
  std::vector<TextPart> shape, options;  ///< "*" or digits; "mask", "heads=16"
  ProblemText problem;
  std::vector<ProblemFault> faults;  ///< a fault of the grammar is the only one; others are in the order of
                                     ///< the text, the shape last
};

/// Reads a text with options in any order. Accepts any norm and any binding; a number may be 0.
ProblemReading readProblem(std::string_view text);

}  // namespace normc
