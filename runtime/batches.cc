#include "batches.h"

#include <algorithm>

#include "plan_loader.h"
#include "random.h"

namespace sgtc::runtime {

int64_t SampleOrder::at(int64_t epoch, int64_t row) const {
  if (!shuffle) return row;
  const uint64_t key = random_key(seed, "samples") + static_cast<uint64_t>(epoch);
  return permuted(row, samples, key);
}

bool pads_last_batch(const plan::Plan& plan, const Options& options) {
  return !plan.row_weights.empty() && options.last_batch != "drop";
}

int64_t load_step(const plan::Plan& plan, int64_t replica, const Feeder& feeder,
                  const SampleOrder& order, bool pads, DataPosition& position) {
  feeder.load_constants();
  if (order.samples == 0) return 0;
  const int64_t rows = rows_per_step(plan);
  if (position.row + (pads ? 1 : rows) > order.samples) {
    ++position.epoch;
    position.row = 0;
  }
  const int64_t own = plan.micro_batch_rows * plan.micro_batches;
  const int64_t first = position.row + replica * own;
  const int64_t last = order.samples - 1;
  for (int64_t i = 0; i < own; ++i) {
    const int64_t row = first + i;
    feeder.load_row(i / plan.micro_batch_rows, i % plan.micro_batch_rows,
                    order.at(position.epoch, std::min(row, last)), row <= last ? 1 : 0);
  }
  const int64_t taken = std::min(rows, order.samples - position.row);
  position.row += taken;
  return taken;
}

}  // namespace sgtc::runtime
