#include "tests/fuzz/Lines.h"

#include <algorithm>

#include "autotune/records/Record.h"
#include "autotune/tune/ThisDevice.h"

namespace normc::fuzz {

using Json = nlohmann::json;

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string filledIn(const std::string& line) {
  if (line.find("\"?\"") == line.npos) return line;
  // The recursion of the parser is as deep as the nesting.
  if (std::count(line.begin(), line.end(), '[') + std::count(line.begin(), line.end(), '{') > 64) return line;
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return line;
  if (json.value("device", Json()) == "?") {
    static const tune::Device device = tune::thisProcessor("x86-64-v3");
    json["device"] = {
        {"kind", device.kind}, {"arch", device.arch}, {"name", device.name}, {"facts", device.facts}};
  }
  if (json.value("id", Json()) == "?") {
    json.erase("id");
    json["id"] = tune::idOf(json);
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace normc::fuzz
