// Counter-based random numbers, freestanding: the interpreter and the kernels include this file,
// so that a program draws the same numbers wherever it runs.
//
// Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011), four 32-bit words per counter. Element e of a tensor uses word e % 4 of
// counter e / 4. The key is a mix of the run's seed and the node's stream; the counter holds the
// block of elements (64 bits), the step and the global micro-batch (32 bits each). For one seed,
// different streams have different keys.
#pragma once

#include <stdint.h>

namespace sgtc::random {

struct Block {
  uint32_t words[4];
};

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t stream_key(int64_t seed, int64_t stream) {
  return mix(mix(static_cast<uint64_t>(seed)) + static_cast<uint64_t>(stream));
}

/// Ten rounds of Philox4x32.
constexpr Block philox(uint64_t key, Block counter) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  Block c = counter;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53u} * c.words[0];
    const uint64_t p1 = uint64_t{0xcd9e8d57u} * c.words[2];
    c = {{static_cast<uint32_t>(p1 >> 32) ^ c.words[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c.words[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c;
}

/// The words of elements 4 * block … 4 * block + 3.
constexpr Block block_of(uint64_t key, int64_t block, int64_t step, int64_t micro_batch) {
  const uint64_t position = static_cast<uint64_t>(block);
  return philox(key, {{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                       static_cast<uint32_t>(step), static_cast<uint32_t>(micro_batch)}});
}

/// A multiple of 2^-24 in [0, 1), exact in float.
constexpr float unit_closed_open(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// A multiple of 2^-24 in (0, 1], exact in float: the argument of the logarithm below.
constexpr float unit_open_closed(uint32_t word) {
  return static_cast<float>((word >> 8) + 1) * 0x1p-24f;
}

// Normal numbers (Box and Muller): with u = unit_open_closed(word 0), v = unit_closed_open(word 1)
// and r = sqrt(-2 log u), elements 0 and 1 of a block are r cos(2 pi v) and r sin(2 pi v); words 2
// and 3 give elements 2 and 3 alike.

}  // namespace sgtc::random
