#include "passes/nest_domain.h"

#include <algorithm>

namespace sgtc {
namespace {

bool is_axis(const std::vector<int64_t>& axes, size_t dimension) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(dimension)) != axes.end();
}

NestDomain reduction_domain(const Shape& shape, const std::vector<int64_t>& axes) {
  NestDomain domain;
  domain.dimensions = shape;
  for (size_t d = 0; d < shape.size(); ++d) domain.reduced.push_back(is_axis(axes, d));
  domain.order = reduction_order(shape, axes, &domain.lane_extent);
  return domain;
}

}  // namespace

ReductionOrder reduction_order(const Shape& shape, const std::vector<int64_t>& axes,
                               int64_t* lane_extent) {
  *lane_extent = 1;
  int64_t reduced = 1;
  for (int64_t axis : axes) reduced *= shape[static_cast<size_t>(axis)];
  if (reduced <= 1) return ReductionOrder::kNone;
  bool suffix = true;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    suffix = suffix && is_axis(axes, d);
    if (!suffix) break;
    *lane_extent *= shape[d];
  }
  return *lane_extent > 1 ? ReductionOrder::kLanes : ReductionOrder::kSequential;
}

ValueId stored_value(const Graph& graph, ValueId output) {
  const Node* producer = graph.producer(output);
  bool stacked = producer != nullptr && producer->op == Op::kStackMicroBatches;
  return stacked ? producer->operands[0] : output;
}

NestDomain choose_domain(const Graph& graph, const NestRequest& request) {
  std::optional<NestDomain> best;
  for (NodeId id : request.nodes) {
    const Node& node = graph.node(id);
    if (info(node.op).kind != OpKind::kReduction || !is_loop_op(node.op)) continue;
    const Shape& shape = graph.shape(node.operands[0]);
    NestDomain domain = reduction_domain(shape, node.attributes.integers("axes"));
    if (domain.order == ReductionOrder::kNone || element_count(shape) == 0) continue;
    if (!best || element_count(shape) > element_count(best->dimensions)) best = domain;
  }
  if (best) return *best;
  NestDomain domain;
  if (request.given != kNone) {
    domain.dimensions = graph.shape(request.given);
  } else {
    for (ValueId output : request.outputs) {
      const Shape& shape = graph.shape(stored_value(graph, output));
      if (element_count(shape) >= element_count(domain.dimensions) ||
          output == request.outputs.front()) {
        domain.dimensions = shape;
      }
    }
  }
  domain.reduced.assign(domain.dimensions.size(), false);
  return domain;
}

}  // namespace sgtc
