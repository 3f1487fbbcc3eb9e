#include "runtime/launch/hmac.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Bytes first, first + 1, ...
std::string counting(size_t size, unsigned char first = 0) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(first + i);
  return bytes;
}

}  // namespace

// The examples that NIST publishes for FIPS 198-1, with keys of, below and above a block.
TEST_CASE("HMAC-SHA-256 of the standard's examples") {
  CHECK(hex(hmac_sha256(counting(64), "Sample message for keylen=blocklen")) ==
        "8bb9a1db9806f20df7f77b82138c7914d174d59e13dc4d0169c9057b133e1d62");
  CHECK(hex(hmac_sha256(counting(32), "Sample message for keylen<blocklen")) ==
        "a28cf43130ee696a98f14a37678b56bcfcbdd9e5cf69717fecf5480f0ebdf790");
  CHECK(hex(hmac_sha256(counting(100), "Sample message for keylen=blocklen")) ==
        "bdccb6c72ddeadb500ae768386cb38cc41c63dbb0878ddb9c7a38a431b78378d");
}

TEST_CASE("HMAC-SHA-256 of an empty key and message") {
  CHECK(hex(hmac_sha256("", "")) ==
        "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("secret comparison") {
  CHECK(equal_secretly("abc", "abc"));
  CHECK_FALSE(equal_secretly("abc", "abd"));
  CHECK_FALSE(equal_secretly("abc", "ab"));
  CHECK(equal_secretly("", ""));
}

}  // namespace sgtc::runtime
