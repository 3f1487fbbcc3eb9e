// From the file's initializers to leaves of the Graph.
#pragma once

#include "import/lowering.h"

namespace sgtc {

/// Adds a leaf for every initializer of the model: dense, sparse, and those that the training
/// information's initialization graph fills. A float tensor becomes a state unless the exporter
/// recorded it as a computed number, or the checkpoint does not have it, and none of `train`'s
/// patterns names it. Tensors that cannot be
/// read are reported, those of unsupported types only when a node uses them.
void declare_initializers(ImportState& state, const std::vector<std::string>& train);

}  // namespace sgtc
