#include "schedule/build_plan.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "cost/cost.h"
#include "passes/form_kernels.h"
#include "schedule/lifetimes.h"
#include "schedule/storage.h"
#include "support/diagnostics.h"
#include "support/sha256.h"

namespace sgtc {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kControlBytes = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string dtype_text(const TensorType& type) { return std::string(name_of(type.dtype)); }

// The scalars that the runtime writes before each step.
std::vector<plan::Control> control_scalars() {
  return {{"learning_rate", "f32", 0}, {"seed", "i64", 8}, {"step", "i64", 16}};
}

std::string init_text(Initializer::Kind kind) {
  switch (kind) {
    case Initializer::Kind::kZero:
      return "zero";
    case Initializer::Kind::kLiteral:
      return "data";
    case Initializer::Kind::kRandomNormal:
      return "normal";
    case Initializer::Kind::kRandomUniform:
      return "uniform";
    case Initializer::Kind::kFill:
      return "fill";
  }
  return "zero";
}

const char* access_text(AccessMode mode) {
  switch (mode) {
    case AccessMode::kRead:
      return "read";
    case AccessMode::kWrite:
      return "write";
    case AccessMode::kUpdate:
      return "update";
  }
  return "read";
}

const char* task_name(Phase phase, bool is_evaluation) {
  if (is_evaluation) return "evaluate";
  switch (phase) {
    case Phase::kPrologue:
      return "prologue";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "update";
}

// One of the two graphs on its way into the plan.
struct Program {
  const KernelizedGraph* input = nullptr;
  bool is_evaluation = false;
  StepCalls step;
  std::vector<Lifetime> lifetimes;
  std::vector<std::string> buffers;  // name of the buffer of each storage
};

class Builder {
 public:
  Builder(const PlanInput& input, WeightsBlob& weights) : input_(input), weights_(weights) {}

  BuiltPlan run() {
    add_program(input_.train, false);
    if (input_.evaluate) add_program(*input_.evaluate, true);
    fill_header();
    add_control_and_status();
    for (Program& program : programs_) add_leaves(program);
    for (Program& program : programs_) add_planned(program);
    for (const Program& program : programs_) add_tasks(program);
    add_train_schedule();
    if (input_.evaluate) add_evaluate_schedule();
    add_loss_terms();
    position_.stages = {0};
    plan().model_fingerprint = fingerprint();
    plan().positions.push_back(std::move(position_));
    predict();
    return std::move(built_);
  }

 private:
  plan::Plan& plan() { return built_.plan; }

  void add_program(const KernelizedGraph& input, bool is_evaluation) {
    for (const NodeId id : checked_nodes(*input.graph)) {
      const Node& node = input.graph->node(id);
      plan().checked_nodes.push_back(node.sources.empty() ? std::string(name_of(node.op))
                                                          : node.sources.front());
    }
    Program program{&input, is_evaluation, assign_storage(input), {}, {}};
    program.lifetimes =
        find_lifetimes(program.step, input_.train.graph->micro_batches, is_evaluation);
    program.buffers.resize(program.step.storages.size());
    programs_.push_back(std::move(program));
  }

  void fill_header() {
    const Graph& graph = *input_.train.graph;
    plan().model = input_.model;
    plan().target = input_.target;
    plan().cpu = input_.cpu;
    plan().cpu_features = input_.cpu_features;
    plan().mesh = {{"pp", 1}, {"dp", 1}, {"tp", 1}};
    plan().dims = input_.dims;
    plan().micro_batches = graph.micro_batches;
    plan().micro_batch_rows = graph.micro_batch_rows;
    plan().optimizer = input_.optimizer;
    plan().control = control_scalars();
  }

  // Appends a buffer that is needed always; its name gets a suffix when it is taken.
  std::string append_buffer(const std::string& name, const std::string& scope,
                            const TensorType& type, int64_t bytes, int64_t count) {
    const std::string unique = unique_name(name);
    const int64_t stride = count > 1 ? aligned(bytes) : 0;
    position_.buffers.push_back(
        {unique, scope, dtype_text(type), type.shape, bytes, 0, stride, count});
    built_.uses.emplace_back();
    return unique;
  }

  std::string unique_name(const std::string& name) {
    std::string unique = name;
    for (int64_t suffix = 1; !names_.insert(unique).second; ++suffix) {
      unique = name + "_" + std::to_string(suffix);
    }
    return unique;
  }

  void add_control_and_status() {
    append_buffer("control", "persistent", {DType::kUInt8, {kControlBytes}}, kControlBytes, 1);
    append_buffer("status", "persistent", {DType::kInt64, {plan::kStatusBytes / 8}},
                  plan::kStatusBytes, 1);
  }

  void add_leaves(Program& program) {
    const Graph& graph = *program.input->graph;
    for (const ValueId state : graph.states) add_state(graph.value(state));
    for (size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].kind == ValueKind::kConstant && program.lifetimes[v].used) {
        program.buffers[v] = add_constant(graph.values[v]);
      }
    }
    for (const ValueId feed : graph.feeds) add_feed(graph, feed);
    for (size_t s = 0; s < program.step.storages.size(); ++s) {
      const Storage& storage = program.step.storages[s];
      if (storage.kind == Storage::Kind::kState)
        program.buffers[s] = leaf_buffers_["s" + storage.name];
      if (storage.kind == Storage::Kind::kFeed)
        program.buffers[s] = leaf_buffers_["f" + storage.name];
      if (storage.kind == Storage::Kind::kControl) program.buffers[s] = "control";
      if (storage.kind == Storage::Kind::kStatus) program.buffers[s] = "status";
    }
  }

