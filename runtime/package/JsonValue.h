// JSON as a tree of values. Destruction does not allocate, so it works after memory has run out. nlohmann's
// own tree allocates in its destructor, where an exception would end the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace normc::runtime {

struct JsonValue {
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;  ///< in the order of the text

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> value;

  bool isNull() const { return std::holds_alternative<std::nullptr_t>(value); }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value);
  }

  /// Returns a member of an object; of several with one name the last. Null if there is none, or if this is
  /// not an object.
  const JsonValue* find(std::string_view key) const;

  /// Returns JSON for messages. Text after the first `enough` characters may be missing.
  std::string text(size_t enough) const;

 private:
  void write(std::string& text, size_t enough) const;
};

struct JsonValue::Member {
  std::string key;
  JsonValue value;
};

/// Returns nothing if the text is not JSON. The recursion is as deep as the nesting of the text, which the
/// caller has to limit.
std::optional<JsonValue> parseJson(std::string_view text);

}  // namespace normc::runtime
