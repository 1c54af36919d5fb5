// Which kernel of a package serves a request, and why not the others.
//
// The rule is that of docs/package-format.md: the newest instruction set that the
// processor has, then features exact before any, then the narrower limits, then
// the order of the manifest. It looks at nothing else and never measures.
#pragma once

#include <string>

#include "runtime/cpu/Isa.h"
#include "runtime/plan/ProblemText.h"

namespace normc::runtime {

struct Choice {
  size_t kernel = 0;
  std::string reason;    ///< why this one
  std::string rejected;  ///< one line for each other kernel of this norm and entry
};

/// `cpu` is what the processor has, `cap` the newest set the caller allows; either may be null.
normc_status selectKernel(const Manifest& manifest, const ProblemRequest& request, const Isa* cpu,
                          const Isa* cap, Choice& choice);

}  // namespace normc::runtime
