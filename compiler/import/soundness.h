// What exporters lose silently although a file is meant for training.
#pragma once

#include "import/lowering.h"

namespace sgtc {

/// Warns of each kind of loss once, with the nodes or the tensor, what was lost and how to export
/// the model right. `state` is that of a training import whose roles are assigned; `loss` is the
/// loss in its graph.
///
/// - BatchNormalization that normalizes by its running statistics, Dropout that drops nothing.
/// - A softmax of a softmax, and a log-likelihood of probabilities.
/// - Trained tensors that are copies or transposes of each other.
/// - Tensors that the loss depends on, but through rounding, comparing or indices alone.
/// - Tables whose row of zeros, the padding of a lookup, is trained.
/// - Masks that were folded into constants: those of one batch, and those that would be trained.
void check_soundness(const ImportState& state, ValueId loss);

/// The part of it that looks at the contents of tensors.
void check_tensor_soundness(const ImportState& state);

/// The softmax that computes x, with movements of its elements in between; null if none does.
const Node* softmax_behind(const Graph& graph, ValueId x);

}  // namespace sgtc
