#include "runtime/package/JsonReader.h"

namespace normc::runtime {
namespace {

const nlohmann::json nothing;

}  // namespace

void JsonReader::fault(std::string text) const {
  if (failed()) return;
  *fault_ = {NORMC_DATA_LOSS, std::move(text)};
}

void JsonReader::reject(std::string_view rule) const {
  std::string shown = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  fault(path_ + " is " + shown + "; " + std::string(rule));
}

JsonReader JsonReader::operator[](const char* key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (value_->is_object())
    if (const auto member = value_->find(key); member != value_->end()) return {*member, path, *fault_};
  fault(path + " is missing");
  return {nothing, path, *fault_};
}

std::optional<JsonReader> JsonReader::find(const char* key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto member = value_->find(key);
  if (member == value_->end() || member->is_null()) return std::nullopt;
  return JsonReader(*member, path_.empty() ? key : path_ + "." + key, *fault_);
}

std::vector<JsonReader> JsonReader::items(size_t limit) const {
  std::vector<JsonReader> result;
  if (!value_->is_array()) {
    reject("it must be an array");
  } else if (value_->size() > limit) {
    fault(path_ + " has " + std::to_string(value_->size()) + " elements; at most " + std::to_string(limit) +
          " are allowed");
  } else {
    result.reserve(value_->size());
    for (size_t i = 0; i < value_->size(); ++i)
      result.emplace_back((*value_)[i], path_ + "[" + std::to_string(i) + "]", *fault_);
  }
  return result;
}

std::string JsonReader::string() const {
  if (const auto* text = value_->get_ptr<const std::string*>()) {
    if (text->find('\0') == std::string::npos) return *text;
    reject("it must not contain a zero byte");
  } else {
    reject("it must be a string");
  }
  return {};
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) {
    reject("it must be true or false");
    return false;
  }
  return value_->get<bool>();
}

double JsonReader::number() const {
  if (!value_->is_number()) {
    reject("it must be a number");
    return 0;
  }
  return value_->get<double>();
}

int64_t JsonReader::integer(int64_t min, int64_t max) const {
  const auto* unsignedValue = value_->get_ptr<const uint64_t*>();
  if (!value_->is_number_integer() || (unsignedValue && *unsignedValue > uint64_t{INT64_MAX})) {
    reject("it must be an integer of 64 bits");
    return min;
  }
  const int64_t value = value_->get<int64_t>();
  if (value < min) reject("it must be at least " + std::to_string(min));
  if (value > max) reject("it must be at most " + std::to_string(max));
  return value < min || value > max ? min : value;
}

}  // namespace normc::runtime
