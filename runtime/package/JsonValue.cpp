#include "runtime/package/JsonValue.h"

#include <nlohmann/json.hpp>

namespace normc::runtime {
namespace {

using Parser = nlohmann::json;

/// Builds a tree from the parser's events. The parser defines the names of the functions.
class Builder {
 public:
  explicit Builder(JsonValue& root) : root_(root) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(int64_t value) { return put(value); }
  bool number_unsigned(uint64_t value) { return put(value); }
  bool number_float(double value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Parser::binary_t&) { return false; }  // does not occur in text
  bool key(std::string& name) {
    std::get<JsonValue::Object>(open_.back()->value).push_back({std::move(name), {}});
    return true;
  }
  bool start_array(size_t) { return put(JsonValue::Array()); }
  bool start_object(size_t) { return put(JsonValue::Object()); }
  bool end_array() { return close(); }
  bool end_object() { return close(); }
  bool parse_error(size_t, const std::string&, const Parser::exception&) { return false; }

 private:
  /// Returns the place of the next value. Open containers do not move, because the containers around them do
  /// not grow meanwhile.
  JsonValue& place() {
    if (open_.empty()) return root_;
    if (auto* array = std::get_if<JsonValue::Array>(&open_.back()->value)) return array->emplace_back();
    return std::get<JsonValue::Object>(open_.back()->value).back().value;
  }

  template <typename T>
  bool put(T value) {
    JsonValue& here = place();
    here.value = std::move(value);
    if constexpr (std::is_same_v<T, JsonValue::Array> || std::is_same_v<T, JsonValue::Object>)
      open_.push_back(&here);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonValue& root_;
  std::vector<JsonValue*> open_;
};

/// Returns the text of a string, a number or another scalar. The temporary tree has no branches, so it is
/// destroyed without an allocation.
template <typename T>
std::string leaf(const T& value) {
  return Parser(value).dump(-1, ' ', false, Parser::error_handler_t::replace);
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  const auto* object = get<Object>();
  if (!object) return nullptr;
  for (auto member = object->rbegin(); member != object->rend(); ++member)
    if (member->key == key) return &member->value;
  return nullptr;
}

std::string JsonValue::text(size_t enough) const {
  std::string text;
  write(text, enough);
  return text;
}

void JsonValue::write(std::string& text, size_t enough) const {
  if (const auto* array = get<Array>()) {
    text += '[';
    for (size_t i = 0; i < array->size() && text.size() <= enough; ++i) {
      if (i > 0) text += ',';
      (*array)[i].write(text, enough);
    }
    text += ']';
  } else if (const auto* object = get<Object>()) {
    text += '{';
    for (size_t i = 0; i < object->size() && text.size() <= enough; ++i) {
      text += (i > 0 ? "," : "") + leaf((*object)[i].key) + ":";
      (*object)[i].value.write(text, enough);
    }
    text += '}';
  } else {
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (!std::is_same_v<T, Array> && !std::is_same_v<T, Object>) text += leaf(value);
        },
        value);
  }
}

std::optional<JsonValue> parseJson(std::string_view text) {
  if (text.find('\0') != text.npos) return std::nullopt;  // behind which the parser would read nothing
  std::optional<JsonValue> root(std::in_place);
  Builder builder(*root);
  if (!Parser::sax_parse(text.begin(), text.end(), &builder)) root.reset();
  return root;
}

}  // namespace normc::runtime
