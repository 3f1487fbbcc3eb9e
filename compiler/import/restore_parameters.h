// Undoes what the optimizer of PyTorch's exporter does to parameters.
#pragma once

#include <string>

#include "import/external_data.h"
#include "onnx/onnx_pb.h"
#include "support/diagnostics.h"

namespace sgtc {

/// Gives the parameters that the exporter's record of `graph` names back their own tensors:
///
/// - initializers of equal values that were merged become one per parameter again,
/// - biases of Gemm, Conv and normalizations that were dropped as zero are added as zeros,
/// - a parameter that was replaced by expanded or repeated copies of its rows is cut back to one
///   copy, which an Expand repeats.
///
/// Only where the record is unambiguous. Says in one warning (object `model`) how many tensors were
/// restored. A graph without record stays as it is; tensors that cannot be read are left alone.
void restore_parameters(onnx::GraphProto& graph, const ExternalData& external,
                        const std::string& model, Diagnostics& diagnostics);

}  // namespace sgtc
