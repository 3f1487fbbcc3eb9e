// One rank of a program, ready to run: arena, threads, resolved schedules and states.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arena.h"
#include "executor.h"
#include "plan/format.h"
#include "plan_memory.h"
#include "program.h"
#include "states.h"
#include "thread_pool.h"
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

class Session {
 public:
  /// The first four must outlive this. `communicators` are those of the rank at `coordinates`; null
  /// for a rank without peers. With `poison`, memory starts as 0xFF bytes.
  Session(const Program& program, const plan::Plan& plan, int64_t threads, bool poison,
          const Coordinates& coordinates = {}, RankCommunicators* communicators = nullptr);

  const plan::Plan& plan() const { return plan_; }
  const Coordinates& coordinates() const { return coordinates_; }
  const PlanMemory& memory() const { return memory_; }
  const States& states() const { return states_; }
  const Arena& arena() const { return arena_; }

  /// Records the entries of all later training steps; null: none.
  void set_trace(Trace* trace) { trace_ = trace; }

  /// Runs one step on the rows in the feed buffers. Dies for an index that is out of range.
  StepResult train_step(const StepControl& control);
  /// Runs the forward pass alone, likewise.
  void evaluate(const StepControl& control);

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

  void begin(const StepControl& control);
  void check_status() const;
  ResultSource find_result(const char* name) const;

  const plan::Plan& plan_;
  const Coordinates coordinates_;
  const plan::Position& position_;
  Arena arena_;
  PlanMemory memory_;
  ThreadPool threads_;
  PreparedSchedule train_;
  PreparedSchedule evaluate_;
  Executor executor_;
  States states_;
  std::vector<ControlTarget> control_;
  unsigned char* status_ = nullptr;
  ResultSource loss_;
  ResultSource gradient_norm_;
  ResultSource finite_;
  Trace* trace_ = nullptr;
};

}  // namespace sgtc::runtime
