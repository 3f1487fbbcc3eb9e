#include "ir/limits.h"

#include <algorithm>

#include "support/diagnostics.h"

namespace sgtc {

void check_size(const TensorType& type) {
  if (std::ssize(type.shape) > kMaxRank) {
    throw Error("a tensor has " + std::to_string(type.shape.size()) +
                " dimensions, expected at most " + std::to_string(kMaxRank) +
                "; reshape it to fewer");
  }
  int64_t bytes = size_of(type.dtype);
  for (const int64_t size : type.shape) {
    if (size < 0) throw Error("shape " + to_string(type.shape) + " has a negative dimension");
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes) ||
        bytes > kMaxTensorBytes) {
      throw Error("a tensor of type " + std::string(name_of(type.dtype)) + " and shape " +
                  to_string(type.shape) + " has more than " + std::to_string(kMaxTensorBytes) +
                  " bytes, the limit; make it smaller");
    }
  }
}

}  // namespace sgtc
