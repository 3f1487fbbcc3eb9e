// Losses that several rules use.
#pragma once

#include <optional>
#include <string>

#include "import/emitter.h"

namespace sgtc {

/// Options of a negative log-likelihood.
struct LikelihoodLoss {
  ValueId log_probabilities = kNone;  // [N, C, d…]
  ValueId labels = kNone;             // [N, d…], integers
  ValueId weights = kNone;            // [C] or kNone
  std::optional<int64_t> ignore_index;
  std::string reduction = "mean";  // none, mean or sum
};

/// The loss; its mean is one scalar division of the sum of weighted losses by the sum of weights
/// (a constant count without weights and ignored labels), so that both can be summed over
/// micro-batches exactly. Throws Error when shapes do not fit.
ValueId emit_likelihood_loss(Emitter& e, const LikelihoodLoss& loss);

}  // namespace sgtc
