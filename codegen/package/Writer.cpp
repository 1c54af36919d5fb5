#include "codegen/package/Writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

// The low-level functions: one hash needs no library set up around it.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace normc::package {
namespace {

// Keys stay in the order in which docs/package-format.md explains them.
using Json = nlohmann::ordered_json;

constexpr size_t kHeaderBytes = 64;

size_t aligned(size_t offset) { return (offset + 63) / 64 * 64; }

std::string sha256(std::string_view data) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, data.data(), data.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &state);
  return digest;
}

std::string hex(std::string_view digest) {
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

template <typename T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json(const Shape& shape) {
  Json list = Json::array();
  for (const Factor& factor : shape) std::visit([&](const auto& value) { list.push_back(value); }, factor);
  return list;
}

Json json(const Operand& operand) {
  Json result = {
      {"role", operand.role}, {"name", operand.name}, {"type", operand.type}, {"access", operand.access}};
  if (operand.role == "workspace") result["shape"] = json(operand.shape);
  return result;
}

Json json(const Scalar& scalar) {
  Json result = {{"name", scalar.name}, {"value", scalar.value}};
  const NumberRange& legal = scalar.legal;
  if (std::isfinite(legal.least)) result["least"] = legal.least;
  if (std::isfinite(legal.above)) result["above"] = legal.above;
  if (std::isfinite(legal.below)) result["below"] = legal.below;
  if (legal.whole) result["whole"] = true;
  return result;
}

Json json(const Field& field) {
  return {{"name", field.name}, {"type", field.type}, {"shape", json(field.shape)}, {"init", field.init}};
}

Json json(const Launch& launch) {
  return {{"threads", launch.threads},
          {"columns", launch.columns},
          {"cluster", launch.cluster},
          {"cooperative", launch.cooperative},
          {"shared", launch.shared},
          {"least", launch.least},
          {"dependent", launch.dependent}};
}

Json json(const Phase& phase) {
  Json result = {{"symbol", phase.symbol},      {"role", phase.role},         {"units", json(phase.units)},
                 {"min_units", phase.minUnits}, {"multiple", phase.multiple}, {"max_chunks", phase.maxChunks},
                 {"when", phase.when}};
  if (!phase.weight.empty()) result["weight"] = json(phase.weight);
  if (phase.enoughUnits) result["enough_units"] = *phase.enoughUnits;
  if (phase.group) result["group"] = *phase.group;
  if (phase.resources)
    result["resources"] = {{"registers", phase.resources->registers},
                           {"shared", phase.resources->shared},
                           {"spills", phase.resources->spills},
                           {"blocks", phase.resources->blocks},
                           {"clusters", phase.resources->clusters}};
  if (phase.launch) {
    result["launch"] = json(*phase.launch);
    result["unaligned"] = orNull(phase.unaligned);
  }
  return result;
}

Json json(const Traffic& traffic) {
  Json result = {{"reads", traffic.reads}, {"writes", traffic.writes}};
  if (traffic.leastReads) result["least_reads"] = *traffic.leastReads;
  if (traffic.heldRows) result["held_rows"] = traffic.heldRows;
  return result;
}

Json json(const Limits& limits) {
  return {{"rows_min", limits.rowsMin},
          {"rows_max", orNull(limits.rowsMax)},
          {"run_min", limits.runMin},
          {"run_max", orNull(limits.runMax)}};
}

Json json(const Kernel& kernel);

int64_t widthOf(int64_t least, const std::optional<int64_t>& most) {
  return most.value_or(std::numeric_limits<int64_t>::max()) - least;
}

template <typename T>
Json list(const std::vector<T>& items) {
  Json result = Json::array();
  for (const T& item : items) result.push_back(json(item));
  return result;
}

Json json(const Kernel& kernel) {
  Json traffic = json(kernel.traffic);
  if (kernel.warmupTraffic) traffic["warmup"] = json(*kernel.warmupTraffic);
  Json bindings = Json::object();
  for (const auto& [name, value] : kernel.bindings) bindings[name] = value;
  Json result = {{"problem", kernel.problem},
                 {"norm", kernel.norm},
                 {"entry", kernel.entry},
                 {"data", kernel.data},
                 {"params", kernel.params},
                 {"layout", kernel.layout},
                 {"mask", kernel.mask},
                 {"segmented", kernel.segmented},
                 {"features", orNull(kernel.features)},
                 {"bindings", bindings},
                 {"limits", json(kernel.limits)},
                 {"blob", kernel.blob},
                 {"device", kernel.device},
                 {"isa", kernel.isa},
                 {"generator", kernel.generator},
                 {"schedule", kernel.schedule},
                 {"origin", kernel.origin},
                 {"operands", list(kernel.operands)},
                 {"scalars", list(kernel.scalars)},
                 {"state", list(kernel.state)},
                 {"saved", list(kernel.saved)},
                 {"phases", list(kernel.phases)},
                 {"traffic", traffic}};
  if (!kernel.features) result["features_multiple"] = kernel.featuresMultiple;
  if (!kernel.selection.empty()) result["selection"] = kernel.selection;
  if (kernel.device == "cuda") {
    result["cubin"] = orNull(kernel.cubin);
    result["alignment"] = kernel.alignment;
  }
  return result;
}

void putLittleEndian(std::string& to, size_t at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to[at + i] = static_cast<char>(value >> (8 * i));
}

Diagnostic cannotWrite(const std::string& path, int error) {
  return {.message = "cannot write the package " + path + ": " + std::strerror(error)};
}

}  // namespace

bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(written);
  }
  return true;
}

bool Limits::serve(int64_t segments, int64_t rows) const {
  const auto within = [](int64_t n, int64_t least, const std::optional<int64_t>& most) {
    return n >= least && (!most || n <= *most);
  };
  return within(segments * rows, rowsMin, rowsMax) && within(rows, runMin, runMax);
}

bool Limits::narrowerThan(const Limits& other) const {
  const auto widths = [](const Limits& l) { return std::pair(widthOf(l.rowsMin, l.rowsMax), widthOf(l.runMin, l.runMax)); };
  return widths(*this) < widths(other);
}

size_t Writer::addNorm(std::string name, std::string hash, std::string text) {
  const Norm norm{std::move(name), std::move(hash), std::move(text)};
  const auto found = std::find(norms_.begin(), norms_.end(), norm);
  if (found != norms_.end()) return found - norms_.begin();
  norms_.push_back(norm);
  return norms_.size() - 1;
}

size_t Writer::addBlob(std::string bytes, std::string kind, std::string isa) {
  std::string hash = hex(sha256(bytes));
  for (size_t i = 0; i < blobs_.size(); ++i)
    if (blobs_[i].sha256 == hash && blobs_[i].kind == kind && blobs_[i].isa == isa) return i;
  const uint64_t offset = blobs_.empty() ? 0 : aligned(blobs_.back().offset + blobs_.back().bytes.size());
  blobs_.push_back({std::move(bytes), std::move(hash), std::move(kind), std::move(isa), offset});
  return blobs_.size() - 1;
}

std::string Writer::bytes() const {
  Json manifest = {{"schema", 1},
                   {"abi", 1},
                   {"producer", Json::object()},
                   {"blobs", Json::array()},
                   {"norms", Json::array()},
                   {"kernels", list(kernels_)}};
  for (const auto& [name, version] : producer_) manifest["producer"][name] = version;
  for (const Norm& norm : norms_)
    manifest["norms"].push_back({{"name", norm.name}, {"hash", norm.hash}, {"text", norm.text}});

  // The blobs' offsets stand in the manifest in front of them, whose length depends on their digits: grow the
  // start of the blobs until the manifest fits before it.
  std::string text;
  size_t start = kHeaderBytes;
  for (;;) {
    manifest["blobs"] = Json::array();
    for (const Blob& blob : blobs_)
      manifest["blobs"].push_back({{"sha256", blob.sha256},
                                   {"offset", start + blob.offset},
                                   {"bytes", blob.bytes.size()},
                                   {"kind", blob.kind},
                                   {"isa", blob.isa}});
    text = manifest.dump(-1, ' ', false, Json::error_handler_t::replace);
    const size_t needed = aligned(kHeaderBytes + text.size());
    if (needed <= start) break;
    start = needed;
  }

  std::string file(start, '\0');
  std::memcpy(file.data(), "NORMCPK", 8);
  putLittleEndian(file, 8, 1, 4);
  putLittleEndian(file, 16, text.size(), 8);
  file.replace(24, 32, sha256(text));
  file.replace(kHeaderBytes, text.size(), text);
  for (const Blob& blob : blobs_) {
    file.resize(start + blob.offset, '\0');
    file += blob.bytes;
  }
  file.resize(aligned(file.size()), '\0');
  putLittleEndian(file, 56, file.size(), 8);
  return file;
}

Result<int64_t> Writer::write(const std::string& path) const {
  const std::string file = bytes();
  std::string temporary;
  int handle = -1;
  for (int attempt = 0; handle < 0; ++attempt) {
    temporary = path + ".tmp" + std::to_string(getpid()) + "." + std::to_string(attempt);
    handle = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle < 0 && errno != EEXIST) return cannotWrite(path, errno);
  }
  int error = 0;
  if (!writeAll(handle, file) || fsync(handle) != 0) error = errno;
  if (close(handle) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return static_cast<int64_t>(file.size());
  unlink(temporary.c_str());
  return cannotWrite(path, error);
}

}  // namespace normc::package
