#include "tools/normc/Output.h"

#include <cmath>
#include <cstdio>
#include <ostream>

namespace normc::cli {
namespace {

/// Columns that the text takes on a screen: one for each UTF-8 character.
size_t width(const std::string& text) {
  size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

void Output::result(const Json& document) {
  answered_ = true;
  results_ << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void Output::note(const std::string& text) { talk_ << "normc: note: " << text << "\n"; }

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading.starts_with(">"));
    if (right_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void Table::row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::text(int indent) const {
  std::vector<size_t> widths(right_.size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width(row[i]), ' ');
      line += (i ? "  " : "") + (right_[i] ? blanks + row[i] : row[i] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bytesText(double bytes) {
  static constexpr const char* units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return formatted(unit ? "%.1f" : "%.0f", bytes) + units[unit];
}

std::string secondsText(double seconds) {
  if (seconds < 1e-6) return digitsText(seconds * 1e9, 3) + " ns";
  if (seconds < 1e-3) return digitsText(seconds * 1e6, 3) + " us";
  if (seconds < 1) return digitsText(seconds * 1e3, 3) + " ms";
  if (seconds < 10) return formatted(seconds == std::floor(seconds) ? "%.0f s" : "%.1f s", seconds);
  if (seconds < 100) return formatted("%.0f s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
}

std::string digitsText(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return formatted("%g", value);
  const int exponent = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  if (exponent < -4 || exponent > 9)
    return formatted(("%." + std::to_string(digits - 1) + "e").c_str(), value);
  return formatted(("%." + std::to_string(std::max(0, digits - 1 - exponent)) + "f").c_str(), value);
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i ? separator : "") + words[i];
  return text;
}

}  // namespace normc::cli
