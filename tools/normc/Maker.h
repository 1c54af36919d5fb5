// Compiles candidates: one package on disk for each, all of one problem.
#pragma once

#include <string>
#include <vector>

#include "autotune/search/Landscape.h"
#include "autotune/tune/LiveLab.h"
#include "codegen/Package.h"
#include "tools/normc/Interrupt.h"

namespace normc::cli {

class Maker {
 public:
  /// `folder`: where packages go. All arguments outlive it.
  Maker(const tune::Landscape&, const std::vector<codegen::TargetPtr>&, const Problem&,
        const std::string& folder, const Interrupt&);

  /// As many at once as the machine has processors. Once interrupted it begins none but the first; the others are
  /// unavailable.
  std::vector<tune::BuiltCandidate> make(const std::vector<size_t>& points) const;

 private:
  tune::BuiltCandidate makeOne(size_t point) const;

  const tune::Landscape& landscape_;
  const std::vector<codegen::TargetPtr>& generators_;
  const Problem& problem_;
  const std::string& folder_;
  const Interrupt& interrupt_;
};

/// What tells two kernels apart: their code, and how they are launched; not the text of the schedule.
std::string objectOf(const std::string& package);

}  // namespace normc::cli
