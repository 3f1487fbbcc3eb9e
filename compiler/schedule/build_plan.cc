#include "schedule/build_plan.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "passes/form_kernels.h"
#include "schedule/kernel_table.h"
#include "schedule/lifetimes.h"
#include "schedule/merge_calls.h"
#include "schedule/step_tasks.h"
#include "schedule/storage.h"
#include "schedule/task_times.h"
#include "schedule/timeline.h"
#include "schedule/transfer_lifetimes.h"
#include "schedule/transfers.h"
#include "support/diagnostics.h"
#include "support/sha256.h"

namespace sgtc {
namespace {

constexpr int64_t kEvaluationSlots = 2;  // one is sent while the next is computed
constexpr int64_t kRings = 2;            // the same where passes of one kind follow each other

// The scalars that the runtime writes before each step, aligned like any argument of a kernel.
// Without a learning rate the runtime knows that the model brings its own.
std::vector<plan::Control> control_scalars(const Graph& train) {
  std::vector<plan::Control> scalars = {{"seed", "i64", 16}, {"step", "i64", 32}};
  const ValueId rate = train.find("learning_rate");
  if (rate != kNone) scalars.insert(scalars.begin(), {"learning_rate", "f32", 0});
  return scalars;
}

class Builder {
 public:
  Builder(const PlanInput& input, WeightsBlob& weights)
      : input_(input),
        weights_(weights),
        times_(input.hardware, input.mesh, input.communication_blocks),
        positions_(static_cast<size_t>(input.mesh.pp)) {}

  BuiltPlan run() {
    fill_header();
    plan().positions.resize(positions_.size());
    const Timeline train = add_program(input_.train, false);
    Timeline evaluate;
    if (input_.evaluate) evaluate = add_program(*input_.evaluate, true);
    for (size_t p = 0; p < positions_.size(); ++p) {
      built_.uses.push_back(
          build_position(positions_[p], static_cast<int64_t>(p), plan(), weights_));
      plan().positions[p].schedules["train"] = train.entries[p];
      if (input_.evaluate) plan().positions[p].schedules["evaluate"] = evaluate.entries[p];
    }
    check_results();
    add_communicators();
    add_loss_terms();
    plan().kernels = std::move(kernels_.kernels());
    built_.kernels = std::move(kernels_.specs());
    plan().model_fingerprint = fingerprint();
    plan().prediction.bubble = train.bubble;
    plan().prediction.step_seconds = train.seconds;
    return std::move(built_);
  }

 private:
  plan::Plan& plan() { return built_.plan; }

  void fill_header() {
    const Graph& graph = *input_.train.kernels.graph;
    plan().model = input_.model;
    const KernelTarget& target = input_.train.kernels.target;
    plan().target = target.name;
    plan().multiprocessors = target.multiprocessors;
    plan().cpu = input_.cpu;
    plan().cpu_features = input_.cpu_features;
    plan().mesh = {{"pp", input_.mesh.pp}, {"dp", input_.mesh.dp}, {"tp", input_.mesh.tp}};
    plan().dims = input_.dims;
    plan().micro_batches = graph.micro_batches;
    plan().micro_batch_rows = graph.micro_batch_rows;
    plan().optimizer = input_.optimizer;
    plan().row_weights = input_.row_weights;
    plan().control = control_scalars(graph);
  }

  // Storages, tasks and schedules of one program on every position.
  Timeline add_program(const PlacedProgram& placed, bool is_evaluation) {
    name_checked_nodes(*placed.kernels.graph);
    const Exchange exchange = find_transfers(placed.kernels, placed.placement);
    std::vector<PositionTasks> tasks;
    for (size_t p = 0; p < positions_.size(); ++p) {
      PositionProgram& program = positions_[p].emplace_back();
      program.program = &placed.kernels;
      program.placement = &placed.placement;
      program.is_evaluation = is_evaluation;
      const auto position = static_cast<int64_t>(p);
      const std::vector<PipelineStep> order = passes(is_evaluation, position);
      program.slots =
          is_evaluation ? std::min(kEvaluationSlots, plan().micro_batches) : slots_of(order);
      program.rings = rings_of(is_evaluation);
      program.step = assign_storage({&placed.kernels, &placed.placement, &exchange, position});
      // A launch on a CPU costs little, and its threads would not share tensors evenly.
      if (placed.kernels.target.is_gpu()) merge_calls(*placed.kernels.graph, program.step);
      program.tasks = form_tasks(program.step, is_evaluation, bucket_bytes(program.step));
      program.lifetimes = find_lifetimes(program.step, program.tasks,
                                         {plan().micro_batches, program.slots, is_evaluation});
      for (const StepCall& call : program.step.calls) {
        if (call.kind == StepCall::Kind::kKernel) kernels_.add(*placed.kernels.graph, call);
      }
      std::vector<double> seconds;
      for (const StepTask& task : program.tasks) {
        seconds.push_back(times_.seconds(program.step, task, kernels_, position));
      }
      tasks.push_back({&program.step, program.tasks, std::move(seconds), order, program.slots,
                       program.rings, in_ring(program)});
      if (!is_evaluation) built_.groups_of_calls.push_back(groups_of_calls(program));
    }
    Timeline timeline = build_timeline(tasks, plan().micro_batches);
    for (size_t p = 0; p < positions_.size(); ++p) {
      PositionProgram& program = positions_[p].back();
      set_transfer_lifetimes(program.step, program.tasks, timeline.entries[p], program.lifetimes);
    }
    return timeline;
  }

