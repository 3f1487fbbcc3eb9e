// Graph: the tensor-level program of one training step (or of one evaluation) in SSA form.
//
// Rules, checked by `verify`:
// - A value has one dtype and one static row-major shape. It is a leaf (feed, state, constant,
//   control) or a result of exactly one node. Names are unique.
// - `nodes` is in execution order: operands are leaves or results of earlier nodes.
// - A node belongs to a phase. One step runs `setup` once (what all micro-batches read that depends
//   on states alone, such as packed weights); for every micro-batch m of a replica in order
//   `prologue` (sums that all micro-batches share, such as the count of labels that are not
//   ignored); for every m `forward` and `backward` (in the order of the schedule); and `update`
//   once. A node may use values of its own and of earlier phases; `update` sees of `prologue`,
//   `forward` and `backward` only states, accumulators, stacked values and results of collectives,
//   and `forward` of `prologue` the same.
// - State is memory that outlives a micro-batch: parameters, frozen parameters, statistics,
//   optimizer moments, and accumulators (zero at the start of each step). `updates` binds a state
//   to the value that it takes at the end of the step. `accumulate` changes its state in place:
//   its result aliases operand 0, and later nodes use the result, never the state.
// - An operator's result aliases an operand only where the op table says so.
// - Effects: none but accumulate, stack_micro_batches and the status block of checked indices.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/attributes.h"
#include "ir/literal.h"
#include "ir/name_table.h"
#include "ir/ops.h"
#include "support/copy_on_write.h"
#include "support/inline_vector.h"

namespace sgtc {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;

enum class ValueKind : uint8_t { kResult, kFeed, kState, kConstant, kControl };

enum class Phase : uint8_t { kSetup, kPrologue, kForward, kBackward, kUpdate };
std::string_view name_of(Phase phase);

enum class StateRole : uint8_t {
  kParameter,    // trained
  kFrozen,       // float initializer that is not trained but saved
  kStatistic,    // BatchNorm running mean and variance
  kMoment,       // optimizer state
  kAccumulator,  // zero at the start of each step
};
std::string_view name_of(StateRole role);

/// Initial contents of a state.
struct Initializer {
  enum class Kind : uint8_t { kZero, kLiteral, kRandomNormal, kRandomUniform, kFill };
  Kind kind = Kind::kZero;
  LiteralPtr literal;  // kLiteral
  double a = 0;        // mean, low or the fill value
  double b = 0;        // deviation or high
  int64_t seed = 0;    // random kinds: the ONNX node's seed (0: derived from the name)
};

struct Value {
  std::string name;
  TensorType type;
  ValueKind kind = ValueKind::kResult;
  NodeId producer = kNone;                 // kResult
  LiteralPtr literal;                      // kConstant
  StateRole role = StateRole::kParameter;  // kState
  Initializer initial;                     // kState
  /// kState: the tensor's shape, if it is the replica's shard of one (Op::kShard); `initial` is
  /// that of the tensor. Empty: it is the tensor.
  Shape whole;
};

/// The shape of the tensor that a state is, or is a shard of.
inline const Shape& whole_shape(const Value& state) {
  return state.whole.empty() ? state.type.shape : state.whole;
}

/// Names of the ONNX nodes that a node came from.
class Sources {
 public:
  Sources() = default;
  Sources(std::vector<std::string> names) : names_(std::move(names)) {}
  Sources(std::initializer_list<std::string> names) : names_(std::vector<std::string>(names)) {}

  bool empty() const { return names_->empty(); }
  size_t size() const { return names_->size(); }
  const std::string& front() const { return names_->front(); }
  const std::string& operator[](size_t i) const { return (*names_)[i]; }
  std::vector<std::string>::const_iterator begin() const { return names_->begin(); }
  std::vector<std::string>::const_iterator end() const { return names_->end(); }
  bool operator==(const Sources& other) const { return *names_ == *other.names_; }

  /// Adds the names of `more` that are new.
  void add(const Sources& more);

