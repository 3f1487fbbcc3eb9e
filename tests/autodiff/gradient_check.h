// Compares gradients with central differences, in double, through the interpreter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sgtc::test {

using Values = std::vector<double>;

/// Initial values of the trained parameters of a graph: literals as they are, `uniform(a, b, seed)`
/// from a generator of the test.
std::map<std::string, Values> initial_parameters(const Graph& graph);

/// Makes outputs[0] the sum of all outputs' elements, each with a weight of its own.
Graph with_weighted_loss(Graph graph);

/// The gradients of outputs[0] by parameter name, evaluated in double. A parameter without a
/// gradient is missing.
std::map<std::string, Values> gradients(const Graph& forward);
/// The same for a graph text.
std::map<std::string, Values> gradients(const std::string& text);

/// Checks all gradients of a weighted sum of the outputs of `text`, every element of every
/// parameter, and that the differentiated graph verifies.
void check_gradients(const std::string& text, double tolerance = 1e-6);

/// Of a weighted sum of the outputs, along random directions in the space of all parameters: the
/// largest difference, relative to the larger of 1 and the value, between what the gradients say
/// and central differences. Nothing when no parameter has a gradient or the sum is not finite.
/// `refusal` is the message when the graph cannot be differentiated, else empty.
std::optional<double> directional_error(const Graph& forward, std::string& refusal);

}  // namespace sgtc::test
