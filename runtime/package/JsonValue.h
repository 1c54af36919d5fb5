// JSON as a tree of values. To destroy one allocates nothing, so that it may go while memory has run out:
// nlohmann's own tree allocates there, where nothing may be thrown, and takes the host down with it.
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

  /// The member of an object; of several with one name the last. Null if there is none, or this is no object.
  const JsonValue* find(std::string_view key) const;

  /// As JSON, for people: what lies past the first `enough` characters may be missing.
  std::string text(size_t enough) const;

 private:
  void write(std::string& text, size_t enough) const;
};

struct JsonValue::Member {
  std::string key;
  JsonValue value;
};

/// Nothing where the text is not JSON. Recurses as deep as the text is nested: its depth is the caller's to
/// bound.
std::optional<JsonValue> parseJson(std::string_view text);

}  // namespace normc::runtime
