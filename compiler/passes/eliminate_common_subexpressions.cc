#include "passes/eliminate_common_subexpressions.h"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "ir/clone.h"

namespace sgtc {
namespace {

constexpr size_t kMostConstantBytes = size_t{1} << 24;

using NodeKey = std::tuple<Op, Phase, std::vector<ValueId>, Attributes>;
using ConstantKey = std::tuple<DType, Shape, std::string_view>;

ConstantKey key_of(const Literal& literal) {
  const auto bytes = literal.bytes();
  return {literal.dtype(),
          literal.shape(),
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}

void merge_constants(const Graph& graph, Cloner& cloner) {
  std::map<ConstantKey, ValueId> first;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kConstant) continue;
    if (value.literal->bytes().size() > kMostConstantBytes) continue;
    cloner.replace(id, first.emplace(key_of(*value.literal), cloner[id]).first->second);
  }
}

// A narrow float is widened where it is loaded; shared by several kernels, it would be stored wide.
bool is_part_of_load(const Graph& graph, const Node& node) {
  if (node.op != Op::kCast) return false;
  const DType from = graph.dtype(node.operands[0]), to = graph.dtype(node.results[0]);
  return is_float(from) && is_float(to) && size_of(from) < size_of(to);
}

}  // namespace

Graph eliminate_common_subexpressions(Graph graph) {
  Cloner cloner(std::move(graph));
  const Graph& source = cloner.source();
  merge_constants(source, cloner);
  std::map<NodeKey, const Node*> first;  // of the source
  for (const Node& node : source.nodes) {
    const OpKind kind = info(node.op).kind;
    if (kind == OpKind::kRandom || kind == OpKind::kMicroBatch || is_part_of_load(source, node)) {
      cloner.clone(node);
      continue;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(cloner[operand]);
    const auto [entry, is_new] =
        first.emplace(NodeKey{node.op, node.phase, std::move(operands), node.attributes}, &node);
    if (is_new) {
      cloner.clone(node);
      continue;
    }
    Graph& target = cloner.target();
    const ValueId result = cloner[entry->second->results[0]];
    Node& kept = target.nodes[static_cast<size_t>(target.value(result).producer)];
    kept.sources.add(node.sources);
    for (size_t i = 0; i < node.results.size(); ++i) {
      cloner.replace(node.results[i], kept.results[i]);
    }
  }
  return cloner.finish();
}

}  // namespace sgtc
