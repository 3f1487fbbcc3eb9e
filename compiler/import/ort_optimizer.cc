#include "import/ort_optimizer.h"

#include "import/model.h"
#include "import/node_order.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

double real(const onnx::NodeProto& node, const std::string& name, double otherwise) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.f();
  }
  return otherwise;
}

int64_t integer(const onnx::NodeProto& node, const std::string& name, int64_t otherwise) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return otherwise;
}

void read_adamw(const onnx::NodeProto& node, OrtOptimizer& optimizer) {
  optimizer.kind = OrtOptimizer::Kind::kAdamW;
  optimizer.alpha = real(node, "alpha", optimizer.alpha);
  optimizer.beta = real(node, "beta", optimizer.beta);
  optimizer.epsilon = real(node, "epsilon", optimizer.epsilon);
  optimizer.weight_decay = real(node, "weight_decay", 0);
  optimizer.correct_bias = integer(node, "correct_bias", 1) != 0;
  const int64_t mode = integer(node, "adam_mode", 0);
  if (mode != 0 && mode != 1) {
    throw Error(describe(node) + ": expected adam_mode 0 or 1, found " + std::to_string(mode));
  }
  optimizer.corrects_rate = mode == 1;
}

void read_clipping(const onnx::NodeProto& node, OrtOptimizer& optimizer) {
  optimizer.clip_norm = real(node, "max_norm", 1);
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "norm_type" && attribute.s() != "fro") {
      throw Error(describe(node) + ": expected norm_type fro, found " + attribute.s());
    }
  }
}

OrtOptimizer optimizer_of(const onnx::GraphProto& graph) {
  OrtOptimizer optimizer;
  int optimizers = 0;
  for (const onnx::NodeProto& node : graph.node()) {
    const std::string op = node.domain() == "com.microsoft" ? node.op_type() : "";
    if (op == "AdamWOptimizer" || op == "SGDOptimizerV2") ++optimizers;
    if (op == "AdamWOptimizer") {
      read_adamw(node, optimizer);
    } else if (op == "InplaceClipGradNorm") {
      read_clipping(node, optimizer);
    } else if (op != "SGDOptimizerV2") {
      throw Error(describe(node) +
                  " is not supported in an optimizer; expected AdamWOptimizer or SGDOptimizerV2 "
                  "of com.microsoft, with InplaceClipGradNorm or without");
    }
  }
  if (optimizers == 1) return optimizer;
  throw Error("expected one AdamWOptimizer or SGDOptimizerV2, found " + std::to_string(optimizers));
}

}  // namespace

OrtOptimizer read_ort_optimizer(const std::string& path) {
  Diagnostics warnings;  // about operator sets, which these nodes do not depend on
  const OnnxModel model = OnnxModel::load(path, warnings);
  try {
    return optimizer_of(model.proto().graph());
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

}  // namespace sgtc
