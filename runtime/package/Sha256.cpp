#include "runtime/package/Sha256.h"

// The low-level functions: the high-level ones set up a whole library with
// locks, thread-local data and exit handlers, for one hash.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace normc::runtime {

std::string sha256(const void* data, size_t bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, data, bytes);
  SHA256_Final(digest, &state);
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace normc::runtime
