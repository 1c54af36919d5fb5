// Reading JSON that is not trusted: every access says where it is and what it
// wants, the first failure is kept, and all later reads return harmless values,
// so that the code that reads a manifest is as plain as the manifest.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/normc.h"
#include "runtime/package/JsonValue.h"

namespace normc::runtime {

/// The first thing found wrong in a document.
struct JsonFault {
  normc_status status = NORMC_OK;
  std::string text;
};

class JsonReader {
 public:
  JsonReader(const JsonValue& value, std::string path, JsonFault& fault)
      : value_(&value), path_(std::move(path)), fault_(&fault) {}

  /// A member that must be there; a failure, and null, otherwise.
  JsonReader operator[](const char* key) const;
  /// A member that may be missing or null.
  std::optional<JsonReader> find(const char* key) const;

  /// Returns what stands at a place below this, "phases[0].launch"; a failure, and null, where nothing does.
  JsonReader at(std::string_view place) const;

  /// The elements of an array of at most `limit`.
  std::vector<JsonReader> items(size_t limit) const;
  /// The members of an object, and their names.
  std::vector<std::pair<std::string, JsonReader>> members() const;
  std::string string() const;
  bool boolean() const;
  double number() const;
  int64_t integer(int64_t min, int64_t max = INT64_MAX) const;
  bool isString() const { return value_->get<std::string>(); }

  /// Records that the value at this place is wrong: "PATH is VALUE; RULE".
  void reject(std::string_view rule) const;

  bool failed() const { return fault_->status != NORMC_OK; }

 private:
  void fault(std::string text) const;
  std::string pathTo(std::string_view key) const;

  const JsonValue* value_;
  std::string path_;
  JsonFault* fault_;
};

}  // namespace normc::runtime
