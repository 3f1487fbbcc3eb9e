// Where a run stands: all that a checkpoint holds beside tensors.
#pragma once

#include <cstdint>

namespace sgtc::runtime {

/// The next row that a step takes.
struct DataPosition {
  int64_t epoch = 0;
  int64_t row = 0;
};

struct Progress {
  int64_t step = 0;     // finished steps
  int64_t skipped = 0;  // of them, without effect because a gradient was not finite
  int64_t seed = 0;
  DataPosition position;
};

}  // namespace sgtc::runtime
