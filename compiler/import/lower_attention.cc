// Attention and rotary position embeddings. Plain attention stays one operator, whose kernel never
// stores the scores; a form that shows or changes the scores becomes matrix products and softmax.
#include <cmath>
#include <limits>

#include "import/lowering.h"
#include "import/tensor.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// [B, T, heads·D] as [B, heads, T, D]; four dimensions stay.
ValueId split_heads(Lowering& n, ValueId x, int64_t heads) {
  const Shape s = n.shape(x);
  if (s.size() == 4) return x;
  if (s.size() != 3 || heads < 1 || s[2] % heads != 0) {
    throw Error(
        "expected [B, heads, T, D], or [B, T, heads·D] with the number of heads as "
        "attribute, found " +
        to_string(s) + " and " + std::to_string(heads) + " heads");
  }
  return n.transpose(n.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

// An additive mask of x's type; a missing tail of keys is masked out.
ValueId additive_mask(Lowering& n, ValueId mask, DType dtype, int64_t keys) {
  const ValueId hidden = n.scalar(dtype, kMinusInfinity);
  if (n.dtype(mask) == DType::kBool) mask = n.where(mask, n.scalar(dtype, 0), hidden);
  mask = n.cast(mask, dtype);
  if (n.rank(mask) == 0 || n.shape(mask).back() >= keys || n.shape(mask).back() == 1) return mask;
  std::vector<int64_t> low(n.shape(mask).size(), 0), high = low;
  high.back() = keys - n.shape(mask).back();
  return n.add(Op::kPad, {mask, hidden}, {{"low", low}, {"high", high}});
}

// Query i sees keys 0 … i + past.
ValueId causal_mask(Lowering& n, int64_t queries, int64_t keys, int64_t past, DType dtype) {
  const ValueId row = n.iota({queries, 1}, 0, DType::kInt64);
  const ValueId column = n.iota({1, keys}, 1, DType::kInt64);
  const ValueId seen =
      n.add(Op::kLessEqual, {column, n.add_scalar(row, static_cast<double>(past))});
  return n.where(seen, n.scalar(dtype, 0), n.scalar(dtype, kMinusInfinity));
}

// Softmax over the keys. A query whose keys are all masked gets zeros; its mask is removed first,
// so that no NaN arises for its gradient either.
ValueId masked_softmax(Lowering& n, ValueId scores, ValueId mask, bool may_mask_all,
                       ValueId* biased) {
  const DType dtype = n.dtype(scores);
  ValueId empty = kNone;
  if (mask != kNone && may_mask_all && n.rank(mask) > 0) {
    const ValueId best = n.reduce(Op::kReduceMax, mask, {n.rank(mask) - 1});
    empty = n.add(Op::kEqual, {best, n.scalar(dtype, kMinusInfinity)});
    if (const LiteralPtr known = n.literal(empty)) {
      bool any = false;
      for (int64_t i = 0; i < known->element_count(); ++i) any = any || known->as_int(i) != 0;
      if (!any) empty = kNone;
    }
  }
  if (mask != kNone) *biased = n.add(scores, mask);
  ValueId x = *biased;
  if (empty != kNone) x = n.add(scores, n.where(empty, n.scalar(dtype, 0), mask));
  if (n.has_attribute("softmax_precision")) {
    const auto code = static_cast<int32_t>(n.integer("softmax_precision", 0));
    const std::optional<DType> precision = dtype_from_onnx(code);
    if (!precision) throw Error("softmax_precision names a type that is not supported");
    x = n.cast(x, *precision);
  }
  x = n.cast(n.add(Op::kSoftmax, {x}, {{"axis", n.rank(x) - 1}}), dtype);
  return empty == kNone ? x : n.where(empty, n.scalar(dtype, 0), x);
}

class Attention {
 public:
  explicit Attention(Lowering& n) : n_(n) {}

  ValueIds lower() {
    load();
    if (const ValueIds whole = lower_whole(); !whole.empty()) return whole;
    const ValueId grouped = group_queries(q_);
    ValueId scores = n_.matmul(grouped, expand_keys(k_), false, true);
    scores = ungroup(n_.mul_scalar(scores, n_.real("scale", 1 / std::sqrt(depth()))));
    const ValueId raw = scores;
    if (const double cap = n_.real("softcap", 0); cap > 0) {
      scores = n_.mul_scalar(n_.add(Op::kTanh, {n_.mul_scalar(scores, 1 / cap)}), cap);
    }
    ValueId biased = scores;
    const bool masked = n_.has_input(3);
    const ValueId probabilities = masked_softmax(n_, scores, mask(), masked, &biased);
    ValueId y = ungroup(n_.matmul(group_queries(probabilities), expand_keys(v_)));
    if (n_.input_rank(0) == 3) y = merge_heads(y);
    const ValueId shown[] = {raw, scores, biased, probabilities};
    const int64_t mode = n_.integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) throw Error("qk_matmul_output_mode: expected 0 to 3");
    return {y, k_, v_, shown[mode]};
  }

 private:
  void load() {
    const int64_t query_heads = n_.integer("q_num_heads", 0);
    const int64_t key_heads = n_.integer("kv_num_heads", 0);
    q_ = split_heads(n_, n_.input(0), query_heads);
    k_ = split_heads(n_, n_.input(1), key_heads);
    v_ = split_heads(n_, n_.input(2), key_heads);
    if (n_.has_input(4) != n_.has_input(5)) {
      throw Error("past_key and past_value must be given together");
    }
    if (n_.has_input(4)) {
      if (n_.input_rank(4) != 4) {
        throw Error("past_key: expected rank 4, found " + to_string(n_.input_shape(4)));
      }
      past_ = n_.input_shape(4)[2];
      k_ = n_.concat({n_.input(4), k_}, 2);
      v_ = n_.concat({n_.input(5), v_}, 2);
    }
    if (n_.has_input(6)) throw Error("nonpad_kv_seqlen is not supported");
    const int64_t heads = n_.shape(q_)[1], groups = n_.shape(k_)[1];
    if (groups == 0 || heads % groups != 0) {
      throw Error("expected key heads that divide the " + std::to_string(heads) +
                  " query heads, found " + std::to_string(groups));
    }
    group_size_ = heads / groups;
  }

  // The operator attention, or nothing when the scores are wanted or changed, or when the mask may
  // be trained.
  ValueIds lower_whole() {
    const bool changed = n_.real("softcap", 0) > 0 || n_.has_attribute("softmax_precision");
    const bool causal = n_.integer("is_causal", 0) != 0;
    if (changed || n_.wants_output(3) || past_ != 0) return {};
    const bool masked = n_.has_input(3);
    std::vector<ValueId> operands = {q_, k_, v_};
    if (masked) {
      operands.push_back(additive_mask(n_, n_.input(3), n_.dtype(q_), n_.shape(k_)[2]));
      if (!states_behind(n_.graph(), operands.back()).empty()) return {};
    }
    const Attributes attributes = {{"scale", n_.real("scale", 1 / std::sqrt(depth()))},
                                   {"causal", int64_t{causal}},
                                   {"zero_empty", int64_t{masked}}};
    ValueId y = n_.add_node(Op::kAttention, operands, attributes)[0];
    if (n_.input_rank(0) == 3) y = merge_heads(y);
    return {y, k_, v_};
  }

  double depth() const { return static_cast<double>(n_.shape(q_)[3]); }

  // [B, H, T, D] as [B, G, H/G, T, D] when several query heads share a key head.
  ValueId group_queries(ValueId x) {
    if (group_size_ == 1) return x;
    const Shape s = n_.shape(x);
    return n_.reshape(x, {s[0], s[1] / group_size_, group_size_, s[2], s[3]});
  }
  ValueId expand_keys(ValueId x) { return group_size_ == 1 ? x : n_.unsqueeze(x, {2}); }
  ValueId ungroup(ValueId x) {
    const Shape s = n_.shape(x);
    if (s.size() == 4) return x;
    return n_.reshape(x, {s[0], s[1] * s[2], s[3], s[4]});
  }
  ValueId merge_heads(ValueId x) {
    const Shape s = n_.shape(x);
    return n_.reshape(n_.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }

  ValueId mask() {
    const DType dtype = n_.dtype(q_);
    const int64_t queries = n_.shape(q_)[2], keys = n_.shape(k_)[2];
    ValueId mask = kNone;
    if (n_.has_input(3)) mask = additive_mask(n_, n_.input(3), dtype, keys);
    if (n_.integer("is_causal", 0) == 0) return mask;
    const ValueId causal = causal_mask(n_, queries, keys, past_, dtype);
    return mask == kNone ? causal : n_.add(mask, causal);
  }

  Lowering& n_;
  ValueId q_ = kNone, k_ = kNone, v_ = kNone;
  int64_t past_ = 0;
  int64_t group_size_ = 1;
};

ValueIds lower_attention(Lowering& n) { return Attention(n).lower(); }

// cos or sin values as [B or 1, 1, T, D/2].
ValueId rotation_cache(Lowering& n, int index) {
  ValueId cache = n.input(index);
  if (n.has_input(3)) cache = n.gather(cache, n.input(3), 0);
  if (n.rank(cache) != 3) {
    throw Error("caches: expected [B, T, D/2], or [positions, D/2] with position ids, found " +
                to_string(n.shape(cache)));
  }
  return n.unsqueeze(cache, {1});
}

ValueIds lower_rotary_embedding(Lowering& n) {
  const Shape original = n.input_shape(0);
  const ValueId x = split_heads(n, n.input(0), n.integer("num_heads", 0));
  const Shape s = n.shape(x);
  const int64_t given = n.integer("rotary_embedding_dim", 0);
  const int64_t rotated = given == 0 ? s[3] : given;
  const int64_t half = rotated / 2;
  const bool interleaved = n.integer("interleaved", 0) != 0;
  if (rotated < 0 || rotated > s[3] || rotated % 2 != 0) {
    throw Error("rotary_embedding_dim: expected an even number up to " + std::to_string(s[3]) +
                ", found " + std::to_string(rotated));
  }
  const ValueId a = n.slice(x, 3, 0, half, interleaved ? 2 : 1);
  const ValueId b = n.slice(x, 3, interleaved ? 1 : half, half, interleaved ? 2 : 1);
  const ValueId cosine = rotation_cache(n, 1), sine = rotation_cache(n, 2);
  const ValueId real = n.sub(n.mul(cosine, a), n.mul(sine, b));
  const ValueId imaginary = n.add(n.mul(sine, a), n.mul(cosine, b));
  ValueId y = kNone;
  if (interleaved) {
    y = n.concat({n.unsqueeze(real, {4}), n.unsqueeze(imaginary, {4})}, 4);
    y = n.reshape(y, {s[0], s[1], s[2], rotated});
  } else {
    y = n.concat({real, imaginary}, 3);
  }
  if (rotated < s[3]) y = n.concat({y, n.slice(x, 3, rotated, s[3] - rotated)}, 3);
  if (original.size() == 3) y = n.reshape(n.transpose(y, {0, 2, 1, 3}), original);
  return {y};
}

const std::vector<Rule> kRules = {
    {"", "Attention", {23}, lower_attention},
    {"", "RotaryEmbedding", {23}, lower_rotary_embedding},
};

}  // namespace

std::span<const Rule> attention_rules() { return kRules; }

}  // namespace sgtc
