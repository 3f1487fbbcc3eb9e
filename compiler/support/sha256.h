// SHA-256 (FIPS 180-4), for fingerprints and names of kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sgtc {

/// Hashes a stream of bytes given in pieces of any size.
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// The digest of all bytes so far as 64 lower-case hexadecimal digits. Ends the stream.
  std::string hex_digest();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t length_ = 0;  // bytes so far
};

/// The digest of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace sgtc
