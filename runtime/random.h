// Random numbers of a run: initial values and the order of samples. All are functions of a key and
// a counter, so neither threads nor a resume change them, and of integer and basic floating-point
// arithmetic alone, so neither does the C library.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sgtc::runtime {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key);

/// A key from a seed and a name (FNV-1a, then mixed).
uint64_t random_key(int64_t seed, std::string_view name);

/// Fills `values` with normal (mean a, deviation b) or uniform (from a to b) numbers; element e
/// depends on (key, e) only.
void fill_normal(uint64_t key, double a, double b, int64_t count, double* values,
                 int64_t first_element);
void fill_uniform(uint64_t key, double a, double b, int64_t count, double* values,
                  int64_t first_element);

/// Element `index` of a permutation of 0 … count-1 that `key` selects, without a table: a Feistel
/// network over the next even number of bits, walked until it lands inside.
int64_t permuted(int64_t index, int64_t count, uint64_t key);

}  // namespace sgtc::runtime
