// Compiles candidates: one package on disk for each, all of one problem.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/search/Landscape.h"
#include "autotune/tune/LiveLab.h"
#include "codegen/Package.h"

namespace normc::tune {

class CandidateCompiler {
 public:
  /// `folder`: for the packages. `stop`: true if the caller was interrupted. All arguments except `stop`
  /// outlive the object.
  CandidateCompiler(const Landscape&, const std::vector<codegen::TargetPtr>&, const Problem&,
                    const std::string& folder, std::function<bool()> stop);

  BuiltCandidate compile(size_t point) const;
  /// Compiles all in parallel on all processors. After a stop it compiles only the first; the others are
  /// unavailable.
  std::vector<BuiltCandidate> compile(const std::vector<size_t>& points) const;

 private:
  const Landscape& landscape_;
  const std::vector<codegen::TargetPtr>& generators_;
  const Problem& problem_;
  const std::string& folder_;
  std::function<bool()> stop_;
};

}  // namespace normc::tune
