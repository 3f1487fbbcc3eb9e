// When each launch of a graph ran, for a trace: kernels tell it themselves, into device memory, so
// that a step with a trace is the same work as one without. Behind communications, whose kernels
// are not ours, a kernel without work tells it (plan/format.h).
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/driver.h"
#include "cuda/kernels.h"
#include "cuda/launches.h"
#include "plan/format.h"
#include "trace.h"

namespace sgtc::runtime::cuda {

class LaunchStamps {
 public:
  /// Stamps of so many launches. All must outlive this.
  LaunchStamps(const Driver& driver, Kernels& kernels, size_t launches);

  /// Of a launch, by index: the last parameter of its kernel.
  DeviceAddress address(size_t launch) const { return base_ + launch * kStampBytes; }
  /// Has to come before every stamped launch of the graph.
  GraphNode add_reset(Graph graph) const;
  /// Stamps a launch that does not do so itself. Returns what has to come before later launches.
  GraphNode add_mark(Graph graph, size_t launch, const std::vector<GraphNode>& after) const;

  /// Learns where the GPU's timer is on the host's clock, to some microseconds. The GPU must be
  /// idle.
  void align(Stream stream);
  /// Adds an event for each launch that was stamped since the reset. The graph has ended.
  void add_to(Trace& trace, const std::vector<Launch>& launches, Stream stream) const;

 private:
  static constexpr int64_t kStampBytes = plan::kStampSlots * plan::kStampSlotBytes;
  static constexpr uint64_t kNever = ~uint64_t{0};
  // As kernels leave them, the least of all slots: kNever in launches that have not run.
  struct Stamp {
    uint64_t begin = kNever;
    uint64_t end_complement = kNever;
  };

  std::vector<Stamp> read(size_t first, size_t count, Stream stream) const;

  const Driver& driver_;
  const Context context_;
  const Function mark_;
  const size_t count_;  // of launches; behind their stamps is one to align with
  const DeviceAddress base_;
  int64_t offset_ = 0;  // of the host's clock from the GPU's timer, in nanoseconds
};

}  // namespace sgtc::runtime::cuda
