// The rules of a manifest that concern several values. Rules for a single key are in
// runtime/abi/ManifestKeys.h.
#pragma once

#include "runtime/abi/Manifest.h"

namespace normc::package {

/// A fault: the place of a value within the checked part, and the rule that it breaks.
struct Fault {
  std::string place;  ///< "phases[0].launch"
  std::string rule;
};

/// Returns the fault of a blob in a file of `fileBytes` bytes.
std::optional<Fault> fault(const Blob&, uint64_t fileBytes);

/// Returns the fault of a kernel. Resolves the names of its operands and of its norm.
std::optional<Fault> resolve(Kernel&, const Manifest&);

}  // namespace normc::package
