// Equal layers of a model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sgtc {

/// `count` runs of `period` items that are equal one by one, from item `first` on.
struct Repeats {
  size_t first = 0;
  size_t period = 0;
  size_t count = 0;  // 0: nothing repeats
};

/// The repetition that covers most of a sequence of kernels; of several, the one of the shortest
/// period. A single item that occurs twice in a row counts as well.
Repeats find_repeats(const std::vector<std::string>& symbols);

}  // namespace sgtc
