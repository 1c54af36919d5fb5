// SHA-256: the examples of FIPS 180-4, and OpenSSL's results for every length of a last block.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "runtime/package/Sha256.h"

namespace normc::runtime {
namespace {

TEST(Sha256, HashesTheExamplesOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, AgreesWithOpensslForAnyLength) {
  std::string text;
  for (size_t length = 0; length < 300; ++length, text += static_cast<char>(length * 167 + 13)) {
    Digest expected;
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), expected.data());
    ASSERT_EQ(digestOf(text), expected) << length;
  }
}

}  // namespace
}  // namespace normc::runtime
