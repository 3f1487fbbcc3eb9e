// The update that a file's own training algorithm computes.
#pragma once

#include <map>
#include <string>

#include "import/import.h"

namespace sgtc {

/// Appends to `graph`, imported from `model` for training and differentiated since, the nodes that
/// the updates of the model's algorithm need, in the update phase, and those updates. `gradients`
/// holds the gradient of each parameter by its name; one that is missing is zero. The learning rate
/// is the control "learning_rate". Outputs that only carry forward values to the update are taken
/// away. Initializers that are updated but not yet in the graph become states of role moment,
/// others constants. Errors are collected in `diagnostics`, then Error is thrown.
Graph import_update(const OnnxModel& model, Graph graph,
                    const std::map<std::string, ValueId>& gradients, Diagnostics& diagnostics);

}  // namespace sgtc
