// Tests of single nodes as files: ONNX's own, which write_node_data.py writes, and random ones, by
// write_random_data.py.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc::testing {

inline constexpr int64_t kNewestOpset = 23;

/// One case: FOLDER/model.onnx and FOLDER/test_data_set_0/{input,output}_K.pb.
struct NodeCase {
  std::filesystem::path folder;
  std::string name() const { return folder.filename().string(); }
  onnx::ModelProto model() const;
  /// "input" or "output" number `k`; whether the file is there.
  onnx::TensorProto tensor(const std::string& kind, int k) const;
  bool has_tensor(const std::string& kind, int k) const;
};

/// The cases in the folder that the environment variable names, none without, but for those of a
/// newer operator set or a foreign domain and those that match a pattern in the file `skips` beside
/// this one ("PATTERN # reason" lines).
std::vector<NodeCase> node_cases(const char* variable, const std::string& skips);

/// Empty when the case's outputs are right, with its inputs as feeds or else as constants.
std::string forward_failure(const NodeCase& node_case);

/// Makes all inputs of the model initializers with the case's values.
void bind_inputs(onnx::ModelProto& model, const NodeCase& node_case);

}  // namespace sgtc::testing