  void add_state(const Value& value) {
    const auto [buffer, is_new] = leaf_buffers_.try_emplace("s" + value.name);
    if (!is_new) return;
    const Initializer& initial = value.initial;
    buffer->second = append_buffer(value.name, "persistent", value.type, bytes_of(value.type), 1);
    plan::State state{value.name,
                      std::string(name_of(value.role)),
                      dtype_text(value.type),
                      value.type.shape,
                      buffer->second,
                      0,
                      init_text(initial.kind),
                      0,
                      initial.a,
                      initial.b,
                      initial.seed};
    if (initial.kind == Initializer::Kind::kLiteral) {
      state.data_offset = weights_.add(initial.literal);
    }
    plan().states.push_back(std::move(state));
  }

  // Both graphs hold the same literal when they come from one import.
  std::string add_constant(const Value& value) {
    SGTC_CHECK(value.kind == ValueKind::kConstant, "no kernel computes \"" + value.name + "\"");
    const auto [buffer, is_new] = constant_buffers_.try_emplace(value.literal.get());
    if (!is_new) return buffer->second;
    buffer->second = append_buffer(value.name, "persistent", value.type, bytes_of(value.type), 1);
    plan().states.push_back({buffer->second, "constant", dtype_text(value.type), value.type.shape,
                             buffer->second, 0, "data", weights_.add(value.literal), 0, 0, 0});
    return buffer->second;
  }

  void add_feed(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    const auto [buffer, is_new] = leaf_buffers_.try_emplace("f" + value.name);
    if (!is_new) return;
    if (names_.count(value.name) != 0) {
      throw Error("input \"" + value.name +
                  "\": the plan has another buffer of that name; rename the input");
    }
    buffer->second = append_buffer(value.name, "micro_batch", value.type, bytes_of(value.type),
                                   plan().micro_batches);
    plan().feeds.push_back(
        {value.name, dtype_text(value.type), value.type.shape, 0, first_consumer(graph, id)});
  }

  static std::string first_consumer(const Graph& graph, ValueId id) {
    for (const Node& node : graph.nodes) {
      const bool uses = std::count(node.operands.begin(), node.operands.end(), id) > 0;
      if (uses && !node.sources.empty()) return node.sources.front();
    }
    return "";
  }

  static bool is_planned(const Storage& storage) {
    return storage.kind == Storage::Kind::kResult || storage.kind == Storage::Kind::kWorkspace;
  }

  // Buffers of the storages that are no leaves.
  void add_planned(Program& program) {
    for (size_t s = 0; s < program.step.storages.size(); ++s) {
      const Storage& storage = program.step.storages[s];
      const Lifetime& lifetime = program.lifetimes[s];
      if (!lifetime.used || !is_planned(storage)) continue;
      const int64_t count = lifetime.scope == "micro_batch" ? plan().micro_batches : 1;
      const std::string name = (program.is_evaluation ? "evaluate/" : "") + storage.name;
      program.buffers[s] = append_buffer(name, lifetime.scope, storage.type, storage.bytes, count);
      built_.uses.back() = {program.is_evaluation ? "evaluate" : "train", lifetime.first,
                            lifetime.last};
    }
  }

  void add_tasks(const Program& program) {
    for (const StepCall& call : program.step.calls) {
      const std::string name = task_name(call.phase, program.is_evaluation);
      if (position_.tasks.empty() || position_.tasks.back().name != name) {
        plan::Task task;
        task.name = name;
        task.kind = "compute";
        position_.tasks.push_back(std::move(task));
      }
      position_.tasks.back().calls.push_back(plan_call(program, call));
    }
    add_results(program);
  }

  plan::Call plan_call(const Program& program, const StepCall& call) {
    plan::Call result{call.kernel->symbol, {}, call.kernel->sources};
    for (const StorageId id : call.arguments) {
      const Storage& storage = program.step.storages[static_cast<size_t>(id)];
      plan::Argument argument{program.buffers[static_cast<size_t>(id)], {}, 0};
      if (storage.kind == Storage::Kind::kControl) {
        argument.offset.base = control_offset(storage.name);
        argument.bytes = storage.bytes;
      }
      result.arguments.push_back(std::move(argument));
    }
    add_kernel(*program.input->graph, call);
    return result;
  }

  int64_t control_offset(const std::string& name) {
    for (const plan::Control& control : plan().control) {
      if (control.name == name) return control.offset;
    }
    internal_error(__FILE__, __LINE__, "no control scalar is called \"" + name + "\"");
  }

