// Builds ONNX training graphs whose weights take no space in the file.
//
// A weight is an initializer of the sparse kind without values, that is zeros of a dense shape, and
// a rule in the training information's initialization graph for how it begins. Nodes are named
// after the layer they belong to, and a node with one result gives it the node's name.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onnx/onnx_pb.h"

namespace sgtc::models {

inline constexpr int64_t kOldestOpset = 17;  // the first with LayerNormalization
inline constexpr int64_t kNewestOpset = 23;

/// A dimension: a size, or a name that the compiler binds by `--dim NAME=SIZE`.
struct Dim {
  Dim(int64_t size) : size(size) {}                          // NOLINT: sizes are dimensions
  Dim(std::string name) : size(0), name(std::move(name)) {}  // NOLINT
  int64_t size;
  std::string name;
};

/// The value of a weight before the first step.
struct Initial {
  enum class Kind { kConstant, kNormal };
  static Initial constant(float value) { return {Kind::kConstant, value}; }
  /// Normal numbers of mean zero.
  static Initial normal(float deviation) { return {Kind::kNormal, deviation}; }
  Kind kind;
  float value;
};

struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>, std::string> value;
};

class ModelBuilder {
 public:
  /// `opset` is that of ONNX's own operators, kOldestOpset to kNewestOpset.
  explicit ModelBuilder(std::string_view graph_name, int64_t opset = kOldestOpset);

  int64_t opset() const { return opset_; }

  /// Declares a graph input.
  std::string input(const std::string& name, onnx::TensorProto::DataType type,
                    const std::vector<Dim>& dims);

  /// Declares a float weight.
  std::string weight(const std::string& name, const std::vector<int64_t>& dims, Initial initial);

  /// A Constant node with a float scalar, a truth value, or a vector; one whose name is there
  /// already serves again.
  std::string scalar(const std::string& name, float value);
  std::string boolean(const std::string& name, bool value);
  std::string integers(const std::string& name, const std::vector<int64_t>& values);
  std::string reals(const std::string& name, const std::vector<float>& values);

  /// Adds a node named `name` with `results` results: the first is named like the node, the
  /// others get `.1`, `.2`. Returns the first.
  std::string add(const std::string& op, const std::string& name,
                  const std::vector<std::string>& inputs,
                  const std::vector<Attribute>& attributes = {}, int results = 1);

  /// Cuts the last dimension into equal parts, named as by `add`.
  std::string split(const std::string& name, const std::string& x, int parts);

  /// Makes a float value a graph output.
  void output(const std::string& value, const std::vector<Dim>& dims);

  const onnx::ModelProto& model() const { return model_; }

 private:
  std::string constant(const std::string& name, const onnx::TensorProto& tensor);
  void initialize(const std::string& name, const std::vector<int64_t>& dims, Initial initial);
  std::string initialization_shape(const std::vector<int64_t>& dims);

  int64_t opset_;
  onnx::ModelProto model_;
  std::set<std::string> constants_;  // names of Constant nodes
  std::set<std::string> shapes_;     // initializers of the initialization graph
};

}  // namespace sgtc::models
