// Group 1 of verify_plan: every name resolves, every size fits.
#include <algorithm>
#include <set>

#include "plan/verify_parts.h"
#include "support/dtype.h"

namespace sgtc {
namespace {

const std::set<std::string> kScopes = {"persistent", "step", "micro_batch", "slot", "ring", "task"};
const std::set<std::string> kTaskKinds = {"compute",        "send",       "receive",  "all_reduce",
                                          "reduce_scatter", "all_gather", "broadcast"};
const std::set<std::string> kAccesses = {"read", "write", "update"};

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// The product of the sizes, or -1 when a size is negative or it does not fit.
int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return -1;
  }
  return count;
}

class SchemaChecker {
 public:
  explicit SchemaChecker(const ResolvedPlan& resolved)
      : resolved_(resolved), plan_(resolved.plan) {}

  PlanFaults run() {
    check_header();
    check_kernels();
    check_communicators();
    for (size_t p = 0; p < plan_.positions.size(); ++p) check_position(static_cast<int64_t>(p));
    if (faults_.empty()) check_interface();
    return std::move(faults_);
  }

 private:
  void add(PlanFault fault) { faults_.push_back(std::move(fault)); }
  void add(const std::string& text) { add(PlanFault{-1, "", -1, "", "", text}); }
  void add_buffer(int64_t position, const std::string& buffer, const std::string& text) {
    add({position, "", -1, "", buffer, text});
  }
  void add_task(int64_t position, const plan::Task& task, const std::string& text,
                const std::string& buffer = "") {
    add({position, "", -1, task.name, buffer, text});
  }

  void check_header() {
    if (plan_.format != "sgtc-plan") add("format is \"sgtc-plan\", found " + quoted(plan_.format));
    if (plan_.version != plan::kFormatVersion) {
      add("version is " + std::to_string(plan::kFormatVersion) + ", found " +
          std::to_string(plan_.version));
    }
    std::set<std::string> names;
    for (const plan::Axis& axis : plan_.mesh) {
      const bool known = axis.name == "pp" || axis.name == "dp" || axis.name == "tp";
      if (!known || !names.insert(axis.name).second) {
        add("mesh axes are pp, dp and tp, each once; found " + quoted(axis.name));
      }
      if (axis.size < 1) add("mesh axis " + axis.name + " has size " + std::to_string(axis.size));
    }
    const auto positions = static_cast<int64_t>(plan_.positions.size());
    if (positions != resolved_.axis_size("pp")) {
      add("a position per pp coordinate is expected: " + std::to_string(resolved_.axis_size("pp")) +
          ", found " + std::to_string(positions));
    }
    if (plan_.micro_batches < 1) {
      add("micro_batches is at least 1, found " + std::to_string(plan_.micro_batches));
    }
  }

  void check_kernels() {
    std::set<std::string> symbols;
    for (const plan::Kernel& kernel : plan_.kernels) {
      if (!symbols.insert(kernel.symbol).second)
        add("kernel " + quoted(kernel.symbol) + " occurs twice");
      if (kernel.blocks < 0)
        add("kernel " + quoted(kernel.symbol) + " has a negative number of blocks");
      for (const std::string& access : kernel.access) {
        if (kAccesses.count(access) == 0) {
          add("kernel " + quoted(kernel.symbol) + ": access is read, write or update, found " +
              quoted(access));
        }
      }
    }
  }

  void check_communicators() {
    std::set<std::string> names;
    for (const plan::Communicator& communicator : plan_.communicators) {
      if (!names.insert(communicator.name).second) {
        add("communicator " + quoted(communicator.name) + " occurs twice");
      }
      if (resolved_.axes.count(communicator.axis) == 0) {
        add("communicator " + quoted(communicator.name) + " runs over the axis " +
            quoted(communicator.axis) + ", which the mesh does not have");
      }
    }
  }

  void check_position(int64_t p) {
    const plan::Position& position = plan_.positions[static_cast<size_t>(p)];
    for (const int64_t stage : position.stages) {
      if (!stages_.insert(stage).second) {
        add({p, "", -1, "", "", "stage " + std::to_string(stage) + " has two owners"});
      }
    }
    std::set<std::string> names;
    for (const plan::Buffer& buffer : position.buffers) {
      if (!names.insert(buffer.name).second) add_buffer(p, buffer.name, "the name occurs twice");
      check_buffer(p, position, buffer);
    }
    names.clear();
    for (const plan::Task& task : position.tasks) {
      if (!names.insert(task.name).second) add_task(p, task, "the name occurs twice");
      check_task(p, position, task);
    }
  }

