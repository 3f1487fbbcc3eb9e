#include "runtime/sha256.h"

#include <string>

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(sha256_hex("", 0) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc", 3) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  CHECK(sha256_hex(two_blocks.data(), two_blocks.size()) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("SHA-256 does not depend on how the data is cut") {
  const std::string data(1000, 'a');
  for (size_t cut : {1, 63, 64, 65, 128, 999}) {
    Sha256 hash;
    hash.update(data.data(), cut);
    hash.update(data.data() + cut, data.size() - cut);
    CHECK(hash.finish() == sha256_hex(data.data(), data.size()));
  }
}

TEST_CASE("SHA-256 of a million times a") {
  const std::string data(1000000, 'a');
  CHECK(sha256_hex(data.data(), data.size()) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace sgtc::runtime
