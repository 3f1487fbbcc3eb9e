// Layers of transformers, as exporters write them: one node where the opset has the operator, which
// Gelu has from 20 on, RMSNormalization, RotaryEmbedding and Attention from 23 on, else spelled
// out.
//
// Activations are [batch, seq, width]. Weights are named as in published checkpoints and laid out
// as there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model_builder.h"

namespace sgtc::models {

/// The deviation of the weights of all transformers here before the first step.
inline constexpr float kInitialDeviation = 0.02f;

/// How attention is cut: heads of queries, heads of keys and values (which divide them), and the
/// elements of a head.
struct Heads {
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t depth = 1;
};

/// Rotary position embedding (Su et al. 2021): the angle of pair i of a head at position t is
/// t·base^(−2i/depth). With a factor above 1 slow pairs turn slower, as Llama 3.1 was trained for
/// long texts: those that turn less than once within 8192 tokens by the factor, those that turn at
/// least four times not, and those between gradually.
struct Rotation {
  double base = 10000;
  double factor = 1;
};

/// Which keys a query sees.
struct Sight {
  bool causal = false;    // those up to its own position
  std::string mask = {};  // added to the scores: [batch, 1, 1, seq]; empty for none
};

class TransformerLayers {
 public:
  TransformerLayers(ModelBuilder& model, int64_t seq, Heads heads, float dropout = 0)
      : model_(model), seq_(seq), heads_(heads), dropout_(dropout) {}

  /// Makes queries and keys turn with their position. `tokens` is any value [batch, seq].
  void rotate(const Rotation& rotation, const std::string& tokens);

  /// A weight of normal numbers.
  std::string weight(const std::string& name, const std::vector<int64_t>& dims);

  /// Rows of a weight [rows, width] by index.
  std::string embedding(const std::string& name, const std::string& indices, int64_t rows,
                        int64_t width);

  std::string layer_norm(const std::string& name, const std::string& x, int64_t width,
                         float epsilon);
  std::string rms_norm(const std::string& name, const std::string& x, int64_t width, float epsilon);

  /// x·weightᵀ + bias with a weight [outputs, inputs].
  std::string linear(const std::string& name, const std::string& x, int64_t inputs, int64_t outputs,
                     bool bias = true);

  /// By erf, or by the tanh that GPT-2 has.
  std::string gelu(const std::string& name, const std::string& x, bool by_tanh = false);

  /// Softmax attention on values [batch, seq, heads·depth]; the result has the queries' shape. The
  /// weights may drop out.
  std::string attention(const std::string& name, const std::string& q, const std::string& k,
                        const std::string& v, const Sight& sight);

  /// x itself when the rate is 0.
  std::string dropout(const std::string& name, const std::string& x);

  /// The mean cross-entropy of the logits x·weightᵀ + bias (empty for none) against `labels`
  /// [batch, seq], as the output `loss`. Labels equal to `ignored` do not count.
  void token_loss(const std::string& name, const std::string& x, int64_t width,
                  const std::string& weight, const std::string& bias, const std::string& labels,
                  std::optional<int64_t> ignored = std::nullopt);

 private:
  std::string last_mean(const std::string& name, const std::string& x);
  std::string split_heads(const std::string& name, const std::string& x, int64_t heads);
  std::string turn(const std::string& name, const std::string& x, int64_t heads);
  std::string repeat_heads(const std::string& name, const std::string& x);
  std::string see(const std::string& name, const std::string& scores, const Sight& sight);
  std::string causal_mask();
  std::string attention_node(const std::string& name, const std::string& q, const std::string& k,
                             const std::string& v, const Sight& sight);
  std::string positions();

  ModelBuilder& model_;
  int64_t seq_;
  Heads heads_;
  float dropout_;
  std::string cos_, sin_;  // [seq, depth/2] for the operator, [seq, depth] where it is spelled out
  std::string places_;     // [batch, seq], for the operator
  std::string seen_;       // [seq, seq]
};

}  // namespace sgtc::models
