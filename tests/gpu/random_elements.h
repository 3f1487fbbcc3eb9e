// Random bfloat16 elements that the device and the host compute alike, so that references need no
// copies of large tensors.
#pragma once

#include <stdint.h>

namespace sgtc::testing {

/// Bits of element `index` of the tensor `seed`: the finaliser of MurmurHash3 over both.
inline __attribute__((always_inline)) uint32_t random_bits(uint32_t seed, uint64_t index) {
  uint64_t h = index + seed * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
  return static_cast<uint32_t>(h >> 32);
}

/// The bits of a bfloat16 in [-scale, scale); `scale` is a power of two.
inline __attribute__((always_inline)) uint16_t random_element(uint32_t seed, uint64_t index,
                                                              float scale) {
  const float value =
      static_cast<float>(static_cast<int32_t>(random_bits(seed, index) >> 8) - (1 << 23)) *
      (scale / (1 << 23));
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace sgtc::testing
