#include "runtime/package/Package.h"

#include <cstring>

#include "runtime/abi/PackageHeader.h"
#include "runtime/core/Error.h"
#include "runtime/package/ManifestJson.h"
#include "runtime/package/Sha256.h"

namespace normc::runtime {
namespace {

using package::Header;

constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

normc_status checkHeader(const Header& header, uint64_t bytes, const std::string& label) {
  if (std::memcmp(header.magic, package::kMagic, sizeof header.magic) != 0)
    return fail(NORMC_DATA_LOSS, label, " is not a normc package: it does not begin with NORMCPK");
  if (header.version != package::kFormat)
    return fail(NORMC_FAILED_PRECONDITION, label, " has package format ", header.version, "; this runtime (",
                normc_version(), ") reads format ", package::kFormat, "; use a newer runtime");
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
  const std::string_view json(text.data(), text.size());
  if (digestOf(json) != header.manifestHash)
    return fail(NORMC_DATA_LOSS, label, " is damaged: the hash of its manifest is wrong");

  const auto opened = std::make_shared<Package>();
  const JsonFault wrong = normc::package::readManifest(
      json, bytes, std::string("this runtime (") + normc_version() + ")", opened->manifest_);
  if (wrong.status != NORMC_OK) return fail(wrong.status, wrong.text);
  opened->source_ = std::move(source);
  opened->label_ = std::move(label);
  opened->json_ = json;
  opened->code_.resize(opened->manifest_.blobs.size());
  package = opened;
  return NORMC_OK;
}

normc_status Package::read(size_t blob, std::vector<char>& bytes) const {
  const Blob& info = manifest_.blobs[blob];
  NORMC_TRY(source_->read(info.offset, info.bytes, bytes));
  if (sha256({bytes.data(), bytes.size()}) != info.sha256)
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
    const Blob& info = manifest_.blobs[blob];
    if (info.kind != "elf")
      return fail(NORMC_FAILED_PRECONDITION, "blob ", blob, " of ", label_, " is of kind '", info.kind,
                  "'; a CPU loads 'elf'");
    std::vector<char> bytes;
    NORMC_TRY(read(blob, bytes));
    NORMC_TRY(SharedObject::load(bytes, "blob " + std::to_string(blob) + " of " + label_, code_[blob]));
  }
  code = code_[blob];
  return NORMC_OK;
}

}  // namespace normc::runtime
