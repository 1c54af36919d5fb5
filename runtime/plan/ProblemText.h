// The canonical text of a problem, taken apart far enough to compare it with the
// kernels of a package. What the norm means, the runtime need not know.
#pragma once

#include <optional>

#include "runtime/package/Manifest.h"

namespace normc::runtime {

struct ProblemRequest {
  std::string text;  ///< as the caller wrote it
  ProblemParts parts;
  std::optional<int64_t> segments, rows;  ///< absent: any

  /// The canonical text of a kernel for it, which is for any number of segments and rows.
  std::string compiledAs() const;
  /// The number of rows of all segments, if the text gives it.
  std::optional<int64_t> totalRows() const;
};

/// Reads NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}; errors name the part that is wrong and what would be legal.
normc_status parseProblemText(std::string_view text, ProblemRequest& request);

}  // namespace normc::runtime
