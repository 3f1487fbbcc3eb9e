#include "passes/expand_compositions.h"

#include <limits>
#include <utility>

#include "autodiff/expressions.h"
#include "ir/clone.h"
#include "passes/attention_support.h"

namespace sgtc {
namespace {

/// Opens one node, which it sees with the operands of the new graph.
class Expander : public Expressions {
 public:
  Expander(const Node& node, Cloner& cloner)
      : Expressions(cloner.target()), node_(node), cloner_(cloner) {
    cloner.inherit(node);
    cloner.target().context().id = 0;
  }

  const Attributes& attributes() const { return node_.attributes; }
  size_t operands() const { return node_.operands.size(); }
  ValueId operand(size_t i) const { return cloner_[node_.operands[i]]; }
  /// Operand `i` with at least the precision of f32.
  ValueId x(size_t i = 0) {
    const bool is_double = dtype(operand(i)) == DType::kFloat64;
    return cast(operand(i), is_double ? DType::kFloat64 : DType::kFloat32);
  }
  /// Makes `value` result `i`, rounded to the dtype `type`.
  void give(size_t i, ValueId value, DType type) {
    cloner_.replace(node_.results[i], cast(value, type));
  }
  void give(size_t i, ValueId value) { give(i, value, dtype(operand(0))); }

  ValueId reduce_max(ValueId x, int64_t axis) {
    return apply(Op::kReduceMax, {x}, {{"axes", std::vector<int64_t>{axis}}});
  }

 private:
  const Node& node_;
  Cloner& cloner_;
};

void expand_softmax(Expander& e) {
  const int64_t axis = e.attributes().integer("axis");
  const ValueId x = e.x();
  const ValueId exponential = e.exp(e.sub(x, e.reduce_max(x, axis)));
  e.give(0, e.div(exponential, e.sum(exponential, {axis})));
}

void expand_log_softmax(Expander& e) {
  const int64_t axis = e.attributes().integer("axis");
  const ValueId x = e.x();
  const ValueId shifted = e.sub(x, e.reduce_max(x, axis));
  const ValueId sum = e.sum(e.exp(shifted), {axis});
  e.give(0, e.sub(shifted, e.apply(Op::kLog, {sum})));
}

void expand_normalize(Expander& e) {
  const std::vector<int64_t>& axes = e.attributes().integers("axes");
  const ValueId x = e.x();
  double n = 1;
  for (int64_t axis : axes) n *= static_cast<double>(e.size(x, axis));
  const ValueId mean = e.div(e.sum(x, axes), n);
  const ValueId centred = e.sub(x, mean);
  const ValueId variance = e.div(e.sum(e.square(centred), axes), n);
  const ValueId rstd = e.rsqrt(e.add(variance, e.attributes().real("epsilon")));
  e.give(0, e.mul(centred, rstd));
  e.give(1, mean);
  e.give(2, variance);
}

/// Products of attention: [B,H,T,*] with H = G*r heads seen as [B,G,r*T,*], so that the r query
/// heads that share a key head are rows of one matrix.
class AttentionShapes {
 public:
  AttentionShapes(Expander& e, size_t mask) : e_(e), mask_(mask) {
    const Shape q = e.shape(e.operand(0));
    const Shape k = e.shape(e.operand(1));
    scores_ = {q[0], q[1], q[2], k[2]};
    groups_ = k[1];
  }

  ValueId grouped(ValueId x) {
    const Shape from = e_.shape(x);
    return e_.reshape(x, {from[0], groups_, from[1] / groups_ * from[2], from[3]});
  }
  ValueId by_head(ValueId x) {
    return e_.reshape(x, {scores_[0], scores_[1], scores_[2], e_.size(x, 3)});
  }
  ValueId product(ValueId a, bool transpose_a, ValueId b, bool transpose_b) {
    return e_.apply(Op::kMatMul, {a, b},
                    {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}});
  }
  /// scale * q k^T + mask, -infinity where causal hides the key: [B,H,T,S].
  ValueId scores() {
    ValueId s = by_head(product(grouped(e_.x(0)), false, e_.x(1), true));
    s = e_.mul(s, scale());
    if (mask_ < e_.operands()) s = e_.add(s, e_.x(mask_));
    if (e_.attributes().integer_or("causal", 0) == 0) return s;
    const ValueId query = e_.index_along(scores_, 2, DType::kInt64);
    const ValueId key = e_.index_along(scores_, 3, DType::kInt64);
    const ValueId hidden = e_.apply(Op::kGreater, {key, query});
    const double lowest = -std::numeric_limits<double>::infinity();
    return e_.where(hidden, e_.constant(e_.dtype(s), lowest), s);
  }
  double scale() const { return e_.attributes().real("scale"); }

