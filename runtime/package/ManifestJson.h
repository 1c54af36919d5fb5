// Reads and writes a manifest as JSON, for the writer of packages, the runtime and the tools. Both directions
// follow runtime/abi/ManifestKeys.h.
#pragma once

#include <string>
#include <string_view>

#include "runtime/abi/Manifest.h"
#include "runtime/package/JsonReader.h"

namespace normc::package {

/// Returns the text, with keys in the order of their description.
std::string writeManifest(const Manifest&);

/// Reads and checks what a call needs (names, indices, limits, legal shapes), so that calls need no checks.
/// Keys that are only for people are left out. A fault has the place: "kernels[3].phases[0].min_units is 0;
/// it must be at least 1". `reader`: the name of the reader in messages, "this runtime (0.1.0)".
runtime::JsonFault readManifest(std::string_view json, uint64_t fileBytes, std::string_view reader,
                                Manifest&);

/// Returns the text within the bytes of a package that the writer made.
std::string_view manifestTextOf(std::string_view package);

/// Returns the whole manifest of a package that the runtime has opened, with the keys for people. Throws
/// std::runtime_error if one of those is missing or wrong; the runtime does not check them.
Manifest wholeManifest(std::string_view json);

}  // namespace normc::package
