// Undoes that the optimizer of PyTorch's exporter copies tied parameters.
#pragma once

#include <string>

#include "import/external_data.h"
#include "onnx/onnx_pb.h"
#include "support/diagnostics.h"

namespace sgtc {

/// Where one parameter has several uses, such as an embedding that is also the output projection,
/// the exporter folds what a use computes from it (a transpose, a reshape) into an initializer of
/// its own, which would be trained apart from it. An initializer that the exporter's record of
/// `graph` derives from one parameter alone, and whose elements are those of the parameter or of
/// another such initializer, becomes a node that computes it: Transpose, Reshape or Identity.
///
/// Left alone: tensors whose elements are all equal, which do not tell what was computed, and
/// tensors that cannot be read. Says in one warning (object `model`) how many tensors were tied.
void tie_copies(onnx::GraphProto& graph, const ExternalData& external, const std::string& model,
                Diagnostics& diagnostics);

}  // namespace sgtc
