// A row without weight must not reach what a step computes of all rows. Rows meet only where a node
// reduces them to a sum, and there they are multiplied by their weights; values of single rows stay
// as they are, and their gradients are 0 behind that product. The product with 1 is exact, so whole
// steps keep their bits.
//
// Left out: weighted statistics for BatchNormalization. They would be other numbers than those of
// the file's operator, so it is refused.
#include "passes/row_weights.h"

#include <algorithm>
#include <string>

namespace sgtc {
namespace {

const BatchFact& fact(const std::vector<BatchFact>& facts, ValueId id) {
  return facts[static_cast<size_t>(id)];
}

bool normalizes_batch(const std::vector<BatchFact>& facts, const Node& node) {
  if (node.op != Op::kNormalize) return false;
  const BatchFact& rows = fact(facts, node.operands[0]);
  const std::vector<int64_t>& axes = node.attributes.integers("axes");
  return rows.kind == BatchKind::kRows &&
         std::find(axes.begin(), axes.end(), rows.dim) != axes.end();
}

void check_feed(const Graph& graph, ValueId feed, Diagnostics& diagnostics) {
  const Shape& shape = graph.shape(feed);
  const int64_t rows = graph.micro_batch_rows;
  if (rows <= 1 || shape.empty() || shape[0] == rows || shape[0] % rows != 0) return;
  diagnostics.error("input " + graph.value(feed).name,
                    "padding cannot be kept out of the loss: expected " + std::to_string(rows) +
                        " rows per micro-batch as in other inputs, found " +
                        std::to_string(shape[0]) + "; use --last-batch=drop");
}

}  // namespace

ValueId add_row_weights(Expressions& e) {
  return e.graph().add_feed(kRowWeights, {DType::kFloat32, {e.graph().micro_batch_rows}});
}

std::optional<size_t> summed_rows(const std::vector<BatchFact>& facts, const Node& node) {
  if (fact(facts, node.results[0]).kind != BatchKind::kSum) return std::nullopt;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (fact(facts, node.operands[i]).kind == BatchKind::kRows) return i;
  }
  return std::nullopt;
}

ValueId weigh_rows(Expressions& e, ValueId x, int64_t dim, ValueId weights) {
  const int64_t rows = e.size(weights, 0);
  const int64_t size = e.size(x, dim);
  Shape line(e.shape(x).size(), 1);
  line[static_cast<size_t>(dim)] = size;
  const ValueId repeated = e.broadcast(e.reshape(weights, {rows, 1}), {rows, size / rows});
  return e.mul(x, e.cast(e.reshape(repeated, line), e.dtype(x)));
}

void check_row_weights(const Graph& graph, const std::vector<BatchFact>& facts,
                       Diagnostics& diagnostics) {
  if (graph.micro_batch_rows == 0) {
    diagnostics.error("--last-batch=pad",
                      "the model has no input with rows, so steps need no padding; leave it out");
  }
  if (graph.find(kRowWeights) != kNone) {
    diagnostics.error(kRowWeights, "is the name of the rows' weights; rename this value");
  }
  for (const ValueId feed : graph.feeds) check_feed(graph, feed, diagnostics);
  for (const Node& node : graph.nodes) {
    if (!normalizes_batch(facts, node)) continue;
    diagnostics.error(node.sources.empty() ? graph.value(node.results[0]).name : node.sources[0],
                      "its statistics are those of the whole micro-batch, padding included; use "
                      "--last-batch=drop");
  }
}

}  // namespace sgtc
