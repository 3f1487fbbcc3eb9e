// Attention has many spellings, since each exporter opens it in its own way. Matching every graph
// that some exporter writes against a template would need a template for each; so the chain between
// the two products is walked upwards instead, and each step is one of a few that commute with the
// operator (attention_pattern.cc). What is found is judged here: which masks the kernel can take.
#include "passes/recognize_attention.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "autodiff/expressions.h"
#include "ir/clone.h"
#include "ir/interpret.h"
#include "passes/attention_pattern.h"
#include "passes/eliminate_dead_nodes.h"

namespace sgtc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Scores from here down have no weight.
constexpr double kHidden = -10000;
constexpr int64_t kMostMaskElements = int64_t{1} << 26;

bool is_trained(const Graph& graph, ValueId id) {
  const std::set<ValueId> states = states_behind(graph, id);
  return std::any_of(states.begin(), states.end(), [&](ValueId state) {
    return graph.value(state).role == StateRole::kParameter;
  });
}

// Which keys the queries of a constant mask see.
enum class Visibility { kUnknown, kAll, kLowerTriangle, kOther };

// `value(i)` of a [.., queries, keys] mask is 0 for keys that are seen, at most kHidden for others;
// anything else, or a query that sees no key, is unknown.
Visibility visibility(const Shape& shape, int64_t queries, int64_t keys,
                      const std::function<double(int64_t)>& value) {
  if (shape.size() < 2 || shape.back() != keys || shape[shape.size() - 2] != queries) {
    return Visibility::kUnknown;
  }
  bool all = true, triangle = true;
  const int64_t rows = keys == 0 ? 0 : element_count(shape) / keys;
  for (int64_t row = 0; row < rows; ++row) {
    bool sees_any = false;
    for (int64_t key = 0; key < keys; ++key) {
      const double x = value(row * keys + key);
      if (x != 0 && !(x <= kHidden)) return Visibility::kUnknown;
      sees_any = sees_any || x == 0;
      all = all && x == 0;
      triangle = triangle && (x == 0) == (key <= row % queries);
    }
    if (!sees_any) return Visibility::kUnknown;
  }
  if (all) return Visibility::kAll;
  return triangle ? Visibility::kLowerTriangle : Visibility::kOther;
}

struct MaskContents {
  Visibility seen = Visibility::kUnknown;
  bool is_finite = false;  // it lowers a score by a finite number
};

// Values of masks that are computed from constants, which are too large to be folded everywhere.
class ConstantMasks {
 public:
  explicit ConstantMasks(const Graph& graph) : graph_(graph) {}

  /// Null for a value that depends on anything but constants.
  LiteralPtr of(ValueId id) {
    const auto known = known_.find(id);
    if (known != known_.end()) return known->second;
    return known_[id] = compute(id);
  }

  /// What a mask of so many queries and keys shows. All layers of a model have the same masks, with
  /// an element for each pair of positions.
  MaskContents contents(const AttentionMask& mask, int64_t queries, int64_t keys) {
    const auto [entry, is_new] = judged_.try_emplace(
        {mask.value, mask.shows, std::bit_cast<int64_t>(mask.low), queries, keys});
    if (is_new) entry->second = judge(mask, queries, keys);
    return entry->second;
  }

 private:
  MaskContents judge(const AttentionMask& mask, int64_t queries, int64_t keys) {
    MaskContents contents;
    const LiteralPtr literal = of(mask.value);
    if (literal == nullptr) return contents;
    const bool is_condition = graph_.dtype(mask.value) == DType::kBool;
    contents.seen = visibility(literal->shape(), queries, keys, [&](int64_t i) {
      const double x = literal->as_double(i);
      const double value = !is_condition ? x : (x != 0) == mask.shows ? 0 : mask.low;
      contents.is_finite = contents.is_finite || (value != 0 && value != -kInfinity);
      return value;
    });
    return contents;
  }

