// SHA-256 (FIPS 180-4) of a stream of bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sgtc::runtime {

class Sha256 {
 public:
  void update(const void* data, size_t size);
  /// 64 hexadecimal digits. Call it once, after all data.
  std::string finish();
  /// The same as bytes.
  std::array<unsigned char, 32> finish_bytes();

 private:
  void compress(const unsigned char* block);

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char pending_[64] = {};
  uint64_t total_ = 0;  // bytes so far
};

/// The hash of one piece of memory.
std::string sha256_hex(const void* data, size_t size);

}  // namespace sgtc::runtime
