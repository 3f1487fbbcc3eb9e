// How long steps take, without allocating.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace sgtc::runtime {

/// The times of the latest steps but the first one, which also pays for cold caches and pages.
class StepTimes {
 public:
  void add(double milliseconds);
  /// Steps that count: at most the latest 1,024 but the first.
  int64_t count() const { return std::clamp<int64_t>(added_ - 1, 0, kKept); }
  /// Of these; there is at least one.
  double median() const;

 private:
  static constexpr size_t kKept = 1024;

  std::array<double, kKept> latest_ = {};
  int64_t added_ = 0;
};

}  // namespace sgtc::runtime
