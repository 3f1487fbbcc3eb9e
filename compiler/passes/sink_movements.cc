#include "passes/sink_movements.h"

#include <algorithm>
#include <utility>

#include "autodiff/expressions.h"
#include "ir/clone.h"
#include "passes/anchor_layouts.h"
#include "passes/eliminate_dead_nodes.h"

namespace sgtc {
namespace {

bool is_view_op(Op op) { return op == Op::kReshape || op == Op::kTranspose || op == Op::kSlice; }

/// A part of a concat, and how it came from the result of an operator that takes strides.
struct Part {
  ValueId value = kNone;
  NodeId producer = kNone;  // of that result
  ValueId result = kNone;
  std::vector<NodeId> moves;  // from there to the value, ascending
  std::vector<int64_t> starts;
};

class Sinker {
 public:
  Sinker(Graph graph, const KernelTarget& target)
      : cloner_(std::move(graph)),
        graph_(cloner_.source()),
        target_(target),
        users_(users_of(graph_)) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      if (takes_strides(node.op, target_)) {
        clone_with_own_movements(node);
      } else if (node.op != Op::kConcat || !place_parts(node)) {
        cloner_.clone(node);
      }
    }
    return eliminate_dead_nodes(cloner_.finish());
  }

 private:
  Graph& target() { return cloner_.target(); }

  // The longest chain of movements before `id` that a kernel can read through, ascending.
  std::vector<NodeId> readable_movements(ValueId id) const {
    std::vector<NodeId> chain, best;
    for (const Node* node = graph_.producer(id); node != nullptr && is_view_op(node->op);
         node = graph_.producer(node->operands[0])) {
      chain.insert(chain.begin(), graph_.value(node->results[0]).producer);
      if (row_view(graph_.type(id), operand_view(graph_, id, chain))) best = chain;
    }
    return best;
  }

  void clone_with_own_movements(const Node& node) {
    cloner_.inherit(node);
    std::vector<ValueId> operands;
    const auto reader = static_cast<size_t>(&node - graph_.nodes.data());
    for (const ValueId operand : node.operands) {
      operands.push_back(with_own_movements(operand, reader));
    }
    const std::vector<ValueId> results =
        target().add_named_node(node.op, operands, node.attributes, names_of(node.results));
    for (size_t i = 0; i < results.size(); ++i) cloner_.replace(node.results[i], results[i]);
  }

  // The movements of a result that one other reader wants, where a kernel can store that instead.
  std::vector<NodeId> stored_movements(ValueId result, size_t reader) const {
    const Node* producer = graph_.producer(result);
    if (producer == nullptr || !takes_strides(producer->op, target_) || is_output(result))
      return {};
    std::vector<NodeId> moves;
    for (const NodeId user : users_[static_cast<size_t>(result)]) {
      if (!takes_strides(graph_.node(user).op, target_)) moves.push_back(user);
    }
    if (moves.size() != 1) return {};
    while (moves_back(moves.back()) && has_one_use(graph_.node(moves.back()).results[0]) &&
           moves_back(users_after(moves.back())[0])) {
      moves.push_back(users_after(moves.back())[0]);
    }
    const ValueId end = graph_.node(moves.back()).results[0];
    const bool is_early = moves_back(moves.back()) && static_cast<size_t>(moves.back()) < reader;
    StridedView view = {kNone, 0, row_major_strides(graph_.shape(end))};
    if (!is_early || !row_view(graph_.type(result), part_view(graph_, moves, view))) return {};
    return moves;
  }

  bool moves_back(NodeId node) const {
    return graph_.node(node).op == Op::kReshape || graph_.node(node).op == Op::kTranspose;
  }
  const Users& users_after(NodeId node) const {
    return users_[static_cast<size_t>(graph_.node(node).results[0])];
  }

