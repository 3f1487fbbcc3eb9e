#include "cost/cost.h"

#include <algorithm>

namespace sgtc {
namespace {

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

int64_t matmul_flops(const Graph& graph, const Node& node) {
  const Shape& a = graph.shape(node.operands[0]);
  const bool transposed = node.attributes.integer_or("transpose_a", 0) != 0;
  const int64_t depth = transposed ? a[a.size() - 2] : a[a.size() - 1];
  return 2 * depth * element_count(graph.shape(node.results[0]));
}

// A window operator visits kernel elements for each element of its smaller side's image.
int64_t conv_flops(const Shape& image, const Shape& weight) {
  return 2 * element_count(image) * product(weight, 1, weight.size());
}

int64_t window_elements(const Node& node) {
  const std::vector<int64_t>& kernel = node.attributes.integers("kernel");
  return product(kernel, 0, kernel.size());
}

// Products with the score matrix: two forward; five backward, where scores are computed again, and
// seven in two halves.
int64_t attention_flops(const Graph& graph, const Node& node, int64_t products) {
  const Shape& q = graph.shape(node.operands[0]);
  const Shape& v = graph.shape(node.operands[2]);
  const int64_t scores = q[0] * q[1] * q[2] * v[2];
  const int64_t full = products * scores * (q[3] + v[3]);
  return node.attributes.integer_or("causal", 0) != 0 ? full / 2 : full;
}

int64_t contraction_flops(const Graph& graph, const Node& node) {
  const auto operand = [&](size_t i) -> const Shape& { return graph.shape(node.operands[i]); };
  const Shape& result = graph.shape(node.results[0]);
  switch (node.op) {
    case Op::kMatMul:
      return matmul_flops(graph, node);
    case Op::kConv:
      return conv_flops(result, operand(1));
    case Op::kConvInputGrad:
      return conv_flops(operand(0), operand(1));
    case Op::kConvWeightGrad:
      return conv_flops(operand(1), result);
    case Op::kMaxPool:
    case Op::kAveragePool:
      return element_count(result) * window_elements(node);
    case Op::kMaxPoolGrad:
    case Op::kAveragePoolGrad:
      return element_count(operand(0)) * window_elements(node);
    default:
      return element_count(result);
  }
}

int64_t composition_flops(const Graph& graph, const Node& node) {
  const int64_t elements = element_count(graph.shape(node.operands[0]));
  switch (node.op) {
    case Op::kAttention:
      return attention_flops(graph, node, 2);
    case Op::kAttentionGrad:
      return attention_flops(graph, node, 5);
    case Op::kAttentionQueryGrad:
      return attention_flops(graph, node, 3);
    case Op::kAttentionKeyGrad:
      return attention_flops(graph, node, 4);
    case Op::kNormalize:
      return 6 * elements;  // two sums, centring, square, scale, centring again
    default:
      return 5 * elements;  // maximum, subtraction, exp, sum, division
  }
}

int64_t indexing_flops(const Graph& graph, const Node& node) {
  switch (node.op) {
    case Op::kScatterAdd:
    case Op::kAccumulateRows:
    case Op::kScatterElements:
    case Op::kScatterNd:
      return element_count(graph.shape(node.operands[2]));
    default:
      return 0;
  }
}

bool is_gather(Op op) {
  return op == Op::kGather || op == Op::kGatherElements || op == Op::kGatherNd || op == Op::kPick;
}

// What a node that needs only a part of its operand 0 takes of it or puts there, else kNone.
ValueId part_of_data(const Node& node) {
  if (node.op == Op::kAccumulateRows) return node.operands[2];
  return is_gather(node.op) ? node.results[0] : kNone;
}

// Bytes that the group reads of an input: all of it, or for data of which all users need a part,
// the elements of the parts.
int64_t bytes_read(const Graph& graph, const Group& group, ValueId value) {
  int64_t parts = 0;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] != value) continue;
      const ValueId part = i == 0 ? part_of_data(node) : kNone;
      if (part == kNone) return bytes_of(graph.type(value));
      parts += bytes_of(graph.type(part));
    }
  }
  return std::min(parts, bytes_of(graph.type(value)));
}

int64_t bytes_written(const Graph& graph, ValueId value) {
  const Node& producer = *graph.producer(value);
  const int64_t whole = bytes_of(graph.type(value));
  if (producer.op != Op::kAccumulateRows) return whole;
  return std::min(whole, bytes_of(graph.type(part_of_data(producer))));
}

}  // namespace

int64_t flops_of(const Graph& graph, const Node& node) {
  switch (info(node.op).kind) {
    case OpKind::kMovement:
      return 0;
    case OpKind::kIndexing:
      return indexing_flops(graph, node);
    case OpKind::kReduction:
      return element_count(graph.shape(node.operands[0]));
    case OpKind::kContraction:
      return contraction_flops(graph, node);
    case OpKind::kComposition:
      return composition_flops(graph, node);
    case OpKind::kMicroBatch:
      return node.op == Op::kAccumulate ? element_count(graph.shape(node.results[0])) : 0;
    case OpKind::kCollective:
      return 0;
    case OpKind::kElementwise:
    case OpKind::kRandom:
      return element_count(graph.shape(node.results[0]));
  }
  return 0;
}

void fill_costs(const Graph& graph, const Group& group, KernelSpec& kernel) {
  kernel.flops = 0;
  kernel.bytes = 0;
  for (const NodeId id : group.nodes) kernel.flops += flops_of(graph, graph.node(id));
  for (const ValueId value : group.inputs) kernel.bytes += bytes_read(graph, group, value);
  for (const ValueId value : group.outputs) kernel.bytes += bytes_written(graph, value);
}

}  // namespace sgtc
