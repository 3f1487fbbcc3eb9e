#include "random.h"

#include <bit>

#include "elementary.h"

namespace sgtc::runtime {
namespace {

// In (0, 1): 32 bits and a half.
double unit(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

std::array<uint32_t, 4> words_of_group(uint64_t key, int64_t group) {
  const uint64_t bits = static_cast<uint64_t>(group);
  return philox({static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0, 0}, key);
}

// Two standard normal numbers from two words (Box and Muller).
void normal_pair(uint32_t first, uint32_t second, double* pair) {
  const double radius = square_root(-2 * natural_log(unit(first)));
  double cosine;
  double sine;
  cosine_sine(unit(second), cosine, sine);
  pair[0] = radius * cosine;
  pair[1] = radius * sine;
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t low = static_cast<uint32_t>(key);
  uint32_t high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return counter;
}

uint64_t random_key(int64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  const uint64_t bits = static_cast<uint64_t>(seed);
  const std::array<uint32_t, 4> mixed =
      philox({static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0, 1}, hash);
  return static_cast<uint64_t>(mixed[1]) << 32 | mixed[0];
}

void fill_normal(uint64_t key, double a, double b, int64_t count, double* values,
                 int64_t first_element) {
  double numbers[4] = {};
  int64_t group = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = first_element + i;
    if (element / 4 != group) {
      group = element / 4;
      const std::array<uint32_t, 4> words = words_of_group(key, group);
      normal_pair(words[0], words[1], numbers);
      normal_pair(words[2], words[3], numbers + 2);
    }
    values[i] = a + b * numbers[element % 4];
  }
}

void fill_uniform(uint64_t key, double a, double b, int64_t count, double* values,
                  int64_t first_element) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = first_element + i;
    const uint32_t word = words_of_group(key, element / 4)[static_cast<size_t>(element % 4)];
    values[i] = a + (b - a) * unit(word);
  }
}

int64_t permuted(int64_t index, int64_t count, uint64_t key) {
  if (count <= 1) return index;
  const int half = (std::bit_width(static_cast<uint64_t>(count - 1)) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half;
    uint64_t right = value & mask;
    for (uint32_t round = 0; round < 6; ++round) {
      const uint32_t mixed = philox(
          {static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32), round, 2}, key)[0];
      const uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(value);
}

}  // namespace sgtc::runtime
