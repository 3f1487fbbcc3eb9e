// The weights that ONNX Runtime's training API keeps beside its graphs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc {

/// Contents of a checkpoint.ckpt.
struct OrtCheckpoint {
  std::string path;
  std::vector<onnx::TensorProto> trained;  // the parameters that require gradients
  std::vector<onnx::TensorProto> frozen;
  /// Of a run that was interrupted: the steps done, and each parameter's moments by its name.
  int64_t steps = 0;
  std::map<std::string, std::vector<onnx::TensorProto>> moments;
};

/// Reads `path`. Throws Error naming the file when it is missing, damaged or of another format,
/// when a tensor is given twice, and when its tensors are empty or kept in another file.
OrtCheckpoint read_ort_checkpoint(const std::string& path);

/// Gives the inputs of `graph` that the checkpoint names their values: they become initializers.
/// Throws Error when a tensor is no input or differs in type or shape.
void bind_checkpoint(onnx::GraphProto& graph, const OrtCheckpoint& checkpoint);

}  // namespace sgtc
