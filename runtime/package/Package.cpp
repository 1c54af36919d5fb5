#include "runtime/package/Package.h"

#include <cstring>

#include "runtime/core/Error.h"
#include "runtime/package/Sha256.h"

namespace normc::runtime {
namespace {

/// The first 64 bytes of a package, as docs/package-format.md has them.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t manifestBytes;
  unsigned char manifestHash[32];
  uint64_t fileBytes;
};
static_assert(sizeof(Header) == 64);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packages are little endian, and so far is every processor they hold kernels for"
#endif

constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

std::string hex(const unsigned char (&hash)[32]) {
  std::string text;
  for (const unsigned char byte : hash) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

normc_status checkHeader(const Header& header, uint64_t bytes, const std::string& label) {
  if (std::memcmp(header.magic, "NORMCPK", 8) != 0)
    return fail(NORMC_DATA_LOSS, label, " is not a normc package: it does not begin with NORMCPK");
  if (header.version != 1)
    return fail(NORMC_FAILED_PRECONDITION, label, " has package format ", header.version, "; this runtime (",
                normc_version(), ") reads format 1; use a newer runtime");
  if (header.fileBytes != bytes)
    return fail(NORMC_DATA_LOSS, label, " is ", bytes < header.fileBytes ? "truncated" : "too long",
                ": it has ", bytes, " bytes of ", header.fileBytes);
  if (header.zero != 0 || header.manifestBytes > bytes - sizeof(Header))
    return fail(NORMC_DATA_LOSS, label, " is damaged: its header contradicts itself");
  if (header.manifestBytes > kMaxManifestBytes)
    return fail(NORMC_DATA_LOSS, label, " has a manifest of ", header.manifestBytes, " bytes; at most ",
                kMaxManifestBytes, " are allowed");
  return NORMC_OK;
}

}  // namespace

normc_status Package::open(std::unique_ptr<ByteSource> source, std::string label,
                           std::shared_ptr<const Package>& package) {
  const uint64_t bytes = source->bytes();
  if (bytes < sizeof(Header))
    return fail(NORMC_DATA_LOSS, label, " is not a normc package: it has ", bytes,
                " bytes, less than a header");
  std::vector<char> head;
  NORMC_TRY(source->read(0, sizeof(Header), head));
  Header header;
  std::memcpy(&header, head.data(), sizeof header);
  NORMC_TRY(checkHeader(header, bytes, label));

  std::vector<char> text;
  NORMC_TRY(source->read(sizeof(Header), header.manifestBytes, text));
  if (sha256(text.data(), text.size()) != hex(header.manifestHash))
    return fail(NORMC_DATA_LOSS, label, " is damaged: the hash of its manifest is wrong");

  const auto opened = std::make_shared<Package>();
  NORMC_TRY(parseManifest({text.data(), text.size()}, bytes, opened->manifest_));
  opened->source_ = std::move(source);
  opened->label_ = std::move(label);
  opened->json_.assign(text.data(), text.size());
  opened->code_.resize(opened->manifest_.blobs.size());
  package = opened;
  return NORMC_OK;
}

normc_status Package::read(size_t blob, std::vector<char>& bytes) const {
  const BlobInfo& info = manifest_.blobs[blob];
  NORMC_TRY(source_->read(info.offset, info.bytes, bytes));
  if (sha256(bytes.data(), bytes.size()) != info.sha256)
    return fail(NORMC_DATA_LOSS, label_, " is damaged: the hash of blob ", blob, " (", info.kind, ", ",
                info.isa, ") is wrong");
  return NORMC_OK;
}

normc_status Package::verify(size_t blob) const {
  std::vector<char> bytes;
  return read(blob, bytes);
}

normc_status Package::load(size_t blob, std::shared_ptr<const SharedObject>& code) const {
  const std::lock_guard lock(mutex_);
  if (!code_[blob]) {
    const BlobInfo& info = manifest_.blobs[blob];
    if (info.kind != "elf")
      return fail(NORMC_FAILED_PRECONDITION, "blob ", blob, " of ", label_, " is of kind `", info.kind,
                  "`; a CPU loads `elf`");
    std::vector<char> bytes;
    NORMC_TRY(read(blob, bytes));
    NORMC_TRY(SharedObject::load(bytes, "blob " + std::to_string(blob) + " of " + label_, code_[blob]));
  }
  code = code_[blob];
  return NORMC_OK;
}

}  // namespace normc::runtime
