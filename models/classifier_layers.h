// Layers of models that sort images or rows into classes.
#pragma once

#include <cstdint>
#include <string>

#include "models/model_builder.h"

namespace sgtc::models {

/// Normal numbers that keep the variance of sums over `count` elements, through a Relu behind them
/// (He et al. 2015) or without one.
Initial variance_of(int64_t count, bool before_relu);

/// A Gemm with a weight [outputs, inputs] and a bias.
std::string gemm(ModelBuilder& model, const std::string& name, const std::string& x, int64_t inputs,
                 int64_t outputs, Initial initial);

/// A square window of a convolution: `pad` on every side.
struct Window {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t pad = 0;
};

/// Convolution without a bias of x [batch, inputs, ..]: the normalization behind it has one.
std::string convolution(ModelBuilder& model, const std::string& name, const std::string& x,
                        int64_t inputs, int64_t outputs, const Window& window, Initial initial);

/// BatchNormalization of `channels` channels in training mode.
std::string batch_norm(ModelBuilder& model, const std::string& name, const std::string& x,
                       int64_t channels);

/// The maximum of each window.
std::string max_pool(ModelBuilder& model, const std::string& name, const std::string& x,
                     const Window& window);

/// Token 0 of each row of x [batch, seq, width]: [batch, width].
std::string first_token(ModelBuilder& model, const std::string& name, const std::string& x);

/// The last layer, called `name`, on x [batch, inputs], the input `labels` [batch], and the outputs
/// `loss` and `logits`.
void classify(ModelBuilder& model, const std::string& name, const std::string& x, int64_t inputs,
              const Dim& batch, int64_t classes, Initial initial);

}  // namespace sgtc::models
