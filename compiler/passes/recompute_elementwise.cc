// The problem is a minimum cut: which values of the forward phase are kept, so that the rest can be
// computed again from them. An exact cut over the whole graph would weigh every chain against every
// other; here each value is decided on its own, in execution order: it is computed again if the
// values in memory behind it have no more bytes than it has itself. A chain of residual additions
// then stays in memory, because two operands have more bytes than their sum.
#include "passes/recompute_elementwise.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/clone.h"
#include "passes/anchor_geometry.h"
#include "passes/build_loop_nest.h"
#include "passes/nest_cost.h"

namespace sgtc {
namespace {

constexpr int64_t kSmallElements = 4096;  // always read from memory
constexpr size_t kMostNodes = 24;         // of a chain
constexpr double kSharers = 2;            // threads of a CPU that wait for memory at once

bool is_cheap(Op op) {
  switch (op) {
    case Op::kPow:
    case Op::kMod:
    case Op::kFmod:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan:
      return false;
    case Op::kReshape:
    case Op::kBroadcast:
    case Op::kIota:
      return true;
    default:
      return info(op).kind == OpKind::kElementwise;
  }
}

class Recomputer {
 public:
  Recomputer(Graph graph, const KernelTarget& target)
      : cloner_(std::move(graph)),
        graph_(cloner_.source()),
        is_gpu_(target.is_gpu()),
        users_(users_of(graph_)),
        chains_(graph_.values.size()) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      decide(node);
      computes(node) && has_steps(node.phase) ? clone_with_chains(node) : cloner_.clone(node);
    }
    return cloner_.finish();
  }

 private:
  // How a value is computed again; without nodes it is read from memory.
  struct Chain {
    std::set<NodeId> nodes;
    std::set<ValueId> sources;  // in memory
    int64_t bytes = 0;          // of the sources that are not small
  };

  // Whether a loop computes it; a reshape takes what is in memory as it is.
  static bool computes(const Node& node) { return is_loop_op(node.op) && node.op != Op::kReshape; }

  static bool has_steps(Phase phase) {
    return phase == Phase::kForward || phase == Phase::kBackward;
  }

  int64_t bytes_of(ValueId id) const {
    const int64_t count = element_count(graph_.shape(id));
    return count < kSmallElements ? 0 : count * size_of(graph_.dtype(id));
  }

  // A written kernel or a collective reads it, reshaped or not, or it is a result of the program.
  bool is_stored_anyway(ValueId id) const {
    const Users& users = users_[static_cast<size_t>(id)];
    auto is_result = [&](const auto& result) { return result.value == id; };
    auto reads_memory = [&](NodeId user) {
      const Node& node = graph_.node(user);
      return node.op == Op::kReshape ? is_stored_anyway(node.results[0]) : !is_loop_op(node.op);
    };
    return std::any_of(users.begin(), users.end(), reads_memory) ||
           std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is_result) ||
           std::any_of(graph_.updates.begin(), graph_.updates.end(), is_result);
  }

  void decide(const Node& node) {
    const ValueId result = node.results[0];
    const int64_t bytes = bytes_of(result);
    if (!is_cheap(node.op) || !has_steps(node.phase) || bytes == 0) return;
    if (!is_gpu_ && std::any_of(node.operands.begin(), node.operands.end(),
                                [&](ValueId operand) { return is_in_registers(operand); })) {
      return;
    }
    Chain chain;
    chain.nodes.insert(graph_.value(result).producer);
    for (ValueId operand : node.operands) {
      const Chain& before = chains_[static_cast<size_t>(operand)];
      chain.nodes.insert(before.nodes.begin(), before.nodes.end());
      chain.sources.insert(before.sources.begin(), before.sources.end());
      if (before.nodes.empty()) chain.sources.insert(operand);
    }
    for (ValueId source : chain.sources) chain.bytes += bytes_of(source);
    const int64_t most = is_stored_anyway(result) ? bytes - 1 : bytes;
    if (chain.bytes > most || chain.nodes.size() > kMostNodes) return;
    if (!is_gpu_ && cycles_of(chain) > memory_cycles(graph_.dtype(result))) return;
    chains_[static_cast<size_t>(result)] = std::move(chain);
  }

  // A contraction's result, reshaped or not, that one node reads: the epilogue stores what becomes
  // of it, and not the result itself.
  bool is_in_registers(ValueId id) const {
    const Node* producer = graph_.producer(id);
    if (producer == nullptr || users_[static_cast<size_t>(id)].size() > 1) return false;
    if (producer->op == Op::kReshape) return is_in_registers(producer->operands[0]);
    return anchor_visits_tiles(producer->op, graph_.dtype(id));
  }

  // Of a CPU, for 16 elements.
  double cycles_of(const Chain& chain) const {
    double cycles = 0;
    for (NodeId id : chain.nodes) {
      const Op op = graph_.node(id).op;
      if (info(op).kind == OpKind::kElementwise) cycles += compute_cycles(op);
    }
    return cycles;
  }

  // Of a CPU, for writing and reading 16 elements by one of the threads that share memory.
  static double memory_cycles(DType dtype) {
    const double access = kCyclesPerMemoryByte * static_cast<double>(kLanes * size_of(dtype));
    return 2 * access * kSharers;
  }

  bool wants_chain(const Node& reader, ValueId operand) const {
    const Chain& chain = chains_[static_cast<size_t>(operand)];
    if (chain.nodes.empty()) return false;
    if (graph_.producer(operand)->phase != reader.phase) return true;
    const Users& users = users_[static_cast<size_t>(operand)];
    const auto readers = std::count_if(users.begin(), users.end(), [&](NodeId user) {
      return graph_.node(user).phase == reader.phase;
    });
    return readers > 1 && chain.bytes < bytes_of(operand);
  }

  void clone_with_chains(const Node& reader) {
    std::map<ValueId, ValueId> stored;
    for (ValueId operand : reader.operands) {
      if (stored.count(operand) != 0 || !wants_chain(reader, operand)) continue;
      stored[operand] = cloner_[operand];
    }
    std::map<ValueId, ValueId> copies;  // of chains that share nodes
    for (const auto& [operand, value] : stored) {
      cloner_.replace(operand, copy(reader, operand, copies));
    }
    cloner_.clone(reader);
    for (const auto& [operand, value] : stored) cloner_.replace(operand, value);
  }

  ValueId copy(const Node& reader, ValueId value, std::map<ValueId, ValueId>& copies) {
    const std::set<NodeId>& nodes = chains_[static_cast<size_t>(value)].nodes;
    for (NodeId id : nodes) {
      const Node& node = graph_.node(id);
      if (copies.count(node.results[0]) != 0) continue;
      std::vector<ValueId> operands;
      for (ValueId operand : node.operands) {
        const auto at = copies.find(operand);
        operands.push_back(at == copies.end() ? cloner_[operand] : at->second);
      }
      cloner_.inherit(reader);
      cloner_.target().context().id = 0;
      copies[node.results[0]] = cloner_.target().add(node.op, operands, node.attributes);
    }
    return copies.at(value);
  }

  Cloner cloner_;
  const Graph& graph_;
  const bool is_gpu_;
  const std::vector<Users> users_;
  std::vector<Chain> chains_;  // of each value
};

}  // namespace

Graph recompute_elementwise(Graph graph, const KernelTarget& target) {
  return Recomputer(std::move(graph), target).run();
}

}  // namespace sgtc
