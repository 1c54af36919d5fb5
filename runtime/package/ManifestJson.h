// A manifest as JSON: what the writer of a package writes, and the runtime and the tools read. Both follow
// the keys of runtime/abi/ManifestKeys.h.
#pragma once

#include <string>
#include <string_view>

#include "runtime/abi/Manifest.h"
#include "runtime/package/JsonReader.h"

namespace normc::package {

/// Returns the text, with keys in the order of their description.
std::string writeManifest(const Manifest&);

/// Reads what a call needs, and checks it: all that a call relies on later is verified here, once (names,
/// indices, limits, which shapes may stand where). Leaves out what is for people alone. A fault names the
/// place: "kernels[3].phases[0].min_units is 0; it must be at least 1". `reader` is the reader in such words:
/// "this runtime (0.1.0)".
runtime::JsonFault readManifest(std::string_view json, uint64_t fileBytes, std::string_view reader,
                                Manifest&);

/// Returns the text within the bytes of a package that the writer made.
std::string_view manifestTextOf(std::string_view package);

/// Returns the whole manifest of a package that the runtime has opened, with what is for people. Throws
/// std::runtime_error if the runtime does not need what is missing or wrong.
Manifest wholeManifest(std::string_view json);

}  // namespace normc::package
