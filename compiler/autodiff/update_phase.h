// What every optimizer's update phase has in common.
#pragma once

#include <string>
#include <vector>

#include "autodiff/differentiate.h"
#include "autodiff/expressions.h"

namespace sgtc {

/// One trained parameter in the dtype of its update: f32, or f64 for f64 parameters. With `sharded`
/// parameter and gradient are the replica's shards, and so is all that is computed from them.
struct TrainedParameter {
  ValueId state = kNone;
  ValueId parameter = kNone;  // the state's value
  ValueId gradient = kNone;   // the sum of its uses, in their order
  bool sharded = false;
};

/// Opens the update phase of a graph: sums the gradients, measures and clips them, and guards every
/// update with their finiteness.
///
/// The global norm is the square root of the sum, in parameter order and in f32, of each gradient's
/// sum of squares; it becomes the output "grad_norm" (f32, before clipping). The output "finite"
/// (bool) says whether norm and loss are finite; where they are not, no state changes. Updates that
/// the graph has already (BatchNorm statistics) are guarded too. Clipping to the norm c multiplies
/// by min(1, c / (norm + 1e-6)); c = 0 clips nothing. Sums of squares of shards are added over
/// replicas, in their order.
class UpdatePhase {
 public:
  UpdatePhase(Graph& graph, const std::vector<ParameterGradient>& gradients, double clip_norm);

  Expressions& expressions() { return e_; }
  const std::vector<TrainedParameter>& trained() const { return trained_; }
  /// The update phase has no ONNX nodes: names the nodes that are appended from here on.
  void begin_update_of(ValueId state);
  /// The gradient that the optimizer sees: clipped, or else zero in a step that is not finite. So
  /// nothing of an update is computed, and stored, before the norm is known, and an update is one
  /// pass over its tensors.
  ValueId clipped_gradient(const TrainedParameter& parameter);
  /// `state` takes `value` at the end of a step that is finite.
  void bind(ValueId state, ValueId value);
  /// The same for the parameter itself; of one that is sharded, replicas exchange their shards.
  void bind(const TrainedParameter& parameter, ValueId value);

 private:
  void at(const std::string& source);
  TrainedParameter widen(const ParameterGradient& gradient);
  ValueId global_norm();
  ValueId sum_of_squares(const TrainedParameter& parameter);
  Attributes of_replicas() const;
  ValueId is_finite(ValueId x);
  ValueId clip_scale(ValueId norm, double limit);

  Graph& graph_;
  Expressions e_;
  std::vector<TrainedParameter> trained_;
  ValueId finite_ = kNone;
  ValueId scale_ = kNone;  // kNone: no clipping
};

}  // namespace sgtc
