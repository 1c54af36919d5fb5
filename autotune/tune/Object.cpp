#include "autotune/tune/Object.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "runtime/abi/PackageHeader.h"
#include "runtime/package/ManifestJson.h"
#include "runtime/package/Sha256.h"

namespace normc::tune {

std::string objectOf(const std::string& package) {
  package::Manifest manifest = package::wholeManifest(package::manifestTextOf(package));
  for (package::Kernel& kernel : manifest.kernels) {
    kernel.schedule.clear();
    kernel.origin.clear();
  }
  for (package::Blob& blob : manifest.blobs) blob.offset = 0;  // offsets depend on the length of the objects
  return runtime::sha256(package::writeManifest(manifest));
}

/// True if the package has all code that its manifest names, unchanged.
static bool isWhole(const package::Manifest& manifest, std::string_view package) {
  return std::ranges::all_of(manifest.blobs, [&](const package::Blob& blob) {
    return blob.offset <= package.size() && blob.bytes <= package.size() - blob.offset &&
           runtime::sha256(package.substr(blob.offset, blob.bytes)) == blob.sha256;
  });
}

PackedKernel packedKernelOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  package::Header header;
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, package::kMagic, sizeof header.magic) != 0 ||
      header.manifestBytes > bytes.size() - sizeof header)
    return {};
  try {
    const package::Manifest manifest = package::wholeManifest(package::manifestTextOf(bytes));
    if (manifest.kernels.empty() || !isWhole(manifest, bytes)) return {};
    return {objectOf(bytes), manifest.kernels[0].generator, manifest.kernels[0].schedule};
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace normc::tune
