#include "runtime/core/Error.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace normc::runtime {
namespace {

// Plain bytes: no destructor at thread exit, so the library can be unloaded.
thread_local char lastErrorText[4096] = "";

}  // namespace

Message& Message::operator<<(std::string_view text) {
  const size_t room = kCapacity - size_;
  const size_t taken = std::min(room, text.size());
  std::memcpy(text_ + size_, text.data(), taken);
  size_ += taken;
  if (taken < text.size()) std::memcpy(text_ + kCapacity - 3, "...", 3);
  return *this;
}

Message& Message::operator<<(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  return *this << std::string_view(digits, end.ptr - digits);
}

Message& Message::addInteger(int64_t value) {
  if (value >= 0) return addUnsigned(value);
  return (*this << "-").addUnsigned(-static_cast<uint64_t>(value));
}

Message& Message::addUnsigned(uint64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  return *this << std::string_view(digits, end.ptr - digits);
}

normc_status setLastError(normc_status status, const Message& message) {
  static_assert(sizeof lastErrorText > sizeof(Message) - 64);
  const std::string_view text = message.text();
  const size_t size = std::min(text.size(), sizeof lastErrorText - 1);
  std::memcpy(lastErrorText, text.data(), size);
  lastErrorText[size] = '\0';
  return status;
}

const char* lastError() { return lastErrorText; }

}  // namespace normc::runtime
