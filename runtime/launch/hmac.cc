#include "launch/hmac.h"

#include "sha256.h"

namespace sgtc::runtime {
namespace {

constexpr size_t kBlock = 64;

std::string digest_of(const std::string& first, std::string_view second) {
  Sha256 hash;
  hash.update(first.data(), first.size());
  hash.update(second.data(), second.size());
  const auto bytes = hash.finish_bytes();
  return {bytes.begin(), bytes.end()};
}

std::string xored(std::string key, unsigned char pad) {
  for (char& c : key) c = static_cast<char>(static_cast<unsigned char>(c) ^ pad);
  return key;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string block(key);
  if (block.size() > kBlock) block = digest_of(block, {});
  block.resize(kBlock, '\0');
  return digest_of(xored(block, 0x5c), digest_of(xored(block, 0x36), message));
}

bool equal_secretly(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace sgtc::runtime
