#include "passes/anchor_layouts.h"

#include <algorithm>
#include <set>

namespace sgtc {
namespace {

constexpr int64_t kRowBytes = 16;

// Strides of dimensions of size 1 mean nothing, and become those of a row.
void normalize(const Shape& shape, StridedView& view) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) view.strides[d] = d + 1 == shape.size() ? 1 : shape.back();
  }
}

bool has_whole_rows(const TensorType& type, const StridedView& view) {
  const int64_t bytes = size_of(type.dtype);
  const auto is_aligned = [&](int64_t elements) {
    return elements >= 0 && elements * bytes % kRowBytes == 0;
  };
  const auto outer = static_cast<std::ptrdiff_t>(view.strides.size()) - 1;
  return view.strides.back() == 1 && is_aligned(view.offset) &&
         std::all_of(view.strides.begin(), view.strides.begin() + outer,
                     [&](int64_t stride) { return stride > 0 && is_aligned(stride); });
}

bool is_identity(const TensorType& type, const StridedView& view) {
  return view.offset == 0 && view.strides == row_major_strides(type.shape);
}

bool accept(const TensorType& type, std::optional<StridedView> view,
            std::vector<StridedView>& views) {
  view = row_view(type, std::move(view));
  if (view) views.push_back(std::move(*view));
  return view.has_value();
}

// Everything that the nodes of the group which use `id` lead to.
void collect_after(const Graph& graph, ValueId id, const std::vector<NodeId>& nodes,
                   std::set<ValueId>& ends) {
  bool is_end = true;
  for (const NodeId n : nodes) {
    const Node& node = graph.node(n);
    if (std::count(node.operands.begin(), node.operands.end(), id) == 0) continue;
    is_end = false;
    for (const ValueId result : node.results) collect_after(graph, result, nodes, ends);
  }
  if (is_end) ends.insert(id);
}

// Whether the group is seen from outside only where a chain of its results ends.
bool ends_at_outputs(const Graph& graph, const Group& group) {
  std::set<ValueId> ends;
  for (const ValueId result : graph.node(group.anchor).results) {
    collect_after(graph, result, group.nodes, ends);
  }
  return std::all_of(group.outputs.begin(), group.outputs.end(),
                     [&](ValueId output) { return ends.count(output) > 0; });
}

}  // namespace

bool takes_strides(Op op, const KernelTarget& target) {
  switch (op) {
    case Op::kAttention:
      return !target.is_gpu() || target.is_hopper();
    case Op::kAttentionGrad:
      return !target.is_gpu();
    case Op::kAttentionQueryGrad:
    case Op::kAttentionKeyGrad:
      return target.is_hopper();
    default:
      return false;
  }
}

std::optional<StridedView> row_view(const TensorType& type, std::optional<StridedView> view) {
  if (!view || is_identity(type, *view)) return view;
  normalize(type.shape, *view);
  if (!has_whole_rows(type, *view)) return std::nullopt;
  return view;
}

std::optional<AnchorLayouts> anchor_layouts(const Graph& graph, const Group& group) {
  const Node& anchor = graph.node(group.anchor);
  AnchorLayouts layouts;
  for (const ValueId operand : anchor.operands) {
    if (!accept(graph.type(operand), operand_view(graph, operand, group.nodes), layouts.operands)) {
      return std::nullopt;
    }
  }
  for (const ValueId result : anchor.results) {
    if (!accept(graph.type(result), result_view(graph, result, group.nodes), layouts.results)) {
      return std::nullopt;
    }
  }
  if (!ends_at_outputs(graph, group)) return std::nullopt;
  return layouts;
}

}  // namespace sgtc
