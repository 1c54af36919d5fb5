// The number in an enumeration that a C caller filled.
#pragma once

#include <cstring>

namespace normc::runtime {

/// It may be any: to load one that the enumeration does not name as the enumeration would be undefined.
template <typename Enum>
int uncheckedEnumValue(const Enum& value) {
  int number;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace normc::runtime