  void check_buffer(int64_t p, const plan::Position& position, const plan::Buffer& buffer) {
    const auto fault = [&](const std::string& text) { add_buffer(p, buffer.name, text); };
    if (kScopes.count(buffer.scope) == 0) fault("unknown scope " + quoted(buffer.scope));
    const auto dtype = dtype_from_name(buffer.dtype);
    if (!dtype) return fault("unknown dtype " + quoted(buffer.dtype));
    const int64_t elements = elements_of(buffer.shape);
    if (elements < 0) return fault("the shape has a negative or too large size");
    if (buffer.bytes < 0 || buffer.bytes / size_of(*dtype) < elements) {
      fault("the shape needs " + std::to_string(elements) + " elements of " + buffer.dtype +
            ", found " + std::to_string(buffer.bytes) + " bytes");
    }
    check_instances(p, buffer);
    const int64_t end =
        buffer.offset + (std::max<int64_t>(buffer.count, 1) - 1) * buffer.stride + buffer.bytes;
    if (buffer.offset < 0 || end > position.arena_bytes) {
      fault("bytes " + std::to_string(buffer.offset) + " to " + std::to_string(end) +
            " lie outside of the arena of " + std::to_string(position.arena_bytes));
    }
  }

  void check_instances(int64_t p, const plan::Buffer& buffer) {
    const auto fault = [&](const std::string& text) { add_buffer(p, buffer.name, text); };
    if (buffer.count < 1) fault("count is at least 1, found " + std::to_string(buffer.count));
    const bool single =
        buffer.scope == "persistent" || buffer.scope == "step" || buffer.scope == "task";
    if (single && buffer.count > 1) {
      fault("scope " + buffer.scope + " has one instance, found " + std::to_string(buffer.count));
    }
    if (buffer.scope == "micro_batch" && buffer.count != plan_.micro_batches) {
      fault("scope micro_batch has one instance per micro-batch: " +
            std::to_string(plan_.micro_batches) + ", found " + std::to_string(buffer.count));
    }
    if (buffer.count > 1 && buffer.stride < buffer.bytes) {
      fault("instances of " + std::to_string(buffer.bytes) + " bytes overlap at a stride of " +
            std::to_string(buffer.stride));
    }
  }

  void check_task(int64_t p, const plan::Position& position, const plan::Task& task) {
    if (kTaskKinds.count(task.kind) == 0)
      return add_task(p, task, "unknown kind " + quoted(task.kind));
    if (std::count(position.stages.begin(), position.stages.end(), task.stage) == 0) {
      add_task(p, task, "stage " + std::to_string(task.stage) + " is not owned by the position");
    }
    if (is_communication(task)) return check_communication(p, task);
    for (const plan::Call& call : task.calls) check_call(p, task, call);
  }

  void check_call(int64_t p, const plan::Task& task, const plan::Call& call) {
    const auto kernel = resolved_.kernels.find(call.kernel);
    if (kernel == resolved_.kernels.end()) {
      return add_task(p, task, "unknown kernel " + quoted(call.kernel));
    }
    const size_t expected = kernel->second->access.size();
    if (call.arguments.size() != expected) {
      add_task(p, task,
               "kernel " + quoted(call.kernel) + " takes " + std::to_string(expected) +
                   " arguments, found " + std::to_string(call.arguments.size()));
    }
    for (const plan::Argument& argument : call.arguments) check_argument(p, task, argument);
  }

  // The argument lies within its buffer on every rank of the position.
  void check_argument(int64_t p, const plan::Task& task, const plan::Argument& argument) {
    const auto& buffers = resolved_.positions[static_cast<size_t>(p)].buffers;
    const auto found = buffers.find(argument.buffer);
    if (found == buffers.end()) return add_task(p, task, "unknown buffer", argument.buffer);
    const int64_t bytes = bytes_of(argument, *found->second);
    for (const int64_t dp : {int64_t{0}, resolved_.axis_size("dp") - 1}) {
      for (const int64_t tp : {int64_t{0}, resolved_.axis_size("tp") - 1}) {
        const int64_t begin = argument.offset.at(dp, tp);
        if (begin >= 0 && bytes >= 0 && begin + bytes <= found->second->bytes) continue;
        return add_task(p, task,
                        "bytes " + std::to_string(begin) + " to " + std::to_string(begin + bytes) +
                            " of an instance of " + std::to_string(found->second->bytes) + " (dp " +
                            std::to_string(dp) + ", tp " + std::to_string(tp) + ")",
                        argument.buffer);
      }
    }
  }