 private:
  Expander& e_;
  size_t mask_;
  Shape scores_;
  int64_t groups_ = 1;
};

void expand_attention(Expander& e) {
  AttentionShapes shapes(e, 3);
  const ValueId scores = shapes.scores();
  ValueId highest = e.reduce_max(scores, 3);
  ValueId empty = kNone;
  if (e.attributes().integer_or("zero_empty", 0) != 0) {
    empty = e.compare(Op::kEqual, highest, -std::numeric_limits<double>::infinity());
    highest = e.where(empty, e.constant(e.dtype(scores), 0), highest);
  }
  const ValueId exponential = e.exp(e.sub(scores, highest));
  ValueId sum = e.sum(exponential, {3});
  if (empty != kNone) sum = e.where(empty, e.constant(e.dtype(scores), 1), sum);
  const ValueId weights = e.div(exponential, sum);
  const ValueId output = shapes.product(shapes.grouped(weights), false, e.x(2), false);
  e.give(0, shapes.by_head(output));
  const Shape q = e.shape(e.operand(0));
  e.give(1, e.reshape(highest, {q[0], q[1], q[2]}), e.dtype(highest));
  e.give(2, e.reshape(sum, {q[0], q[1], q[2]}), e.dtype(sum));
}

void expand_attention_grad(Expander& e) {
  AttentionShapes shapes(e, 7);
  const ValueId scores = shapes.scores();
  const Shape s = e.shape(scores);
  const ValueId maximum = e.reshape(e.x(4), {s[0], s[1], s[2], 1});
  const ValueId sum = e.reshape(e.x(5), {s[0], s[1], s[2], 1});
  const ValueId weights = e.div(e.exp(e.sub(scores, maximum)), sum);
  const ValueId doutput = e.x(6);
  // The row sums of weights * dweights are those of output * doutput.
  const ValueId row = e.sum(e.mul(doutput, e.x(3)), {3});
  const ValueId dweights =
      shapes.by_head(shapes.product(shapes.grouped(doutput), false, e.x(2), true));
  const ValueId dscores = e.mul(e.mul(weights, e.sub(dweights, row)), shapes.scale());
  const ValueId grouped = shapes.grouped(dscores);
  e.give(0, shapes.by_head(shapes.product(grouped, false, e.x(1), false)));
  e.give(1, shapes.product(grouped, true, shapes.grouped(e.x(0)), false));
  e.give(2, shapes.product(shapes.grouped(weights), true, shapes.grouped(doutput), false));
}

void halve_attention_grad(Expander& e) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < e.operands(); ++i) operands.push_back(e.operand(i));
  const std::vector<ValueId> of_queries =
      e.graph().add_node(Op::kAttentionQueryGrad, operands, e.attributes());
  std::vector<ValueId> rest = {operands[0], operands[1], operands[2], operands[6], of_queries[1]};
  rest.insert(rest.end(), operands.begin() + 7, operands.end());
  const std::vector<ValueId> of_keys =
      e.graph().add_node(Op::kAttentionKeyGrad, rest, e.attributes());
  e.give(0, of_queries[0]);
  e.give(1, of_keys[0]);
  e.give(2, of_keys[1]);
}

using Expansion = void (*)(Expander&);

Expansion find_attention_expansion(const Graph& graph, const Node& node,
                                   const KernelTarget& target) {
  std::vector<TensorType> types;
  for (const ValueId operand : node.operands) types.push_back(graph.type(operand));
  const bool is_gradient = node.op == Op::kAttentionGrad;
  switch (attention_support(node.op, types, target)) {
    case AttentionSupport::kNone:
      return is_gradient ? expand_attention_grad : expand_attention;
    case AttentionSupport::kHalves:
      return halve_attention_grad;
    case AttentionSupport::kWhole:
      break;
  }
  return nullptr;
}

Expansion find_expansion(const Graph& graph, const Node& node, const KernelTarget& target) {
  switch (node.op) {
    case Op::kSoftmax:
      return expand_softmax;
    case Op::kLogSoftmax:
      return expand_log_softmax;
    case Op::kNormalize:
      return expand_normalize;
    case Op::kAttention:
    case Op::kAttentionGrad:
      return find_attention_expansion(graph, node, target);
    default:
      return nullptr;
  }
}

}  // namespace

Graph expand_compositions(Graph graph, const KernelTarget& target) {
  Cloner cloner(std::move(graph));
  for (const Node& node : cloner.source().nodes) {
    if (const Expansion expand = find_expansion(cloner.source(), node, target)) {
      Expander expander(node, cloner);
      expand(expander);
    } else {
      cloner.clone(node);
    }
  }
  return cloner.finish();
}

}  // namespace sgtc
