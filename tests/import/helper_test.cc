#include "import/helper.h"

#include <cmath>
#include <stdexcept>

#include "ir/interpret.h"
#include "onnx/defs/parser.h"

namespace sgtc::testing {

onnx::ModelProto parse_onnx(const std::string& text) {
  onnx::ModelProto proto;
  const auto status = onnx::OnnxParser::Parse(proto, text);
  if (!status.IsOK()) throw std::runtime_error(status.ErrorMessage());
  return proto;
}

OnnxModel model_of(const std::string& graph, int opset) {
  Diagnostics diagnostics;
  return OnnxModel::from_proto(
      parse_onnx("<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) +
                 ", \"com.microsoft\" : 1]>\n" + graph),
      "test.onnx", ".", diagnostics);
}

Graph import_text(const std::string& graph, int opset, bool training) {
  const OnnxModel model = model_of(graph, opset);
  ImportOptions options;
  options.training = training;
  Diagnostics diagnostics;
  Graph imported = import_graph(model, options, diagnostics);
  verify(imported, "import");
  return imported;
}

Values run(const Graph& graph, const Values& inputs) {
  Interpreter interpreter(graph);
  for (const auto& [name, values] : inputs) interpreter.set(name, values);
  interpreter.run();
  Values outputs;
  for (const Output& output : graph.outputs) {
    const Tensor& tensor = interpreter.output(output.name);
    std::vector<double>& values = outputs[output.name];
    for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
  }
  return outputs;
}

std::vector<double> output_of(const std::string& graph, const Values& inputs, int opset) {
  const Graph imported = import_text(graph, opset);
  return run(imported, inputs).at(imported.outputs.at(0).name);
}

std::string import_error(const OnnxModel& model, const ImportOptions& options) {
  Diagnostics diagnostics;
  try {
    import_graph(model, options, diagnostics);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string import_error(const std::string& graph, int opset) {
  ImportOptions options;
  options.training = false;
  return import_error(model_of(graph, opset), options);
}

bool close(const std::vector<double>& found, const std::vector<double>& expected,
           double tolerance) {
  if (found.size() != expected.size()) return false;
  for (size_t i = 0; i < found.size(); ++i) {
    const double a = found[i], b = expected[i];
    if (std::isnan(b) ? std::isnan(a) : a == b) continue;
    if (!(std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)))) return false;
  }
  return true;
}

}  // namespace sgtc::testing
