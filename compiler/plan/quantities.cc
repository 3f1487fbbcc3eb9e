#include "plan/quantities.h"

#include <array>
#include <cstdio>

namespace sgtc {
namespace {

std::string one_decimal(double value, const char* unit) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, unit);
  return text.data();
}

// `value` in the largest unit of which it has at least one.
template <size_t n>
std::string scaled(double value, double step, const std::array<const char*, n>& units) {
  size_t unit = 0;
  while (unit + 1 < n && value >= step) {
    value /= step;
    ++unit;
  }
  return one_decimal(value, units[unit]);
}

}  // namespace

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  return scaled(static_cast<double>(bytes) / 1024, 1024, kUnits);
}

std::string count_text(int64_t count) {
  if (count < 1000) return std::to_string(count);
  static constexpr std::array<const char*, 5> kUnits = {"k", "M", "G", "T", "P"};
  return scaled(static_cast<double>(count) / 1000, 1000, kUnits);
}

std::string exact_text(int64_t count) {
  std::string text = std::to_string(count);
  const size_t digits_begin = count < 0 ? 1 : 0;
  for (size_t end = text.size(); end > digits_begin + 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

std::string seconds_text(double seconds) {
  static constexpr std::array<const char*, 4> kUnits = {"ns", "us", "ms", "s"};
  return scaled(seconds * 1e9, 1000, kUnits);
}

std::string plural(int64_t count, const std::string& noun) {
  return exact_text(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace sgtc
