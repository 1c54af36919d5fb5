#include "runtime/package/JsonReader.h"

#include <algorithm>

namespace normc::runtime {
namespace {

const JsonValue nothing;

/// Characters of a value in an error.
constexpr size_t kShown = 60;

}  // namespace

void JsonReader::fault(std::string text) const {
  if (failed()) return;
  *fault_ = {NORMC_DATA_LOSS, std::move(text)};
}

void JsonReader::reject(std::string_view rule) const {
  std::string shown = value_->text(kShown);
  if (shown.size() > kShown) shown = shown.substr(0, kShown - 3) + "...";
  fault(path_ + " is " + shown + "; " + std::string(rule));
}

std::string JsonReader::pathTo(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

JsonReader JsonReader::operator[](const char* key) const {
  if (const JsonValue* member = value_->find(key)) return {*member, pathTo(key), *fault_};
  fault(pathTo(key) + " is missing");
  return {nothing, pathTo(key), *fault_};
}

std::optional<JsonReader> JsonReader::find(const char* key) const {
  const JsonValue* member = value_->find(key);
  if (!member || member->isNull()) return std::nullopt;
  return JsonReader(*member, pathTo(key), *fault_);
}

JsonReader JsonReader::at(std::string_view place) const {
  const JsonValue* here = value_;
  for (std::string_view rest = place; here && !rest.empty();) {
    const bool index = rest.front() == '[';
    const size_t end = std::min(index ? rest.find(']') : rest.find_first_of(".["), rest.size());
    const std::string step(rest.substr(index, end - index));
    here = index ? &here->get<JsonValue::Array>()->at(std::stoul(step)) : here->find(step);
    rest.remove_prefix(std::min(index ? end + 1 : end, rest.size()));
    if (rest.starts_with('.')) rest.remove_prefix(1);
  }
  if (!here) fault(pathTo(place) + " is missing");
  return {here ? *here : nothing, pathTo(place), *fault_};
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  std::vector<std::pair<std::string, JsonReader>> result;
  const auto* object = value_->get<JsonValue::Object>();
  if (!object) {
    reject("it must be an object");
    return result;
  }
  for (const JsonValue::Member& member : *object) {
    if (member.key.find('\0') != std::string::npos) reject("its names must not contain a zero byte");
    result.emplace_back(member.key, JsonReader(member.value, pathTo(member.key), *fault_));
  }
  return result;
}

std::vector<JsonReader> JsonReader::items(size_t limit) const {
  std::vector<JsonReader> result;
  const auto* array = value_->get<JsonValue::Array>();
  if (!array) {
    reject("it must be an array");
  } else if (array->size() > limit) {
    fault(path_ + " has " + std::to_string(array->size()) + " elements; at most " + std::to_string(limit) +
          " are allowed");
  } else {
    result.reserve(array->size());
    for (size_t i = 0; i < array->size(); ++i)
      result.emplace_back((*array)[i], path_ + "[" + std::to_string(i) + "]", *fault_);
  }
  return result;
}

std::string JsonReader::string() const {
  if (const auto* text = value_->get<std::string>()) {
    if (text->find('\0') == std::string::npos) return *text;
    reject("it must not contain a zero byte");
  } else {
    reject("it must be a string");
  }
  return {};
}

bool JsonReader::boolean() const {
  if (const auto* value = value_->get<bool>()) return *value;
  reject("it must be true or false");
  return false;
}

double JsonReader::number() const {
  if (const auto* value = value_->get<double>()) return *value;
  if (const auto* value = value_->get<int64_t>()) return static_cast<double>(*value);
  if (const auto* value = value_->get<uint64_t>()) return static_cast<double>(*value);
  reject("it must be a number");
  return 0;
}

int64_t JsonReader::integer(int64_t min, int64_t max) const {
  const auto* negative = value_->get<int64_t>();
  const auto* unsignedValue = value_->get<uint64_t>();  // null for any other integer
  if (!negative && (!unsignedValue || *unsignedValue > uint64_t{INT64_MAX})) {
    reject("it must be an integer of 64 bits");
    return min;
  }
  const int64_t value = negative ? *negative : static_cast<int64_t>(*unsignedValue);
  if (value < min) reject("it must be at least " + std::to_string(min));
  if (value > max) reject("it must be at most " + std::to_string(max));
  return value < min || value > max ? min : value;
}

}  // namespace normc::runtime
