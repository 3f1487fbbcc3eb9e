#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "models/checks.h"
#include "models/models.h"
#include "support/diagnostics.h"

namespace sgtc::models {
namespace {

constexpr float kInitialDeviation = 0.02f;

void check(const Gpt2Config& config) {
  check_batch(config.batch);
  check_positive("--layers", config.layers);
  check_positive("--width", config.width);
  check_positive("--heads", config.heads);
  check_positive("--vocab", config.vocab);
  check_positive("--seq", config.seq);
  if (config.width % config.heads != 0) {
    throw Error("--width: expected a multiple of the " + std::to_string(config.heads) +
                " heads, found " + std::to_string(config.width));
  }
  if (config.context < config.seq) {
    throw Error("--context: expected at least the " + std::to_string(config.seq) +
                " tokens of --seq, found " + std::to_string(config.context));
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    throw Error("--dropout: expected a number in [0, 1), found " + std::to_string(config.dropout));
  }
}

class Gpt2 {
 public:
  explicit Gpt2(const Gpt2Config& config) : config_(config), model_("gpt2") {}

  onnx::ModelProto build() {
    const std::vector<Dim> tokens{config_.batch, config_.seq};
    const std::string input_ids = model_.input("input_ids", onnx::TensorProto::INT64, tokens);
    const std::string labels = model_.input("labels", onnx::TensorProto::INT64, tokens);
    const std::string wte = normal_weight("wte.weight", {config_.vocab, config_.width});
    declare_constants();
    std::string x = embed(input_ids, wte);
    for (int64_t i = 0; i < config_.layers; ++i) x = block("h." + std::to_string(i), x);
    add_loss(norm("ln_f", x), labels, wte);
    return model_.model();
  }

 private:
  std::string normal_weight(const std::string& name, const std::vector<int64_t>& dims) {
    return model_.weight(name, dims, Initial::normal(kInitialDeviation));
  }

  // What every block uses: GELU's numbers, the shapes of heads and the causal mask.
  void declare_constants() {
    half_ = model_.scalar("gelu.half", 0.5f);
    one_ = model_.scalar("gelu.one", 1.0f);
    cubic_ = model_.scalar("gelu.cubic", 0.044715f);
    root_ = model_.scalar("gelu.root", static_cast<float>(std::sqrt(2 / std::acos(-1.0))));
    const int64_t depth = config_.width / config_.heads;
    scale_ =
        model_.scalar("attn.scale", static_cast<float>(1 / std::sqrt(static_cast<double>(depth))));
    hidden_ = model_.scalar("attn.hidden", -std::numeric_limits<float>::infinity());
    heads_ = model_.integers("attn.heads", {0, 0, config_.heads, depth});
    merged_ = model_.integers("attn.merged", {0, 0, config_.width});
    declare_mask();
    if (config_.dropout > 0) {
      ratio_ = model_.scalar("dropout.ratio", config_.dropout);
      training_ = model_.boolean("dropout.training", true);
    }
  }

  // Query t sees the keys up to t.
  void declare_mask() {
    std::vector<int64_t> positions(static_cast<size_t>(config_.seq));
    std::iota(positions.begin(), positions.end(), 0);
    const std::string keys = model_.integers("attn.keys", positions);
    const std::string axis = model_.integers("attn.queries.axis", {1});
    const std::string queries = model_.add("Unsqueeze", "attn.queries", {keys, axis});
    seen_ = model_.add("GreaterOrEqual", "attn.seen", {queries, keys});
  }

  std::string dropout(const std::string& name, const std::string& x) {
    if (config_.dropout == 0) return x;
    return model_.add("Dropout", name, {x, ratio_, training_});
  }

  std::string norm(const std::string& name, const std::string& x) {
    const std::vector<int64_t> dims{config_.width};
    const std::string weight = model_.weight(name + ".weight", dims, Initial::constant(1));
    const std::string bias = model_.weight(name + ".bias", dims, Initial::constant(0));
    return model_.add("LayerNormalization", name, {x, weight, bias},
                      {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}});
  }

  // x·weight + bias over the last dimension; the weight is [inputs, outputs].
  std::string linear(const std::string& name, const std::string& x, int64_t inputs, int64_t outputs,
                     float deviation = kInitialDeviation) {
    const std::string weight =
        model_.weight(name + ".weight", {inputs, outputs}, Initial::normal(deviation));
    const std::string bias = model_.weight(name + ".bias", {outputs}, Initial::constant(0));
    const std::string product = model_.add("MatMul", name + ".matmul", {x, weight});
    return model_.add("Add", name, {product, bias});
  }

  // Each block adds to the residual stream twice; smaller weights keep its variance near one.
  float residual_deviation() const {
    return kInitialDeviation / std::sqrt(2 * static_cast<float>(config_.layers));
  }

