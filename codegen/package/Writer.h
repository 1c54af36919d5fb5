// Writes the file of a package (docs/package-format.md): header, manifest, blobs. Needs no LLVM. Equal norms
// and blobs are stored once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Result.h"
#include "runtime/abi/Manifest.h"

namespace normc::package {

class Writer {
 public:
  /// `producer`: the programs that make the package, with versions: {"normc": "0.1.0", "llvm": "22.1.8"}.
  explicit Writer(std::map<std::string, std::string> producer) { manifest_.producer = std::move(producer); }

  /// Returns the index of a norm. `hash` is the structural hash, `text` the canonical text of the spec.
  size_t addNorm(std::string name, std::string hash, std::string text);
  /// Returns the index of a blob. Kinds: "elf", a shared object; "ptx", text with or without a zero at its
  /// end; "cubin", the output of ptxas.
  size_t addBlob(std::string bytes, std::string kind, std::string isa);
  void addKernel(Kernel kernel) { manifest_.kernels.push_back(std::move(kernel)); }

  /// Returns the whole file.
  std::string bytes() const;

  /// Writes it with replaceFile. Returns the number of bytes.
  Result<int64_t> write(const std::string& path) const;

 private:
  Manifest manifest_;               ///< offsets of blobs are relative to the end of the manifest
  std::vector<std::string> blobs_;  ///< their bytes
};

/// Writes all bytes to an open file, by as many calls as necessary. False if one fails; errno has the reason.
bool writeAll(int file, std::string_view bytes);

/// Writes a file without a name, gives it a temporary one in the same folder and renames it: on failure there
/// is no new file, and an old one is as it was. So it is if the process is killed, but a whole file may then
/// have the temporary name. A file system without such files has the temporary name from the beginning.
/// Returns 0, or the errno of what failed.
int replaceFile(const std::string& path, std::string_view bytes);

}  // namespace normc::package
