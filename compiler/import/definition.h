// How the nodes of a model are to be lowered.
#pragma once

#include <string>

#include "import/lowering.h"
#include "import/model.h"
#include "onnx/defs/schema.h"

namespace sgtc {

/// Deepest nesting of functions and bodies of loops.
inline constexpr int kMaxBodyDepth = 64;

/// What decides how a node is lowered.
struct Definition {
  const Rule* rule = nullptr;
  const onnx::FunctionProto* own_function = nullptr;
  const onnx::OpSchema* library_function = nullptr;
  int64_t since = 1;
  int64_t opset = 1;
  bool opens_body = false;  // If, Loop or Scan
  bool is_sequence = false;
  bool is_gradient = false;
  bool is_slow() const { return rule && rule->slow; }
  bool supported(bool accepts_slow) const {
    return (rule && (accepts_slow || !rule->slow)) || own_function || library_function ||
           opens_body || is_sequence || is_gradient;
  }
};

/// The definition of a node's operator; `supported` is false of one that nothing lowers.
Definition definition_of(const OnnxModel& model, const onnx::NodeProto& node, const Opsets& opsets);

/// Node, operator, domain and version of one that is not supported, in one line.
std::string unsupported_text(const onnx::NodeProto& node, const Definition& definition,
                             const std::string& prefix);

}  // namespace sgtc
