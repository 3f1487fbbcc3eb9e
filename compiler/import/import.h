// From an ONNX model to the forward Graph.
//
// Each node that the loss or another output needs is lowered by a rule (lowering.h) to Graph
// operators, in the file's order, with known shapes. Functions of the model, and operators that
// ONNX defines by a function body and that have no rule, are opened in place. Constants fold at
// once, so that what exporters write to compute shapes disappears.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "import/lowering.h"
#include "import/model.h"
#include "ir/graph.h"
#include "support/diagnostics.h"

namespace sgtc {

struct ImportOptions {
  /// Sizes of symbolic dimensions; one without a name is called "<input>_dim<k>".
  std::map<std::string, int64_t> dims;
  /// Which output is the loss; empty: the only scalar float output.
  std::string loss;
  /// Shell-style patterns over names of initializers. With `train` given, only what it matches is
  /// trained; `freeze` wins over it.
  std::vector<std::string> train, freeze;
  /// Rows of tables that Gather looks up but that get no gradient from it, by the name of the
  /// initializer; PyTorch's exporter records them, other files do not have them.
  std::map<std::string, int64_t> padding_index;
  /// Off: Dropout passes through and BatchNormalization uses its running statistics; a loss is not
  /// required.
  bool training = true;
  /// Operators without kernels of their own run by a slow composition of others, with a warning
  /// that names the cost; else they are errors.
  bool accepts_slow = false;
  /// Micro-batches of one step of one replica, and replicas: BatchNormalization's statistics depend
  /// on both.
  int64_t micro_batches = 1;
  int64_t replicas = 1;
  /// Tensors that the graph may have once functions are opened and loops unrolled.
  int64_t max_tensors = kMaxTensors;
  /// Differentiates inside the graph, for nodes that are gradients: Gradient, and ONNX Runtime's
  /// gradient operators. Files without such nodes need none.
  GradientFunction gradients;
  /// Further values of the file to append to the outputs, of any dtype.
  std::vector<std::string> extra_outputs;
};

/// The forward part of `model` in logical form.
///
/// - feeds: the inputs that are not initializers, in the file's order.
/// - states: the float initializers in use, with their file's contents: `parameter` when they are
///   trained, `statistic` for BatchNorm's running mean and variance, `frozen` otherwise.
/// - outputs: the loss, as a scalar, then the other float outputs in the file's order, then
///   `extra_outputs`; each under its name in the file. Without a loss all outputs, in order. When
///   training, the gradients that the file computes itself come last, each under its name; the
///   nodes that only they need are of the backward phase.
/// - updates: BatchNorm's statistics after the step, in nodes of the update phase.
///
/// Which initializers are trained: the float tensors with a differentiable path to the loss, minus
/// statistics; exactly those that OnnxModel::trained names where the files record it; and for files
/// of PyTorch's exporter, which records them, only what was a parameter.
///
/// All errors that can be found are collected in `diagnostics`, then Error is thrown. Outputs that
/// are not the loss and need unsupported operators are left out with a warning. A training import
/// warns of what the file's exporter lost (soundness.h).
Graph import_graph(const OnnxModel& model, const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace sgtc
