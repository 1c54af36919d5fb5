#include "dsl/Result.h"

#include <algorithm>

namespace normc {
namespace {

bool continuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The blanks that bring a caret below `column`: tabs stay tabs, and a character
// of several bytes takes one column.
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
    out += "  " + sourceLine + "\n";
    out += "  " + indentTo(sourceLine, where.column) + underline(sourceLine, where) + "\n";
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
