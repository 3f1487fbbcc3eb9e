#include "recompute/rerun_nodes.h"

#include "ir/clone.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

class Rerunner {
 public:
  Rerunner(const Graph& graph, const std::vector<bool>& again)
      : graph_(graph), again_(again), cloner_(graph), copies_(graph.values.size(), kNone) {
    SGTC_CHECK(again.size() == graph.nodes.size(), "a choice per node is expected");
  }

  Graph run() {
    for (const Node& node : graph_.nodes) {
      if (node.phase == Phase::kBackward) {
        read_copies(node);
      } else {
        cloner_.clone(node);
      }
    }
    return cloner_.finish();
  }

 private:
  // Whether the backward phase has a value of its own in place of `value`.
  bool runs_again(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (producer == kNone || graph_.node(producer).phase != Phase::kForward) return false;
    const Node& node = graph_.node(producer);
    if (node.op == Op::kReshape) return runs_again(node.operands[0]);
    return again_[static_cast<size_t>(producer)];
  }

  void read_copies(const Node& node) {
    std::vector<ValueId> originals;
    for (const ValueId operand : node.operands) {
      originals.push_back(cloner_[operand]);
      if (runs_again(operand)) make(operand);
    }
    for (const ValueId operand : node.operands) {
      if (runs_again(operand)) cloner_.replace(operand, copies_[static_cast<size_t>(operand)]);
    }
    cloner_.clone(node);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      cloner_.replace(node.operands[i], originals[i]);
    }
  }

  // Makes the copy of a value and those that it needs, without recursion: chains are long.
  void make(ValueId wanted) {
    std::vector<ValueId> stack = {wanted};
    while (!stack.empty()) {
      const ValueId value = stack.back();
      const Node& node = *graph_.producer(value);
      if (copies_[static_cast<size_t>(value)] != kNone) {
        stack.pop_back();
        continue;
      }
      const size_t size = stack.size();
      for (const ValueId operand : node.operands) {
        if (runs_again(operand) && copies_[static_cast<size_t>(operand)] == kNone) {
          stack.push_back(operand);
        }
      }
      if (stack.size() == size) copy(node);
    }
  }

  void copy(const Node& node) {
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) {
      operands.push_back(runs_again(operand) ? copies_[static_cast<size_t>(operand)]
                                             : cloner_[operand]);
    }
    cloner_.inherit(node);
    cloner_.target().context().phase = Phase::kBackward;
    std::vector<std::string> names;
    for (const ValueId result : node.results) {
      names.push_back("again." + graph_.value(result).name);
    }
    const std::vector<ValueId> results =
        cloner_.target().add_named_node(node.op, std::move(operands), node.attributes, names);
    for (size_t r = 0; r < results.size(); ++r) {
      copies_[static_cast<size_t>(node.results[r])] = results[r];
    }
    cloner_.target().context() = {};
  }

  const Graph& graph_;
  const std::vector<bool>& again_;
  Cloner cloner_;
  std::vector<ValueId> copies_;  // of each value, in the target
};

}  // namespace

Graph rerun_nodes(const Graph& graph, const std::vector<bool>& again) {
  return Rerunner(graph, again).run();
}

}  // namespace sgtc
