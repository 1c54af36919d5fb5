// Reads an enumeration that a C caller filled.
#pragma once

#include <cstring>

namespace normc::runtime {

/// Returns the number that is stored, which may be none of the enumerators. To load such a number as the
/// enumeration would be undefined behaviour.
template <typename Enum>
int uncheckedEnumValue(const Enum& value) {
  int number;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace normc::runtime