  void check_communication(int64_t p, const plan::Task& task) {
    const size_t before = faults_.size();
    for (const plan::Argument& argument : task.inputs) check_argument(p, task, argument);
    for (const plan::Argument& argument : task.outputs) check_argument(p, task, argument);
    if (!task.calls.empty()) add_task(p, task, "a communication has no kernel calls");
    if (!dtype_from_name(task.dtype)) add_task(p, task, "unknown dtype " + quoted(task.dtype));
    const auto communicator = resolved_.communicators.find(task.communicator);
    if (communicator == resolved_.communicators.end()) {
      return add_task(p, task, "unknown communicator " + quoted(task.communicator));
    }
    if (faults_.size() != before) return;
    check_dtypes(p, task);
    const int64_t size = resolved_.axis_size(communicator->second->axis);
    if (is_transfer(task)) {
      check_transfer(p, task, *communicator->second, size);
    } else {
      check_collective(p, task, size);
    }
  }

  void check_dtypes(int64_t p, const plan::Task& task) {
    for (const std::vector<plan::Argument>* list : {&task.inputs, &task.outputs}) {
      for (const plan::Argument& argument : *list) {
        const plan::Buffer& buffer = buffer_of(p, argument);
        const std::optional<DType> own = dtype_from_name(task.dtype);
        const std::optional<DType> stored = dtype_from_name(buffer.dtype);
        // What is computed in the place of another value may be of another type.
        if (own && stored && size_of(*own) == size_of(*stored)) continue;
        add_task(p, task,
                 "the communication has dtype " + task.dtype + ", the buffer " + buffer.dtype,
                 buffer.name);
      }
    }
  }

  const plan::Buffer& buffer_of(int64_t p, const plan::Argument& argument) const {
    return *resolved_.positions[static_cast<size_t>(p)].buffers.at(argument.buffer);
  }

  void check_transfer(int64_t p, const plan::Task& task, const plan::Communicator& communicator,
                      int64_t size) {
    if (communicator.axis != "pp") {
      add_task(p, task,
               "transfers run over pp, communicator " + quoted(communicator.name) + " over " +
                   communicator.axis);
    } else if (task.peer < 0 || task.peer >= size || task.peer == p) {
      add_task(p, task,
               "the peer is another position below " + std::to_string(size) + ", found " +
                   std::to_string(task.peer));
    }
    const bool sends = task.kind == "send";
    const bool one_way = sends ? task.outputs.empty() : task.inputs.empty();
    if (!one_way || (task.inputs.empty() && task.outputs.empty())) {
      add_task(p, task, "a send has inputs alone and a receive has outputs alone");
    }
  }

  void check_collective(int64_t p, const plan::Task& task, int64_t size) {
    if (task.inputs.size() != task.outputs.size() || task.inputs.empty()) {
      return add_task(
          p, task,
          "a collective has an output for each input: " + std::to_string(task.inputs.size()) +
              " inputs, " + std::to_string(task.outputs.size()) + " outputs");
    }
    const bool reduces = task.kind == "all_reduce" || task.kind == "reduce_scatter";
    if (reduces && task.reduce != "sum" && task.reduce != "max") {
      add_task(p, task, "reduce is sum or max, found " + quoted(task.reduce));
    }
    if (task.kind == "broadcast" && (task.peer < 0 || task.peer >= size)) {
      add_task(
          p, task,
          "the root is below " + std::to_string(size) + ", found " + std::to_string(task.peer));
    }
    for (size_t i = 0; i < task.inputs.size(); ++i) {
      const int64_t input = bytes_of(task.inputs[i], buffer_of(p, task.inputs[i]));
      const int64_t output = bytes_of(task.outputs[i], buffer_of(p, task.outputs[i]));
      const int64_t expected = task.kind == "all_gather" ? input * size : input;
      const int64_t found = task.kind == "reduce_scatter" ? output * size : output;
      if (expected == found) continue;
      add_task(p, task,
               task.kind + " over " + std::to_string(size) + " ranks reads " +
                   std::to_string(input) + " bytes and writes " + std::to_string(output),
               task.outputs[i].buffer);
    }
  }

