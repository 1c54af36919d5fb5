// Which kernel of a package serves a request, and why not the others.
//
// The rule is that of docs/package-format.md: the best that the device can run, as
// its platform ranks it, then features exact before any, then the narrower limits,
// then the order of the manifest. It looks at nothing else and never measures.
#pragma once

#include <string>

#include "runtime/plan/Backend.h"
#include "runtime/plan/ProblemText.h"

namespace normc::runtime {

struct Choice {
  size_t kernel = 0;
  std::string reason;    ///< why this one
  std::string rejected;  ///< one line for each other kernel of this norm and entry
};

normc_status selectKernel(const Manifest& manifest, const ProblemRequest& request, const Platform& platform,
                          Choice& choice);

}  // namespace normc::runtime