 private:
  CopyOnWrite<std::vector<std::string>> names_;
};

struct Node {
  Op op = Op::kAdd;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attributes attributes;
  Phase phase = Phase::kForward;
  /// Given at import and kept by clones: keys random numbers and the order of gradient uses.
  int64_t id = 0;
  Sources sources;  // gradients keep that of their forward node
};

/// A named result of the program. `loss` of a training graph is outputs[0].
struct Output {
  std::string name;
  ValueId value = kNone;
};

struct Update {
  ValueId state = kNone;
  ValueId value = kNone;
};

/// Control values: scalars that the runtime writes before each step.
/// Names: "learning_rate" f32, "seed" i64, "step" i64 (1 for the first step).
class Graph {
 public:
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> feeds;  // in the order of the model's inputs
  std::vector<ValueId> states;
  std::vector<Output> outputs;
  std::vector<Update> updates;
  /// Rows of the batch dimension of one micro-batch; 0 when the model has no feeds.
  int64_t micro_batch_rows = 0;
  int64_t micro_batches = 1;  // M, of one replica
  int64_t replicas = 1;       // data-parallel copies of the program

  // Leaves. A name that is taken gets a suffix "_1", "_2"… .
  ValueId add_feed(const std::string& name, TensorType type);
  ValueId add_state(const std::string& name, TensorType type, StateRole role, Initializer initial,
                    Shape whole = {});
  ValueId add_constant(LiteralPtr literal, const std::string& name = "c");
  ValueId add_scalar(DType dtype, double value);
  /// The control value `name`, created at its first use.
  ValueId control(const std::string& name);

  /// Appends a node whose result types come from `infer_types`; the phase, id and sources are those
  /// of `context()`. Returns its results' ids.
  std::vector<ValueId> add_node(Op op, std::vector<ValueId> operands, Attributes attributes = {},
                                const std::string& result_name = "");
  /// The same for an operator with one result.
  ValueId add(Op op, std::vector<ValueId> operands, Attributes attributes = {},
              const std::string& result_name = "");

  /// The same with a name for each result (an empty one: the operator's), as clones and texts need.
  std::vector<ValueId> add_named_node(Op op, std::vector<ValueId> operands, Attributes attributes,
                                      const std::vector<std::string>& names);

  /// Appends a copy of a node of `source` with its phase, id, sources, and names and types of
  /// results. `operands` must have the types of the node's.
  const Node& add_copy(const Graph& source, const Node& node, std::vector<ValueId> operands);

  /// What appended nodes inherit.
  struct Context {
    Phase phase = Phase::kForward;
    int64_t id = 0;  // 0: the next free id
    Sources sources;
  };
  Context& context() { return context_; }
  int64_t next_id() { return ++last_id_; }
  int64_t last_id() const { return last_id_; }
  void reserve_ids(int64_t last) { last_id_ = last > last_id_ ? last : last_id_; }

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  const Shape& shape(ValueId id) const { return value(id).type.shape; }
  DType dtype(ValueId id) const { return value(id).type.dtype; }
  const Node& node(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  /// The node that computes `id`, or null for a leaf.
  const Node* producer(ValueId id) const;
  /// The id of the value called `name`, or kNone.
  ValueId find(const std::string& name) const { return names_.find(values, name); }
  std::string unique_name(const std::string& wanted);

 private:
  ValueId add_value(Value value);
  ValueId add_result(const std::string& name, TensorType type);
  const Node& append(Op op, std::vector<ValueId> operands, Attributes attributes,
                     std::span<const std::string> names);

  Context context_;
  int64_t last_id_ = 0;
  NameTable names_;
  std::map<std::string, int64_t> next_suffix_;
};

/// Checks every rule above. Throws InternalError naming the node and the rule; `after` names the
/// stage that produced the graph.
void verify(const Graph& graph, const std::string& after);

/// The text form. Parses back exactly (`parse_graph`), constants of more than 64 elements are
/// written as a hash and do not.
std::string to_text(const Graph& graph);
/// Throws Error with line and column.
Graph parse_graph(const std::string& text);

/// Users of a value: node indices in execution order, a node once per operand position.
using Users = InlineVector<NodeId, 4>;
/// Those of each value.
std::vector<Users> users_of(const Graph& graph);

/// How many operands, outputs and updates each value is.
std::vector<int64_t> count_uses(const Graph& graph);

/// The states with a path of float values to `id`: those that its gradient may reach.
std::set<ValueId> states_behind(const Graph& graph, ValueId id);

}  // namespace sgtc