  // Feeds, results, states and control: what the runtime finds by name.
  void check_interface() {
    for (const plan::Feed& feed : plan_.feeds) {
      const plan::Buffer* buffer = find("feed", feed.position, feed.name);
      if (buffer == nullptr) continue;
      if (buffer->scope != "micro_batch") {
        add_buffer(feed.position, feed.name,
                   "a feed has scope micro_batch, found " + buffer->scope);
      }
      check_type("feed", feed.position, *buffer, feed.dtype, feed.shape);
    }
    for (const plan::Result& result : plan_.results) check_result(result);
    for (const plan::Result& result : plan_.evaluate_results) check_result(result);
    for (const plan::State& state : plan_.states) {
      const plan::Buffer* buffer = find("state", state.position, state.buffer);
      if (buffer != nullptr && buffer->scope != "persistent") {
        add_buffer(state.position, state.buffer, "a state is persistent, found " + buffer->scope);
      }
      if (buffer != nullptr) check_shards(state, *buffer);
    }
    for (size_t p = 0; p < plan_.positions.size(); ++p) check_control(static_cast<int64_t>(p));
  }

  void check_shards(const plan::State& state, const plan::Buffer& buffer) {
    const int64_t elements = elements_of(state.shape);
    const bool whole = state.shards == 1;
    if (!whole && (state.role != "moment" || state.shards != resolved_.axis_size("dp"))) {
      add_buffer(state.position, state.buffer,
                 "only moments have shards, as many as replicas, found " +
                     std::to_string(state.shards) + " of a " + state.role);
    } else if (!whole && elements != elements_of(buffer.shape) * state.shards) {
      add_buffer(state.position, state.buffer,
                 "a shard has an equal part of " + std::to_string(elements) + " elements, found " +
                     std::to_string(elements_of(buffer.shape)));
    }
  }

  const plan::Buffer* find(const std::string& what, int64_t position, const std::string& name) {
    if (position < 0 || position >= static_cast<int64_t>(plan_.positions.size())) {
      add(what + " " + quoted(name) + " is at position " + std::to_string(position) +
          ", which does not exist");
      return nullptr;
    }
    const auto& buffers = resolved_.positions[static_cast<size_t>(position)].buffers;
    const auto buffer = buffers.find(name);
    if (buffer != buffers.end()) return buffer->second;
    add_buffer(position, name, "unknown buffer of a " + what);
    return nullptr;
  }

  // A view may give the buffer another shape of as many elements.
  void check_type(const std::string& what, int64_t position, const plan::Buffer& buffer,
                  const std::string& dtype, const std::vector<int64_t>& shape) {
    if (dtype == buffer.dtype && elements_of(shape) == elements_of(buffer.shape)) return;
    add_buffer(position, buffer.name, "the " + what + " and the buffer have different types");
  }

  void check_result(const plan::Result& result) {
    const plan::Buffer* buffer = find("result", result.position, result.buffer);
    if (buffer != nullptr) {
      check_type("result", result.position, *buffer, result.dtype, result.shape);
    }
  }

  void check_control(int64_t p) {
    const auto& buffers = resolved_.positions[static_cast<size_t>(p)].buffers;
    const auto buffer = buffers.find("control");
    if (buffer == buffers.end()) return;
    for (const plan::Control& control : plan_.control) {
      const auto dtype = dtype_from_name(control.dtype);
      const int64_t end = dtype ? control.offset + size_of(*dtype) : -1;
      if (control.offset < 0 || end < 0 || end > buffer->second->bytes) {
        add_buffer(p, "control", "scalar " + quoted(control.name) + " does not fit");
      }
    }
  }

  const ResolvedPlan& resolved_;
  const plan::Plan& plan_;
  PlanFaults faults_;
  std::set<int64_t> stages_;
};

}  // namespace

PlanFaults find_schema_faults(const ResolvedPlan& plan) { return SchemaChecker(plan).run(); }

}  // namespace sgtc
