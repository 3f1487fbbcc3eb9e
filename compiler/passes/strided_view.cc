#include "passes/strided_view.h"

#include <algorithm>

namespace sgtc {
namespace {

bool contains(const std::vector<NodeId>& nodes, NodeId id) {
  return std::binary_search(nodes.begin(), nodes.end(), id);
}

// Strides of the result of a transpose from those of its operand.
std::vector<int64_t> permuted(const std::vector<int64_t>& strides, const Node& transpose) {
  std::vector<int64_t> result;
  for (const int64_t d : transpose.attributes.integers("perm")) {
    result.push_back(strides[static_cast<size_t>(d)]);
  }
  return result;
}

std::vector<int64_t> unpermuted(const std::vector<int64_t>& strides, const Node& transpose) {
  const std::vector<int64_t>& perm = transpose.attributes.integers("perm");
  std::vector<int64_t> result(strides.size());
  for (size_t d = 0; d < perm.size(); ++d) result[static_cast<size_t>(perm[d])] = strides[d];
  return result;
}

void slice(StridedView& view, const Node& node) {
  const std::vector<int64_t>& starts = node.attributes.integers("starts");
  const std::vector<int64_t>& steps = node.attributes.integers("steps");
  for (size_t d = 0; d < starts.size(); ++d) {
    view.offset += starts[d] * view.strides[d];
    view.strides[d] *= steps[d];
  }
}

void stretch(StridedView& view, const Shape& from, const Shape& to) {
  view.strides.insert(view.strides.begin(), to.size() - from.size(), 0);
  for (size_t d = 0; d < from.size(); ++d) {
    const size_t at = to.size() - from.size() + d;
    if (from[d] != to[at]) view.strides[at] = 0;
  }
}

// The view of a movement's result from that of its operand.
std::optional<StridedView> moved(const Graph& graph, const Node& node, StridedView view) {
  const Shape& from = graph.shape(node.operands[0]);
  const Shape& to = graph.shape(node.results[0]);
  switch (node.op) {
    case Op::kReshape: {
      auto strides = reshaped_strides(from, view.strides, to);
      if (!strides) return std::nullopt;
      view.strides = std::move(*strides);
      return view;
    }
    case Op::kTranspose:
      view.strides = permuted(view.strides, node);
      return view;
    case Op::kSlice:
      slice(view, node);
      return view;
    case Op::kBroadcast:
      stretch(view, from, to);
      return view;
    default:
      return std::nullopt;
  }
}

// The view of a movement's operand from where its result is stored.
std::optional<StridedView> unmoved(const Graph& graph, const Node& node, StridedView view) {
  switch (node.op) {
    case Op::kReshape: {
      auto strides = reshaped_strides(graph.shape(node.results[0]), view.strides,
                                      graph.shape(node.operands[0]));
      if (!strides) return std::nullopt;
      view.strides = std::move(*strides);
      return view;
    }
    case Op::kTranspose:
      view.strides = unpermuted(view.strides, node);
      return view;
    case Op::kPlace: {
      const std::vector<int64_t>& starts = node.attributes.integers("starts");
      for (size_t d = 0; d < starts.size(); ++d) view.offset += starts[d] * view.strides[d];
      return view;
    }
    default:
      return std::nullopt;
  }
}

// The memory of the result of a place, whose parts are written by several places.
ValueId memory_of(const Graph& graph, ValueId id, const std::vector<NodeId>& nodes) {
  while (true) {
    const Value& value = graph.value(id);
    if (value.kind != ValueKind::kResult || !contains(nodes, value.producer)) return id;
    const Node& node = graph.node(value.producer);
    if (node.op != Op::kPlace || node.operands.size() < 2) return id;
    id = node.operands[1];
  }
}

// The nodes of `nodes` that use the value, but for places of something else into it.
std::vector<NodeId> users_among(const Graph& graph, ValueId id, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> users;
  for (const NodeId n : nodes) {
    const Node& node = graph.node(n);
    const bool is_whole = node.op == Op::kPlace && node.operands[0] != id;
    const bool uses = std::count(node.operands.begin(), node.operands.end(), id) > 0;
    if (uses && !is_whole) users.push_back(n);
  }
  return users;
}

// The nodes that the result goes through, up to a place. Nothing if it has several uses.
std::optional<std::vector<NodeId>> chain_after(const Graph& graph, ValueId id,
                                               const std::vector<NodeId>& nodes) {
  std::vector<NodeId> chain;
  while (true) {
    const std::vector<NodeId> users = users_among(graph, id, nodes);
    if (users.empty()) return chain;
    const bool is_placed = !chain.empty() && graph.node(chain.back()).op == Op::kPlace;
    if (users.size() > 1 || is_placed) return std::nullopt;
    chain.push_back(users[0]);
    id = graph.node(users[0]).results[0];
  }
}

}  // namespace

// Dimensions that lie in memory as one are taken together, from the last, and cut anew.
std::optional<std::vector<int64_t>> reshaped_strides(const Shape& shape,
                                                     const std::vector<int64_t>& strides,
                                                     const Shape& to) {
  std::vector<int64_t> result(to.size(), 1);
  size_t next = to.size();  // dimensions of `to` from here on have their strides
  for (size_t d = shape.size(); d > 0;) {
    const int64_t stride = strides[d - 1];
    int64_t elements = 1;
    do {
      elements *= shape[--d];
    } while (d > 0 && (shape[d - 1] == 1 || strides[d - 1] == stride * elements));
    int64_t covered = 1;
    while (next > 0 && (covered < elements || to[next - 1] == 1)) {
      result[--next] = stride * covered;
      covered *= to[next];
    }
    if (covered != elements) return std::nullopt;
  }
  if (std::any_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(next),
                  [](int64_t size) { return size != 1; })) {
    return std::nullopt;
  }
  return result;
}

std::optional<StridedView> operand_view(const Graph& graph, ValueId id,
                                        const std::vector<NodeId>& nodes) {
  const Value& value = graph.value(id);
  if (value.kind != ValueKind::kResult || !contains(nodes, value.producer)) {
    return StridedView{id, 0, row_major_strides(value.type.shape)};
  }
  if (element_count(graph.shape(id)) == 0) return std::nullopt;
  const Node& node = graph.node(value.producer);
  if (info(node.op).kind != OpKind::kMovement || node.operands.size() != 1) return std::nullopt;
  std::optional<StridedView> view = operand_view(graph, node.operands[0], nodes);
  return view ? moved(graph, node, std::move(*view)) : std::nullopt;
}

std::optional<StridedView> part_view(const Graph& graph, const std::vector<NodeId>& moves,
                                     StridedView view) {
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    std::optional<StridedView> before = unmoved(graph, graph.node(*move), std::move(view));
    if (!before) return std::nullopt;
    view = std::move(*before);
  }
  return view;
}

std::optional<StridedView> result_view(const Graph& graph, ValueId id,
                                       const std::vector<NodeId>& nodes) {
  const auto chain = chain_after(graph, id, nodes);
  const bool is_moved = chain && !chain->empty();
  if (!chain || (is_moved && element_count(graph.shape(id)) == 0)) return std::nullopt;
  const ValueId last = chain->empty() ? id : graph.node(chain->back()).results[0];
  return part_view(graph, *chain,
                   {memory_of(graph, last, nodes), 0, row_major_strides(graph.shape(last))});
}

}  // namespace sgtc
