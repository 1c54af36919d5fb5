#include "codegen/package/Writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/abi/PackageHeader.h"
#include "runtime/package/ManifestJson.h"
#include "runtime/package/Sha256.h"

namespace normc::package {

bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(written);
  }
  return true;
}

namespace {

bool sync(int file) {
  while (fsync(file) != 0)
    if (errno != EINTR) return false;
  return true;
}

constexpr int kNoNamelessFiles = -1;

/// Calls `make` with names beside `path` until it finds one that is free, which `name` is then. Returns 0, or
/// the number of the error.
template <typename Make>
int makeBeside(const std::string& path, std::string& name, const Make& make) {
  for (int attempt = 0;; ++attempt) {
    const std::string next = path + ".tmp" + std::to_string(getpid()) + "." + std::to_string(attempt);
    if (make(next.c_str())) {
      name = next;
      return 0;
    }
    if (errno != EEXIST) return errno;
  }
}

/// Replaces the file by one that has its name from the beginning, or only when it is complete. Returns 0, or
/// the number of the error, or kNoNamelessFiles.
int replaced(const std::string& path, std::string_view bytes, bool nameless) {
  std::string temporary;
  int file = -1, error = 0;
  if (nameless) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);  // empty for a name alone
    file = open((folder + ".").c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (file < 0) return kNoNamelessFiles;
  } else {
    error = makeBeside(path, temporary, [&](const char* name) {
      return (file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0;
    });
    if (error != 0) return error;
  }
  struct stat before{};
  if (stat(path.c_str(), &before) == 0) {
    fchmod(file, before.st_mode & 07777);
    (void)!fchown(file, before.st_uid, before.st_gid);  // another owner needs privileges
  }
  error = writeAll(file, bytes) && sync(file) ? 0 : errno;
  if (nameless && error == 0) {
    const std::string self = "/proc/self/fd/" + std::to_string(file);
    const int unnamed = makeBeside(path, temporary, [&](const char* name) {
      return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    });
    if (unnamed != 0) error = kNoNamelessFiles;
  }
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0 && !temporary.empty()) unlink(temporary.c_str());
  return error;
}

}  // namespace

int replaceFile(const std::string& path, std::string_view bytes) {
  const int error = replaced(path, bytes, /*nameless=*/true);
  return error == kNoNamelessFiles ? replaced(path, bytes, /*nameless=*/false) : error;
}

size_t Writer::addNorm(std::string name, std::string hash, std::string text) {
  std::vector<Norm>& norms = manifest_.norms;
  const Norm norm{std::move(name), std::move(hash), std::move(text)};
  const auto found = std::find(norms.begin(), norms.end(), norm);
  if (found != norms.end()) return found - norms.begin();
  norms.push_back(norm);
  return norms.size() - 1;
}

size_t Writer::addBlob(std::string bytes, std::string kind, std::string isa) {
  std::vector<Blob>& blobs = manifest_.blobs;
  std::string hash = runtime::sha256(bytes);
  for (size_t i = 0; i < blobs.size(); ++i)
    if (blobs[i].sha256 == hash && blobs[i].kind == kind && blobs[i].isa == isa) return i;
  const int64_t offset =
      blobs.empty() ? 0 : roundUp(int64_t(blobs.back().offset + blobs.back().bytes), kAlignment);
  blobs.push_back({std::move(hash), uint64_t(offset), bytes.size(), std::move(kind), std::move(isa)});
  blobs_.push_back(std::move(bytes));
  return blobs.size() - 1;
}

std::string Writer::bytes() const {
  // The manifest has the blobs' offsets, whose number of digits affects its length: increase the start of the
  // blobs until the manifest fits before it.
  std::string text;
  Manifest manifest = manifest_;
  int64_t start = sizeof(Header);
  for (;;) {
    for (size_t i = 0; i < blobs_.size(); ++i) manifest.blobs[i].offset = start + manifest_.blobs[i].offset;
    text = writeManifest(manifest);
    const int64_t needed = roundUp(int64_t(sizeof(Header) + text.size()), kAlignment);
    if (needed <= start) break;
    start = needed;
  }

  std::string file(sizeof(Header), '\0');
  file += text;
  for (size_t i = 0; i < blobs_.size(); ++i) {
    file.resize(manifest.blobs[i].offset, '\0');
    file += blobs_[i];
  }
  file.resize(roundUp(std::max(int64_t(file.size()), start), kAlignment), '\0');
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.manifestBytes = text.size();
  header.manifestHash = runtime::digestOf(text);
  header.fileBytes = file.size();
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

Result<int64_t> Writer::write(const std::string& path) const {
  const std::string file = bytes();
  if (const int error = replaceFile(path, file))
    return Diagnostic{.message = "cannot write the package " + path + ": " + std::strerror(error)};
  return static_cast<int64_t>(file.size());
}

}  // namespace normc::package
