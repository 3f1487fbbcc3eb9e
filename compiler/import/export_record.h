// What PyTorch's exporter records about the initializers it writes.
#pragma once

#include <cstdint>
#include <map>
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

/// The signature in a file of PyTorch's torch.export exporter. Its optimizer folds parameters into
/// constants, drops biases that are zero and merges equal tensors; the names that it leaves in the
/// file tell which initializers were parameters and which parameters are gone.
class ExportRecord {
 public:
  explicit ExportRecord(const onnx::GraphProto& graph);

  bool present() const { return present_; }
  Origin origin(const std::string& initializer) const;
  /// Parameters folded into the initializer (not a parameter itself); empty if there is none.
  std::vector<std::string> folded_parameters(const std::string& initializer) const;
  /// Parameters that no initializer of `graph` is or was computed from, in the order of the record.
  std::vector<std::string> lost_parameters(const onnx::GraphProto& graph) const;

 private:
  bool present_ = false;
  std::vector<std::string> parameters_;  // in order
  std::set<std::string> parameter_set_, buffers_;
  std::map<std::string, std::vector<std::string>> folded_from_;
};

}  // namespace sgtc
