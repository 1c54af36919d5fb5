#include "runtime/package/ManifestJson.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "runtime/abi/ManifestKeys.h"
#include "runtime/abi/PackageHeader.h"
#include "runtime/package/ManifestRules.h"

namespace normc::package {
namespace {

using runtime::JsonFault;
using runtime::JsonReader;
using runtime::JsonValue;

constexpr size_t kMaxDepth = 16;
constexpr std::string_view kInvalid = "the manifest of the package is not valid: ";

std::string_view name(std::string_view word) { return word; }
template <typename Enum>
std::string_view nameOf(Enum value) {
  return name(value);
}

/// Returns the factor of a name. ManifestRules.h checks whether such a size is legal at its place.
std::optional<Factor> factorNamed(std::string_view text) {
  for (const Factor factor : {kSegments, kRows, kFeatures})
    if (text == name(factor.kind)) return factor;
  for (size_t phase = 0; phase < kMaxPhases; ++phase)
    if (text == std::string(name(Factor::Chunks)) + "." + std::to_string(phase)) return chunksOf(phase);
  return std::nullopt;
}

//===-- Reading ---------------------------------------------------------------------===//

void read(const JsonReader& at, std::string& v) { v = at.string(); }
void read(const JsonReader& at, bool& v) { v = at.boolean(); }
void read(const JsonReader& at, double& v) { v = at.number(); }
template <std::integral T>
void read(const JsonReader& at, T& v, Whole rule) {
  v = static_cast<T>(at.integer(rule.least, rule.most));
}

/// Reads one of several words. Any other value is a fault that lists them, and gives the first.
template <typename T, typename Word>
void read(const JsonReader& at, T& v, std::initializer_list<Word> legal) {
  const std::string text = at.string();
  std::string all;
  v = T(*legal.begin());
  for (const Word each : legal) {
    if (text == nameOf(each)) return void(v = T(each));
    all += (all.empty() ? "" : ", ") + std::string(nameOf(each));
  }
  at.reject("it must be one of " + all);
}

void read(const JsonReader& at, Factor& factor) {
  if (!at.isString()) {
    factor = {Factor::Fixed, at.integer(1)};
  } else if (const auto named = factorNamed(at.string())) {
    factor = *named;
  } else {
    at.reject("it is no size that is known here");
  }
}

template <bool ForPeople>
class Reading {
 public:
  static constexpr bool kReads = true, kForPeople = ForPeople;

  explicit Reading(const JsonReader& at) : at_(at) {}

  template <typename... Value>
  void operator()(const char* key, Value&&... value) {
    take(at_[key], value...);
  }
  template <typename... Value>
  void later(const char* key, Value&&... value) {
    if (const auto found = at_.find(key)) take(*found, value...);
  }
  template <typename... Value>
  void maybe(const char* key, Value&&... value) {
    later(key, value...);
  }
  template <typename Body>
  void group(const char* key, Body body) {
    Reading inner(at_[key]);
    body(inner);
  }

 private:
  template <typename T, typename... Rule>
  static void take(const JsonReader& at, T& v, Rule... rule) {
    if constexpr (requires(Reading r) { describe(r, v); }) {
      Reading inner(at);
      describe(inner, v);
    } else {
      read(at, v, rule...);
    }
  }
  template <typename T, typename... Rule>
  static void take(const JsonReader& at, std::optional<T>& v, Rule... rule) {
    take(at, v.emplace(), rule...);
  }
  template <typename T>
  static void take(const JsonReader& at, std::vector<T>& list, Most most) {
    for (const JsonReader& item : at.items(most.count))
      if (!at.failed()) take(item, list.emplace_back());
  }
  template <typename T, typename... Rule>
  static void take(const JsonReader& at, std::map<std::string, T>& map, Rule... rule) {
    for (const auto& [name, value] : at.members()) take(value, map[name], rule...);
  }

