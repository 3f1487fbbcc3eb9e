// Gradients of operators that stay whole until gradients exist: formulas in terms of the results,
// which are cheaper and more accurate than those of the expanded operators.
#include <algorithm>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {

void softmax(Backward& b) {
  ValueId weighted = b.mul(b.g(), b.y());
  b.give(0, b.mul(b.y(), b.sub(b.g(), b.sum(weighted, {b.axis()}))));
}

void log_softmax(Backward& b) {
  b.give(0, b.sub(b.g(), b.mul(b.exp(b.y()), b.sum(b.g(), {b.axis()}))));
}

namespace {

// A gradient as the product of `rest` and a factor that is the same along some axes, if it was
// computed as one.
struct Scaled {
  ValueId rest = kNone, factor = kNone;
};

Scaled split_scale(Backward& b, ValueId g, const std::vector<int64_t>& axes) {
  const Node* node = b.graph().producer(g);
  if (node == nullptr || node->op != Op::kMul) return {g};
  for (const size_t i : {0, 1}) {
    const ValueId rest = node->operands[1 - i];
    const Shape shape = b.shape(node->operands[i]);
    const auto missing = static_cast<int64_t>(b.shape(g).size() - shape.size());
    const bool is_same =
        b.shape(rest) == b.shape(g) && std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
          return axis < missing || shape[static_cast<size_t>(axis - missing)] == 1;
        });
    if (is_same) return {rest, node->operands[i]};
  }
  return {g};
}

}  // namespace

void normalize(Backward& b) {
  // Results: y = (x - mean) * rstd, mean, variance; n elements share one mean.
  const std::vector<int64_t> axes = b.attributes().integers("axes");
  double n = 1;
  for (int64_t axis : axes) n *= static_cast<double>(b.size(b.x(), axis));
  const ValueId y = b.y(0);
  ValueId total = kNone;
  auto collect = [&](ValueId term) { total = total == kNone ? term : b.add(total, term); };
  if (const ValueId g = b.g(0); g != kNone) {
    ValueId rstd = b.rsqrt(b.add(b.y(2), b.attributes().real("epsilon")));
    // A scale by channels leaves the sums, which then are those of its own gradient and the bias's.
    const Scaled scaled = split_scale(b, g, axes);
    const auto mean_of = [&](ValueId terms) {
      const ValueId sum = b.sum(terms, axes);
      return b.div(scaled.factor == kNone ? sum : b.mul(sum, scaled.factor), n);
    };
    ValueId mean_g = mean_of(scaled.rest);
    ValueId mean_gy = mean_of(b.mul(scaled.rest, y));
    collect(b.mul(rstd, b.sub(b.sub(g, mean_g), b.mul(y, mean_gy))));
  }
  if (b.g(1) != kNone) collect(b.broadcast(b.div(b.g(1), n), b.shape(b.x())));
  if (b.g(2) != kNone) collect(b.mul(b.sub(b.x(), b.y(1)), b.mul(b.g(2), 2.0 / n)));
  b.give(0, total);
}

void attention(Backward& b) {
  if (b.g(1) != kNone || b.g(2) != kNone) {
    return b.refuse("has no gradient through the statistics of its scores");
  }
  const bool has_mask = b.operands() == 4;
  if (has_mask && b.needs(3)) return b.refuse("has no gradient for a trainable mask");
  if (b.g(0) == kNone) return;
  std::vector<ValueId> operands = {b.x(0), b.x(1), b.x(2), b.y(0), b.y(1), b.y(2), b.g(0)};
  if (has_mask) operands.push_back(b.x(3));
  std::vector<ValueId> results = b.graph().add_node(Op::kAttentionGrad, operands, b.attributes());
  for (size_t i = 0; i < 3; ++i) b.give(i, results[i]);
}

void accumulate(Backward& b) { b.give(1, b.g()); }

}  // namespace sgtc::gradient
