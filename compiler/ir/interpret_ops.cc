#include "ir/interpret_ops.h"

#include <cmath>

#include "../kernels/include/philox.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {

int64_t position_in(const Shape& shape, const Shape& index) {
  const size_t skipped = index.size() - shape.size();
  int64_t position = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    position = position * shape[d] + (shape[d] == 1 ? 0 : index[skipped + d]);
  }
  return position;
}

int64_t checked_index(int64_t index, int64_t extent, bool from_end) {
  const int64_t counted = index < 0 && from_end ? index + extent : index;
  if (counted < 0 || counted >= extent) {
    throw Error("index " + std::to_string(index) + " is out of range for " +
                std::to_string(extent) + " elements");
  }
  return counted;
}

AxisView::AxisView(const Shape& shape, int64_t axis) {
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    const int64_t extent = shape[static_cast<size_t>(d)];
    if (d < axis) outer *= extent;
    if (d == axis) size = extent;
    if (d > axis) inner *= extent;
  }
}

double random_element(bool normal, uint64_t key, int64_t index, int64_t step, int64_t micro_batch) {
  const random::Block block = random::block_of(key, index / 4, step, micro_batch);
  const int64_t word = index % 4;
  if (!normal) return random::unit_closed_open(block.words[word]);
  const int64_t pair = word & ~int64_t{1};
  const double u = random::unit_open_closed(block.words[pair]);
  const double angle = 2 * M_PI * random::unit_closed_open(block.words[pair + 1]);
  return std::sqrt(-2 * std::log(u)) * (word == pair ? std::cos(angle) : std::sin(angle));
}

void random(const Call& call) {
  const int64_t seed = call.operand(0).integers[0];
  const int64_t step = call.operand(1).integers[0];
  const uint64_t key = random::stream_key(seed, call.attributes.integer("stream"));
  const bool normal = call.op == Op::kRandomNormal;
  std::vector<double>& reals = call.result().reals;
  for (size_t i = 0; i < reals.size(); ++i) {
    reals[i] = call.rounded(
        random_element(normal, key, static_cast<int64_t>(i), step, call.context.micro_batch));
  }
}

}  // namespace sgtc::interpret
