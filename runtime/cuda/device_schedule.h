// A schedule on the GPU: one CUDA graph of kernels and communications, started by one call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "access_check.h"
#include "cuda/argument_tables.h"
#include "cuda/communicators.h"
#include "cuda/device_arena.h"
#include "cuda/driver.h"
#include "cuda/kernels.h"
#include "cuda/launch_stamps.h"
#include "cuda/launches.h"
#include "cuda/tensor_maps.h"
#include "measurements.h"
#include "trace.h"

namespace sgtc::runtime::cuda {

class DeviceSchedule {
 public:
  /// Resolves launches and the ranges that are zeroed first; `maps` and `tables` are those of the
  /// launches.
  /// `communicators`: null for a rank without peers. They, driver and arena must outlive this.
  /// `stepwise`: no graph; `run` starts one launch at a time and waits for it, so that a message
  /// about one that fails names it. `check`: then of each kernel; null: none.
  DeviceSchedule(const Driver& driver, const DeviceArena& arena, const Communicators* communicators,
                 Kernels& kernels, const TensorMaps& maps, const ArgumentTables& tables,
                 std::vector<Launch> launches, const std::vector<MemoryRange>& cleared,
                 bool stepwise, AccessCheck* check);

  /// Puts everything into `stream`. `step` is for messages.
  void run(Stream stream, int64_t step) const;

  /// What launches take: each in its turn, so that it works on what a step brings it, and over and
  /// over. A collective of all ranks. Leaves hardware and units to the caller.
  Measurements measure(Stream stream) const;

  /// Makes what `run_traced` needs. A collective of all ranks.
  void prepare_trace(Kernels& kernels);
  /// The same as `run`; waits for the end and tells when each launch ran. Not stepwise.
  void run_traced(Stream stream, int64_t step, Trace& trace);

 private:
  struct Call {
    Function function = nullptr;
    std::vector<uint64_t> parameters;  // addresses or their table, micro-batch, tensor maps, stamps
    std::vector<void*> pointers;       // to them
  };

  void resolve(const Launch& launch, const DeviceArena& arena, Kernels& kernels,
               const TensorMaps& maps, const ArgumentTables& tables);
  ExecutableGraph build_graph(const LaunchStamps* stamps) const;
  std::vector<GraphNode> add_clears(Graph graph) const;
  // `stamps`: the launch's, or 0.
  GraphNode add_call(Graph graph, size_t index, const std::vector<GraphNode>& after,
                     DeviceAddress stamps = 0) const;
  GraphNode add_communications(Graph graph, const Launch& launch,
                               const std::vector<GraphNode>& after) const;
  double seconds_of(size_t index, Stream stream) const;
  double seconds_of(size_t index, int repetitions, Stream stream) const;
  MeasuredCommunication measured(const Launch::Communication& communication, double seconds) const;
  void clear(Stream stream) const;
  void run_stepwise(Stream stream, int64_t step) const;
  void start(size_t index, Stream stream) const;
  void start_checked(size_t index, Stream stream) const;

  const Driver& driver_;
  const Context context_;
  const Communicators* communicators_;
  const std::vector<Launch> launches_;
  std::vector<Call> calls_;  // of the launches; communications have none
  struct Clear {
    DeviceAddress address;
    size_t bytes;
  };
  std::vector<Clear> clears_;
  AccessCheck* const check_;
  ExecutableGraph graph_ = nullptr;  // null: stepwise
  std::optional<LaunchStamps> stamps_;
  ExecutableGraph traced_ = nullptr;  // null: no trace was prepared
};

}  // namespace sgtc::runtime::cuda
