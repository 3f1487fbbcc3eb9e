// Models in ONNX's text form, imported and run by the interpreter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/import.h"
#include "ir/graph.h"

namespace sgtc::testing {

using Values = std::map<std::string, std::vector<double>>;

/// Parses ONNX's text form. Throws std::runtime_error with the parser's message.
onnx::ModelProto parse_onnx(const std::string& text);

/// A model of IR 10 with the given opset and graph text: "g (float[2] x) => (float[2] y) {…}".
OnnxModel model_of(const std::string& graph, int opset = 21);

/// Imported, verified. Evaluation mode unless `training`.
Graph import_text(const std::string& graph, int opset = 21, bool training = false);

/// All outputs after one step.
Values run(const Graph& graph, const Values& inputs);

/// The first output of a graph text.
std::vector<double> output_of(const std::string& graph, const Values& inputs = {}, int opset = 21);

/// The text of the Error that an import throws; empty when it throws none.
std::string import_error(const OnnxModel& model, const ImportOptions& options = {});
std::string import_error(const std::string& graph, int opset = 21);

/// Whether all elements are within `tolerance`, relative to the larger of 1 and the expected
/// value; NaN equals NaN.
bool close(const std::vector<double>& found, const std::vector<double>& expected,
           double tolerance = 1e-6);

}  // namespace sgtc::testing
