// The parameters of the helper kernels of GPU tests.
#pragma once

#include <stdint.h>

namespace sgtc::testing {

inline constexpr uint32_t kHelperThreads = 256;

/// fill_random: elements[i] = random_element(seed, i, scale).
struct FillParameters {
  uint16_t* elements;
  uint64_t count;
  uint32_t seed;
  float scale;
};

/// count_poison: counts[0] += elements of [rows, columns] that are still kPoison, counts[1] +=
/// elements of the padding [rows, columns … stride) that are not.
struct PoisonParameters {
  const uint16_t* elements;
  uint64_t rows, columns, stride;
  uint64_t* counts;
};
/// A NaN that no kernel computes.
inline constexpr uint16_t kPoison = 0xffad;
inline constexpr uint32_t kPoisonWord = 0xffadffad;

/// count_differences: counts[0] += words in which two tensors differ.
struct DifferenceParameters {
  const uint32_t* a;
  const uint32_t* b;
  uint64_t words;
  uint64_t* counts;
};

}  // namespace sgtc::testing
