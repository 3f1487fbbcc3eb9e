#include "models/transformer_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sgtc::models {
namespace {

constexpr int64_t kGeluOpset = 20;
constexpr int64_t kAttentionOpset = 23;  // and of RMSNormalization and RotaryEmbedding
constexpr double kPi = 3.14159265358979323846;

// Turns per token of each pair of a head, in radians.
std::vector<float> frequencies(const Rotation& rotation, int64_t depth) {
  constexpr double kContext = 8192, kFew = 1, kMany = 4;  // turns within the first context
  std::vector<float> result;
  for (int64_t i = 0; i < depth / 2; ++i) {
    const double frequency =
        std::pow(rotation.base, -2 * static_cast<double>(i) / static_cast<double>(depth));
    const double turns = kContext * frequency / (2 * kPi);
    const double kept = std::clamp((turns - kFew) / (kMany - kFew), 0.0, 1.0);
    result.push_back(static_cast<float>(frequency * (kept + (1 - kept) / rotation.factor)));
  }
  return result;
}

}  // namespace

// The numbers 0 to seq − 1.
std::string TransformerLayers::positions() {
  std::vector<int64_t> values(static_cast<size_t>(seq_));
  std::iota(values.begin(), values.end(), 0);
  return model_.integers("attn.keys", values);
}

