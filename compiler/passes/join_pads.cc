#include "passes/join_pads.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "autodiff/expressions.h"
#include "ir/clone.h"

namespace sgtc {
namespace {

/// A part of a sum from `begin` on along an axis.
struct Part {
  ValueId value = kNone;
  int64_t begin = 0;
  int64_t end = 0;
};

// The only axis with padding.
std::optional<int64_t> padded_axis(const Node& pad) {
  std::optional<int64_t> axis;
  const std::vector<int64_t>& low = pad.attributes.integers("low");
  const std::vector<int64_t>& high = pad.attributes.integers("high");
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] == 0 && high[d] == 0) continue;
    if (axis) return std::nullopt;
    axis = static_cast<int64_t>(d);
  }
  return axis;
}

/// Collects the terms of a sum, as long as all are padded along one axis.
class Sum {
 public:
  explicit Sum(const Graph& graph) : graph_(graph) {}

  bool collect(ValueId id) {
    const Node* node = graph_.producer(id);
    if (node == nullptr) return false;
    if (node->op == Op::kAdd) return collect(node->operands[0]) && collect(node->operands[1]);
    return node->op == Op::kPad && add(*node);
  }

  /// Whether the parts are all of `size` elements along the axis, each once; sorts them.
  bool covers(const Shape& shape) {
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.begin < b.begin; });
    int64_t end = 0;
    for (const Part& part : parts) {
      if (part.begin != end) return false;
      end = part.end;
    }
    return end == shape[static_cast<size_t>(*axis)];
  }

  std::vector<Part> parts;
  std::optional<int64_t> axis;

 private:
  bool add(const Node& pad) {
    const std::optional<double> fill = uniform_constant(graph_, pad.operands[1]);
    const std::optional<int64_t> along = padded_axis(pad);
    if (!fill || *fill != 0 || !along || (axis && *axis != *along)) return false;
    axis = along;
    const auto d = static_cast<size_t>(*along);
    const int64_t begin = pad.attributes.integers("low")[d];
    parts.push_back({pad.operands[0], begin, begin + graph_.shape(pad.operands[0])[d]});
    return true;
  }

  const Graph& graph_;
};

}  // namespace

Graph join_pads(Graph graph) {
  Cloner cloner(std::move(graph));
  const Graph& source = cloner.source();
  for (const Node& node : source.nodes) {
    Sum sum(source);
    if (node.op != Op::kAdd || !sum.collect(node.results[0]) ||
        !sum.covers(source.shape(node.results[0]))) {
      cloner.clone(node);
      continue;
    }
    std::vector<ValueId> operands;
    for (const Part& part : sum.parts) operands.push_back(cloner[part.value]);
    cloner.inherit(node);
    cloner.replace(node.results[0],
                   cloner.target().add(Op::kConcat, operands, {{"axis", *sum.axis}},
                                       source.value(node.results[0]).name));
  }
  return cloner.finish();
}

}  // namespace sgtc
