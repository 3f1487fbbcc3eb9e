// Gradients that a file computes with nodes of its own.
#pragma once

#include <string>
#include <vector>

#include "autodiff/differentiate.h"

namespace sgtc {

/// A value of the graph, given as one of its outputs, that is the gradient of the loss.
struct GivenGradient {
  std::string parameter;  // the name of the state
  std::string output;
};

/// Takes the gradients that `graph` computes, in place of differentiating it: they stop being
/// outputs. Those of parameters that are not trained are dropped; a trained parameter without one
/// is a warning.
///
/// Each gradient is multiplied by `scale`, the share of a micro-batch's loss in that of the step.
/// With several micro-batches it is accumulated in the state "grad.<parameter>.0" of role
/// accumulator.
/// Errors: a gradient whose type is not its parameter's; no parameter to train.
Differentiated take_gradients(Graph graph, const std::vector<GivenGradient>& given, double scale,
                              Diagnostics& diagnostics);

}  // namespace sgtc