  LiteralPtr compute(ValueId id) {
    const Node* node = graph_.producer(id);
    if (node == nullptr) return graph_.value(id).literal;
    const OpKind kind = info(node->op).kind;
    const bool pure = kind == OpKind::kElementwise || kind == OpKind::kMovement;
    if (!pure || element_count(graph_.shape(id)) > kMostMaskElements) return nullptr;
    std::vector<LiteralPtr> operands;
    for (const ValueId operand : node->operands) {
      operands.push_back(of(operand));
      if (operands.back() == nullptr) return nullptr;
    }
    return evaluate(node->op, operands, node->attributes).front();
  }

  const Graph& graph_;
  std::map<ValueId, LiteralPtr> known_;
  std::map<std::tuple<ValueId, bool, int64_t, int64_t, int64_t>, MaskContents> judged_;
};

// Decides what of a pattern the operator's flags and mask stand for.
class Masks {
 public:
  Masks(const Graph& graph, const AttentionPattern& pattern, ConstantMasks& constants)
      : graph_(graph),
        constants_(constants),
        queries_(pattern.scores[pattern.scores.size() - 2]),
        keys_(pattern.scores.back()),
        heads_(pattern.scores),
        is_alone_(pattern.masks.size() == 1 && !pattern.causal),
        causal_(pattern.causal) {
    for (const AttentionMask& mask : pattern.masks) add(mask);
  }

  /// Whether the operator can take them.
  bool fit() const { return fits_; }
  bool causal() const { return causal_; }
  const std::vector<AttentionMask>& kept() const { return kept_; }

  /// [B,H] of the scores: the first dimension before the matrices, and all others of them.
  Shape batch_and_heads() const { return split(heads_); }

  /// The shape [B or 1, H or 1, T or 1, S or 1] of a mask.
  Shape mask_shape(const AttentionMask& mask) const {
    Shape shape = graph_.shape(mask.value);
    shape.insert(shape.begin(), mask.scores.size() - shape.size(), 1);
    Shape result = split(shape);
    result.insert(result.end(), shape.end() - 2, shape.end());
    return result;
  }

 private:
  static Shape split(const Shape& shape) {
    if (shape.size() == 2) return {1, 1};
    return {shape[0], element_count({shape.begin() + 1, shape.end() - 2})};
  }

  bool is_condition(const AttentionMask& mask) const {
    return graph_.dtype(mask.value) == DType::kBool;
  }

  void add(const AttentionMask& mask) {
    const auto [seen, is_finite] = constants_.contents(mask, queries_, keys_);
    if (seen == Visibility::kAll) return;
    // Where another mask hides all keys of a query, finite numbers still tell them apart.
    const bool hides = !is_finite || is_alone_;
    if (seen == Visibility::kLowerTriangle && hides) {
      causal_ = true;
      return;
    }
    const bool is_known = mask.low == -kInfinity || (seen == Visibility::kOther && hides);
    fits_ = fits_ && (is_condition(mask) ? is_known : !is_trained(graph_, mask.value));
    fits_ = fits_ && joins_heads(mask);
    kept_.push_back(mask);
  }

  // Whether the dimensions after the first broadcast all or none; sets the heads they refer to.
  bool joins_heads(const AttentionMask& mask) {
    Shape shape = graph_.shape(mask.value);
    shape.insert(shape.begin(), mask.scores.size() - shape.size(), 1);
    const auto is_one = [](int64_t size) { return size == 1; };
    const auto first = shape.begin() + (shape.size() > 2 ? 1 : 0), last = shape.end() - 2;
    if (std::all_of(shape.begin(), last, is_one)) return true;
    if (heads_from_mask_ && split(heads_) != split(mask.scores)) return false;
    heads_from_mask_ = true;
    heads_ = mask.scores;
    return std::all_of(first, last, is_one) || std::equal(first, last, mask.scores.begin() + 1);
  }

