// The training algorithm that a file brings along (TrainingInfoProto).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "import/given_gradients.h"
#include "onnx/onnx_pb.h"

namespace sgtc {

/// An initializer and the value that it takes at the end of a step.
struct UpdateBinding {
  std::string state;
  std::string value;
};

/// What the nodes of an algorithm do. All names are those of the graph that it was merged into.
struct TrainingAlgorithm {
  std::vector<UpdateBinding> updates;  // none: the file has no algorithm
  /// What the Gradient nodes differentiate, and the names of their results; no loss when the
  /// algorithm has no Gradient node and computes its update otherwise.
  std::string loss;
  std::vector<NamedGradient> gradients;
  /// The input, a scalar float that only the update reads, that is the learning rate.
  std::optional<onnx::ValueInfoProto> learning_rate;
  /// Values of the forward graph, feeds among them, that the update reads.
  std::vector<std::string> forward_values;
  /// Every name that the update reads.
  std::set<std::string> reads;

  bool present() const { return !updates.empty(); }
  bool updates_state(const std::string& name) const;
};

/// Merges the training algorithm of `proto`, if it has one, into its graph, as ONNX defines it: the
/// lists of the two graphs are concatenated. Then
/// - Gradient nodes of the algorithm are taken out; `gradients` names their results;
/// - outputs of the algorithm become outputs of the graph, but for updates and what is computed
///   from gradients; the loss becomes an output if it is none;
/// - the learning rate stops being an input;
/// - updates of a BatchNormalization's statistics by its own outputs are left to sgtc.
///
/// Throws Error for more than one algorithm; for bindings of what is no initializer, or to what
/// nothing computes; for Gradient nodes that differentiate different values, or with respect to
/// values that are no initializers, or at other values than those named; and for further inputs
/// that only the update reads.
TrainingAlgorithm merge_algorithm(onnx::ModelProto& proto);

}  // namespace sgtc
