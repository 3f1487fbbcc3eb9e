#include "schedule/storage.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "cost/cost.h"
#include "passes/form_kernels.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// A kernel that copies `count` elements: a reshape that is not a view.
KernelSpec copy_kernel(const TensorType& type) {
  const Shape flat = {element_count(type.shape)};
  Graph graph;
  const ValueId from = graph.add_feed("from", {type.dtype, flat});
  graph.context().phase = Phase::kUpdate;
  const ValueId to = graph.add(Op::kReshape, {from}, {{"shape", flat}}, "to");
  Group group;
  group.kind = Group::Kind::kLoop;
  group.phase = Phase::kUpdate;
  group.nodes = {0};
  group.inputs = {from};
  group.outputs = {to};
  KernelSpec kernel = form_kernel(graph, group);
  fill_costs(graph, group, kernel);
  return kernel;
}

bool writes(AccessMode mode) { return mode != AccessMode::kRead; }

class Assigner {
 public:
  explicit Assigner(const KernelizedGraph& input) : input_(input), graph_(*input.graph) {}

  StepCalls run() {
    create_storages();
    join_views();
    create_calls();
    bind_updates();
    append_copies();
    put_results_in_place();
    return finish();
  }

 private:
  StorageId root(StorageId id) const {
    while (parent_[static_cast<size_t>(id)] != id) id = parent_[static_cast<size_t>(id)];
    return id;
  }
  Storage& storage(StorageId id) { return step_.storages[static_cast<size_t>(root(id))]; }

  // Makes `from` a part of `into`, whose name, type and kind stay.
  void join(StorageId from, StorageId into) {
    from = root(from);
    into = root(into);
    if (from == into) return;
    Storage& kept = step_.storages[static_cast<size_t>(into)];
    const Storage& gone = step_.storages[static_cast<size_t>(from)];
    kept.stacked |= gone.stacked;
    kept.output |= gone.output;
    parent_[static_cast<size_t>(from)] = into;
  }

  StorageId add_storage(Storage storage) {
    step_.storages.push_back(std::move(storage));
    parent_.push_back(static_cast<StorageId>(parent_.size()));
    return parent_.back();
  }

  static Storage::Kind kind_of(ValueKind kind) {
    switch (kind) {
      case ValueKind::kFeed:
        return Storage::Kind::kFeed;
      case ValueKind::kState:
        return Storage::Kind::kState;
      case ValueKind::kConstant:
        return Storage::Kind::kConstant;
      case ValueKind::kControl:
        return Storage::Kind::kControl;
      case ValueKind::kResult:
        break;
    }
    return Storage::Kind::kResult;
  }

  // Storage v is that of value v; others follow.
  void create_storages() {
    for (const Value& value : graph_.values) {
      add_storage(
          {kind_of(value.kind), value.name, value.type, bytes_of(value.type), false, false});
    }
    for (const Node& node : graph_.nodes) {
      if (node.op == Op::kStackMicroBatches) storage(node.results[0]).stacked = true;
    }
    for (const Output& output : graph_.outputs) storage(output.value).output = true;
    status_ = add_storage({Storage::Kind::kStatus, "status", {}, 0, false, false});
  }

  void join_views() {
    for (const Node& node : graph_.nodes) {
      if (node.op == Op::kAccumulate) join(node.results[0], node.operands[0]);
    }
    for (const Group& group : input_.groups) {
      if (group.kind != Group::Kind::kView) continue;
      for (const NodeId id : group.nodes) {
        const Node& node = graph_.node(id);
        join(node.results[0], node.operands[0]);
      }
    }
  }

