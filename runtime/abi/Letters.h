// The characters of a word in the language and in problems: ASCII, whatever the locale.
#pragma once

namespace normc {

constexpr bool isDigit(char c) { return c >= '0' && c <= '9'; }
/// True also of '_'.
constexpr bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace normc
