// Reads untrusted JSON. Every access gives the place and the expected type. The first failure is kept, and
// all later reads return default values, so that the code that reads a manifest needs no checks between
// reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/normc.h"
#include "runtime/package/JsonValue.h"

namespace normc::runtime {

/// The first fault in a document.
struct JsonFault {
  normc_status status = NORMC_OK;
  std::string text;
};

class JsonReader {
 public:
  JsonReader(const JsonValue& value, std::string path, JsonFault& fault)
      : value_(&value), path_(std::move(path)), fault_(&fault) {}

  /// Returns a member that is required; a failure, and null, if it is missing.
  JsonReader operator[](const char* key) const;
  /// Returns a member that may be missing or null.
  std::optional<JsonReader> find(const char* key) const;

  /// Returns the value at a relative path, "phases[0].launch"; a failure, and null, if there is none.
  JsonReader at(std::string_view place) const;

  /// Returns the elements of an array of at most `limit`.
  std::vector<JsonReader> items(size_t limit) const;
  /// Returns the members of an object with their names.
  std::vector<std::pair<std::string, JsonReader>> members() const;
  std::string string() const;
  bool boolean() const;
  double number() const;
  int64_t integer(int64_t min, int64_t max = INT64_MAX) const;
  bool isString() const { return value_->get<std::string>(); }

  /// Records a fault of this value: "PATH is VALUE; RULE".
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
