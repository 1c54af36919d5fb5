#include "runtime/package/Sha256.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace normc::runtime {
namespace {

constexpr size_t kBlock = 64;
using Words = std::array<uint32_t, 8>;

// FIPS 180-4, 5.3.3 and 4.2.2: the first 32 bits of the fractions of square and cube roots of primes.
constexpr Words kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t turned(uint32_t x, int a, int b, int c) {
  return std::rotr(x, a) ^ std::rotr(x, b) ^ std::rotr(x, c);
}
uint32_t shifted(uint32_t x, int a, int b, int c) { return std::rotr(x, a) ^ std::rotr(x, b) ^ x >> c; }

/// FIPS 180-4, 6.2.2: adds one block of a message to the hash.
void addBlock(const unsigned char* block, Words& hash) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t, block += 4)
    w[t] = uint32_t{block[0]} << 24 | uint32_t{block[1]} << 16 | uint32_t{block[2]} << 8 | block[3];
  for (size_t t = 16; t < w.size(); ++t)
    w[t] = shifted(w[t - 2], 17, 19, 10) + w[t - 7] + shifted(w[t - 15], 7, 18, 3) + w[t - 16];
  auto [a, b, c, d, e, f, g, h] = hash;
  for (size_t t = 0; t < w.size(); ++t) {
    const uint32_t first = h + turned(e, 6, 11, 25) + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const uint32_t second = turned(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const Words added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < hash.size(); ++i) hash[i] += added[i];
}

}  // namespace

Digest digestOf(std::string_view bytes) {
  Words hash = kInitial;
  const auto* next = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= kBlock; next += kBlock, left -= kBlock) addBlock(next, hash);
  // The rest, a bit 1, zeros, and the length in bits.
  unsigned char end[2 * kBlock] = {};
  if (left > 0) std::memcpy(end, next, left);
  end[left] = 0x80;
  const size_t padded = left < kBlock - 8 ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i)
    end[padded - 1 - i] = static_cast<unsigned char>(uint64_t{bytes.size()} * 8 >> 8 * i);
  for (size_t i = 0; i < padded; i += kBlock) addBlock(end + i, hash);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<unsigned char>(hash[i / 4] >> (24 - i % 4 * 8));
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
