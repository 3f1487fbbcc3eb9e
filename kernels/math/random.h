// Random numbers of 16 neighbouring elements; the generator and the transformations are those of
// philox.h. The 16 elements lie in at most five blocks of four words: eight blocks are drawn side
// by side and the words are read from where the first element falls.
#pragma once

#include "math/normal.h"

SGTC_KERNELS_BEGIN

// Shared with host code, so it does not name the kernels' target itself.
#include "philox.h"

namespace sgtc::kernels {

typedef uint32_t V8u __attribute__((vector_size(32)));
typedef uint64_t V8ul __attribute__((vector_size(64)));

/// Eight blocks of four words, word by word.
struct Blocks {
  V8u words[4];
};

SGTC_INLINE Blocks philox_blocks(uint64_t key, uint64_t first_block, int64_t step,
                                 int64_t micro_batch) {
  const V8ul position = V8ul{0, 1, 2, 3, 4, 5, 6, 7} + first_block;
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  Blocks c = {{__builtin_convertvector(position, V8u), __builtin_convertvector(position >> 32, V8u),
               V8u{} + static_cast<uint32_t>(step), V8u{} + static_cast<uint32_t>(micro_batch)}};
#pragma clang loop unroll(full)
  for (int round = 0; round < 10; ++round) {
    const V8ul p0 = __builtin_convertvector(c.words[0], V8ul) * uint64_t{0xd2511f53u};
    const V8ul p1 = __builtin_convertvector(c.words[2], V8ul) * uint64_t{0xcd9e8d57u};
    c = {{__builtin_convertvector(p1 >> 32, V8u) ^ c.words[1] ^ k0,
          __builtin_convertvector(p1, V8u),
          __builtin_convertvector(p0 >> 32, V8u) ^ c.words[3] ^ k1,
          __builtin_convertvector(p0, V8u)}};
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c;
}

/// The words of elements first_element … first_element + 15, and for each the first and the second
/// word of its pair.
struct RandomWords {
  V16u own, first, second;
};

SGTC_INLINE RandomWords random_words(int64_t seed, int64_t step, int64_t stream,
                                     int64_t micro_batch, int64_t first_element) {
  const Blocks blocks = philox_blocks(random::stream_key(seed, stream),
                                      static_cast<uint64_t>(first_element >> 2), step, micro_batch);
  uint32_t words[32];
#pragma clang loop unroll(full)
  for (int block = 0; block < 8; ++block) {
#pragma clang loop unroll(full)
    for (int word = 0; word < 4; ++word) words[block * 4 + word] = blocks.words[word][block];
  }
  RandomWords result;
  const int64_t offset = first_element & 3;
#pragma clang loop unroll(full)
  for (int64_t i = 0; i < kLanes; ++i) {
    result.own[i] = words[offset + i];
    result.first[i] = words[(offset + i) & ~int64_t{1}];
    result.second[i] = words[(offset + i) | 1];
  }
  return result;
}

SGTC_INLINE V16f random_uniform(const RandomWords& words) {
  return convert<V16f>(bit_cast<V16i>(words.own >> 8)) * 0x1p-24f;
}

SGTC_INLINE V16f random_normal(const RandomWords& words, int64_t first_element) {
  const V16f u = convert<V16f>(bit_cast<V16i>((words.first >> 8) + 1)) * 0x1p-24f;
  const V16f v = convert<V16f>(bit_cast<V16i>(words.second >> 8)) * 0x1p-24f;
  const V16ul lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return normal_of_pair(u, v, (lane + static_cast<uint64_t>(first_element)) & 1);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
