// ONNX's Gradient operator (ai.onnx.preview.training).
#pragma once

#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc {

bool is_gradient_node(const onnx::NodeProto& node);

/// Its attributes.
struct GradientNode {
  std::string y;
  std::vector<std::string> xs, zs;
  /// Whether the inputs are the values that xs and zs name, and not others to differentiate at.
  bool at_named_values = true;
};

/// Throws Error, without the node's name, when attributes are missing or their number differs from
/// that of the inputs.
GradientNode read_gradient_node(const onnx::NodeProto& node);

}  // namespace sgtc
