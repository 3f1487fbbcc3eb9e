#include <set>
#include <string_view>

#include "ir/graph.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, const std::string& after) : graph_(graph), after_(after) {}

  void run() {
    check_values();
    check_leaf_lists();
    defined_.assign(graph_.values.size(), false);
    for (size_t id = 0; id < defined_.size(); ++id) {
      defined_[id] = graph_.values[id].kind != ValueKind::kResult;
    }
    for (const Node& node : graph_.nodes) check_node(node);
    check_outputs();
    check_updates();
  }

 private:
  [[noreturn]] void fail(const std::string& object, const std::string& rule) const {
    throw InternalError("after " + after_ + ": " + object + ": " + rule);
  }

  std::string describe(const Node& node) const {
    std::string text = std::string(name_of(node.op)) + " #" + std::to_string(node.id);
    if (!node.results.empty() && is_value(node.results[0])) text += " %" + name(node.results[0]);
    return text;
  }

  bool is_value(ValueId id) const {
    return id >= 0 && id < static_cast<ValueId>(graph_.values.size());
  }

  const std::string& name(ValueId id) const { return graph_.value(id).name; }

  void check_values() const {
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      const Value& value = graph_.values[id];
      if (graph_.find(value.name) != static_cast<ValueId>(id)) {
        fail('%' + value.name, "names must be unique");
      }
      for (const int64_t size : value.type.shape) {
        if (size < 0) fail('%' + value.name, "sizes must not be negative");
      }
      if (value.kind == ValueKind::kConstant) check_literal(value, value.literal);
      if (value.kind != ValueKind::kState) continue;
      if (value.initial.kind == Initializer::Kind::kLiteral) {
        check_literal(value, value.initial.literal);
      }
      const int64_t shards = value.whole.empty() ? 1 : graph_.replicas;
      if (shards * element_count(value.type.shape) != element_count(whole_shape(value))) {
        fail('%' + value.name,
             "must be an equal part for each replica of " + to_string(value.whole));
      }
      if (value.role == StateRole::kAccumulator && value.initial.kind != Initializer::Kind::kZero) {
        fail('%' + value.name, "an accumulator must start at zero");
      }
    }
  }

  // Whether the result holds something of all micro-batches.
  static bool is_total(const Node& node) {
    return accumulates(node.op) || node.op == Op::kStackMicroBatches ||
           info(node.op).kind == OpKind::kCollective;
  }

  void check_literal(const Value& value, const LiteralPtr& literal) const {
    if (literal == nullptr) fail('%' + value.name, "must have a literal");
    if (literal->dtype() != value.type.dtype || literal->shape() != whole_shape(value)) {
      fail('%' + value.name, "must have the type of its literal");
    }
  }

  void check_leaf_lists() const {
    check_leaf_list(graph_.feeds, ValueKind::kFeed, "feeds");
    check_leaf_list(graph_.states, ValueKind::kState, "states");
  }

  void check_leaf_list(const std::vector<ValueId>& list, ValueKind kind,
                       const std::string& what) const {
    std::vector<bool> seen(graph_.values.size(), false);
    for (const ValueId id : list) {
      if (!is_value(id) || graph_.value(id).kind != kind || seen[static_cast<size_t>(id)]) {
        fail(what, "must list each leaf of that kind once and nothing else");
      }
      seen[static_cast<size_t>(id)] = true;
    }
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      if (graph_.value(id).kind == kind && !seen[static_cast<size_t>(id)]) {
        fail('%' + name(id), "is missing in the list of " + what);
      }
    }
  }

  void check_node(const Node& node) {
    for (const ValueId operand : node.operands) check_operand(node, operand);
    if (accumulates(node.op)) check_accumulate(node);
    if (node.op == Op::kStackMicroBatches &&
        node.attributes.integer("micro_batches") != graph_.micro_batches * graph_.replicas) {
      fail(describe(node), "micro_batches must be those of all replicas");
    }
    check_shards(node);
    check_result_types(node);
    const auto index = static_cast<NodeId>(&node - graph_.nodes.data());
    for (const ValueId result : node.results) {
      if (defined_[static_cast<size_t>(result)] || graph_.value(result).producer != index) {
        fail(describe(node), "each result must be produced by this node alone");
      }
      defined_[static_cast<size_t>(result)] = true;
    }
  }

  void check_shards(const Node& node) const {
    const bool is_shard = node.op == Op::kShard;
    if (!is_shard && node.op != Op::kReduceScatter && node.op != Op::kGatherShards) return;
    if (node.attributes.integer("replicas") != graph_.replicas) {
      fail(describe(node), "replicas must be those of the graph");
    }
    if (is_shard && graph_.value(node.operands[0]).kind != ValueKind::kState) {
      fail(describe(node), "operand 0 must be a state");
    }
  }

  void check_operand(const Node& node, ValueId operand) const {
    if (!is_value(operand)) fail(describe(node), "operands must be values of the graph");
    if (!defined_[static_cast<size_t>(operand)]) {
      fail(describe(node), "operand %" + name(operand) + " must be computed earlier");
    }
    if (accumulated_.count(operand) != 0) {
      fail(describe(node), "%" + name(operand) + " is accumulated before; its result must be used");
    }
    const Node* producer = graph_.producer(operand);
    if (producer != nullptr) check_phases(node, *producer, operand);
    const bool once = node.phase == Phase::kSetup || node.phase == Phase::kUpdate;
    if (graph_.value(operand).kind == ValueKind::kFeed && once && graph_.micro_batches > 1) {
      fail(describe(node), "feed %" + name(operand) + " must not be read in the " +
                               std::string(name_of(node.phase)) + " phase");
    }
  }

  // With one micro-batch, `update` and the phases after `prologue` may read values directly.
  void check_phases(const Node& node, const Node& producer, ValueId operand) const {
    if (producer.phase > node.phase) {
      fail(describe(node), "operand %" + name(operand) + " must not come from a later phase");
    }
    const bool once = graph_.micro_batches == 1 || producer.phase == Phase::kSetup;
    if (once || producer.phase == node.phase) return;
    const bool crosses = node.phase == Phase::kUpdate || producer.phase == Phase::kPrologue;
    if (crosses && !is_total(producer)) {
      fail(describe(node),
           "operand %" + name(operand) + " must be accumulated or stacked to cross micro-batches");
    }
  }

  void check_accumulate(const Node& node) {
    const Value& state = graph_.value(node.operands[0]);
    if (state.kind != ValueKind::kState || state.role != StateRole::kAccumulator) {
      fail(describe(node), "operand 0 must be an accumulator");
    }
    if (node.phase == Phase::kSetup || node.phase == Phase::kUpdate) {
      fail(describe(node), "must not be in the " + std::string(name_of(node.phase)) + " phase");
    }
    accumulated_.insert(node.operands[0]);
  }

  void check_result_types(const Node& node) const {
    OperandTypes operands;
    for (const ValueId operand : node.operands) operands.push_back(&graph_.type(operand));
    std::vector<TensorType> types;
    try {
      types = infer_types(node.op, operands, node.attributes);
    } catch (const Error& error) {
      fail(describe(node), error.what());
    }
    if (types.size() != node.results.size()) fail(describe(node), "wrong number of results");
    for (size_t i = 0; i < types.size(); ++i) {
      if (!is_value(node.results[i]) || graph_.type(node.results[i]) != types[i]) {
        fail(describe(node), "result " + std::to_string(i) + " must have the inferred type");
      }
    }
  }

  void check_outputs() const {
    std::set<std::string_view> names;
    for (const Output& output : graph_.outputs) {
      if (!names.insert(output.name).second) fail("output " + output.name, "names must be unique");
      check_use("output " + output.name, output.value);
    }
  }

  void check_updates() const {
    std::set<ValueId> states;
    for (const Update& update : graph_.updates) {
      if (!is_value(update.state) || graph_.value(update.state).kind != ValueKind::kState) {
        fail("updates", "must bind states");
      }
      const std::string object = "update of %" + name(update.state);
      if (graph_.value(update.state).role == StateRole::kAccumulator) {
        fail(object, "an accumulator must not be updated");
      }
      if (!states.insert(update.state).second) fail(object, "a state must be updated once");
      check_use(object, update.value);
      if (graph_.type(update.value) != graph_.type(update.state)) {
        fail(object, "%" + name(update.value) + " must have the type of the state");
      }
      const Node* producer = graph_.producer(update.value);
      if (graph_.micro_batches > 1 && producer != nullptr && producer->phase != Phase::kUpdate &&
          !is_total(*producer)) {
        fail(object, "%" + name(update.value) + " must not vary by micro-batch");
      }
    }
  }

  void check_use(const std::string& object, ValueId id) const {
    if (!is_value(id) || !defined_[static_cast<size_t>(id)]) {
      fail(object, "must be a value that is computed");
    }
  }

  const Graph& graph_;
  const std::string& after_;
  std::vector<bool> defined_;
  std::set<ValueId> accumulated_;
};

}  // namespace

void verify(const Graph& graph, const std::string& after) { Verifier(graph, after).run(); }

}  // namespace sgtc
