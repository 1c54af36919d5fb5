// Structs at the C boundary begin with their size, so that programs and libraries of different versions are
// compatible: a field that the caller does not know is zero, and a field that the library does not know must
// be zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/core/Error.h"

namespace normc::runtime {

/// A larger size means an uninitialised field, not a newer header.
inline constexpr size_t kLargestStruct = 4096;

template <typename T>
[[gnu::cold]] normc_status wrongStructSize(size_t size, const char* name) {
  return fail(NORMC_INVALID_ARGUMENT, name, ".struct_size is ", size, "; set it to sizeof(", name, "), ",
              sizeof(T), " with this header");
}

/// Copies `*in` to `out`. `name`: the struct's name in errors. `required`: the size up to the last required
/// field; no published header had less.
template <typename T>
normc_status readStruct(const T* in, T& out, const char* name, size_t required) {
  const size_t size = in->struct_size;
  if (size < required || size > kLargestStruct || size % sizeof(size_t) != 0)
    return wrongStructSize<T>(size, name);
  const char* const bytes = reinterpret_cast<const char*>(in);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](char c) { return c != 0; }))
    return fail(NORMC_FAILED_PRECONDITION, name, " sets a field that this library (", normc_version(),
                ") does not know; use a newer library");
  out = T{};
  std::memcpy(&out, in, std::min(size, sizeof(T)));
  out.struct_size = sizeof(T);
  return NORMC_OK;
}

/// Checks the size of a struct that writeStruct() will fill.
template <typename T>
normc_status checkStruct(const T* out, const char* name) {
  const size_t size = out->struct_size;
  if (size < sizeof(size_t) || size > kLargestStruct || size % sizeof(size_t) != 0)
    return wrongStructSize<T>(size, name);
  return NORMC_OK;
}

/// Fills the part of `*out` that the caller's header has; the rest of a longer struct becomes zero.
template <typename T>
normc_status writeStruct(const T& value, T* out, const char* name) {
  NORMC_TRY(checkStruct(out, name));
  const size_t size = out->struct_size;
  char* const bytes = reinterpret_cast<char*>(out);
  std::memcpy(bytes + sizeof(size_t), reinterpret_cast<const char*>(&value) + sizeof(size_t),
              std::min(size, sizeof(T)) - sizeof(size_t));
  if (size > sizeof(T)) std::memset(bytes + sizeof(T), 0, size - sizeof(T));
  return NORMC_OK;
}

}  // namespace normc::runtime
