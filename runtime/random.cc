#include "random.h"

#include <bit>
#include <cmath>

namespace sgtc::runtime {
namespace {

constexpr double kTau = 6.283185307179586476925;
constexpr double kLn2 = 0.693147180559945309417;

// In (0, 1): 32 bits and a half.
double unit(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

// ln(x) for x in (0, 1): x = m 2^e with m near 1, then the series of artanh((m-1)/(m+1)).
double natural_log(double x) {
  int exponent;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return 2 * s * sum + exponent * kLn2;
}

// cos and sin of x in [-pi/4, pi/4], by their Taylor series.
double small_cosine(double x) {
  double tail = 0;
  for (int n = 18; n >= 2; n -= 2) tail = (1 - tail) * x * x / (n * (n - 1));
  return 1 - tail;
}

double small_sine(double x) {
  double tail = 0;
  for (int n = 19; n >= 3; n -= 2) tail = (1 - tail) * x * x / (n * (n - 1));
  return x * (1 - tail);
}

// cos(2 pi u) and sin(2 pi u) for u in (0, 1).
void cosine_sine(double u, double& cosine, double& sine) {
  const int quarter = static_cast<int>(u * 4 + 0.5);
  const double x = (u - quarter * 0.25) * kTau;
  const double c = small_cosine(x);
  const double s = small_sine(x);
  switch (quarter & 3) {
    case 0:
      cosine = c, sine = s;
      break;
    case 1:
      cosine = -s, sine = c;
      break;
    case 2:
      cosine = -c, sine = -s;
      break;
    default:
      cosine = s, sine = -c;
      break;
  }
}

std::array<uint32_t, 4> words_of_group(uint64_t key, int64_t group) {
  const uint64_t bits = static_cast<uint64_t>(group);
  return philox({static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0, 0}, key);
}

// Two standard normal numbers from two words (Box and Muller).
void normal_pair(uint32_t first, uint32_t second, double* pair) {
  const double radius = std::sqrt(-2 * natural_log(unit(first)));
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
