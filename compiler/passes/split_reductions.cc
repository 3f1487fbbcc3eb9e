#include "passes/split_reductions.h"

#include <limits>
#include <optional>
#include <utility>

#include "autodiff/expressions.h"
#include "ir/clone.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

/// The operand of a reduction seen as [outer, reduced, inner].
struct Block {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};

bool is_reduction(Op op) {
  return op == Op::kReduceSum || op == Op::kReduceMax || op == Op::kReduceMin ||
         op == Op::kReduceProd;
}

/// Nothing when a kept dimension lies between reduced ones. Dimensions of size 1 do not count.
std::optional<Block> as_block(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<bool> is_reduced(shape.size());
  for (int64_t axis : axes) is_reduced[static_cast<size_t>(axis)] = true;
  Block block;
  bool is_after = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (is_reduced[i]) {
      if (is_after) return {};
      block.reduced *= shape[i];
    } else if (block.reduced == 1) {
      block.outer *= shape[i];
    } else {
      block.inner *= shape[i];
      is_after = true;
    }
  }
  return block;
}

/// The largest divisor of `reduced` that is a good chunk, else the largest chunk (and padding).
int64_t chunk_size(int64_t reduced, const ReductionSplit& rule) {
  for (int64_t chunk = rule.largest_chunk; chunk >= rule.smallest_chunk; --chunk) {
    if (reduced % chunk == 0) return chunk;
  }
  return rule.largest_chunk;
}

/// The value that does not change a reduction.
double identity_of(Op op) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Op::kReduceMax:
      return -infinity;
    case Op::kReduceMin:
      return infinity;
    case Op::kReduceProd:
      return 1;
    default:
      return 0;
  }
}

void split(const Node& node, const Block& block, int64_t chunk, Cloner& cloner) {
  Expressions e(cloner.target());
  const ValueId x = cloner[node.operands[0]];
  const int64_t chunks = (block.reduced + chunk - 1) / chunk;
  ValueId rows = e.reshape(x, {block.outer, block.reduced, block.inner});
  if (chunks * chunk != block.reduced) {
    rows =
        e.apply(Op::kPad, {rows, e.constant(e.dtype(x), identity_of(node.op))},
                {{"low", Shape{0, 0, 0}}, {"high", Shape{0, chunks * chunk - block.reduced, 0}}});
  }
  const ValueId split = e.reshape(rows, {block.outer, chunks, chunk, block.inner});
  const ValueId partial = e.apply(node.op, {split}, {{"axes", std::vector<int64_t>{2}}});
  const ValueId total = e.apply(node.op, {partial}, {{"axes", std::vector<int64_t>{1}}});
  Shape result = e.shape(x);
  for (int64_t axis : node.attributes.integers("axes")) result[static_cast<size_t>(axis)] = 1;
  cloner.replace(node.results[0], e.reshape(total, result));
}

std::optional<Block> find_split(const Graph& graph, const Node& node, const ReductionSplit& rule) {
  if (!is_reduction(node.op)) return {};
  const ValueId x = node.operands[0];
  const bool pads_fit = is_float(graph.dtype(x)) || node.op == Op::kReduceSum;
  const auto block = as_block(graph.shape(x), node.attributes.integers("axes"));
  if (!pads_fit || !block || block->reduced <= rule.many_elements) return {};
  const int64_t many_results = block->inner == 1 ? rule.many_rows : rule.many_columns;
  if (block->outer * block->inner >= many_results) return {};
  return block;
}

}  // namespace

Graph split_reductions(Graph graph, const ReductionSplit& rule) {
  Cloner cloner(std::move(graph));
  for (const Node& node : cloner.source().nodes) {
    if (const auto block = find_split(cloner.source(), node, rule)) {
      cloner.inherit(node);
      cloner.target().context().id = 0;
      split(node, *block, chunk_size(block->reduced, rule), cloner);
    } else {
      cloner.clone(node);
    }
  }
  return cloner.finish();
}

}  // namespace sgtc
