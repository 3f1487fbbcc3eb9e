// Sequences of tensors and optional ones, which exist while a file is imported and never in the
// Graph: exporters write them for parts of a tensor whose number the model knows.
#pragma once

#include <vector>

#include "import/lowering.h"

namespace sgtc {

/// Whether the operator makes, changes or reads sequences or optional values: SequenceConstruct and
/// its kin, SplitToSequence, ConcatFromSequence, Optional and its kin.
bool is_sequence_operator(const onnx::NodeProto& node);

/// The outputs of such a node; positions and sizes must be known when the model is compiled. Throws
/// Error, without naming the node, for positions out of range and inputs of the wrong kind.
std::vector<Binding> lower_sequence(ImportState& state, const onnx::NodeProto& node,
                                    const std::vector<Binding>& inputs,
                                    std::shared_ptr<const void> owner);

}  // namespace sgtc
