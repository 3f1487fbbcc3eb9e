// How long the passes of a pipeline take, cut one way or another.
//
// Every stage works in its order (pipeline_order.h) as soon as it has what it needs, from the first
// forward pass to the last backward pass. A transfer takes its time beside the passes, and keeps
// what it sends until the receiver has room: of what a pass sends there is one instance (two of
// GPipe's), of what a stage keeps for the backward phase as many as it has micro-batches under way.
// That matters for what skips a stage. Left out: transfers that share a link, and the update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/hardware.h"
#include "partition/chain.h"
#include "partition/pipeline_order.h"

namespace sgtc {

/// The links that begin each stage but the first, ascending.
using Cuts = std::vector<size_t>;

/// Seconds of a stage's passes of one micro-batch.
struct StageSeconds {
  double forward = 0;
  double backward = 0;
};

class PipelineTime {
 public:
  /// Keeps a reference to both. Of many micro-batches the first ones are followed.
  PipelineTime(const Chain& chain, const Hardware& hardware, PipelineSchedule schedule,
               int64_t micro_batches);

  /// The seconds of all passes, given those of each stage; `in_flight`: as of pipeline_order.
  double seconds(const Cuts& cuts, const std::vector<StageSeconds>& stages,
                 int64_t in_flight = 0) const;

  /// The same of stages that take what the chain says of their links.
  double seconds(const Cuts& cuts) const;

 private:
  const Chain& chain_;
  const Hardware& hardware_;
  PipelineSchedule schedule_;
  int64_t micro_batches_;
};

/// `cuts` with one or several in a row moved to the next or the previous of `places`, which ascend;
/// first those with one. Stages do not become empty.
std::vector<Cuts> neighbours(const Cuts& cuts, const std::vector<size_t>& places);

}  // namespace sgtc
