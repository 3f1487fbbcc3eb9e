#include "passes/prepack_weights.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "autodiff/expressions.h"
#include "include/shapes.h"
#include "ir/clone.h"
#include "passes/eliminate_dead_nodes.h"

namespace sgtc {
namespace {

constexpr int64_t kMostRows = 128;
constexpr int64_t kLeastProducts = 8;

// A weight as products read it: whether its rows are their columns.
struct Reading {
  ValueId weight = kNone;
  bool transposed = false;
  auto operator<=>(const Reading&) const = default;
};

struct Readers {
  int64_t count = 0;  // per step
  const Node* first = nullptr;
};

Reading reading_of(const Node& node) {
  return {node.operands[1], node.attributes.integer_or("transpose_b", 0) != 0};
}

class Prepacker {
 public:
  explicit Prepacker(const Graph& graph) : graph_(graph), is_weight_(graph.values.size()) {
    find_weights();
    find_readers();
  }

  bool has_work() const { return !readers_.empty(); }

  Graph run() {
    Cloner cloner(graph_);
    Expressions e(cloner.target());
    std::map<Reading, ValueId> packed;
    for (const auto& [reading, readers] : readers_) {
      cloner.target().context() = {Phase::kSetup, 0, readers.first->sources};
      packed[reading] = pack(e, moved(cloner, reading.weight), reading.transposed);
    }
    for (const Node& node : graph_.nodes) {
      const auto found = takes_packed(node) ? packed.find(reading_of(node)) : packed.end();
      if (found == packed.end()) {
        cloner.clone(node);
      } else {
        cloner.inherit(node);
        multiply(cloner, node, found->second);
      }
    }
    return cloner.finish();
  }

 private:
  bool is_weight(ValueId value) const { return is_weight_[static_cast<size_t>(value)]; }

  // States, and what moves their elements.
  void find_weights() {
    for (ValueId v = 0; v < static_cast<ValueId>(graph_.values.size()); ++v) {
      const Value& value = graph_.value(v);
      is_weight_[static_cast<size_t>(v)] =
          value.kind == ValueKind::kConstant ||
          (value.kind == ValueKind::kState && value.role != StateRole::kAccumulator);
    }
    for (const Node& node : graph_.nodes) {
      const bool moves = info(node.op).kind == OpKind::kMovement && node.op != Op::kPlace;
      is_weight_[static_cast<size_t>(node.results[0])] =
          moves && std::all_of(node.operands.begin(), node.operands.end(),
                               [&](ValueId operand) { return is_weight(operand); });
    }
  }

  void find_readers() {
    for (const Node& node : graph_.nodes) {
      if (!takes_packed(node)) continue;
      Readers& readers = readers_[reading_of(node)];
      readers.count += graph_.micro_batches;
      if (readers.first == nullptr) readers.first = &node;
    }
    std::erase_if(readers_, [](const auto& entry) { return entry.second.count < kLeastProducts; });
  }

  bool takes_packed(const Node& node) const {
    const bool is_product = node.op == Op::kMatMul && is_weight(node.operands[1]);
    if (!is_product || (node.phase != Phase::kForward && node.phase != Phase::kBackward)) {
      return false;
    }
    const TensorType& weight = graph_.type(node.operands[1]);
    const TensorType& result = graph_.type(node.results[0]);
    const bool has_kernel = weight.dtype == DType::kFloat32 || weight.dtype == DType::kFloat64;
    return has_kernel && result.dtype == weight.dtype && weight.shape.size() == 2 &&
           element_count(weight.shape) > 0 && result.shape.size() == 2 &&
           result.shape[0] <= kMostRows;
  }

  // A weight in the setup phase.
  ValueId moved(Cloner& cloner, ValueId value) const {
    const Node* node = graph_.producer(value);
    if (node == nullptr) return cloner[value];
    std::vector<ValueId> operands;
    for (const ValueId operand : node->operands) operands.push_back(moved(cloner, operand));
    return cloner.target().add(node->op, std::move(operands), node->attributes);
  }

  // The panels of a weight: [panels, depth, kPackedColumns].
  static ValueId pack(Expressions& e, ValueId weight, bool transposed) {
    const int64_t line = transposed ? 0 : 1;  // the dimension of its columns
    const int64_t columns = e.size(weight, line), depth = e.size(weight, 1 - line);
    const int64_t panels = (columns - 1) / kernels::kPackedColumns + 1;
    if (const int64_t missing = panels * kernels::kPackedColumns - columns; missing > 0) {
      Shape high = {0, 0};
      high[static_cast<size_t>(line)] = missing;
      weight = e.apply(Op::kPad, {weight, e.constant(e.dtype(weight), 0)},
                       {{"low", Shape{0, 0}}, {"high", high}});
    }
    if (transposed) {
      return e.transpose(e.reshape(weight, {panels, kernels::kPackedColumns, depth}), {0, 2, 1});
    }
    return e.transpose(e.reshape(weight, {depth, panels, kernels::kPackedColumns}), {1, 0, 2});
  }

  void multiply(Cloner& cloner, const Node& node, ValueId panels) const {
    const ValueId result = node.results[0];
    const Attributes attributes = {
        {"transpose_a", node.attributes.integer_or("transpose_a", 0)},
        {"packed_columns", graph_.shape(result)[1]},
    };
    cloner.replace(result, cloner.target().add(Op::kMatMul, {cloner[node.operands[0]], panels},
                                               attributes, graph_.value(result).name));
  }

  const Graph& graph_;
  std::vector<bool> is_weight_;  // of each value
  std::map<Reading, Readers> readers_;
};

}  // namespace

Graph prepack_weights(Graph graph) {
  Prepacker prepacker(graph);
  if (!prepacker.has_work()) return graph;
  return eliminate_dead_nodes(prepacker.run());
}

}  // namespace sgtc
