// One rank of a program, ready to run: arena, states and the device that computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arena.h"
#include "device.h"
#include "plan/format.h"
#include "plan_memory.h"
#include "program.h"
#include "states.h"
#include "trace.h"

namespace sgtc::runtime {

/// The scalars that the plan's control buffer takes before a step.
struct StepControl {
  double learning_rate = 0;
  int64_t seed = 0;
  int64_t step = 0;  // 1 for the first
};

/// What a training step computed.
struct StepResult {
  bool has_loss = false;
  double loss = 0;
  bool has_gradient_norm = false;
  double gradient_norm = 0;
  bool finite = true;  // false: the step changed nothing
};

class Job;

/// How a rank is set up.
struct SessionOptions {
  int64_t threads = 1;  // of the host, on the CPU those that compute
  bool poison = false;  // memory starts as 0xFF bytes
  bool check_accesses = false;
  int64_t local_rank = 0;  // among the ranks of this host
  int64_t local_size = 1;
  Coordinates coordinates;
  RankCommunicators* communicators = nullptr;  // as of DeviceRequest
  const Peers* peers = nullptr;
  Job* job = nullptr;  // is told when the device works; null: nobody is
};

class Session {
 public:
  /// Program, plan and communicators must outlive this.
  Session(const Program& program, const plan::Plan& plan, const SessionOptions& options);

  const plan::Plan& plan() const { return plan_; }
  const Coordinates& coordinates() const { return options_.coordinates; }
  const PlanMemory& memory() const { return memory_; }
  const States& states() const { return states_; }
  const Arena& arena() const { return arena_; }
  Device& device() { return *device_; }
  const Device& device() const { return *device_; }

  /// Gives every state its initial value, on the host.
  void initialize_states(const Weights& weights, int64_t seed) {
    states_.initialize(weights, seed, device_->threads());
  }
  /// After states were changed on the host; and before they are read there.
  void upload_states();
  void download_states();

  /// Returns when feed buffers may be filled for the next step or evaluation.
  void await_inputs();
  /// Starts a step on the rows in the feed buffers.
  void start_step(const StepControl& control);
  /// What the oldest started step computed. Dies for an index that was out of range.
  StepResult finish_step();
  /// Runs the forward pass alone. Every started step is finished. Dies likewise.
  void evaluate(const StepControl& control);
  /// One instance of a buffer, as `evaluate` left it.
  const unsigned char* fetch(const plan::Buffer& buffer, int64_t instance);

 private:
  struct ControlTarget {
    const plan::Control* control = nullptr;
    unsigned char* data = nullptr;
  };
  struct ResultSource {
    std::string dtype;
    const unsigned char* data = nullptr;
    double read() const;
  };

  void find_control();
  void write_control(const StepControl& control);
  void finish();
  void check_status() const;
  ResultSource observe_result(const char* name);

  const plan::Plan& plan_;
  const SessionOptions options_;
  Arena arena_;
  PlanMemory memory_;
  States states_;
  std::unique_ptr<Device> device_;
  std::vector<ControlTarget> control_;
  const unsigned char* status_ = nullptr;
  ResultSource loss_;
  ResultSource gradient_norm_;
  ResultSource finite_;
};

}  // namespace sgtc::runtime