  // Token plus position: [batch, seq, width].
  std::string embed(const std::string& input_ids, const std::string& wte) {
    std::string wpe = normal_weight("wpe.weight", {config_.context, config_.width});
    if (config_.context > config_.seq) {
      const std::string begin = model_.integers("wpe.begin", {0});
      const std::string end = model_.integers("wpe.end", {config_.seq});
      wpe = model_.add("Slice", "wpe", {wpe, begin, end});
    }
    const std::string token = model_.add("Gather", "wte", {wte, input_ids});
    return dropout("drop", model_.add("Add", "embedding", {token, wpe}));
  }

  std::string block(const std::string& h, std::string x) {
    const std::string attended = attention(h + ".attn", norm(h + ".ln_1", x));
    x = model_.add("Add", h + ".residual_1", {x, attended});
    return model_.add("Add", h + ".residual_2",
                      {x, feed_forward(h + ".mlp", norm(h + ".ln_2", x))});
  }

  // [batch, seq, width] as [batch, heads, seq, depth], or with the last two exchanged.
  std::string split_heads(const std::string& name, const std::string& x, bool transposed) {
    const std::string heads = model_.add("Reshape", name + ".heads", {x, heads_});
    const std::vector<int64_t> order =
        transposed ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3};
    return model_.add("Transpose", name, {heads}, {{"perm", order}});
  }

  std::string attention(const std::string& name, const std::string& x) {
    const int64_t width = config_.width;
    const std::string all = linear(name + ".c_attn", x, width, 3 * width);
    const std::string parts =
        model_.add("Split", name + ".split", {all}, {{"axis", int64_t{-1}}}, 3);
    const std::string q = split_heads(name + ".q", parts, false);
    const std::string k = split_heads(name + ".k", parts + ".1", true);
    const std::string v = split_heads(name + ".v", parts + ".2", false);
    const std::string products = model_.add("MatMul", name + ".products", {q, k});
    const std::string scores = model_.add("Mul", name + ".scores", {products, scale_});
    const std::string causal = model_.add("Where", name + ".causal", {seen_, scores, hidden_});
    std::string weights =
        model_.add("Softmax", name + ".softmax", {causal}, {{"axis", int64_t{-1}}});
    weights = dropout(name + ".attn_dropout", weights);
    const std::string mixed = model_.add("MatMul", name + ".mixed", {weights, v});
    const std::string rows = model_.add("Transpose", name + ".rows", {mixed},
                                        {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    const std::string merged = model_.add("Reshape", name + ".merged", {rows, merged_});
    return dropout(name + ".resid_dropout",
                   linear(name + ".c_proj", merged, width, width, residual_deviation()));
  }

  std::string feed_forward(const std::string& name, const std::string& x) {
    const int64_t width = config_.width;
    const std::string hidden = gelu(name + ".act", linear(name + ".c_fc", x, width, 4 * width));
    return dropout(name + ".dropout",
                   linear(name + ".c_proj", hidden, 4 * width, width, residual_deviation()));
  }

  // x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))
  std::string gelu(const std::string& name, const std::string& x) {
    const std::string square = model_.add("Mul", name + ".square", {x, x});
    const std::string cube = model_.add("Mul", name + ".cube", {square, x});
    const std::string cubic = model_.add("Mul", name + ".cubic", {cube, cubic_});
    const std::string sum = model_.add("Add", name + ".sum", {x, cubic});
    const std::string inner = model_.add("Mul", name + ".inner", {sum, root_});
    const std::string tanh = model_.add("Tanh", name + ".tanh", {inner});
    const std::string gate = model_.add("Add", name + ".gate", {tanh, one_});
    const std::string scaled = model_.add("Mul", name + ".half", {x, half_});
    return model_.add("Mul", name, {scaled, gate});
  }

  // The logits are products with the token embedding.
  void add_loss(const std::string& x, const std::string& labels, const std::string& wte) {
    const std::string rows_shape = model_.integers("lm_head.shape", {-1, config_.width});
    const std::string rows = model_.add("Reshape", "lm_head.rows", {x, rows_shape});
    const std::string logits = model_.add("Gemm", "lm_head", {rows, wte}, {{"transB", int64_t{1}}});
    const std::string flat_shape = model_.integers("labels.shape", {-1});
    const std::string targets = model_.add("Reshape", "labels.rows", {labels, flat_shape});
    model_.add("SoftmaxCrossEntropyLoss", "loss", {logits, targets});
    model_.output("loss", {});
  }

  const Gpt2Config& config_;
  ModelBuilder model_;
  std::string half_, one_, cubic_, root_;               // of GELU
  std::string scale_, hidden_, heads_, merged_, seen_;  // of attention
  std::string ratio_, training_;                        // of dropout
};

}  // namespace

onnx::ModelProto gpt2(const Gpt2Config& config) {
  check(config);
  return Gpt2(config).build();
}

const std::vector<Gpt2Preset>& gpt2_presets() {
  static const std::vector<Gpt2Preset> presets = {{"gpt2-124m", 12, 768, 12},
                                                  {"gpt2-medium", 24, 1024, 16},
                                                  {"gpt2-large", 36, 1280, 20},
                                                  {"gpt2-xl", 48, 1600, 25}};
  return presets;
}

}  // namespace sgtc::models
