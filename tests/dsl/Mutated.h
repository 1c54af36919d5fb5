// Texts with a few bytes changed, for tests that read whatever there is.
#pragma once

#include <algorithm>
#include <random>
#include <string>

namespace normc {

/// Returns the text with one to four changes: bytes that formats use, parts taken away or repeated, and parts
/// of the other text.
inline std::string mutated(std::string text, const std::string& other, std::mt19937_64& random) {
  static constexpr char kBytes[] =
      "{}[](),:=\"/.+-\n\t #?*@\0\x80\xff"
      "0199eExnorm";
  const auto byte = [&] { return kBytes[random() % (sizeof kBytes - 1)]; };
  for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const size_t at = random() % (text.size() + 1), length = random() % 16;
    switch (random() % 6) {
      case 0:
        text.insert(at, 1, byte());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random() % (text.size() + 1), length));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(random() % 256);
        break;
      case 4:
        if (at < text.size()) text[at] = byte();
        break;
      case 5:
        text.replace(at, std::min(length, text.size() - at),
                     other.substr(random() % (other.size() + 1), length));
        break;
    }
  }
  return text;
}

}  // namespace normc
