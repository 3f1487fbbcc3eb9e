// Gradients that a training graph of ONNX Runtime computes itself.
#pragma once

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc {

/// A value of the file that is the gradient of the loss with respect to an initializer.
struct NamedGradient {
  std::string parameter;
  std::string gradient;
};

/// Finds the gradients of ONNX Runtime's training graphs, which end in nodes that add each gradient
/// to a buffer fed by the caller (InPlaceAccumulator, InPlaceAccumulatorV2). Accumulation is
/// sgtc's own business: these nodes, their buffers, the inputs that reset them and their outputs
/// are taken out of `graph`. The gradient of "w" is called "w_grad". Other graphs stay as they are.
/// Throws Error for a gradient that belongs to no initializer.
std::vector<NamedGradient> take_given_gradients(onnx::GraphProto& graph);

}  // namespace sgtc
