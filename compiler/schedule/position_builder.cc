#include "schedule/position_builder.h"

#include <algorithm>
#include <utility>

#include "cost/cost.h"
#include "schedule/arena_alignment.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr int64_t kControlBytes = 64;

std::string dtype_text(const TensorType& type) { return std::string(name_of(type.dtype)); }

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

const char* kind_text(StepCall::Kind kind) {
  switch (kind) {
    case StepCall::Kind::kKernel:
      return "compute";
    case StepCall::Kind::kSend:
      return "send";
    case StepCall::Kind::kReceive:
      return "receive";
    case StepCall::Kind::kAllReduce:
      return "all_reduce";
    case StepCall::Kind::kReduceScatter:
      return "reduce_scatter";
    case StepCall::Kind::kAllGather:
      return "all_gather";
  }
  return "compute";
}

bool is_planned(const Storage& storage) {
  return storage.kind == Storage::Kind::kResult || storage.kind == Storage::Kind::kWorkspace;
}

class PositionBuilder {
 public:
  PositionBuilder(std::deque<PositionProgram>& programs, int64_t position, plan::Plan& plan,
                  WeightsBlob& weights)
      : programs_(programs),
        number_(position),
        plan_(plan),
        position_(plan.positions[static_cast<size_t>(position)]),
        weights_(weights) {}

  std::vector<BufferUse> run() {
    position_.stages = {number_};
    append_buffer("control", "persistent", {DType::kUInt8, {kControlBytes}}, kControlBytes, 1);
    append_buffer("status", "persistent", {DType::kInt64, {plan::kStatusBytes / 8}},
                  plan::kStatusBytes, 1);
    for (PositionProgram& program : programs_) add_leaves(program);
    add_flags();
    for (PositionProgram& program : programs_) add_tables(program);
    for (PositionProgram& program : programs_) add_planned(program);
    for (const PositionProgram& program : programs_) add_tasks(program);
    for (const PositionProgram& program : programs_) add_results(program);
    return std::move(uses_);
  }

 private:
  // Appends a buffer that is needed always; its name gets a suffix when it is taken.
  std::string append_buffer(const std::string& name, const std::string& scope,
                            const TensorType& type, int64_t bytes, int64_t count) {
    const std::string unique = unique_name(name);
    const int64_t stride = count > 1 ? align(bytes, arena_alignment(plan_)) : 0;
    position_.buffers.push_back(
        {unique, scope, dtype_text(type), type.shape, bytes, 0, stride, count});
    uses_.emplace_back();
    return unique;
  }

  std::string unique_name(const std::string& name) {
    std::string unique = name;
    for (int64_t suffix = 1; !names_.insert(unique).second; ++suffix) {
      unique = name + "_" + std::to_string(suffix);
    }
    return unique;
  }

  static bool is_used(const PositionProgram& program, ValueId value) {
    const StorageId storage = program.step.storage_of[static_cast<size_t>(value)];
    return program.lifetimes[static_cast<size_t>(storage)].used;
  }

