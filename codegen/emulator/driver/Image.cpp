#include "codegen/emulator/driver/Image.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <regex>

namespace normc::cuda::fake {
namespace {

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

int numberAfter(std::string_view text, std::string_view directive) {
  const size_t at = text.find(directive);
  return at == text.npos ? 0 : std::atoi(std::string(text.substr(at + directive.size(), 24)).c_str());
}

/// One declaration, ".param .align 8 .b8 name[24]" or ".param .u64 .ptr .global name".
void addParameter(const std::string& declaration, Entry& entry) {
  static const std::regex form(R"(\.param\s+(?:\.align\s+(\d+)\s+)?\.[busf](\d+)[^\[]*(?:\[(\d+)\])?)");
  std::smatch match;
  if (!std::regex_search(declaration, match, form)) return;
  const size_t width = std::stoul(match[2]) / 8;
  const size_t bytes = width * (match[3].matched ? std::stoul(match[3]) : 1);
  const size_t alignment = match[1].matched ? std::stoul(match[1]) : width;
  const size_t offset = (entry.parameterBytes + alignment - 1) / alignment * alignment;
  entry.parameters.push_back({offset, bytes});
  entry.parameterBytes = offset + bytes;
}

/// A variable in shared memory of a known size.
struct Variable {
  std::string_view name;
  size_t bytes, alignment;
};

/// All of a module: ".shared .align 16 .b8 name[64];". Those without a size are dynamic.
std::vector<Variable> sharedVariables(std::string_view ptx) {
  static const std::regex form(
      R"(^\.shared\s+(?:\.align\s+(\d+)\s+)?\.[busf](\d+)\s+([\w$]+)(?:\[(\d*)\])?;)");
  std::vector<Variable> variables;
  for (size_t at = ptx.find(".shared "); at != ptx.npos; at = ptx.find(".shared ", at + 1)) {
    const std::string_view line = ptx.substr(at, ptx.find('\n', at) - at);
    std::cmatch match;
    if (!std::regex_search(line.data(), line.data() + line.size(), match, form)) continue;
    if (match[4].matched && match[4].length() == 0) continue;
    const size_t width = std::stoul(match[2]) / 8;
    variables.push_back({line.substr(size_t(match.position(3)), size_t(match.length(3))),
                         width * (match[4].matched ? std::stoul(match[4]) : 1),
                         match[1].matched ? std::stoul(match[1]) : width});
  }
  return variables;
}

template <typename T>
T valueAt(std::string_view bytes, size_t at) {
  T value{};
  if (sizeof value <= bytes.size() && at <= bytes.size() - sizeof value)
    std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Returns the content of a section of a file in ELF with 64 bits; empty if there is none of that name.
std::string_view sectionOf(std::string_view elf, std::string_view name) {
  if (!elf.starts_with("\x7f"
                       "ELF"))
    return {};
  const auto headers = valueAt<uint64_t>(elf, 0x28);
  const size_t each = valueAt<uint16_t>(elf, 0x3a), count = valueAt<uint16_t>(elf, 0x3c);
  const auto content = [&](size_t index) {
    const size_t header = headers + each * index, at = valueAt<uint64_t>(elf, header + 0x18);
    return at <= elf.size() ? elf.substr(at, valueAt<uint64_t>(elf, header + 0x20)) : std::string_view();
  };
  const std::string_view text = content(valueAt<uint16_t>(elf, 0x3e));
  for (size_t i = 0; i < count; ++i) {
    const size_t at = valueAt<uint32_t>(elf, headers + each * i);
    if (at < text.size() && text.substr(at, text.find('\0', at) - at) == name) return content(i);
  }
  return {};
}

}  // namespace

Entry entryOf(std::string_view cubin, std::string_view name) {
  Entry entry{.name = std::string(name)};
  const std::string_view info = sectionOf(cubin, ".nv.info." + entry.name);
  // Attributes: a byte of the format, one of the kind, and 16 bits, which are the value, or its length if the
  // format is 4. The value of kind 0x17 is a parameter: its index at byte 4, its offset at 6, and how many
  // bytes it has in the highest 14 bits of the last word.
  constexpr uint8_t kSized = 4, kParameter = 0x17;
  for (size_t at = 0; at + 4 <= info.size();) {
    const auto format = valueAt<uint8_t>(info, at), kind = valueAt<uint8_t>(info, at + 1);
    if (kind == kParameter) {
      const size_t index = valueAt<uint16_t>(info, at + 8);
      entry.parameters.resize(std::max(entry.parameters.size(), index + 1));
      entry.parameters[index] = {valueAt<uint16_t>(info, at + 10), valueAt<uint32_t>(info, at + 12) >> 18};
    }
    at += 4 + (format == kSized ? valueAt<uint16_t>(info, at + 2) : 0);
  }
  for (const Parameter& p : entry.parameters)
    entry.parameterBytes = std::max(entry.parameterBytes, p.offset + p.bytes);
  entry.declared = !info.empty();
  return entry;
}

bool isPtx(std::string_view image) {
  return image.find(".version") != image.npos && image.find(".target") != image.npos;
}

int targetOf(std::string_view ptx) { return numberAfter(ptx, ".target sm_"); }

int versionOf(std::string_view ptx) {
  constexpr std::string_view kVersion = ".version ";
  const size_t at = ptx.find(kVersion), dot = ptx.find('.', at + 1);
  if (at == ptx.npos || dot == ptx.npos) return 0;
  return 10 * numberAfter(ptx, kVersion) + std::atoi(std::string(ptx.substr(dot + 1, 2)).c_str());
}

std::vector<Entry> entriesOf(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry";
  std::vector<Entry> entries;
  const std::vector<Variable> variables = sharedVariables(ptx);
  for (size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at + 1)) {
    size_t begin = at + kEntry.size();
    while (begin < ptx.size() && std::isspace(static_cast<unsigned char>(ptx[begin]))) ++begin;
    size_t end = begin;
    while (end < ptx.size() && isWord(ptx[end])) ++end;
    Entry entry;
    entry.name = ptx.substr(begin, end - begin);
    entry.declared = true;
    const std::string_view head = ptx.substr(end, std::min(ptx.find_first_of("{;", end), ptx.size()) - end);
    const size_t open = head.find('('), close = head.find(')');
    if (open != head.npos && close != head.npos) {
      std::string declaration;
      for (const char c : std::string(head.substr(open + 1, close - open - 1)) + ",") {
        if (c != ',') {
          declaration += c;
          continue;
        }
        addParameter(declaration, entry);
        declaration.clear();
      }
    }
    entry.maxThreads = numberAfter(head, ".maxntid");
    entry.threads = numberAfter(head, ".reqntid");
    entry.cluster = numberAfter(head, ".reqnctapercluster");
    const std::string_view body = ptx.substr(end, ptx.find(kEntry, end) - end);
    for (const Variable& v : variables)
      if (names(body, v.name))
        entry.sharedBytes = (entry.sharedBytes + v.alignment - 1) / v.alignment * v.alignment + v.bytes;
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool names(std::string_view image, std::string_view name) {
  for (size_t at = image.find(name); at != image.npos; at = image.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !isWord(image[at - 1])) && (end == image.size() || !isWord(image[end]))) return true;
  }
  return false;
}

}  // namespace normc::cuda::fake
