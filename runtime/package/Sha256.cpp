#include "runtime/package/Sha256.h"

// Uses the low-level functions: the high-level ones initialise the whole library, with locks, thread-local
// data and exit handlers.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace normc::runtime {

Digest digestOf(std::string_view bytes) {
  Digest digest;
  static_assert(digest.size() == SHA256_DIGEST_LENGTH);
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, bytes.data(), bytes.size());
  SHA256_Final(digest.data(), &state);
  return digest;
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace normc::runtime
