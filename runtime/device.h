// What runs the schedules of one rank, and where its tensors are.
//
// A rank has one arena in host memory, laid out as the plan says. Whatever prepares or reads
// tensors on the host (initial values, feeds, checkpoints, outputs) works in that arena. On the CPU
// it is also where kernels work. A GPU has an arena of its own with the same layout, and the host's
// is its mirror: pages that nobody touches cost nothing, and the functions below say when bytes
// move.
//
// A device may be some steps behind the host: `start` then returns before the step is done, and
// `finish` waits for the oldest one. So the host prepares a step while the one before computes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arena.h"
#include "communication/groups.h"
#include "communication/peers.h"
#include "communication/rank_communicators.h"
#include "measurements.h"
#include "plan/format.h"
#include "plan_memory.h"
#include "program.h"
#include "states.h"
#include "thread_pool.h"
#include "trace.h"

namespace sgtc::runtime {

enum class ScheduleKind { train, evaluate };

/// What a device is made from. All of it must outlive the device.
struct DeviceRequest {
  const Program& program;
  const plan::Plan& plan;
  const Coordinates& coordinates;
  Arena& arena;  // of the host
  const PlanMemory& memory;
  const States& states;
  RankCommunicators* communicators = nullptr;  // of the CPU; null: a rank without peers
  const Peers* peers = nullptr;                // of a GPU; null: likewise
  int64_t threads = 1;                         // of the host
  int64_t local_rank = 0;                      // among the ranks of this host
  int64_t local_size = 1;
  bool poison = false;          // device memory starts as 0xFF bytes
  bool check_accesses = false;  // of kernels, one by one; on the CPU for ranks without peers
};

class Device {
 public:
  virtual ~Device() = default;

  /// How many started steps need not be finished before the next one starts: at most
  /// kMaxStepsAhead.
  virtual int64_t steps_ahead() const = 0;

  /// Returns when feed and control buffers of the host may be written for the next `start`.
  virtual void await_inputs() = 0;
  /// Clears accumulators and the status block, then runs a schedule on what feed and control
  /// buffers of the host hold. `step` is for messages.
  virtual void start(ScheduleKind kind, int64_t step) = 0;
  /// Waits for the oldest schedule that was started.
  virtual void finish() = 0;

  /// Names a value that is to be read on the host after each `finish`. Returns where; it stays
  /// valid until the next `finish`. At most kMaxObserved in all, before the first `start`.
  virtual const unsigned char* observe(MemoryRange range) = 0;

  /// Brings bytes of the host's arena to the device, or back. Every started step is finished.
  virtual void upload(MemoryRange range) = 0;
  virtual void download(MemoryRange range) = 0;

  /// Records the entries of later training steps, on a GPU their kernels; null: none.
  virtual void set_trace(Trace* trace) = 0;

  /// What the launches of "train" take, each over and over on what a step brings it. A collective
  /// of all ranks; states and results are changed at will. Nothing on the CPU, whose threads and
  /// caches belong to the job (calibration.h).
  virtual std::optional<Measurements> measure() { return std::nullopt; }

  /// Bytes of the memory that kernels work in: the most in use so far, and all there is.
  virtual int64_t memory_used() const = 0;
  virtual int64_t memory_total() const = 0;
  /// After poisoning: what of the arena has been changed.
  virtual Touched touched() const = 0;
  /// Threads of the host for work between steps.
  virtual ThreadPool& threads() = 0;
  /// For people; empty for the CPU.
  virtual std::string description() const = 0;
};

inline constexpr int64_t kMaxStepsAhead = 1;
inline constexpr int64_t kMaxObserved = 8;
inline constexpr int64_t kMaxObservedBytes = 64;  // of one value

/// What has to be zero when a schedule begins: accumulators and the status block.
std::vector<MemoryRange> cleared_ranges(const PlanMemory& memory, const States& states);

/// What the host writes before a schedule begins: feeds and control values.
std::vector<MemoryRange> input_ranges(const plan::Plan& plan, int64_t position,
                                      const PlanMemory& memory);

/// Bytes that a rank of this plan uses in its host arena: all, or what the mirror of a GPU holds.
int64_t host_bytes(const plan::Plan& plan, int64_t position);

/// The device that the plan's target names. Dies if there is none, or none that fits.
std::unique_ptr<Device> make_device(const DeviceRequest& request);

}  // namespace sgtc::runtime