  // With 1F1B a pass of the other kind lies between two of one kind, beside which a transfer runs.
  int64_t rings_of(bool is_evaluation) {
    const bool alternates = !is_evaluation && input_.schedule == PipelineSchedule::k1F1B;
    return alternates ? 1 : std::min(kRings, plan().micro_batches);
  }

  static std::vector<bool> in_ring(const PositionProgram& program) {
    std::vector<bool> result;
    for (const Lifetime& lifetime : program.lifetimes) result.push_back(lifetime.scope == "ring");
    return result;
  }

  static std::map<std::string, std::vector<int64_t>> groups_of_calls(
      const PositionProgram& program) {
    const Group* first = program.program->groups.data();
    std::map<std::string, std::vector<int64_t>> groups;
    for (const StepTask& task : program.tasks) {
      if (task.kind != StepCall::Kind::kKernel) continue;
      for (const size_t c : task.calls) {
        const Group* group = program.step.calls[c].group;
        groups[task.name].push_back(group == nullptr ? -1 : group - first);
      }
    }
    return groups;
  }

  void name_checked_nodes(const Graph& graph) {
    for (const NodeId id : checked_nodes(graph)) {
      const Node& node = graph.node(id);
      plan().checked_nodes.push_back(node.sources.empty() ? std::string(name_of(node.op))
                                                          : node.sources.front());
    }
  }

  std::vector<PipelineStep> passes(bool is_evaluation, int64_t position) {
    if (!is_evaluation) {
      return pipeline_order(input_.schedule, input_.mesh.pp, position, plan().micro_batches,
                            input_.in_flight);
    }
    std::vector<PipelineStep> order;
    for (int64_t m = 0; m < plan().micro_batches; ++m) order.push_back({Phase::kForward, m});
    return order;
  }

  int64_t bucket_bytes(const StepCalls& step) const {
    return input_.bucket_bytes > 0 ? input_.bucket_bytes
                                   : default_bucket_bytes(reduced_bytes(step));
  }

  void check_results() {
    std::set<std::string> found;
    for (const plan::Result& result : plan().results) found.insert(result.name);
    const std::vector<Output>& outputs = input_.train.kernels.graph->outputs;
    for (const Output& output : outputs) {
      const std::string& name = &output == &outputs.front() ? "loss" : output.name;
      SGTC_CHECK(found.count(name) != 0, "no kernel computes \"" + output.name + "\"");
    }
  }

  void add_communicators() {
    std::set<std::string> names;
    for (const plan::Position& position : plan().positions) {
      for (const plan::Task& task : position.tasks) names.insert(task.communicator);
    }
    names.erase("");
    for (const std::string& name : names) {
      const std::string axis = name.substr(0, name.find('.'));
      plan().communicators.push_back({name, axis, input_.communication_blocks});
    }
  }

  std::string evaluate_buffer(const std::string& output, int64_t position) {
    for (const plan::Result& result : plan().evaluate_results) {
      if (result.name == output && result.position == position) return result.buffer;
    }
    internal_error(__FILE__, __LINE__, "the evaluation has no output \"" + output + "\"");
  }

  // The last position that has a result of the name: constants are everywhere.
  int64_t last_position_of(const std::string& output) {
    int64_t position = 0;
    for (const plan::Result& result : plan().evaluate_results) {
      if (result.name == output) position = std::max(position, result.position);
    }
    return position;
  }

  void add_loss_terms() {
    for (const LossTermOutput& source : input_.loss_terms) {
      plan::LossTerm term;
      term.coefficient = source.coefficient;
      term.position = last_position_of(source.numerator);
      term.numerator = evaluate_buffer(source.numerator, term.position);
      if (!source.denominator.empty()) {
        term.denominator = evaluate_buffer(source.denominator, term.position);
      }
      term.denominator_constant = source.denominator_constant;
      plan().loss_terms.push_back(std::move(term));
    }
  }

  // The same for every mesh, so that a checkpoint fits all of them.
  std::string fingerprint() const {
    std::string text = input_.model_text + "\noptimizer " + input_.optimizer + "\n";
    std::set<std::string> seen;
    for (const PlacedProgram* placed :
         {&input_.train, input_.evaluate ? &*input_.evaluate : &input_.train}) {
      const Graph& graph = *placed->kernels.graph;
      for (const ValueId id : graph.states) {
        const Value& state = graph.value(id);
        if (state.role == StateRole::kAccumulator || !seen.insert(state.name).second) continue;
        text += std::string(name_of(state.role)) + " " + state.name + " " +
                std::string(name_of(state.type.dtype)) + to_string(whole_shape(state)) + "\n";
      }
    }
    return sha256_hex(text);
  }

  const PlanInput& input_;
  WeightsBlob& weights_;
  BuiltPlan built_;
  const TaskTimes times_;
  KernelTable kernels_;
  std::vector<std::deque<PositionProgram>> positions_;  // stays in place: calls point into it
};

}  // namespace

BuiltPlan build_plan(const PlanInput& input, WeightsBlob& weights) {
  return Builder(input, weights).run();
}

}  // namespace sgtc
