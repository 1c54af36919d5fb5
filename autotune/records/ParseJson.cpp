#include "autotune/records/ParseJson.h"

namespace normc::tune {
namespace {

bool nestsDeeply(std::string_view text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString && c == '\\') ++i;
    if (c == '"') inString = !inString;
    if (inString) continue;
    if ((c == '{' || c == '[') && ++depth > kDeepest) return true;
    if (c == '}' || c == ']') --depth;
  }
  return false;
}

}  // namespace

nlohmann::json parseJson(std::string_view text) {
  using Json = nlohmann::json;
  if (text.find('\0') != text.npos || nestsDeeply(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace normc::tune