void TransformerLayers::rotate(const Rotation& rotation, const std::string& tokens) {
  const std::string axis = model_.integers("rotary.axis", {1});
  const std::string column = model_.add("Unsqueeze", "rotary.column", {positions(), axis});
  const std::string times =
      model_.add("Cast", "rotary.times", {column}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  const std::string rates = model_.reals("rotary.rates", frequencies(rotation, heads_.depth));
  std::string angles = model_.add("Mul", "rotary.angles", {times, rates});
  if (model_.opset() < kAttentionOpset) {
    angles = model_.add("Concat", "rotary.both", {angles, angles}, {{"axis", int64_t{-1}}});
  } else {
    const std::string shape = model_.add("Shape", "rotary.shape", {tokens});
    places_ = model_.add("Expand", "rotary.positions", {positions(), shape});
  }
  cos_ = model_.add("Cos", "rotary.cos", {angles});
  sin_ = model_.add("Sin", "rotary.sin", {angles});
}

std::string TransformerLayers::weight(const std::string& name, const std::vector<int64_t>& dims) {
  return model_.weight(name, dims, Initial::normal(kInitialDeviation));
}

std::string TransformerLayers::embedding(const std::string& name, const std::string& indices,
                                         int64_t rows, int64_t width) {
  return model_.add("Gather", name, {weight(name + ".weight", {rows, width}), indices});
}

std::string TransformerLayers::layer_norm(const std::string& name, const std::string& x,
                                          int64_t width, float epsilon) {
  const std::string scale = model_.weight(name + ".weight", {width}, Initial::constant(1));
  const std::string bias = model_.weight(name + ".bias", {width}, Initial::constant(0));
  return model_.add("LayerNormalization", name, {x, scale, bias},
                    {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

// The mean over the last dimension, which stays with size 1. Axes are an input from opset 18 on.
std::string TransformerLayers::last_mean(const std::string& name, const std::string& x) {
  if (model_.opset() < 18) {
    return model_.add("ReduceMean", name, {x}, {{"axes", std::vector<int64_t>{-1}}});
  }
  return model_.add("ReduceMean", name, {x, model_.integers("norm.axis", {-1})});
}

// x / √(mean(x²) + ε) · weight
std::string TransformerLayers::rms_norm(const std::string& name, const std::string& x,
                                        int64_t width, float epsilon) {
  const std::string scale = model_.weight(name + ".weight", {width}, Initial::constant(1));
  if (model_.opset() >= kAttentionOpset) {
    return model_.add("RMSNormalization", name, {x, scale},
                      {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  }
  const std::string square = model_.add("Pow", name + ".square", {x, model_.scalar("norm.two", 2)});
  const std::string mean = last_mean(name + ".mean", square);
  const std::string sum =
      model_.add("Add", name + ".sum", {mean, model_.scalar("norm.epsilon", epsilon)});
  const std::string root = model_.add("Sqrt", name + ".root", {sum});
  const std::string factor = model_.add("Reciprocal", name + ".factor", {root});
  const std::string normal = model_.add("Mul", name + ".normal", {x, factor});
  return model_.add("Mul", name, {scale, normal});
}

std::string TransformerLayers::linear(const std::string& name, const std::string& x, int64_t inputs,
                                      int64_t outputs, bool bias) {
  const std::string columns =
      model_.add("Transpose", name + ".columns", {weight(name + ".weight", {outputs, inputs})},
                 {{"perm", std::vector<int64_t>{1, 0}}});
  if (!bias) return model_.add("MatMul", name, {x, columns});
  const std::string product = model_.add("MatMul", name + ".matmul", {x, columns});
  return model_.add("Add", name,
                    {product, model_.weight(name + ".bias", {outputs}, Initial::constant(0))});
}

std::string TransformerLayers::gelu(const std::string& name, const std::string& x, bool by_tanh) {
  if (model_.opset() >= kGeluOpset) {
    const std::string approximate = by_tanh ? "tanh" : "none";
    return model_.add("Gelu", name, {x}, {{"approximate", approximate}});
  }
  const std::string half = model_.scalar("gelu.half", 0.5f);
  const std::string one = model_.scalar("gelu.one", 1.0f);
  std::string curve;
  if (by_tanh) {  // tanh(√(2/π)·(x + 0.044715·x³))
    const std::string square = model_.add("Mul", name + ".square", {x, x});
    const std::string cube = model_.add("Mul", name + ".cube", {square, x});
    const std::string cubic =
        model_.add("Mul", name + ".cubic", {cube, model_.scalar("gelu.cubic", 0.044715f)});
    const std::string sum = model_.add("Add", name + ".sum", {x, cubic});
    const auto root = static_cast<float>(std::sqrt(2 / kPi));
    const std::string inner =
        model_.add("Mul", name + ".inner", {sum, model_.scalar("gelu.root", root)});
    curve = model_.add("Tanh", name + ".tanh", {inner});
  } else {  // erf(x/√2)
    const auto root = static_cast<float>(std::sqrt(2.0));
    const std::string inner =
        model_.add("Div", name + ".inner", {x, model_.scalar("gelu.root", root)});
    curve = model_.add("Erf", name + ".erf", {inner});
  }
  const std::string gate = model_.add("Add", name + ".gate", {curve, one});
  const std::string scaled = model_.add("Mul", name + ".half", {x, half});
  return model_.add("Mul", name, {scaled, gate});
}

// [batch, seq, heads·depth] as [batch, heads, seq, depth].
std::string TransformerLayers::split_heads(const std::string& name, const std::string& x,
                                           int64_t heads) {
  const std::string shape =
      model_.integers("attn.heads." + std::to_string(heads), {0, 0, heads, heads_.depth});
  const std::string rows = model_.add("Reshape", name + ".heads", {x, shape});
  return model_.add("Transpose", name, {rows}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

// (a, b) turned by φ is (a·cos φ − b·sin φ, b·cos φ + a·sin φ); a and b are the halves of a head.
std::string TransformerLayers::turn(const std::string& name, const std::string& x, int64_t heads) {
  if (cos_.empty()) return x;
  if (model_.opset() >= kAttentionOpset) {
    return model_.add("RotaryEmbedding", name + ".turned", {x, cos_, sin_, places_},
                      {{"num_heads", heads}});
  }
  const std::string first = model_.split(name + ".half", x, 2);
  const std::string negated = model_.add("Neg", name + ".negated", {first + ".1"});
  const std::string across =
      model_.add("Concat", name + ".across", {negated, first}, {{"axis", int64_t{-1}}});
  const std::string along = model_.add("Mul", name + ".cos", {x, cos_});
  const std::string aside = model_.add("Mul", name + ".sin", {across, sin_});
  return model_.add("Add", name + ".turned", {along, aside});
}

// Each head of keys or values once for each of its heads of queries.
std::string TransformerLayers::repeat_heads(const std::string& name, const std::string& x) {
  const int64_t copies = heads_.queries / heads_.keys;
  if (copies == 1) return x;
  const std::string axis = model_.integers("attn.group.axis", {2});
  const std::string alone = model_.add("Unsqueeze", name + ".alone", {x, axis});
  const std::string copied = model_.add(
      "Expand", name + ".copied", {alone, model_.integers("attn.copies", {1, 1, copies, 1, 1})});
  const std::string shape =
      model_.integers("attn.group.heads", {0, heads_.queries, seq_, heads_.depth});
  return model_.add("Reshape", name + ".repeated", {copied, shape});
}

// Whether query t sees key s: [seq, seq].
std::string TransformerLayers::causal_mask() {
  if (seen_.empty()) {
    const std::string axis = model_.integers("attn.queries.axis", {1});
    const std::string queries = model_.add("Unsqueeze", "attn.queries", {positions(), axis});
    seen_ = model_.add("GreaterOrEqual", "attn.seen", {queries, positions()});
  }
  return seen_;
}

std::string TransformerLayers::see(const std::string& name, const std::string& scores,
                                   const Sight& sight) {
  std::string seen = scores;
  if (!sight.mask.empty()) seen = model_.add("Add", name + ".masked", {seen, sight.mask});
  if (sight.causal) {
    const std::string hidden =
        model_.scalar("attn.hidden", -std::numeric_limits<float>::infinity());
    seen = model_.add("Where", name + ".causal", {causal_mask(), seen, hidden});
  }
  return seen;
}

std::string TransformerLayers::attention_node(const std::string& name, const std::string& q,
                                              const std::string& k, const std::string& v,
                                              const Sight& sight) {
  std::vector<std::string> operands = {turn(name + ".q", q, heads_.queries),
                                       turn(name + ".k", k, heads_.keys), v};
  if (!sight.mask.empty()) operands.push_back(sight.mask);
  return model_.add("Attention", name, operands,
                    {{"q_num_heads", heads_.queries},
                     {"kv_num_heads", heads_.keys},
                     {"is_causal", int64_t{sight.causal}}});
}

std::string TransformerLayers::attention(const std::string& name, const std::string& q,
                                         const std::string& k, const std::string& v,
                                         const Sight& sight) {
  if (model_.opset() >= kAttentionOpset && dropout_ == 0) {
    return attention_node(name, q, k, v, sight);
  }
  const std::string queries =
      turn(name + ".q", split_heads(name + ".q", q, heads_.queries), heads_.queries);
  const std::string keys = repeat_heads(
      name + ".k", turn(name + ".k", split_heads(name + ".k", k, heads_.keys), heads_.keys));
  const std::string values = repeat_heads(name + ".v", split_heads(name + ".v", v, heads_.keys));
  const std::string columns = model_.add("Transpose", name + ".k.columns", {keys},
                                         {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const std::string products = model_.add("MatMul", name + ".products", {queries, columns});
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads_.depth)));
  const std::string scores =
      model_.add("Mul", name + ".scores", {products, model_.scalar("attn.scale", scale)});
  const std::string softmax =
      model_.add("Softmax", name + ".softmax", {see(name, scores, sight)}, {{"axis", int64_t{-1}}});
  const std::string mixed =
      model_.add("MatMul", name + ".mixed", {dropout(name + ".attn_dropout", softmax), values});
  const std::string rows = model_.add("Transpose", name + ".rows", {mixed},
                                      {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const std::string merged = model_.integers("attn.merged", {0, 0, heads_.queries * heads_.depth});
  return model_.add("Reshape", name, {rows, merged});
}

std::string TransformerLayers::dropout(const std::string& name, const std::string& x) {
  if (dropout_ == 0) return x;
  return model_.add(
      "Dropout", name,
      {x, model_.scalar("dropout.ratio", dropout_), model_.boolean("dropout.training", true)});
}

void TransformerLayers::token_loss(const std::string& name, const std::string& x, int64_t width,
                                   const std::string& weight, const std::string& bias,
                                   const std::string& labels, std::optional<int64_t> ignored) {
  const std::string rows_shape = model_.integers(name + ".shape", {-1, width});
  std::vector<std::string> operands = {model_.add("Reshape", name + ".rows", {x, rows_shape}),
                                       weight};
  if (!bias.empty()) operands.push_back(bias);
  const std::string logits = model_.add("Gemm", name, operands, {{"transB", int64_t{1}}});
  const std::string flat = model_.integers("labels.shape", {-1});
  const std::string targets = model_.add("Reshape", "labels.rows", {labels, flat});
  std::vector<Attribute> attributes;
  if (ignored) attributes.push_back({"ignore_index", *ignored});
  model_.add("SoftmaxCrossEntropyLoss", "loss", {logits, targets}, attributes);
  model_.output("loss", {});
}

}  // namespace sgtc::models