  // Phase by phase; within a phase in the order of the groups.
  void create_calls() {
    for (const Phase phase :
         {Phase::kPrologue, Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      for (size_t i = 0; i < input_.groups.size(); ++i) {
        const bool has_code = input_.groups[i].kind != Group::Kind::kView;
        if (has_code && input_.groups[i].phase == phase) create_call(i);
      }
    }
  }

  void create_call(size_t i) {
    StepCall call{input_.groups[i].phase, &input_.kernels[i], &input_.groups[i], {}};
    for (const KernelArgument& argument : call.kernel->arguments) {
      call.arguments.push_back(storage_of(argument, *call.kernel));
    }
    step_.calls.push_back(std::move(call));
  }

  StorageId storage_of(const KernelArgument& argument, const KernelSpec& kernel) {
    switch (argument.kind) {
      case KernelArgument::Kind::kStatus:
        return status_;
      case KernelArgument::Kind::kWorkspace:
        return add_storage({Storage::Kind::kWorkspace,
                            "workspace",
                            {DType::kUInt8, {kernel.workspace_bytes}},
                            kernel.workspace_bytes,
                            false,
                            false});
      case KernelArgument::Kind::kValue:
        break;
    }
    return argument.value;
  }

  // How calls use a storage, by call number.
  struct Uses {
    std::vector<size_t> reads;
    std::vector<size_t> writes;
    size_t first() const { return std::min(front(reads), front(writes)); }
    size_t last() const { return std::max(back(reads), back(writes)); }
    static size_t front(const std::vector<size_t>& v) { return v.empty() ? SIZE_MAX : v.front(); }
    static size_t back(const std::vector<size_t>& v) { return v.empty() ? 0 : v.back(); }
  };

  std::vector<Uses> collect_uses() const {
    std::vector<Uses> uses(parent_.size());
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      const StepCall& call = step_.calls[c];
      for (size_t a = 0; a < call.arguments.size(); ++a) {
        Uses& use = uses[static_cast<size_t>(root(call.arguments[a]))];
        const AccessMode mode = call.kernel->arguments[a].mode;
        if (mode != AccessMode::kWrite) use.reads.push_back(c);
        if (writes(mode)) use.writes.push_back(c);
      }
    }
    return uses;
  }

