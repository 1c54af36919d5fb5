// Errors of the runtime: a function returns a status, and the calling thread keeps one sentence about it for
// normc_last_error().
//
// Nothing here allocates or throws, so execute may refuse a call in the same way as plan creation.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "runtime/normc.h"

namespace normc::runtime {

/// One sentence in a fixed buffer. A longer one is cut off and marked with "...".
class Message {
 public:
  Message& operator<<(std::string_view text);
  Message& operator<<(const char* text) { return *this << std::string_view(text ? text : "(null)"); }
  template <std::integral T>
  Message& operator<<(T value) {
    if constexpr (std::is_unsigned_v<T>)
      return addUnsigned(value);
    else
      return addInteger(value);
  }
  Message& operator<<(double value);

  std::string_view text() const { return {text_, size_}; }

 private:
  Message& addInteger(int64_t value);
  Message& addUnsigned(uint64_t value);

  static constexpr size_t kCapacity = 4000;
  char text_[kCapacity];
  size_t size_ = 0;
};

/// Makes `message` the thread's last error and returns `status`.
normc_status setLastError(normc_status status, const Message& message);
const char* lastError();

/// Records the sentence made of the parts and returns the status: `return fail(NORMC_INVALID_ARGUMENT, "x has
/// ", n, " features");`
template <typename... Parts>
[[gnu::cold, gnu::noinline]] normc_status fail(normc_status status, const Parts&... parts) {
  Message message;
  (message << ... << parts);
  return setLastError(status, message);
}

/// The device or its driver does not accept a kernel, but may accept another one of the package. Used inside
/// the runtime only (its number is that of absl's UNIMPLEMENTED); plan creation returns FAILED_PRECONDITION
/// instead.
inline constexpr auto kUnfit = static_cast<normc_status>(12);

}  // namespace normc::runtime

/// Returns a failure of `expression` to the caller.
#define NORMC_TRY(expression)                                                        \
  do {                                                                               \
    if (const normc_status status_ = (expression); status_ != NORMC_OK) [[unlikely]] \
      return status_;                                                                \
  } while (false)