  // Calls of equal kernels share one entry, which names the nodes of all of them.
  void add_kernel(const Graph& graph, const StepCall& call) {
    const auto [place, is_new] =
        kernel_index_.try_emplace(call.kernel->symbol, plan().kernels.size());
    if (is_new) {
      built_.kernels.push_back(*call.kernel);
      KernelSpec& spec = built_.kernels.back();
      if (call.group != nullptr) fill_costs(graph, *call.group, spec);
      plan::Kernel kernel{spec.symbol, spec.kind, spec.blocks, {}, spec.flops, spec.bytes, {}};
      for (const KernelArgument& argument : spec.arguments) {
        kernel.access.push_back(access_text(argument.mode));
      }
      plan().kernels.push_back(std::move(kernel));
    }
    std::vector<std::string>& nodes = plan().kernels[place->second].nodes;
    for (const std::string& source : call.kernel->sources) {
      if (std::find(nodes.begin(), nodes.end(), source) == nodes.end()) nodes.push_back(source);
    }
  }

  // A step's first output is the loss, whatever the file calls it.
  void add_results(const Program& program) {
    const Graph& graph = *program.input->graph;
    for (const Output& output : graph.outputs) {
      const bool is_loss = !program.is_evaluation && &output == &graph.outputs.front();
      const auto storage =
          static_cast<size_t>(program.step.storage_of[static_cast<size_t>(output.value)]);
      std::string buffer = program.buffers[storage];
      const TensorType& type = graph.type(output.value);
      if (buffer.empty()) buffer = add_constant(graph.value(static_cast<ValueId>(storage)));
      (program.is_evaluation ? plan().evaluate_results : plan().results)
          .push_back({is_loss ? "loss" : output.name, buffer, dtype_text(type), type.shape, 0});
    }
  }

  bool has_task(const std::string& name) const {
    return std::any_of(position_.tasks.begin(), position_.tasks.end(),
                       [&](const plan::Task& task) { return task.name == name; });
  }

  void add_entry(const std::string& schedule, const std::string& task, int64_t micro_batch) {
    std::vector<plan::Entry>& entries = position_.schedules[schedule];
    if (!has_task(task)) return;
    plan::Entry entry;
    entry.task = task;
    entry.micro_batch = micro_batch;
    entries.push_back(std::move(entry));
  }

  void add_train_schedule() {
    for (int64_t m = 0; m < plan().micro_batches; ++m) add_entry("train", "prologue", m);
    for (int64_t m = 0; m < plan().micro_batches; ++m) {
      add_entry("train", "forward", m);
      add_entry("train", "backward", m);
    }
    add_entry("train", "update", 0);
  }

  void add_evaluate_schedule() {
    for (int64_t m = 0; m < plan().micro_batches; ++m) add_entry("evaluate", "evaluate", m);
  }

  std::string evaluate_buffer(const std::string& output) {
    for (const plan::Result& result : plan().evaluate_results) {
      if (result.name == output) return result.buffer;
    }
    internal_error(__FILE__, __LINE__, "the evaluation has no output \"" + output + "\"");
  }

  void add_loss_terms() {
    for (const LossTermOutput& term : input_.loss_terms) {
      const std::string denominator =
          term.denominator.empty() ? "" : evaluate_buffer(term.denominator);
      plan().loss_terms.push_back({term.coefficient, evaluate_buffer(term.numerator), denominator,
                                   term.denominator_constant});
    }
  }

  std::string fingerprint() {
    std::string text = input_.model_text + "\noptimizer " + input_.optimizer + "\n";
    for (const plan::State& state : plan().states) {
      if (state.role == "accumulator" || state.role == "constant") continue;
      text += state.role + " " + state.name + " " + state.dtype + to_string(state.shape) + "\n";
    }
    return sha256_hex(text);
  }

  void predict() {
    std::map<std::string, double> seconds;
    for (const plan::Task& task : plan().positions[0].tasks) {
      for (const plan::Call& call : task.calls) {
        const plan::Kernel& kernel = plan().kernels[kernel_index_.at(call.kernel)];
        seconds[task.name] += seconds_of(kernel.flops, kernel.bytes);
      }
    }
    for (const plan::Entry& entry : plan().positions[0].schedules["train"]) {
      plan().prediction.step_seconds += seconds[entry.task];
    }
  }

  const PlanInput& input_;
  WeightsBlob& weights_;
  BuiltPlan built_;
  plan::Position position_;
  std::deque<Program> programs_;  // stays in place: calls point into it
  std::set<std::string> names_;
  std::map<std::string, std::string> leaf_buffers_;  // "s" + state or "f" + feed: its buffer
  std::map<const Literal*, std::string> constant_buffers_;
  std::map<std::string, size_t> kernel_index_;
};

}  // namespace

BuiltPlan build_plan(const PlanInput& input, WeightsBlob& weights) {
  return Builder(input, weights).run();
}

}  // namespace sgtc
