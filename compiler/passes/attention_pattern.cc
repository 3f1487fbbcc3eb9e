#include "passes/attention_pattern.h"

#include <algorithm>

#include "autodiff/expressions.h"

namespace sgtc {
namespace {

Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

bool is_flag_set(const Node& node, const char* name) {
  return node.attributes.integer_or(name, 0) != 0;
}

// Whether both have the same matrices in the last two dimensions, and as many of them.
bool regroups_leading(const Shape& a, const Shape& b) {
  return a.size() >= 2 && b.size() >= 2 && std::equal(a.end() - 2, a.end(), b.end() - 2);
}

bool swaps_last_two(const std::vector<int64_t>& perm) {
  if (perm.size() < 2) return false;
  std::vector<int64_t> swapped = perm;
  std::swap(swapped[perm.size() - 1], swapped[perm.size() - 2]);
  return std::is_sorted(swapped.begin(), swapped.end());
}

// Whether the leading dimensions `from` are those of `to` with ones in place of the last ones, so
// that neighbours in `to` share a matrix.
bool is_shared_by_neighbours(Shape from, const Shape& to) {
  if (from.size() > to.size()) return false;
  from.insert(from.begin(), to.size() - from.size(), 1);
  const auto different = std::mismatch(from.begin(), from.end(), to.begin()).first;
  return std::all_of(different, from.end(), [](int64_t size) { return size == 1; });
}

class Matcher {
 public:
  Matcher(const Graph& graph, const std::vector<int64_t>& uses) : graph_(graph), uses_(uses) {}

  std::optional<AttentionPattern> match(const Node& mixed) const {
    if (mixed.op == Op::kAttention) return whole(mixed);
    if (mixed.op != Op::kMatMul || is_flag_set(mixed, "transpose_a")) return {};
    const DType dtype = graph_.dtype(mixed.results[0]);
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return {};
    AttentionPattern pattern;
    const Node* softmax = softmax_behind(mixed.operands[0], pattern);
    if (softmax == nullptr) return {};
    pattern.scores = graph_.shape(softmax->results[0]);
    const Shape heads = leading(graph_.shape(mixed.results[0]));
    if (leading(graph_.shape(mixed.operands[0])) != heads) return {};
    if (!is_shared_by_neighbours(leading(graph_.shape(mixed.operands[1])), heads)) return {};
    pattern.v = operand(mixed.operands[1], is_flag_set(mixed, "transpose_b"), nullptr);
    return follow(std::move(pattern), softmax->operands[0]);
  }

 private:
  const Node* producer(ValueId id) const { return graph_.producer(id); }
  const Node* producer(ValueId id, Op op) const {
    const Node* node = graph_.producer(id);
    return node != nullptr && node->op == op ? node : nullptr;
  }
  int64_t uses(ValueId id) const { return uses_[static_cast<size_t>(id)]; }
  bool keeps_shape(const Node& node, size_t i) const {
    return graph_.shape(node.operands[i]) == graph_.shape(node.results[0]);
  }

  std::optional<double> uniform(ValueId id) const {
    for (const Node* node = producer(id); node != nullptr; node = producer(id)) {
      if (node->op != Op::kBroadcast && node->op != Op::kReshape) return {};
      id = node->operands[0];
    }
    return uniform_constant(graph_, id);
  }

  // The factor of a product or quotient with a constant; `rest` becomes the other operand.
  std::optional<double> factor(const Node& node, ValueId* rest) const {
    if (node.op != Op::kMul && node.op != Op::kDiv) return {};
    for (const size_t i : {0, 1}) {
      const std::optional<double> constant = uniform(node.operands[1 - i]);
      if (!constant || !keeps_shape(node, i) || (node.op == Op::kDiv && i == 1)) continue;
      *rest = node.operands[i];
      return node.op == Op::kDiv ? 1 / *constant : *constant;
    }
    return {};
  }

  std::optional<AttentionPattern> whole(const Node& attention) const {
    if (uses(attention.results[1]) != 0 || uses(attention.results[2]) != 0) return {};
    AttentionPattern pattern;
    pattern.scale = attention.attributes.real("scale");
    pattern.causal = is_flag_set(attention, "causal");
    pattern.zero_empty = is_flag_set(attention, "zero_empty");
    pattern.q = operand(attention.operands[0], false, nullptr);
    pattern.k = operand(attention.operands[1], false, nullptr);
    pattern.v = operand(attention.operands[2], false, nullptr);
    pattern.scores = graph_.shape(attention.operands[0]);
    pattern.scores.back() = graph_.shape(attention.operands[1])[2];
    if (attention.operands.size() > 3) {
      pattern.masks.push_back({attention.operands[3], true, 0, pattern.scores});
    }
    if (pattern.q.heads != pattern.scores[0] * pattern.scores[1]) return {};
    if (pattern.k.heads != pattern.v.heads || pattern.k.heads == 0) return {};
    return pattern;
  }

