// The regression program on two ranks, each a process: on CPUs, or on GPUs over the stubs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/stub_run.h"
#include "runtime/launch/free_port.h"

namespace sgtc::runtime::cuda {

using Settings = std::map<std::string, std::string>;

inline plan::Task communication(const std::string& name, const std::string& kind,
                                const std::string& communicator, int64_t peer,
                                const std::vector<std::string>& buffers) {
  plan::Task task;
  task.name = name;
  task.kind = kind;
  task.communicator = communicator;
  task.peer = peer;
  task.dtype = "f32";
  task.reduce = "sum";
  for (const std::string& buffer : buffers) {
    if (kind != "receive") task.inputs.push_back({buffer, {}, 0});
    if (kind != "send") task.outputs.push_back({buffer, {}, 0});
  }
  return task;
}

/// Two replicas that reduce gradient and loss before they update.
inline plan::Plan replicas(plan::Plan plan) {
  plan.mesh[1].size = 2;
  plan.communicators = {{"dp", "dp", plan.target == "cpu" ? 0 : 8}};
  plan::Position& position = plan.positions[0];
  position.tasks.push_back(communication("reduce", "all_reduce", "dp", -1, {"gradient", "loss"}));
  std::vector<plan::Entry>& entries = position.schedules["train"];
  entries.insert(entries.end() - 1, entry_of("reduce", 0, 2, {kMicroBatches - 1}));
  entries.back().waits = {kMicroBatches};
  return plan;
}

/// Position 0 computes residuals, position 1 gradients; both update the weights.
inline plan::Plan pipeline(plan::Plan plan) {
  plan.mesh[0].size = 2;
  const int64_t blocks = plan.target == "cpu" ? 0 : 4;
  plan.communicators = {{"pp.forward", "pp", blocks}, {"pp.update", "pp", blocks}};
  plan.positions.push_back(plan.positions[0]);
  const std::vector<plan::Call> calls = plan.positions[0].tasks[0].calls;
  plan::Position& first = plan.positions[0];
  first.tasks.push_back(compute_task("residual", {calls[0]}));
  first.tasks.push_back(communication("send", "send", "pp.forward", 1, {"residual"}));
  first.tasks.push_back(communication("receive", "receive", "pp.update", 1, {"gradient", "loss"}));
  std::vector<plan::Entry>& entries = first.schedules["train"];
  entries.clear();
  for (int64_t m = 0; m < kMicroBatches; ++m) {
    std::vector<int64_t> waits;
    if (m > 0) waits = {2 * m - 1};
    entries.push_back(entry_of("residual", m, 0, waits));
    entries.push_back(entry_of("send", m, 1, {2 * m}));
  }
  entries.push_back(entry_of("receive", 0, 1));
  entries.push_back(entry_of("update", 0, 0, {2 * kMicroBatches}));
  plan::Position& second = plan.positions[1];
  second.stages = {1};
  second.tasks.push_back(compute_task("gradient", {calls[1]}));
  second.tasks.push_back(communication("receive", "receive", "pp.forward", 0, {"residual"}));
  second.tasks.push_back(communication("send", "send", "pp.update", 0, {"gradient", "loss"}));
  second.schedules.clear();
  std::vector<plan::Entry>& others = second.schedules["train"];
  for (int64_t m = 0; m < kMicroBatches; ++m) {
    std::vector<int64_t> waits;
    if (m > 0) waits = {2 * m - 1};
    others.push_back(entry_of("receive", m, 1, waits));
    others.push_back(entry_of("gradient", m, 0, {2 * m}));
  }
  others.push_back(entry_of("send", 0, 1, {2 * kMicroBatches - 1}));
  others.push_back(entry_of("update", 0, 0, {2 * kMicroBatches}));
  const auto on_both = [](auto& list) {
    const auto copies = list;
    for (auto copy : copies) copy.position = 1, list.push_back(copy);
  };
  on_both(plan.feeds);
  on_both(plan.results);
  on_both(plan.states);
  return plan;
}

class MeshRun {
 public:
  explicit MeshRun(const plan::Plan& plan) : regression(48, plan), gpu_(plan.target != "cpu") {}

  /// Starts rank `rank` of two; `own` are variables of its own.
  void start(int64_t rank, const std::vector<std::string>& arguments, const Settings& own = {}) {
    Settings settings = own;
    settings.insert({{"SGTC_WORLD_SIZE", "2"},
                     {"SGTC_MASTER", "127.0.0.1:" + port_},
                     {"SGTC_SECRET", "a secret"},
                     {"SGTC_RANK", std::to_string(rank)},
                     {"SGTC_LOST_AFTER_MS", "1000"},
                     {"SGTC_CUDA_LIBRARY", SGTC_CUDA_STUB},
                     {"SGTC_NCCL_LIBRARY", SGTC_CUDA_STUB},
                     {"SGTC_STUB_LOG", folder() / "calls"},
                     {"SGTC_STUB_FOLDER", folder() / ""},
                     {"SGTC_STUB_GPUS", "2"}});
    std::remove((folder() / "calls." + std::to_string(rank)).c_str());
    outputs_[rank] = std::make_unique<TemporaryFolder>();
    children_[rank] = start_child(*outputs_[rank], [&] {
      for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
      const Program program = gpu_ ? gpu_program(regression.program()) : regression.program();
      return call_program(program, regression.arguments(arguments));
    });
  }
  void start(const std::vector<std::string>& arguments, const Settings& settings = {}) {
    start_apart(arguments, settings, settings);
  }
  /// Each with variables of its own.
  void start_apart(const std::vector<std::string>& arguments, const Settings& first,
                   const Settings& second) {
    port_ = free_port();
    start(0, arguments, first);
    start(1, arguments, second);
  }
  ChildResult end(int64_t rank) { return wait_for_child(*outputs_[rank], children_[rank]); }
  void signal(int64_t rank, int number) { kill(children_[rank], number); }

  /// Runs both ranks to their ends.
  std::vector<ChildResult> run(const std::vector<std::string>& arguments,
                               const Settings& settings = {}) {
    start(arguments, settings);
    return {end(0), end(1)};
  }

  /// The lines of a rank's calls that begin with one of the words.
  std::vector<std::string> calls(int64_t rank, const std::vector<std::string>& words) const {
    return lines_of(folder() / "calls." + std::to_string(rank), words);
  }

  const TemporaryFolder& folder() const { return regression.folder; }

  RegressionRun regression;

 private:
  const bool gpu_;
  std::string port_ = free_port();
  std::map<int64_t, pid_t> children_;
  std::map<int64_t, std::unique_ptr<TemporaryFolder>> outputs_;
};

}  // namespace sgtc::runtime::cuda