  JsonReader at_;
};

/// Returns the depth of nesting, which limits the recursion of every function on the tree.
size_t depth(std::string_view json) {
  size_t depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inString) {
      if (c == '\\') ++i;
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

/// Versions are checked first: the other keys of a newer version may have another meaning.
JsonFault checkVersions(const JsonReader& root, const JsonFault& fault, std::string_view reader) {
  const int64_t schema = root["schema"].integer(1), abi = root["abi"].integer(1);
  if (root.failed()) return {fault.status, std::string(kInvalid) + fault.text};
  const std::string by = "; " + std::string(reader);
  if (schema != kSchema)
    return {NORMC_FAILED_PRECONDITION, "the package has manifest schema " + std::to_string(schema) + by +
                                           " reads schema " + std::to_string(kSchema) +
                                           "; use a newer runtime"};
  if (abi != NORMC_KERNEL_ABI)
    return {NORMC_FAILED_PRECONDITION, "the kernels of the package have ABI " + std::to_string(abi) + by +
                                           " calls ABI " + std::to_string(NORMC_KERNEL_ABI) +
                                           "; compile the package again or use another runtime"};
  return {};
}

/// Rejects an element of a list for which `fault` returns a fault.
template <typename T, typename Judge>
void judgeAll(const JsonReader& at, std::vector<T>& list, Judge fault) {
  if (at.failed()) return;
  const std::vector<JsonReader> items = at.items(list.size());
  for (size_t i = 0; i < list.size() && !at.failed(); ++i)
    if (const std::optional<Fault> found = fault(list[i])) items[i].at(found->place).reject(found->rule);
}

template <bool ForPeople>
JsonFault readJson(std::string_view json, uint64_t fileBytes, std::string_view reader, Manifest& manifest) {
  if (const size_t levels = depth(json); levels > kMaxDepth)
    return {NORMC_DATA_LOSS, "the manifest of the package is nested " + std::to_string(levels) +
                                 " levels deep; at most " + std::to_string(kMaxDepth) + " are allowed"};
  const std::optional<JsonValue> tree = runtime::parseJson(json);
  if (!tree) return {NORMC_DATA_LOSS, "the manifest of the package is not JSON"};
  JsonFault wrong;
  const JsonReader root(*tree, "", wrong);
  if (JsonFault newer = checkVersions(root, wrong, reader); newer.status != NORMC_OK) return newer;
  Reading<ForPeople> reading(root);
  describe(reading, manifest);
  judgeAll(root["blobs"], manifest.blobs, [&](const Blob& blob) { return fault(blob, fileBytes); });
  judgeAll(root["kernels"], manifest.kernels, [&](Kernel& kernel) { return resolve(kernel, manifest); });
  return root.failed() ? JsonFault{wrong.status, std::string(kInvalid) + wrong.text} : JsonFault{};
}

//===-- Writing ---------------------------------------------------------------------===//

class Writing {
 public:
  static constexpr bool kReads = false, kForPeople = true;

  template <typename T, typename... Rule>
  void operator()(const char* key, const T& v, Rule...) {
    object_.push_back({key, json(v)});
  }
  template <typename T, typename... Rule>
  void later(const char* key, const T& v, Rule...) {
    (*this)(key, v);
  }
  template <typename T, typename... Rule>
  void maybe(const char* key, const T& v, Rule...) {
    if (isThere(v)) (*this)(key, v);
  }
  template <typename Body>
  void group(const char* key, Body body) {
    Writing inner;
    body(inner);
    object_.push_back({key, {std::move(inner.object_)}});
  }

  template <typename T>
  static JsonValue json(const T& v) {
    if constexpr (requires(Writing w) { describe(w, v); }) {
      Writing inner;
      describe(inner, v);
      return {std::move(inner.object_)};
    } else if constexpr (std::is_enum_v<T>) {
      return {std::string(nameOf(v))};
    } else if constexpr (std::is_same_v<T, size_t>) {
      return {uint64_t(v)};
    } else {
      return {v};
    }
  }
  static JsonValue json(const Factor& factor) {
    if (factor.kind == Factor::Fixed) return {factor.value};
    const std::string phase = factor.kind == Factor::Chunks ? "." + std::to_string(factor.value) : "";
    return {std::string(package::name(factor.kind)) + phase};
  }
  template <typename T>
  static JsonValue json(const std::optional<T>& v) {
    return v ? json(*v) : JsonValue();
  }
  template <typename T>
  static JsonValue json(const std::vector<T>& list) {
    JsonValue::Array array;
    for (const T& each : list) array.push_back(json(each));
    return {std::move(array)};
  }
  template <typename T>
  static JsonValue json(const std::map<std::string, T>& map) {
    JsonValue::Object object;
    for (const auto& [name, value] : map) object.push_back({name, json(value)});
    return {std::move(object)};
  }

 private:
  template <typename T>
  static bool isThere(const T& v) {
    if constexpr (std::is_same_v<T, double>)
      return std::isfinite(v);
    else if constexpr (requires { v.has_value(); })
      return v.has_value();
    else
      return v != T();
  }

  JsonValue::Object object_;
};

}  // namespace

std::string writeManifest(const Manifest& manifest) { return Writing::json(manifest).text(SIZE_MAX); }

JsonFault readManifest(std::string_view json, uint64_t fileBytes, std::string_view reader,
                       Manifest& manifest) {
  return readJson<false>(json, fileBytes, reader, manifest);
}

std::string_view manifestTextOf(std::string_view package) {
  Header header;
  std::memcpy(&header, package.data(), sizeof header);
  return package.substr(sizeof header, header.manifestBytes);
}

Manifest wholeManifest(std::string_view json) {
  Manifest manifest;
  const JsonFault fault = readJson<true>(json, UINT64_MAX, "this program", manifest);
  if (fault.status == NORMC_OK) return manifest;
  const std::string text = fault.text.starts_with(kInvalid) ? fault.text.substr(kInvalid.size()) : fault.text;
  throw std::runtime_error("the manifest of the package is not one that normc writes: " + text);
}

}  // namespace normc::package
