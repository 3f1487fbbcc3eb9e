// Products with rows of any length at full speed.
//
// The problem: rows that begin at odd addresses can be read by ordinary loads alone, which feed the
// tensor cores at a tenth of their speed. Known remedies are a pitch of rows as a property of every
// buffer, which every kernel then has to know, and the user's padding of the vocabulary, which
// changes the model. Here the padded tensor is a value of the graph: what computes the operand
// stores it padded, since movements fuse into loops, and only an operand that is a leaf or a
// product's result is copied.
#include "passes/gpu/align_products.h"

#include <algorithm>

#include "autodiff/expressions.h"
#include "ir/clone.h"

namespace sgtc::gpu {
namespace {

constexpr int64_t kRowElements = 8;
// Multiplications of a product that is worth two further kernels.
constexpr double kLargeProduct = 1 << 27;

int64_t aligned(int64_t size) { return (size + kRowElements - 1) / kRowElements * kRowElements; }

// Dimensions of an operand, counted from its end.
struct Sides {
  size_t line;   // rows of a, columns of b
  size_t depth;  // of both
};

Sides sides_of(const Node& node, size_t operand) {
  const bool transposed =
      node.attributes.integer_or(operand == 0 ? "transpose_a" : "transpose_b", 0) != 0;
  const bool depth_is_last = transposed == (operand == 1);
  return depth_is_last ? Sides{2, 1} : Sides{1, 2};
}

int64_t size_of_side(const Graph& graph, ValueId value, size_t from_end) {
  const Shape& shape = graph.shape(value);
  return shape[shape.size() - from_end];
}

bool is_odd(const Graph& graph, ValueId value) {
  return graph.shape(value).back() % kRowElements != 0;
}

bool needs_padding(const Graph& graph, const Node& node) {
  if (node.op != Op::kMatMul) return false;
  const ValueId a = node.operands[0], b = node.operands[1];
  if (graph.dtype(a) != DType::kBFloat16 || (!is_odd(graph, a) && !is_odd(graph, b))) return false;
  const double products = static_cast<double>(element_count(graph.shape(node.results[0]))) *
                          static_cast<double>(size_of_side(graph, a, sides_of(node, 0).depth));
  return products >= kLargeProduct;
}

// `value` with zeros behind the given dimension.
ValueId padded(Expressions& e, ValueId value, size_t from_end, int64_t size) {
  const Shape shape = e.shape(value);
  Shape high(shape.size(), 0);
  high[shape.size() - from_end] = size - shape[shape.size() - from_end];
  if (high == Shape(shape.size(), 0)) return value;
  return e.apply(Op::kPad, {value, e.constant(e.dtype(value), 0)},
                 {{"low", Shape(shape.size(), 0)}, {"high", high}});
}

ValueId cut(Expressions& e, ValueId value, int64_t axis, int64_t size) {
  return e.size(value, axis) == size ? value : e.slice_axis(value, axis, 0, size);
}

ValueId aligned_product(Expressions& e, const Node& node, ValueId a, ValueId b) {
  const Sides of_a = sides_of(node, 0), of_b = sides_of(node, 1);
  const int64_t rows = size_of_side(e.graph(), a, of_a.line);
  const int64_t columns = size_of_side(e.graph(), b, of_b.line);
  if (of_a.depth == 1 || of_b.depth == 1) {
    const int64_t depth = aligned(size_of_side(e.graph(), a, of_a.depth));
    a = padded(e, a, of_a.depth, depth);
    b = padded(e, b, of_b.depth, depth);
  }
  if (of_a.line == 1) a = padded(e, a, 1, aligned(rows));
  if (of_b.line == 1) b = padded(e, b, 1, aligned(columns));
  ValueId product = e.apply(Op::kMatMul, {a, b}, node.attributes);
  product = cut(e, product, e.rank(product) - 2, rows);
  return cut(e, product, e.rank(product) - 1, columns);
}

}  // namespace

Graph align_products(Graph graph) {
  Cloner cloner(std::move(graph));
  for (const Node& node : cloner.source().nodes) {
    if (!needs_padding(cloner.source(), node)) {
      cloner.clone(node);
      continue;
    }
    cloner.inherit(node);
    cloner.target().context().id = 0;
    Expressions e(cloner.target());
    cloner.replace(node.results[0],
                   aligned_product(e, node, cloner[node.operands[0]], cloner[node.operands[1]]));
  }
  return cloner.finish();
}

}  // namespace sgtc::gpu