  void add_leaves(PositionProgram& program) {
    const Graph& graph = *program.program->graph;
    program.buffers.resize(program.step.storages.size());
    program.offsets.resize(program.step.storages.size());
    for (const ValueId state : graph.states) {
      if (program.placement->holds(state, number_)) add_state(graph.value(state));
    }
    for (size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].kind == ValueKind::kConstant && program.lifetimes[v].used) {
        program.buffers[v] = add_constant(graph.values[v]);
      }
    }
    for (const ValueId feed : graph.feeds) {
      const bool kept = (number_ == 0 && is_unread(feed)) || is_result(program, feed);
      if (is_used(program, feed) || kept) add_feed(graph, feed);
    }
    name_leaf_buffers(program);
  }

  // Whether an output is the feed, which the first position then shows, or a view of it here.
  bool is_result(const PositionProgram& program, ValueId feed) const {
    const std::vector<Output>& outputs = program.program->graph->outputs;
    const auto storage = [&](ValueId value) {
      return program.step.storage_of[static_cast<size_t>(value)];
    };
    return std::any_of(outputs.begin(), outputs.end(), [&](const Output& output) {
      return output.value == feed ? number_ == 0 : storage(output.value) == storage(feed);
    });
  }

  // Whether no kernel of any position reads the feed of both programs.
  bool is_unread(ValueId feed) const {
    const std::string& name = programs_.front().program->graph->value(feed).name;
    return std::none_of(programs_.begin(), programs_.end(), [&](const PositionProgram& program) {
      const Graph& graph = *program.program->graph;
      const ValueId value = graph.find(name);
      return value != kNone &&
             std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
               return std::count(node.operands.begin(), node.operands.end(), value) > 0;
             });
    });
  }

  void name_leaf_buffers(PositionProgram& program) {
    for (size_t s = 0; s < program.step.storages.size(); ++s) {
      Storage& storage = program.step.storages[s];
      const std::string& name = storage.name;
      if (storage.kind == Storage::Kind::kState) {
        const auto held = leaf_buffers_.find("s" + name);
        if (held != leaf_buffers_.end()) program.buffers[s] = held->second;
      }
      if (storage.kind == Storage::Kind::kFeed && leaf_buffers_.count("f" + name) != 0) {
        program.buffers[s] = leaf_buffers_["f" + name];
      }
      if (storage.kind == Storage::Kind::kShard) {
        const auto whole = static_cast<size_t>(storage.whole);
        program.buffers[s] = leaf_buffers_["s" + program.step.storages[whole].name];
      }
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
                      whole_shape(value),
                      buffer->second,
                      number_,
                      init_text(initial.kind),
                      0,
                      initial.a,
                      initial.b,
                      initial.seed};
    if (initial.kind == Initializer::Kind::kLiteral) {
      state.data_offset = weights_.add(initial.literal);
    }
    state.shards = value.whole.empty() ? 1 : plan_.mesh[1].size;
    plan_.states.push_back(std::move(state));
  }

  // Both graphs hold the same literal when they come from one import.
  std::string add_constant(const Value& value) {
    SGTC_CHECK(value.kind == ValueKind::kConstant, "no kernel computes \"" + value.name + "\"");
    const auto [buffer, is_new] = constant_buffers_.try_emplace(value.literal.get());
    if (!is_new) return buffer->second;
    buffer->second = append_buffer(value.name, "persistent", value.type, bytes_of(value.type), 1);
    plan_.states.push_back({buffer->second, "constant", dtype_text(value.type), value.type.shape,
                            buffer->second, number_, "data", weights_.add(value.literal), 0, 0, 0});
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
                                   plan_.micro_batches);
    plan_.feeds.push_back(
        {value.name, dtype_text(value.type), value.type.shape, number_, first_consumer(graph, id)});
  }

  static std::string first_consumer(const Graph& graph, ValueId id) {
    for (const Node& node : graph.nodes) {
      const bool uses = std::count(node.operands.begin(), node.operands.end(), id) > 0;
      if (uses && !node.sources.empty()) return node.sources.front();
    }
    return "";
  }

  int64_t count_of(const PositionProgram& program, const Lifetime& lifetime) const {
    if (lifetime.scope == "micro_batch") return plan_.micro_batches;
    if (lifetime.scope == "ring") return program.rings;
    return lifetime.scope == "slot" ? program.slots : 1;
  }

  // Kernels of both programs leave them zero, so that all can use the same.
  void add_flags() {
    const auto each = [&](const auto& visit) {
      for (PositionProgram& program : programs_) {
        for (size_t s = 0; s < program.step.storages.size(); ++s) {
          const bool used = program.lifetimes[s].used;
          if (used && program.step.storages[s].kind == Storage::Kind::kFlags) visit(program, s);
        }
      }
    };
    int64_t bytes = 0;
    each([&](PositionProgram& program, size_t s) {
      bytes = std::max(bytes, program.step.storages[s].bytes);
    });
    if (bytes == 0) return;
    const TensorType type = {DType::kUInt8, {bytes}};
    const std::string buffer = append_buffer("flags", "persistent", type, bytes, 1);
    plan_.states.push_back(
        {buffer, "constant", dtype_text(type), type.shape, buffer, number_, "zero", 0, 0, 0, 0});
    each([&](PositionProgram& program, size_t s) { program.buffers[s] = buffer; });
  }

  // Equal tables, of whatever kernels, are one buffer.
  void add_tables(PositionProgram& program) {
    for (size_t s = 0; s < program.step.storages.size(); ++s) {
      const Storage& table = program.step.storages[s];
      if (table.kind != Storage::Kind::kTable || !program.lifetimes[s].used) continue;
      const int64_t offset = weights_.add(table.table);
      const auto [buffer, is_new] = table_buffers_.try_emplace(offset);
      if (is_new) {
        buffer->second = append_buffer(table.name, "persistent", table.type, table.bytes, 1);
        plan_.states.push_back({buffer->second, "constant", dtype_text(table.type),
                                table.type.shape, buffer->second, number_, "data", offset, 0, 0,
                                0});
      }
      program.buffers[s] = buffer->second;
    }
  }

  // Gradients that are reduced as one lie side by side in one buffer, so that they are one message.
  void add_bucket(PositionProgram& program, const StepTask& task) {
    std::vector<size_t> members;
    for (const size_t c : task.calls) {
      const std::vector<StorageId>& arguments = program.step.calls[c].arguments;
      const auto s = static_cast<size_t>(arguments[0]);
      const Storage& storage = program.step.storages[s];
      const bool in_place = arguments[0] == arguments[1];
      if (in_place && storage.kind == Storage::Kind::kResult && !storage.output &&
          program.lifetimes[s].scope == "step") {
        members.push_back(s);
      }
    }
    if (members.size() < 2) return;
    BufferUse use = use_of(program, members.front());
    int64_t bytes = 0;
    for (const size_t s : members) {
      const Lifetime& lifetime = program.lifetimes[s];
      use.first = std::min(use.first, lifetime.first);
      use.last = std::max(use.last, lifetime.last);
      program.offsets[s] = bytes;
      bytes += align(program.step.storages[s].bytes, arena_alignment(plan_));
    }
    const DType dtype = program.step.storages[members.front()].type.dtype;
    const std::string buffer = append_buffer(
        task.name, "step", {dtype, {bytes / static_cast<int64_t>(size_of(dtype))}}, bytes, 1);
    uses_.back() = use;
    for (const size_t s : members) program.buffers[s] = buffer;
    buckets_.insert(buffer);
  }

  static BufferUse use_of(const PositionProgram& program, size_t storage) {
    const Lifetime& lifetime = program.lifetimes[storage];
    return {program.is_evaluation ? "evaluate" : "train",
            lifetime.first,
            lifetime.last,
            lifetime.hole_first,
            lifetime.hole_last,
            lifetime.in_frame,
            lifetime.in_frame_before};
  }

  // Buffers of the storages that are no leaves.
  void add_planned(PositionProgram& program) {
    for (const StepTask& task : program.tasks) {
      if (task.kind == StepCall::Kind::kAllReduce) add_bucket(program, task);
    }
    for (size_t s = 0; s < program.step.storages.size(); ++s) {
      const Storage& storage = program.step.storages[s];
      const Lifetime& lifetime = program.lifetimes[s];
      if (!lifetime.used || !is_planned(storage) || !program.buffers[s].empty()) continue;
      const std::string name = (program.is_evaluation ? "evaluate/" : "") + storage.name;
      program.buffers[s] = append_buffer(name, lifetime.scope, storage.type, storage.bytes,
                                         count_of(program, lifetime));
      uses_.back() = use_of(program, s);
    }
  }

  void add_tasks(const PositionProgram& program) {
    for (const StepTask& source : program.tasks) {
      plan::Task task;
      task.name = source.name;
      task.kind = kind_text(source.kind);
      task.stage = number_;
      for (const size_t c : source.calls) {
        const StepCall& call = program.step.calls[c];
        if (call.kind == StepCall::Kind::kKernel) {
          task.calls.push_back(plan_call(program, call));
        } else {
          add_communication(program, source, call, task);
        }
      }
      position_.tasks.push_back(std::move(task));
    }
  }

  plan::Argument argument_of(const PositionProgram& program, StorageId id) const {
    const Storage& storage = program.step.storages[static_cast<size_t>(id)];
    plan::Argument argument{program.buffers[static_cast<size_t>(id)], {}, 0};
    if (storage.kind == Storage::Kind::kControl) {
      argument.offset.base = control_offset(storage.name);
      argument.bytes = storage.bytes;
    } else if (storage.kind == Storage::Kind::kShard) {
      argument.offset.dp = storage.bytes;
      argument.bytes = storage.bytes;
    } else if (buckets_.count(argument.buffer) != 0) {
      argument.offset.base = program.offsets[static_cast<size_t>(id)];
      argument.bytes = storage.bytes;
    }
    return argument;
  }

  plan::Call plan_call(const PositionProgram& program, const StepCall& call) const {
    plan::Call result{call.kernel->symbol, {}, call.kernel->sources};
    for (const StorageId id : call.arguments) result.arguments.push_back(argument_of(program, id));
    return result;
  }

  int64_t control_offset(const std::string& name) const {
    for (const plan::Control& control : plan_.control) {
      if (control.name == name) return control.offset;
    }
    internal_error(__FILE__, __LINE__, "no control scalar is called \"" + name + "\"");
  }

  void add_communication(const PositionProgram& program, const StepTask& source,
                         const StepCall& call, plan::Task& task) const {
    task.communicator = communicator_of(source, program.is_evaluation);
    task.dtype = source.dtype;
    task.peer = call.peer;
    std::vector<plan::Argument> arguments;
    for (const StorageId id : call.arguments) arguments.push_back(argument_of(program, id));
    if (call.kind == StepCall::Kind::kSend) {
      task.inputs = std::move(arguments);
    } else if (call.kind == StepCall::Kind::kReceive) {
      task.outputs = std::move(arguments);
    } else {
      if (call.kind != StepCall::Kind::kAllGather) task.reduce = "sum";
      if (call.kind == StepCall::Kind::kAllGather && call.arguments[0] == call.arguments[1]) {
        const Storage& storage = program.step.storages[static_cast<size_t>(call.arguments[0])];
        const int64_t part = storage.bytes / plan_.mesh[1].size;
        arguments[0].offset.dp = part;
        arguments[0].bytes = part;
      }
      if (call.kind == StepCall::Kind::kAllReduce) {
        append_part(task.inputs, arguments[0]);
        append_part(task.outputs, arguments[1]);
      } else {
        task.inputs.push_back(arguments[0]);
        task.outputs.push_back(arguments[1]);
      }
    }
  }

  // Parts that follow each other without a gap are one.
  static void append_part(std::vector<plan::Argument>& parts, const plan::Argument& part) {
    const bool follows = !parts.empty() && part.bytes > 0 && parts.back().bytes > 0 &&
                         part.buffer == parts.back().buffer && part.offset.dp == 0 &&
                         part.offset.base == parts.back().offset.base + parts.back().bytes;
    if (follows) {
      parts.back().bytes += part.bytes;
    } else {
      parts.push_back(part);
    }
  }

  // A step's first output is the loss, whatever the file calls it. An evaluation's results are read
  // where they are computed.
  void add_results(const PositionProgram& program) {
    const Graph& graph = *program.program->graph;
    for (const Output& output : graph.outputs) {
      const bool is_loss = !program.is_evaluation && &output == &graph.outputs.front();
      const auto storage =
          static_cast<size_t>(program.step.storage_of[static_cast<size_t>(output.value)]);
      std::string buffer = program.buffers[storage];
      if (buffer.empty()) buffer = constant_result(graph, static_cast<ValueId>(storage));
      if (buffer.empty() || !has_result(program, output.value)) continue;
      const TensorType& type = graph.type(output.value);
      (program.is_evaluation ? plan_.evaluate_results : plan_.results)
          .push_back(
              {is_loss ? "loss" : output.name, buffer, dtype_text(type), type.shape, number_});
    }
  }

  // Constants are results everywhere.
  std::string constant_result(const Graph& graph, ValueId value) {
    if (value >= static_cast<ValueId>(graph.values.size())) return "";
    return graph.value(value).kind == ValueKind::kConstant ? add_constant(graph.value(value)) : "";
  }

  bool has_result(const PositionProgram& program, ValueId value) const {
    const Graph& graph = *program.program->graph;
    const NodeId producer = graph.value(value).producer;
    if (!program.is_evaluation || producer == kNone) return true;
    for (size_t g = 0; g < program.program->groups.size(); ++g) {
      const std::vector<NodeId>& nodes = program.program->groups[g].nodes;
      if (std::find(nodes.begin(), nodes.end(), producer) == nodes.end()) continue;
      return program.placement->groups[g].front() == number_;
    }
    return false;
  }

  std::deque<PositionProgram>& programs_;
  int64_t number_;
  plan::Plan& plan_;
  plan::Position& position_;
  WeightsBlob& weights_;
  std::vector<BufferUse> uses_;
  std::set<std::string> names_;
  std::set<std::string> buckets_;                    // buffers of several storages
  std::map<std::string, std::string> leaf_buffers_;  // "s" + state or "f" + feed: its buffer
  std::map<const Literal*, std::string> constant_buffers_;
  std::map<int64_t, std::string> table_buffers_;  // by offset in the weights
};

}  // namespace

std::vector<BufferUse> build_position(std::deque<PositionProgram>& programs, int64_t position,
                                      plan::Plan& plan, WeightsBlob& weights) {
  return PositionBuilder(programs, position, plan, weights).run();
}

std::string communicator_of(const StepTask& task, bool is_evaluation) {
  if (is_collective(task.kind)) return "dp";
  return "pp." + (is_evaluation ? "evaluate" : std::string(name_of(task.phase)));
}

}  // namespace sgtc