  // Reads a result from where movements have left it.
  ValueId moved_back(const std::vector<NodeId>& moves) {
    Expressions expressions(target());
    ValueId value = cloner_[graph_.node(moves.back()).results[0]];
    for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
      const Node& node = graph_.node(*move);
      value =
          node.op == Op::kReshape
              ? expressions.reshape(value, graph_.shape(node.operands[0]))
              : expressions.transpose(value, inverse_permutation(node.attributes.integers("perm")));
    }
    return value;
  }

  ValueId with_own_movements(ValueId operand, size_t reader) {
    const std::vector<NodeId> stored = stored_movements(operand, reader);
    if (!stored.empty()) return moved_back(stored);
    const std::vector<NodeId> chain = readable_movements(operand);
    if (chain.empty()) return cloner_[operand];
    ValueId value = cloner_[graph_.node(chain.front()).operands[0]];
    for (const NodeId id : chain) {
      value = target().add(graph_.node(id).op, {value}, graph_.node(id).attributes);
    }
    return value;
  }

  std::vector<std::string> names_of(const std::vector<ValueId>& values) const {
    std::vector<std::string> names;
    for (const ValueId value : values) names.push_back(graph_.value(value).name);
    return names;
  }

  bool place_parts(const Node& concat) {
    std::vector<Part> parts = parts_of(concat);
    if (parts.empty()) return false;
    // A part is written when the ones before it are there.
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.producer < b.producer; });
    cloner_.inherit(concat);
    ValueId whole = kNone;
    for (const Part& part : parts) {
      std::vector<ValueId> operands = {cloner_[part.value]};
      if (whole != kNone) operands.push_back(whole);
      whole = target().add(Op::kPlace, operands,
                           {{"shape", graph_.shape(concat.results[0])}, {"starts", part.starts}},
                           &part == &parts.back() ? graph_.value(concat.results[0]).name : "");
    }
    cloner_.replace(concat.results[0], whole);
    return true;
  }

  // Empty if one of them is not written by a kernel that takes strides.
  std::vector<Part> parts_of(const Node& concat) const {
    const auto axis = static_cast<size_t>(concat.attributes.integer("axis"));
    const Shape& whole = graph_.shape(concat.results[0]);
    std::vector<Part> parts;
    int64_t begin = 0;
    for (const ValueId operand : concat.operands) {
      Part part = trace(operand);
      part.starts.assign(whole.size(), 0);
      part.starts[axis] = begin;
      begin += graph_.shape(operand)[axis];
      if (part.producer == kNone || !is_written_in_rows(part, whole)) return {};
      parts.push_back(std::move(part));
    }
    return parts;
  }

  bool is_output(ValueId id) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](const Output& output) { return output.value == id; });
  }
  bool has_one_use(ValueId id) const {
    return users_[static_cast<size_t>(id)].size() == 1 && !is_output(id);
  }

  // Follows a value back to the operator that takes strides.
  Part trace(ValueId id) const {
    Part part;
    part.value = id;
    while (has_one_use(id)) {
      const Node* node = graph_.producer(id);
      if (node == nullptr) break;
      const NodeId producer = graph_.value(id).producer;
      if (takes_strides(node->op, target_)) {
        part.producer = producer;
        part.result = id;
        break;
      }
      if (node->op != Op::kReshape && node->op != Op::kTranspose) break;
      part.moves.insert(part.moves.begin(), producer);
      id = node->operands[0];
    }
    return part;
  }

  bool is_written_in_rows(const Part& part, const Shape& whole) const {
    StridedView view = {kNone, 0, row_major_strides(whole)};
    for (size_t d = 0; d < whole.size(); ++d) view.offset += part.starts[d] * view.strides[d];
    return row_view(graph_.type(part.result), part_view(graph_, part.moves, std::move(view)))
        .has_value();
  }

  Cloner cloner_;
  const Graph& graph_;
  const KernelTarget& target_;
  std::vector<Users> users_;
};

}  // namespace

Graph sink_movements(Graph graph, const KernelTarget& target) {
  return Sinker(std::move(graph), target).run();
}

}  // namespace sgtc
