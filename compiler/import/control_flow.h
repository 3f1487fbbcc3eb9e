// If, Loop and Scan: their bodies are opened in place.
#pragma once

#include <vector>

#include "import/node_lowering.h"

namespace sgtc {

/// Whether the node is an If, Loop or Scan that `lower_control_flow` opens, by its definition since
/// version `since`. Scan-8, which has a batch dimension of its own, is not.
bool is_control_flow(const onnx::NodeProto& node, int64_t since);

/// The branch that an If takes, and all iterations of a Loop or Scan one after the other; the
/// condition and the number of iterations must be known when the model is compiled. `scope` is
/// that of the node, which bodies see. Returns one binding per output; they are marked failed when
/// a node of a body failed, which is reported already. Throws Error, without naming the node, for
/// bodies that do not fit the node and for more than 2^16 iterations.
std::vector<Binding> lower_control_flow(ImportState& state, const onnx::NodeProto& node,
                                        const std::vector<Binding>& inputs, const Scope& scope,
                                        const Surroundings& surroundings);

}  // namespace sgtc
