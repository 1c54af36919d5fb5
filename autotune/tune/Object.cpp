#include "autotune/tune/Object.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "runtime/abi/PackageHeader.h"
#include "runtime/package/ManifestJson.h"
#include "runtime/package/Sha256.h"

namespace normc::tune {

std::string objectOf(const std::string& package) {
  package::Manifest manifest = package::wholeManifest(package::manifestTextOf(package));
  for (package::Kernel& kernel : manifest.kernels) kernel.schedule.clear(), kernel.origin.clear();
  for (package::Blob& blob : manifest.blobs) blob.offset = 0;  // offsets depend on the length of the objects
  return runtime::sha256(package::writeManifest(manifest));
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
    if (manifest.kernels.empty()) return {};
    return {objectOf(bytes), manifest.kernels[0].generator, manifest.kernels[0].schedule};
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace normc::tune