  // The softmax over the keys whose weights `id` are, through zeros in place of NaN.
  const Node* softmax_behind(ValueId id, AttentionPattern& pattern) const {
    if (uses(id) != 1) return nullptr;
    const Node* node = producer(id);
    if (node != nullptr && node->op == Op::kReshape &&
        regroups_leading(graph_.shape(id), graph_.shape(node->operands[0]))) {
      return softmax_behind(node->operands[0], pattern);
    }
    int64_t users = 1;
    if (node != nullptr && node->op == Op::kWhere) {
      const Node* condition = producer(node->operands[0], Op::kIsNan);
      const ValueId weights = node->operands[2];
      if (condition == nullptr || condition->operands[0] != weights) return nullptr;
      if (uniform(node->operands[1]) != 0.0 || !keeps_shape(*node, 2)) return nullptr;
      pattern.zero_empty = true;
      id = weights;
      users = 2;
    }
    const Node* softmax = producer(id, Op::kSoftmax);
    if (softmax == nullptr || uses(id) != users) return nullptr;
    const auto rank = static_cast<int64_t>(graph_.shape(id).size());
    return rank >= 2 && softmax->attributes.integer("axis") == rank - 1 ? softmax : nullptr;
  }

  // From scores up to the product of q and k.
  std::optional<AttentionPattern> follow(AttentionPattern pattern, ValueId scores) const {
    const Node* node = producer(scores);
    if (node == nullptr || uses(scores) != 1) return {};
    ValueId rest = kNone;
    if (const std::optional<double> constant = factor(*node, &rest)) {
      pattern.scale *= *constant;
      return follow(std::move(pattern), rest);
    }
    switch (node->op) {
      case Op::kAdd:
        return follow_sum(pattern, *node);
      case Op::kWhere:
        return follow_where(pattern, *node);
      case Op::kReshape:
        rest = node->operands[0];
        if (!regroups_leading(graph_.shape(scores), graph_.shape(rest))) return {};
        return follow(std::move(pattern), rest);
      case Op::kMatMul:
        return finish(std::move(pattern), *node);
      default:
        return {};
    }
  }

  std::optional<AttentionPattern> follow_sum(const AttentionPattern& pattern,
                                             const Node& node) const {
    if (pattern.scale != 1) return {};
    for (const size_t i : {0, 1}) {
      if (!keeps_shape(node, i)) continue;
      AttentionPattern masked = pattern;
      masked.masks.push_back({node.operands[1 - i], true, 0, graph_.shape(node.results[0])});
      if (auto found = follow(std::move(masked), node.operands[i])) return found;
    }
    return {};
  }

  std::optional<AttentionPattern> follow_where(const AttentionPattern& pattern,
                                               const Node& node) const {
    if (!(pattern.scale > 0)) return {};
    for (const size_t i : {1, 2}) {
      const std::optional<double> low = uniform(node.operands[3 - i]);
      if (!low || !keeps_shape(node, i)) continue;
      AttentionPattern masked = pattern;
      masked.masks.push_back(
          {node.operands[0], i == 1, *low * pattern.scale, graph_.shape(node.results[0])});
      if (auto found = follow(std::move(masked), node.operands[i])) return found;
    }
    return {};
  }

  std::optional<AttentionPattern> finish(AttentionPattern pattern, const Node& product) const {
    const Shape heads = leading(graph_.shape(product.results[0]));
    if (leading(graph_.shape(product.operands[0])) != heads) return {};
    if (!is_shared_by_neighbours(leading(graph_.shape(product.operands[1])), heads)) return {};
    pattern.q = operand(product.operands[0], is_flag_set(product, "transpose_a"), &pattern.scale);
    pattern.k = operand(product.operands[1], !is_flag_set(product, "transpose_b"), &pattern.scale);
    if (pattern.q.heads != element_count(heads)) return {};
    if (pattern.k.heads != pattern.v.heads || pattern.k.heads == 0) return {};
    return pattern;
  }

  // `id` without the transpositions, cuts, repetitions and (if `scale` is given) factors that the
  // kernel does not need.
  AttentionOperand operand(ValueId id, bool transposed, double* scale) const {
    for (const Node* node = producer(id); node != nullptr; node = producer(id)) {
      ValueId rest = node->operands.empty() ? kNone : node->operands[0];
      if (node->op == Op::kTranspose && swaps_last_two(node->attributes.integers("perm"))) {
        transposed = !transposed;
      } else if (const auto constant = factor(*node, &rest); constant && scale != nullptr) {
        *scale *= *constant;
      } else if (!is_regrouped(*node)) {
        break;
      }
      id = rest;
    }
    return {id, transposed, element_count(leading(graph_.shape(id)))};
  }

  bool is_regrouped(const Node& node) const {
    if (node.op != Op::kReshape && node.op != Op::kBroadcast) return false;
    const Shape& from = graph_.shape(node.operands[0]);
    const Shape& to = graph_.shape(node.results[0]);
    if (!regroups_leading(from, to)) return false;
    return node.op == Op::kReshape || is_shared_by_neighbours(leading(from), leading(to));
  }

  const Graph& graph_;
  const std::vector<int64_t>& uses_;
};

}  // namespace

std::optional<AttentionPattern> match_attention(const Graph& graph, const Node& mixed,
                                                const std::vector<int64_t>& uses) {
  return Matcher(graph, uses).match(mixed);
}

}  // namespace sgtc
