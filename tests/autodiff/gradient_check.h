// Compares gradients with central differences, in double, through the interpreter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sgtc::test {

using Values = std::vector<double>;

/// Initial values of the trained parameters of a graph: literals as they are, `uniform(a, b, seed)`
/// from a generator of the test.
std::map<std::string, Values> initial_parameters(const Graph& graph);

/// The gradients of outputs[0] by parameter name, evaluated in double. A parameter without a
/// gradient is missing.
std::map<std::string, Values> gradients(const Graph& forward);
/// The same for a graph text.
std::map<std::string, Values> gradients(const std::string& text);

/// Checks all gradients of a weighted sum of the outputs of `text`, every element of every
/// parameter, and that the differentiated graph verifies.
void check_gradients(const std::string& text, double tolerance = 1e-6);

}  // namespace sgtc::test
