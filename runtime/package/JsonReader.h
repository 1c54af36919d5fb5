// Reading JSON that nobody trusts: every access says where it is and what it
// wants, the first failure is kept, and all later reads return harmless values,
// so that the code that reads a manifest is as plain as the manifest.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/Error.h"

namespace normc::runtime {

/// The first thing found wrong in a document.
struct JsonFault {
  normc_status status = NORMC_OK;
  std::string text;
};

class JsonReader {
 public:
  using Json = nlohmann::json;
  JsonReader(const Json& value, std::string path, JsonFault& fault)
      : value_(&value), path_(std::move(path)), fault_(&fault) {}

  /// A member that must be there; a failure, and null, otherwise.
  JsonReader operator[](const char* key) const;
  /// A member that may be missing or null.
  std::optional<JsonReader> find(const char* key) const;

  /// The elements of an array of at most `limit`.
  std::vector<JsonReader> items(size_t limit) const;
  std::string string() const;
  bool boolean() const;
  double number() const;
  int64_t integer(int64_t min, int64_t max = INT64_MAX) const;
  bool isString() const { return value_->is_string(); }
  bool isObject() const { return value_->is_object(); }

  /// Records that the value at this place is wrong: "PATH is VALUE; RULE".
  void reject(std::string_view rule) const;

  const std::string& path() const { return path_; }
  const Json& json() const { return *value_; }
  bool failed() const { return fault_->status != NORMC_OK; }

 private:
  void fault(std::string text) const;

  const Json* value_;
  std::string path_;
  JsonFault* fault_;
};

}  // namespace normc::runtime
