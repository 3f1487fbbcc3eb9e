// Which samples a step takes.
#pragma once

#include <cstdint>

#include "data_set.h"
#include "options.h"
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

/// Whether the last step of an epoch is filled up with padding; else the rows that do not fill one
/// are dropped.
bool pads_last_batch(const plan::Plan& plan, const Options& options);

/// Fills the feeds of a rank of replica `replica` for one step and moves `position` on by the rows
/// of all replicas. Row i of the step goes to the global micro-batch i / micro_batch_rows, of which
/// a replica has plan.micro_batches in a row. When an epoch has less than a step's rows left, they
/// are dropped and the next one begins; or, if `pads`, they are followed by copies of the last one
/// with weight 0. Returns how many rows of the step, of all replicas, are samples.
int64_t load_step(const plan::Plan& plan, int64_t replica, const Feeder& feeder,
                  const SampleOrder& order, bool pads, DataPosition& position);

}  // namespace sgtc::runtime
