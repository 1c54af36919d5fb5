// What is legal in a manifest only beside something else. What a key alone may be stands with it, in
// runtime/abi/ManifestKeys.h.
#pragma once

#include "runtime/abi/Manifest.h"

namespace normc::package {

/// A value, by its place in the part that was judged, and the rule that it breaks.
struct Fault {
  std::string place;  ///< "phases[0].launch"
  std::string rule;
};

/// Returns what is wrong with a blob of a file of so many bytes.
std::optional<Fault> fault(const Blob&, uint64_t fileBytes);

/// Returns what is wrong with a kernel. Sets what the names of its operands mean,
/// and the name of its norm.
std::optional<Fault> resolve(Kernel&, const Manifest&);

}  // namespace normc::package
