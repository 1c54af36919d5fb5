// The types of tensors by their names in a problem.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/normc.h"

namespace normc::hosts {

/// DLPack's codes of types that older headers of it do not name.
inline constexpr uint8_t kFloat8E4M3 = 10, kFloat8E8M0 = 14;

struct NamedType {
  std::string_view name;
  DLDataType type;
  bool floating;  ///< x and parameters may have it
};
inline constexpr NamedType kTypes[] = {
    {"f32", {kDLFloat, 32, 1}, true},     {"f64", {kDLFloat, 64, 1}, true},
    {"bf16", {kDLBfloat, 16, 1}, true},   {"f16", {kDLFloat, 16, 1}, true},
    {"i8", {kDLInt, 8, 1}, false},        {"e4m3", {kFloat8E4M3, 8, 1}, false},
    {"e8m0", {kFloat8E8M0, 8, 1}, false},
};

/// Returns the name of a type of the table; "" of another.
constexpr std::string_view nameOf(DLDataType type) {
  for (const NamedType& each : kTypes)
    if (each.type.code == type.code && each.type.bits == type.bits) return each.name;
  return "";
}

/// Returns the type of x or of a parameter; one without bits for no name. Throws for any other name.
inline DLDataType floatingNamed(std::string_view name) {
  if (name.empty()) return {};
  std::string known;
  for (const NamedType& each : kTypes) {
    if (!each.floating) continue;
    if (each.name == name) return each.type;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw std::invalid_argument("no type has the name '" + std::string(name) + "'; known are " + known);
}

}  // namespace normc::hosts
