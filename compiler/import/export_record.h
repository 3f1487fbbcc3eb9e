// What PyTorch's exporter records about the initializers it writes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc {

/// Where an initializer came from.
enum class Origin : uint8_t {
  kUnknown,    // the file has no record: any float tensor may be a parameter
  kParameter,  // a parameter, or computed from parameters by the exporter's optimizer
  kBuffer,     // saved with the model, not trained
  kComputed,   // a number of the program: a scale, a mask, a table
};

/// The call of a PyTorch operator that an ONNX node is part of; one call may give several nodes.
struct RecordedCall {
  std::string op;                      // "layer_norm"
  std::vector<std::string> arguments;  // positional, as written: "%x", "[64]", "1e-05"
};

/// What the exporter wrote beside the node, if it did and the call is one of PyTorch's operators.
std::optional<RecordedCall> recorded_call(const onnx::NodeProto& node);

/// The row of an embedding's table that is padding and not trained; nothing for other nodes.
std::optional<int64_t> recorded_padding(const onnx::NodeProto& node);

/// The module in whose code PyTorch called what became the node: "model.layers.0.norm"; empty if it
/// is not recorded or is the whole model.
std::string recorded_module(const onnx::NodeProto& node);

/// The signature in a file of PyTorch's torch.export exporter. Its optimizer folds parameters into
/// constants, drops biases that are zero and merges equal tensors; the names that it leaves in the
/// file tell which initializers were parameters and which parameters are gone.
class ExportRecord {
 public:
  explicit ExportRecord(const onnx::GraphProto& graph);

  bool present() const { return present_; }
  Origin origin(const std::string& initializer) const;
  bool is_parameter(const std::string& name) const { return parameter_set_.count(name) != 0; }
  /// The parameter or buffer that an argument of a recorded call names; empty for other arguments.
  std::string tensor_of(const std::string& argument) const;
  /// The names of all values folded into the initializer, parameters among them.
  std::vector<std::string> folded_values(const std::string& initializer) const;
  /// Parameters folded into the initializer (not a parameter itself); empty if there is none.
  std::vector<std::string> folded_parameters(const std::string& initializer) const;
  /// Parameters that calls of `graph` use but that no initializer is or was computed from, in the
  /// order of the record. A parameter that no call names is another name of a tied one.
  std::vector<std::string> lost_parameters(const onnx::GraphProto& graph) const;

 private:
  bool present_ = false;
  std::vector<std::string> parameters_;  // in order
  std::set<std::string> parameter_set_, buffers_;
  std::map<std::string, std::string> targets_;  // by argument without its "%"
  std::map<std::string, std::vector<std::string>> folded_from_;
};

/// Adds to `graph` the record that `initializer` was computed from the named parameter.
void record_folding(onnx::GraphProto& graph, const std::string& initializer,
                    const std::string& parameter);

}  // namespace sgtc
