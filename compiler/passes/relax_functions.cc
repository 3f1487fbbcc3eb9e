#include "passes/relax_functions.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sgtc {
namespace {

bool has_approximation(Op op) {
  switch (op) {
    case Op::kExp:
    case Op::kTanh:
    case Op::kSigmoid:
    case Op::kDiv:
    case Op::kReciprocal:
    case Op::kSqrt:
    case Op::kRsqrt:
      return true;
    default:
      return false;
  }
}

// Whether one unit in the last place of an operand can change the result by much.
bool is_step(const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kSign:
    case Op::kMod:
    case Op::kFmod:
      return true;
    case Op::kCast:
      return !is_float(graph.dtype(node.results[0]));
    default:
      return node.op >= Op::kEqual && node.op <= Op::kGreaterEqual;
  }
}

bool passes_precision_on(const Node& node) {
  switch (info(node.op).kind) {
    case OpKind::kElementwise:
    case OpKind::kMovement:
    case OpKind::kIndexing:
    case OpKind::kReduction:
    case OpKind::kContraction:
      return true;
    default:
      return false;
  }
}

}  // namespace

Graph relax_functions(Graph graph) {
  const std::vector<Users> users = users_of(graph);
  std::vector<bool> imprecise;
  for (const Value& value : graph.values) {
    imprecise.push_back(is_float(value.type.dtype) && size_of(value.type.dtype) == 2);
  }
  for (Node& node : graph.nodes) {
    if (node.phase == Phase::kUpdate || !passes_precision_on(node)) continue;
    const bool from_imprecise =
        std::any_of(node.operands.begin(), node.operands.end(),
                    [&](ValueId operand) { return imprecise[static_cast<size_t>(operand)]; });
    if (!from_imprecise) continue;
    const auto result = static_cast<size_t>(node.results[0]);
    imprecise[result] = imprecise[result] || graph.values[result].type.dtype == DType::kFloat32;
    const Users& readers = users[result];
    const bool feeds_step = std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      return is_step(graph, graph.node(reader));
    });
    if (imprecise[result] && has_approximation(node.op) && !feeds_step) {
      node.attributes.set("approximate", int64_t{1});
    }
  }
  return graph;
}

}  // namespace sgtc
