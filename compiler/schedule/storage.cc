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
KernelSpec copy_kernel(const TensorType& type, const KernelTarget& target) {
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
  KernelSpec kernel = form_kernel(graph, group, 0, target);
  fill_costs(graph, group, kernel);
  return kernel;
}

bool writes(AccessMode mode) { return mode != AccessMode::kRead; }

class Assigner {
 public:
  explicit Assigner(const PositionInput& input)
      : input_(input), program_(*input.program), graph_(*input.program->graph) {
    find_made_here();
  }

  StepCalls run() {
    create_storages();
    join_views();
    create_calls();
    bind_updates();
    put_shards_in_place();
    append_copies();
    put_results_in_place();
    return finish();
  }

 private:
  bool runs_here(size_t group) const { return input_.placement->runs(group, input_.position); }

  void find_made_here() {
    made_here_.assign(graph_.nodes.size(), false);
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (!runs_here(g)) continue;
      for (const NodeId node : program_.groups[g].nodes)
        made_here_[static_cast<size_t>(node)] = true;
    }
  }

  bool is_made_here(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return producer != kNone && made_here_[static_cast<size_t>(producer)];
  }

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
    kept.transferred |= gone.transferred;
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

  // Storage v is that of value v; others follow. A state that only another position holds arrives
  // like any value.
  void create_storages() {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const Value& value = graph_.value(id);
      const bool borrowed =
          value.kind == ValueKind::kState && !input_.placement->holds(id, input_.position);
      const Storage::Kind kind = borrowed ? Storage::Kind::kResult : kind_of(value.kind);
      add_storage({kind, value.name, value.type, bytes_of(value.type)});
    }
    for (const Node& node : graph_.nodes) {
      if (node.op == Op::kStackMicroBatches) storage(node.results[0]).stacked = true;
    }
    for (const Output& output : graph_.outputs) storage(output.value).output = true;
    status_ = add_storage({Storage::Kind::kStatus, "status", {}});
    flags_ = add_storage({Storage::Kind::kFlags, "flags", {}});
  }

  void join_views() {
    for (const Node& node : graph_.nodes) {
      if (!accumulates(node.op) || !is_made_here(node.results[0])) continue;
      join(node.results[0], node.operands[0]);
    }
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (!runs_here(g)) continue;
      for (const NodeId id : program_.groups[g].nodes) join_view(program_.groups[g], id);
    }
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      if (program_.groups[g].kind == Group::Kind::kCollective && runs_here(g)) join_collective(g);
    }
  }

  // Views have their operand's bytes; anchors write their parts of a tensor in place.
  void join_view(const Group& group, NodeId id) {
    const Node& node = graph_.node(id);
    if (group.kind == Group::Kind::kView) join(node.results[0], node.operands[0]);
    if (group.kind == Group::Kind::kShard) {
      storage(node.results[0]).kind = Storage::Kind::kShard;
      storage(node.results[0]).whole = node.operands[0];
    }
    const bool is_part = node.op == Op::kPlace && node.operands.size() > 1;
    if (group.kind == Group::Kind::kAnchor && is_part) join(node.results[0], node.operands[1]);
  }

  // In place where the operand is memory of this program alone that nobody else reads.
  void join_collective(size_t g) {
    const Node& node = graph_.node(program_.groups[g].nodes.front());
    if (node.op != Op::kAllReduce && node.op != Op::kAllGather) return;
    const ValueId operand = node.operands[0];
    const Storage& held = storage(operand);
    const Node* producer = graph_.producer(operand);
    const bool accumulated = producer != nullptr && accumulates(producer->op);
    const bool own =
        held.kind == Storage::Kind::kResult || (held.kind == Storage::Kind::kState && accumulated);
    const bool output = held.output && !storage(node.results[0]).output;
    if (own && !output && readers(root(operand)) == 1) join(node.results[0], operand);
  }

  // Groups here, views aside, and transfers that read the storage before the update computes
  // anything.
  int64_t readers(StorageId id) const {
    int64_t count = 0;
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      const Group& group = program_.groups[g];
      const bool late = group.phase == Phase::kUpdate && group.kind != Group::Kind::kCollective;
      if (!runs_here(g) || group.kind == Group::Kind::kView || late) continue;
      const auto reads = [&](ValueId input) {
        return root(input) == id && graph_.value(input).kind != ValueKind::kState;
      };
      count += std::any_of(group.inputs.begin(), group.inputs.end(), reads) ? 1 : 0;
    }
    const std::vector<Transfer>& transfers = input_.exchange->transfers;
    return count + std::count_if(transfers.begin(), transfers.end(), [&](const Transfer& transfer) {
             return transfer.from == input_.position && transfer.phase != Phase::kUpdate &&
                    root(transfer.value) == id;
           });
  }

  // Phase by phase; within a phase in the order of the groups.
  void create_calls() {
    create_kernels(Phase::kSetup, 0);
    create_kernels(Phase::kPrologue, 0);
    create_collectives(Phase::kPrologue, 0);
    for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
      create_transfers(phase, 0, StepCall::Kind::kReceive);
      create_kernels(phase, 0);
      create_transfers(phase, 0, StepCall::Kind::kSend);
    }
    for (int64_t round = 0; round < input_.exchange->round_count; ++round) {
      create_collectives(Phase::kUpdate, round);
      create_transfers(Phase::kUpdate, round, StepCall::Kind::kSend);
      create_transfers(Phase::kUpdate, round, StepCall::Kind::kReceive);
      create_kernels(Phase::kUpdate, round);
    }
  }

  void create_kernels(Phase phase, int64_t round) {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      const Group& group = program_.groups[g];
      if (!has_code(group) || !runs_here(g) || group.phase != phase) continue;
      if (input_.exchange->rounds[g] == round) create_kernel(g, round);
    }
  }

  void create_kernel(size_t g, int64_t round) {
    const KernelSpec& kernel = program_.kernels[g];
    StepCall call;
    call.phase = program_.groups[g].phase;
    call.round = round;
    call.kernel = &kernel;
    call.group = &program_.groups[g];
    for (const KernelArgument& argument : kernel.arguments) {
      call.arguments.push_back(storage_of(argument, kernel));
    }
    step_.calls.push_back(std::move(call));
  }

  static StepCall::Kind kind_of(Op op) {
    if (op == Op::kAllReduce) return StepCall::Kind::kAllReduce;
    return op == Op::kReduceScatter ? StepCall::Kind::kReduceScatter : StepCall::Kind::kAllGather;
  }

  void create_collectives(Phase phase, int64_t round) {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      const Group& group = program_.groups[g];
      if (group.kind != Group::Kind::kCollective || group.phase != phase || !runs_here(g)) continue;
      if (input_.exchange->rounds[g] != round) continue;
      const Node& node = graph_.node(group.nodes.front());
      StepCall call;
      call.kind = kind_of(node.op);
      call.phase = phase;
      call.round = round;
      call.group = &group;
      call.dtype = graph_.dtype(node.operands[0]);
      call.arguments = {node.operands[0], node.results[0]};
      step_.calls.push_back(std::move(call));
    }
  }

  // One call per peer and element type.
  void create_transfers(Phase phase, int64_t round, StepCall::Kind kind) {
    const bool sends = kind == StepCall::Kind::kSend;
    std::map<std::pair<int64_t, DType>, std::vector<StorageId>> messages;
    for (const Transfer& transfer : input_.exchange->transfers) {
      const int64_t self = sends ? transfer.from : transfer.to;
      if (self != input_.position || transfer.phase != phase || transfer.round != round) continue;
      const int64_t peer = sends ? transfer.to : transfer.from;
      messages[{peer, graph_.dtype(transfer.value)}].push_back(transfer.value);
      storage(transfer.value).transferred |= phase != Phase::kUpdate;
    }
    for (auto& [key, values] : messages) {
      StepCall call;
      call.kind = kind;
      call.phase = phase;
      call.round = round;
      call.peer = key.first;
      call.dtype = key.second;
      call.arguments = std::move(values);
      step_.calls.push_back(std::move(call));
    }
  }

  StorageId storage_of(const KernelArgument& argument, const KernelSpec& kernel) {
    switch (argument.kind) {
      case KernelArgument::Kind::kStatus:
        return status_;
      case KernelArgument::Kind::kWorkspace:
        return add_bytes(Storage::Kind::kWorkspace, "workspace", kernel.workspace_bytes);
      case KernelArgument::Kind::kFlags:
        storage(flags_).bytes = std::max(storage(flags_).bytes, kernel.flag_bytes);
        return flags_;
      case KernelArgument::Kind::kTable: {
        SGTC_CHECK(kernel.table != nullptr, kernel.symbol + " has no table");
        const auto bytes = static_cast<int64_t>(kernel.table->bytes().size());
        const StorageId table = add_bytes(Storage::Kind::kTable, "table", bytes);
        storage(table).table = kernel.table;
        return table;
      }
      case KernelArgument::Kind::kValue:
        break;
    }
    return argument.value;
  }

  StorageId add_bytes(Storage::Kind kind, const std::string& name, int64_t bytes) {
    return add_storage({kind, name, {DType::kUInt8, {bytes}}, bytes});
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
        const StorageId id = root(call.arguments[a]);
        add_use(uses, id, c, access_of(call, a));
        const StorageId whole = step_.storages[static_cast<size_t>(id)].whole;
        if (whole != kNoStorage) add_use(uses, root(whole), c, access_of(call, a));
      }
    }
    return uses;
  }

  static void add_use(std::vector<Uses>& uses, StorageId id, size_t call, AccessMode mode) {
    Uses& use = uses[static_cast<size_t>(id)];
    if (mode != AccessMode::kWrite) use.reads.push_back(call);
    if (writes(mode)) use.writes.push_back(call);
  }

  // Whether `call` allows its written argument for `result` to share the bytes of `operand`, which
  // no other argument uses.
  bool may_share(const StepCall& call, StorageId result, StorageId operand) const {
    int operand_uses = 0;
    bool allowed = false;
    if (call.kernel == nullptr) return gathers_shards(call);
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

  // Of its two arguments, the shard may lie within the whole.
  bool gathers_shards(const StepCall& call) const {
    return call.group != nullptr && call.group->kind == Group::Kind::kCollective &&
           graph_.node(call.group->nodes.front()).op == Op::kGatherShards;
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

  // For when `from` becomes a part of `into`.
  static void merge_uses(std::vector<Uses>& uses, StorageId from, StorageId into) {
    const Uses& gone = uses[static_cast<size_t>(from)];
    Uses& kept = uses[static_cast<size_t>(into)];
    const auto merge = [](std::vector<size_t>& list, const std::vector<size_t>& more) {
      const auto middle = list.insert(list.end(), more.begin(), more.end());
      std::inplace_merge(list.begin(), middle, list.end());
    };
    merge(kept.reads, gone.reads);
    merge(kept.writes, gone.writes);
  }

  void bind_updates() {
    std::vector<Uses> uses = collect_uses();
    for (const Update& update : graph_.updates) {
      if (!input_.placement->holds(update.state, input_.position)) continue;
      const StorageId state = root(update.state);
      const StorageId value = root(update.value);
      if (state == value) continue;
      if (can_update_in_place(state, value, uses)) {
        join(value, state);
        merge_uses(uses, value, state);
      } else {
        copied_.push_back(update);
      }
    }
  }

  // Lets a new shard overwrite the old one where only the state that gathers it reads it, and
  // nobody the state in between.
  void put_shards_in_place() {
    std::vector<Uses> uses = collect_uses();
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      if (!gathers_shards(step_.calls[c])) continue;
      const StorageId shard = root(step_.calls[c].arguments[0]);
      const StorageId state = root(step_.calls[c].arguments[1]);
      const Uses& shard_uses = uses[static_cast<size_t>(shard)];
      const bool plain = storage(shard).kind == Storage::Kind::kResult && !storage(shard).output;
      if (!plain || shard_uses.writes.size() != 1 || shard_uses.reads != std::vector{c}) continue;
      const size_t at = shard_uses.writes.front();
      const std::vector<size_t>& reads = uses[static_cast<size_t>(state)].reads;
      if (step_.calls[at].kernel == nullptr || (!reads.empty() && reads.back() > at)) continue;
      for (const StorageId argument : step_.calls[at].arguments) {
        const StorageId old = root(argument);
        const StorageId whole = step_.storages[static_cast<size_t>(old)].whole;
        if (whole == kNoStorage || root(whole) != state) continue;
        if (may_share(step_.calls[at], shard, old)) {
          join(shard, old);
          merge_uses(uses, shard, old);
          merge_uses(uses, shard, state);
        }
        break;
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
      if (!input_.placement->holds(update.state, input_.position)) continue;
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
    step_.own_kernels.push_back(copy_kernel(storage(to).type, program_.target));
    StepCall call;
    call.phase = Phase::kUpdate;
    call.round = input_.exchange->round_count - 1;
    call.kernel = &step_.own_kernels.back();
    // A copy of no elements reads nothing.
    for (const KernelArgument& argument : call.kernel->arguments) {
      call.arguments.push_back(argument.value == 0 ? from : to);
    }
    step_.calls.push_back(std::move(call));
  }

  // Lets results overwrite operands that die in the same call.
  void put_results_in_place() {
    std::vector<Uses> uses = collect_uses();
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      if (step_.calls[c].kernel == nullptr) continue;
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
      merge_uses(uses, result, operand);
      return;
    }
  }

  bool can_overwrite(size_t at, StorageId result, StorageId operand,
                     const std::vector<Uses>& uses) {
    const auto is_plain = [&](StorageId id) {
      const Storage& s = storage(id);
      return s.kind == Storage::Kind::kResult && !s.stacked && !s.output;
    };
    // What is received for one micro-batch must not wait for what is sent of another.
    const bool two_ways = storage(result).transferred && storage(operand).transferred;
    return result != operand && is_plain(result) && is_plain(operand) && !two_ways &&
           storage(result).bytes == storage(operand).bytes &&
           uses[static_cast<size_t>(operand)].last() == at &&
           uses[static_cast<size_t>(result)].first() == at &&
           may_share(step_.calls[at], result, operand);
  }

  StepCalls finish() {
    for (StepCall& call : step_.calls) {
      for (StorageId& argument : call.arguments) argument = root(argument);
    }
    for (Storage& storage : step_.storages) {
      if (storage.whole != kNoStorage) storage.whole = root(storage.whole);
    }
    for (ValueId value = 0; value < static_cast<ValueId>(graph_.values.size()); ++value) {
      const auto moved = moved_outputs_.find(value);
      step_.storage_of.push_back(moved == moved_outputs_.end() ? root(value) : moved->second);
    }
    return std::move(step_);
  }

  const PositionInput& input_;
  const KernelizedGraph& program_;
  const Graph& graph_;
  std::vector<bool> made_here_;  // per node
  StepCalls step_;
  std::vector<StorageId> parent_;
  StorageId status_ = kNone;
  StorageId flags_ = kNone;
  std::vector<Update> copied_;
  std::map<ValueId, StorageId> moved_outputs_;
};

}  // namespace

AccessMode access_of(const StepCall& call, size_t index) {
  switch (call.kind) {
    case StepCall::Kind::kKernel:
      return call.kernel->arguments[index].mode;
    case StepCall::Kind::kSend:
      return AccessMode::kRead;
    case StepCall::Kind::kReceive:
      return AccessMode::kWrite;
    case StepCall::Kind::kAllReduce:
    case StepCall::Kind::kReduceScatter:
    case StepCall::Kind::kAllGather:
      break;
  }
  return index == 0 ? AccessMode::kRead : AccessMode::kWrite;
}

bool is_collective(StepCall::Kind kind) {
  return kind == StepCall::Kind::kAllReduce || kind == StepCall::Kind::kReduceScatter ||
         kind == StepCall::Kind::kAllGather;
}

StepCalls assign_storage(const PositionInput& input) { return Assigner(input).run(); }

}  // namespace sgtc
