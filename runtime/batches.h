// Which samples a step takes.
#pragma once

#include <cstdint>

#include "data_set.h"
#include "plan/format.h"
#include "progress.h"

namespace sgtc::runtime {

/// The order of the samples in an epoch: the files' own, or a permutation keyed by seed and epoch.
struct SampleOrder {
  int64_t samples = 0;
  bool shuffle = false;
  int64_t seed = 0;
  int64_t at(int64_t epoch, int64_t row) const;
};

/// Fills the feeds of a rank of replica `replica` for one step and moves `position` on by the rows
/// of all replicas. Row i of the step goes to the global micro-batch i / micro_batch_rows, of which
/// a replica has plan.micro_batches in a row. When an epoch has less than a step's rows left, they
/// are dropped and the next one begins.
void load_step(const plan::Plan& plan, int64_t replica, const Feeder& feeder,
               const SampleOrder& order, DataPosition& position);

}  // namespace sgtc::runtime