  const Graph& graph_;
  ConstantMasks& constants_;
  int64_t queries_, keys_;
  Shape heads_;
  bool is_alone_;
  bool heads_from_mask_ = false;
  bool fits_ = true;
  bool causal_;
  std::vector<AttentionMask> kept_;
};

/// Appends the operator that stands for a pattern.
class Rewriter : public Expressions {
 public:
  Rewriter(Cloner& cloner, const AttentionPattern& pattern, const Masks& masks)
      : Expressions(cloner.target()), cloner_(cloner), pattern_(pattern), masks_(masks) {}

  ValueId attention() {
    const Shape heads = masks_.batch_and_heads();
    const int64_t key_heads = pattern_.k.heads / std::max<int64_t>(1, heads[0]);
    std::vector<ValueId> operands = {per_head(pattern_.q, {heads[0], heads[1]}),
                                     per_head(pattern_.k, {heads[0], key_heads}),
                                     per_head(pattern_.v, {heads[0], key_heads})};
    if (!masks_.kept().empty()) operands.push_back(mask());
    const Attributes attributes = {{"scale", pattern_.scale},
                                   {"causal", int64_t{masks_.causal()}},
                                   {"zero_empty", int64_t{pattern_.zero_empty}}};
    return graph().add_node(Op::kAttention, operands, attributes)[0];
  }

 private:
  ValueId per_head(const AttentionOperand& operand, Shape shape) {
    ValueId x = cloner_[operand.value];
    if (operand.transposed) {
      std::vector<int64_t> perm = all_axes(rank(x));
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      x = transpose(x, perm);
    }
    const Shape from = this->shape(x);
    shape.insert(shape.end(), from.end() - 2, from.end());
    return reshape(x, shape);
  }

  ValueId mask() {
    ValueId sum = kNone;
    for (const AttentionMask& mask : masks_.kept()) {
      const ValueId next = additive(mask);
      sum = sum == kNone ? next : add(sum, next);
    }
    return sum;
  }

  ValueId additive(const AttentionMask& mask) {
    const ValueId x = reshape(cloner_[mask.value], masks_.mask_shape(mask));
    if (dtype(x) != DType::kBool) return x;
    const DType type = dtype(cloner_[pattern_.q.value]);
    const ValueId shown = constant(type, 0), hidden = constant(type, -kInfinity);
    return mask.shows ? where(x, shown, hidden) : where(x, hidden, shown);
  }

  Cloner& cloner_;
  const AttentionPattern& pattern_;
  const Masks& masks_;
};

bool divides(int64_t a, int64_t b) { return a == 0 ? b == 0 : b % a == 0; }

// Replaces the result of `mixed` if it is that of an attention that the operator can stand for.
bool rewrite(const Graph& graph, const Node& mixed, const std::vector<int64_t>& uses,
             ConstantMasks& constants, Cloner& cloner) {
  const std::optional<AttentionPattern> pattern = match_attention(graph, mixed, uses);
  if (!pattern) return false;
  const Masks masks(graph, *pattern, constants);
  if (!masks.fit() || !divides(masks.batch_and_heads()[0], pattern->k.heads)) return false;
  cloner.inherit(mixed);
  cloner.target().context().id = 0;
  Rewriter rewriter(cloner, *pattern, masks);
  cloner.replace(mixed.results[0],
                 rewriter.reshape(rewriter.attention(), graph.shape(mixed.results[0])));
  return true;
}

}  // namespace

Graph recognize_attention(Graph graph) {
  Cloner cloner(eliminate_dead_nodes(std::move(graph)));
  const Graph& live = cloner.source();
  const std::vector<int64_t> uses = count_uses(live);
  ConstantMasks constants(live);
  for (const Node& node : live.nodes) {
    if (!rewrite(live, node, uses, constants, cloner)) cloner.clone(node);
  }
  return eliminate_dead_nodes(cloner.finish());
}

}  // namespace sgtc