  // Whether `call` allows its written argument for `result` to share the bytes of `operand`, which
  // no other argument uses.
  bool may_share(const StepCall& call, StorageId result, StorageId operand) const {
    int operand_uses = 0;
    bool allowed = false;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const StorageId id = root(call.arguments[a]);
      if (id == operand) ++operand_uses;
      if (id != result) continue;
      for (const int32_t alias : call.kernel->arguments[a].may_alias) {
        allowed |= root(call.arguments[static_cast<size_t>(alias)]) == operand;
      }
    }
    return operand_uses == 0 || (operand_uses == 1 && allowed);
  }

  // Whether somebody reads the state's old contents at the end of the step.
  bool is_read_at_end(StorageId state) {
    if (storage(state).output) return true;
    return std::any_of(graph_.updates.begin(), graph_.updates.end(), [&](const Update& update) {
      return root(update.value) == state && root(update.state) != state;
    });
  }

  bool can_update_in_place(StorageId state, StorageId value, const std::vector<Uses>& uses) {
    const Storage& result = storage(value);
    if (result.kind != Storage::Kind::kResult || result.stacked) return false;
    if (result.bytes != storage(state).bytes || is_read_at_end(state)) return false;
    const Uses& value_uses = uses[static_cast<size_t>(value)];
    const Uses& state_uses = uses[static_cast<size_t>(state)];
    if (value_uses.writes.size() != 1 || !state_uses.writes.empty()) return false;
    const size_t at = value_uses.writes.front();
    const StepCall& call = step_.calls[at];
    if (call.phase != Phase::kUpdate && graph_.micro_batches > 1) return false;
    return (state_uses.reads.empty() || state_uses.reads.back() <= at) &&
           may_share(call, value, state);
  }

  void bind_updates() {
    for (const Update& update : graph_.updates) {
      const StorageId state = root(update.state);
      const StorageId value = root(update.value);
      if (state == value) continue;
      if (can_update_in_place(state, value, collect_uses())) {
        join(value, state);
      } else {
        copied_.push_back(update);
      }
    }
  }

  // New values are copied at the very end. One that is itself a state's old contents goes through
  // a temporary, so that no copy sees the result of another.
  void append_copies() {
    save_updated_outputs();
    std::vector<std::pair<StorageId, StorageId>> copies;
    for (const Update& update : copied_) {
      StorageId from = root(update.value);
      if (storage(from).kind == Storage::Kind::kState) from = copy_to_temporary(from, "saved.");
      copies.emplace_back(from, root(update.state));
    }
    for (const auto& [from, to] : copies) append_copy(from, to);
  }

  // An output that is a state shows the contents that the step began with.
  void save_updated_outputs() {
    for (const Update& update : graph_.updates) {
      const StorageId state = root(update.state);
      if (!storage(state).output || root(update.value) == state) continue;
      for (const Output& output : graph_.outputs) {
        if (root(output.value) != state || moved_outputs_.count(output.value) != 0) continue;
        const StorageId saved = copy_to_temporary(state, "output.");
        storage(saved).output = true;
        moved_outputs_[output.value] = saved;
      }
    }
  }

  StorageId copy_to_temporary(StorageId from, const std::string& prefix) {
    Storage copy = storage(from);
    copy.kind = Storage::Kind::kResult;
    copy.name = prefix + copy.name;
    copy.output = false;
    const StorageId to = add_storage(std::move(copy));
    append_copy(from, to);
    return to;
  }

  void append_copy(StorageId from, StorageId to) {
    step_.copies.push_back(copy_kernel(storage(to).type));
    step_.calls.push_back({Phase::kUpdate, &step_.copies.back(), nullptr, {from, to}});
  }

  // Lets results overwrite operands that die in the same call.
  void put_results_in_place() {
    std::vector<Uses> uses = collect_uses();
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      for (size_t a = 0; a < step_.calls[c].arguments.size(); ++a) put_in_place(c, a, uses);
    }
  }

  // Joins a written argument with the first operand that it may overwrite.
  void put_in_place(size_t at, size_t argument, std::vector<Uses>& uses) {
    const StepCall& call = step_.calls[at];
    const StorageId result = root(call.arguments[argument]);
    for (const int32_t alias : call.kernel->arguments[argument].may_alias) {
      const StorageId operand = root(call.arguments[static_cast<size_t>(alias)]);
      if (!can_overwrite(at, result, operand, uses)) continue;
      join(result, operand);
      Uses& kept = uses[static_cast<size_t>(operand)];
      const Uses& gone = uses[static_cast<size_t>(result)];
      kept.reads.insert(kept.reads.end(), gone.reads.begin(), gone.reads.end());
      kept.writes.insert(kept.writes.end(), gone.writes.begin(), gone.writes.end());
      return;
    }
  }

  bool can_overwrite(size_t at, StorageId result, StorageId operand,
                     const std::vector<Uses>& uses) {
    const auto is_plain = [&](StorageId id) {
      const Storage& s = storage(id);
      return s.kind == Storage::Kind::kResult && !s.stacked && !s.output;
    };
    return result != operand && is_plain(result) && is_plain(operand) &&
           storage(result).bytes == storage(operand).bytes &&
           uses[static_cast<size_t>(operand)].last() == at &&
           uses[static_cast<size_t>(result)].first() == at &&
           may_share(step_.calls[at], result, operand);
  }

  StepCalls finish() {
    for (StepCall& call : step_.calls) {
      for (StorageId& argument : call.arguments) argument = root(argument);
    }
    for (ValueId value = 0; value < static_cast<ValueId>(graph_.values.size()); ++value) {
      const auto moved = moved_outputs_.find(value);
      step_.storage_of.push_back(moved == moved_outputs_.end() ? root(value) : moved->second);
    }
    return std::move(step_);
  }

  const KernelizedGraph& input_;
  const Graph& graph_;
  StepCalls step_;
  std::vector<StorageId> parent_;
  StorageId status_ = kNone;
  std::vector<Update> copied_;
  std::map<ValueId, StorageId> moved_outputs_;
};

}  // namespace

StepCalls assign_storage(const KernelizedGraph& input) { return Assigner(input).run(); }

}  // namespace sgtc
