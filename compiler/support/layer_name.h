// Layers, as the names of nodes and tensors tell them.
#pragma once

#include <string>

namespace sgtc {

/// The layer of names that tell none.
inline constexpr const char* kNoLayer = "other";

/// The layer that a node or tensor belongs to: its name up to the first part that is a number, as
/// in "h.0" of "/h.0/attn/MatMul" and "h.0.attn.weight"; without one, the first part if there are
/// more; else kNoLayer. A leading "update of ", as nodes of the optimizer have, does not count.
std::string layer_of(const std::string& name);

}  // namespace sgtc
