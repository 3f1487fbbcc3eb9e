#include "passes/live_bytes.h"

#include <algorithm>

#include "ir/tensor_bytes.h"

namespace sgtc {
namespace {

class LiveBytes {
 public:
  LiveBytes(const Graph& graph, const std::vector<Group>& groups)
      : graph_(graph), groups_(groups), root_(graph.values.size()), last_(graph.values.size(), -1) {
    for (size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<ValueId>(v);
  }

  int64_t run() {
    find_roots();
    find_last_reads();
    const auto count = static_cast<int32_t>(groups_.size());
    std::vector<std::vector<ValueId>> ends(groups_.size() + 1);  // roots that are read last there
    int64_t live = 0;
    int64_t peak = 0;
    for (int32_t g = 0; g < count; ++g) {
      std::vector<ValueId>& ending = ends[static_cast<size_t>(g)];
      for (const ValueId output : groups_[static_cast<size_t>(g)].outputs) {
        if (root_[static_cast<size_t>(output)] != output) continue;
        const int64_t bytes = bytes_of(graph_.type(output));
        const int32_t last = std::max(last_[static_cast<size_t>(output)], g);
        const auto taken = std::find_if(ending.begin(), ending.end(), [&](ValueId operand) {
          return last > g && bytes_of(graph_.type(operand)) == bytes;
        });
        if (taken != ending.end()) {
          ending.erase(taken);
        } else {
          live += bytes;
        }
        ends[static_cast<size_t>(last)].push_back(output);
      }
      peak = std::max(peak, live);
      for (const ValueId ended : ends[static_cast<size_t>(g)]) live -= bytes_of(graph_.type(ended));
    }
    return peak;
  }

 private:
  // What lies in the bytes of another value has that one's root, and what lies in a state a state.
  void find_roots() {
    const auto join = [&](ValueId value, ValueId with) {
      root_[static_cast<size_t>(value)] = root_[static_cast<size_t>(with)];
    };
    for (const Group& group : groups_) {
      for (const NodeId id : group.nodes) {
        const Node& node = graph_.node(id);
        const bool fills = node.op == Op::kPlace && node.operands.size() > 1;
        if (accumulates(node.op) || node.op == Op::kShard)
          join(node.results[0], node.operands[0]);
        if (fills) join(node.results[0], node.operands[1]);
        if (group.kind == Group::Kind::kView) join(node.results[0], node.operands[0]);
      }
    }
    for (const Update& update : graph_.updates) {
      const Node* producer = graph_.producer(update.value);
      if (producer != nullptr && producer->phase == Phase::kUpdate)
        join(update.value, update.state);
    }
  }

  void read(ValueId value, int32_t at) {
    int32_t& last = last_[static_cast<size_t>(root_[static_cast<size_t>(value)])];
    last = std::max(last, at);
  }

  void find_last_reads() {
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const ValueId input : groups_[g].inputs) read(input, static_cast<int32_t>(g));
    }
    const auto end = static_cast<int32_t>(groups_.size());
    for (const Output& output : graph_.outputs) read(output.value, end);
    for (const Update& update : graph_.updates) read(update.value, end);
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  std::vector<ValueId> root_;  // per value: the one whose bytes it has
  std::vector<int32_t> last_;  // per root: the last group that reads it, or -1
};

}  // namespace

int64_t peak_of_results(const Graph& graph, const std::vector<Group>& groups) {
  return LiveBytes(graph, groups).run();
}

int64_t bytes_of_states(const Graph& graph) {
  int64_t bytes = 0;
  for (const ValueId state : graph.states) bytes += bytes_of(graph.type(state));
  return bytes;
}

}  // namespace sgtc
