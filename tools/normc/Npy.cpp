#include "tools/normc/Npy.h"

#include <charconv>
#include <optional>

#include "dsl/Nearest.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/Output.h"

namespace normc::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxDims = 32;

struct Descr {
  const char* text;
  DType type;
};
constexpr Descr kDescrs[] = {{"<f8", DType::F64}, {"<f4", DType::F32}, {"<f2", DType::F16},
                             {"<i8", DType::I64}, {"|u1", DType::U8},  {"<u1", DType::U8},
                             {"|b1", DType::U8}};

/// Reads the header: a Python dictionary of three keys.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<NpyArray> read() {
    NpyArray array;
    const std::string descr(quoted(after("descr")));
    const std::string_view order = after("fortran_order");
    if (descr.empty() || order.empty()) return wrong("is damaged: its header is not that of an array");
    const Descr* found = nullptr;
    for (const Descr& each : kDescrs)
      if (descr == each.text) found = &each;
    if (!found) return unsupported(descr);
    array.type = found->type;
    if (order.starts_with("True"))
      return wrong("is in Fortran order",
                   "save it in C order: numpy.save(file, numpy.ascontiguousarray(array))");
    if (!shape(after("shape"), array.shape))
      return wrong("is damaged: the shape in its header cannot be read");
    return array;
  }

 private:
  Diagnostic wrong(const std::string& what, const std::string& hint = "") const {
    return {.message = path_ + " " + what, .hint = hint};
  }
  Diagnostic unsupported(const std::string& descr) const {
    return wrong("holds elements of type " + inQuotes(descr) +
                     "; normc run reads little-endian float64, float32, float16, int64, uint8 and bool",
                 "convert it first, e.g. numpy.save(file, array.astype('<f4'))");
  }

  /// Returns the text after `'key':`, without blanks; empty if there is no such key.
  std::string_view after(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string wanted = quote + std::string(key) + quote;
      const size_t at = text_.find(wanted);
      if (at == text_.npos) continue;
      const size_t value = text_.find_first_not_of(" \t:", at + wanted.size());
      return value == text_.npos ? std::string_view() : text_.substr(value);
    }
    return {};
  }

  static std::string_view quoted(std::string_view text) {
    if (text.empty() || (text[0] != '\'' && text[0] != '"')) return text.substr(0, text.find_first_of(",}"));
    return text.substr(1, text.find(text[0], 1) - 1);
  }

  static bool shape(std::string_view text, std::vector<int64_t>& shape) {
    const size_t end = text.find(')');
    if (!text.starts_with('(') || end == text.npos) return false;
    text = text.substr(1, end - 1);
    while (text.find_first_not_of(" ,") != text.npos) {
      text.remove_prefix(text.find_first_not_of(" ,"));
      int64_t size = 0;
      const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || size < 0 || shape.size() == kMaxDims) return false;
      shape.push_back(size);
      text.remove_prefix(stop - text.data());
    }
    return true;
  }

  std::string_view text_;
  const std::string& path_;
};

/// Bytes of the data, absent where 63 bits do not hold it.
std::optional<int64_t> dataBytes(const NpyArray& array) {
  int64_t total = bytes(array.type);
  for (const int64_t size : array.shape)
    if (__builtin_mul_overflow(total, size, &total)) return std::nullopt;
  return total;
}

uint64_t littleEndian(std::string_view text, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= uint64_t(static_cast<unsigned char>(text[at + i])) << (8 * i);
  return value;
}

}  // namespace

std::string npyName(DType type) {
  const TypeKind kind = infoOf(type).kind;
  const bool isSigned = kind == TypeKind::Int || type == DType::I8;
  const char* const letter = kind == TypeKind::Float ? "f" : isSigned ? "i" : "u";
  return letter + std::to_string(bytes(type));
}

int64_t NpyArray::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Result<NpyArray> parseNpy(std::string_view content, const std::string& path) {
  const auto wrong = [&](const std::string& what) { return Diagnostic{.message = path + " " + what}; };
  if (!content.starts_with(kMagic)) return wrong("is no .npy file: it does not begin as one");
  if (content.size() < 12) return wrong("is truncated: it ends within its header");
  const int major = static_cast<unsigned char>(content[6]);
  if (major < 1 || major > 3)
    return wrong("has version " + std::to_string(major) + " of the .npy format; versions 1 to 3 are read");
  const int lengthBytes = major == 1 ? 2 : 4;
  const uint64_t start = 8 + lengthBytes, length = littleEndian(content, 8, lengthBytes);
  if (length > content.size() - start) return wrong("is truncated: it ends within its header");

  Result<NpyArray> read = Header(content.substr(start, length), path).read();
  if (!read) return read.errors();
  NpyArray array = *std::move(read);
  const std::string_view data = content.substr(start + length);
  const std::optional<int64_t> needed = dataBytes(array);
  if (!needed || uint64_t(*needed) > data.size())
    return wrong("is truncated: its header announces more data than its " + std::to_string(data.size()) +
                 " bytes");
  if (uint64_t(*needed) < data.size())
    return wrong("is too long: its header announces " + std::to_string(*needed) + " bytes of data, it has " +
                 std::to_string(data.size()));
  array.data = data;
  return array;
}

std::string npyText(const NpyArray& array) {
  std::string shape;
  for (const int64_t size : array.shape) shape += std::to_string(size) + ", ";
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string descr = (bytes(array.type) == 1 ? "|" : "<") + npyName(array.type);
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const size_t whole = (10 + header.size() + 1 + 63) / 64 * 64;
  header.resize(whole - 11, ' ');
  header += '\n';
  std::string text(kMagic);
  text += {'\x01', '\x00', char(header.size() & 0xff), char(header.size() >> 8)};
  return text + header + array.data;
}

NpyArray readNpy(const std::string& path) {
  return valueOf(parseNpy(readFile(path), path), ExitCode::Refused);
}

void writeNpy(const std::string& path, const NpyArray& array) { writeFile(path, npyText(array)); }

}  // namespace normc::cli
