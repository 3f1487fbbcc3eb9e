#include "batches.h"

#include "plan_loader.h"
#include "random.h"

namespace sgtc::runtime {

int64_t SampleOrder::at(int64_t epoch, int64_t row) const {
  if (!shuffle) return row;
  const uint64_t key = random_key(seed, "samples") + static_cast<uint64_t>(epoch);
  return permuted(row, samples, key);
}

void load_step(const plan::Plan& plan, int64_t replica, const Feeder& feeder,
               const SampleOrder& order, DataPosition& position) {
  feeder.load_constants();
  if (order.samples == 0) return;
  const int64_t rows = rows_per_step(plan);
  if (position.row + rows > order.samples) {
    ++position.epoch;
    position.row = 0;
  }
  const int64_t own = plan.micro_batch_rows * plan.micro_batches;
  const int64_t first = position.row + replica * own;
  for (int64_t i = 0; i < own; ++i) {
    feeder.load_row(i / plan.micro_batch_rows, i % plan.micro_batch_rows,
                    order.at(position.epoch, first + i));
  }
  position.row += rows;
}

}  // namespace sgtc::runtime
