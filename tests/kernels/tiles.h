// What the tests of kernels share: the tile visitor, poisoned buffers and random tensors.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace sgtc::testing {

/// The destination of sgtc_tile_store in tests: a row-major [batch, rows, columns] of floats.
struct TileTarget {
  float* result;
  int64_t rows;
  int64_t columns;
};

/// n numbers in [-1, 1).
template <typename T = float>
std::vector<T> random_numbers(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(n));
  for (T& value : values) value = static_cast<T>(uniform(random));
  return values;
}

/// n NaNs: a kernel must overwrite each.
template <typename T = float>
std::vector<T> poisoned(int64_t n) {
  return std::vector<T>(static_cast<size_t>(n), std::numeric_limits<T>::quiet_NaN());
}

/// Whether two vectors have equal bits.
template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// The largest |a - b| / (1 + |b|); infinite if a NaN is on one side only.
template <typename T, typename U>
double largest_difference(const std::vector<T>& a, const std::vector<U>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (std::isnan(x) && std::isnan(y)) continue;
    const double difference = x == y ? 0 : std::fabs(x - y) / (1 + std::fabs(y));
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

/// Runs `kernel(begin, end)` over all blocks in parts of `step`.
template <typename Kernel>
void run_in_parts(int64_t blocks, int64_t step, Kernel kernel) {
  for (int64_t begin = 0; begin < blocks; begin += step) {
    kernel(begin, begin + step < blocks ? begin + step : blocks);
  }
}

}  // namespace sgtc::testing
