#include "import/checks.h"

#include "support/diagnostics.h"

namespace sgtc {

int64_t checked_factor(int64_t value, int64_t least, const std::string& what) {
  if (value >= least && value <= kMaxFactor) return value;
  throw Error(what + ": expected " + std::to_string(least) + " to " + std::to_string(kMaxFactor) +
              ", found " + std::to_string(value));
}

int64_t checked_list_size(const std::vector<int64_t>& sizes, const std::string& what) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(count, size, &count) || count > kMaxListed) {
      throw Error(what + " would be a list of more than " + std::to_string(kMaxListed) +
                  " numbers, the limit; make the tensor smaller");
    }
  }
  return count;
}

}  // namespace sgtc
