#include "dsl/Result.h"

#include <algorithm>

namespace normc {
namespace {

bool continuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

constexpr int kWidest = 120;  // the most columns of a source line that are shown

// Returns the bytes of the UTF-8 character at `at`; 0 if there is none, or if it is a control character of
// terminals.
size_t shownBytes(const std::string& line, size_t at) {
  const auto byte = [&](size_t i) { return i < line.size() ? static_cast<unsigned char>(line[i]) : 0; };
  const unsigned first = byte(at);
  if (first < 0x80) return (first >= 0x20 && first != 0x7F) || first == '\t';
  const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  for (size_t k = 1; k < length; ++k)
    if (!continuesCharacter(static_cast<char>(byte(at + k)))) return 0;
  return first == 0xC2 && byte(at + 1) < 0xA0 ? 0 : length;
}

std::string printable(std::string line) {
  for (size_t at = 0, bytes = 0; at < line.size(); at += std::max<size_t>(bytes, 1)) {
    bytes = shownBytes(line, at);
    if (bytes == 0) line[at] = '?';
  }
  return line;
}

// Shortens `line` to the part around the caret, and adapts the column of the caret.
std::string aroundCaret(std::string line, int& column) {
  const int length = static_cast<int>(line.size()), first = std::max(0, column - 1 - kWidest / 2);
  if (length <= kWidest) return line;
  std::string out = line.substr(first, kWidest);
  if (first + kWidest < length) out += "...";
  column -= first;
  if (first == 0) return out;
  column += 3;
  return "..." + out;
}

// Returns the blanks that put a caret below `column`: tabs stay tabs, and a character of several bytes takes
// one column.
std::string indentTo(const std::string& line, int column) {
  std::string blanks;
  for (int i = 0; i + 1 < column; ++i) {
    const char c = i < static_cast<int>(line.size()) ? line[i] : ' ';
    if (!continuesCharacter(c)) blanks += c == '\t' ? '\t' : ' ';
  }
  return blanks;
}

std::string underline(const std::string& line, const Location& where) {
  const int room = std::max(1, static_cast<int>(line.size()) - where.column + 1);
  return "^" + std::string(std::clamp(where.length, 1, room) - 1, '~');
}

}  // namespace

std::string Diagnostic::text() const {
  std::string out;
  if (!where.file.empty()) {
    out += where.file + ":";
    if (where.line > 0) out += std::to_string(where.line) + ":" + std::to_string(where.column) + ":";
    out += " ";
  }
  out += "error: " + message;
  if (!rule.empty()) out += " [" + rule + "]";
  out += "\n";
  if (where.line > 0 && !sourceLine.empty()) {
    Location caret = where;
    const std::string line = printable(aroundCaret(sourceLine, caret.column));
    out += "  " + line + "\n";
    out += "  " + indentTo(line, caret.column) + underline(line, caret) + "\n";
  }
  if (!hint.empty()) out += "  hint: " + hint + "\n";
  return out;
}

std::string text(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& each : diagnostics) out += each.text();
  return out;
}

}  // namespace normc
