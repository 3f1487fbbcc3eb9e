// Initial values that the training information of a file computes.
#pragma once

#include <string>

#include "import/model.h"
#include "ir/graph.h"

namespace sgtc {

/// The value `name` of an `initialization` graph of `model`. What one RandomNormal, RandomUniform
/// or ConstantOfShape computes is declared, so that it takes no space and random numbers follow the
/// seed of the run; anything else is computed now. Throws Error when nothing computes it, when an
/// operator is not supported, and for tensors that cannot be read.
Initializer initial_value(const OnnxModel& model, const onnx::GraphProto& graph,
                          const std::string& name);

}  // namespace sgtc
