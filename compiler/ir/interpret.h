// Evaluates operators and whole steps of a graph on the host, simply and slowly: the oracle of the
// tests and the engine of constant folding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace sgtc {

/// What an operator may depend on beyond its operands.
struct EvaluationContext {
  Precision precision = Precision::kNative;
  int64_t micro_batch = 0;  // global: keys random numbers
};

/// The results of one operator. In native precision each element is computed in double (sums too)
/// and rounded once to its dtype. Throws Error when an index is out of range or operands do not
/// fit. Not for accumulate and stack_micro_batches, which need a step.
std::vector<Tensor> evaluate(Op op, const std::vector<const Tensor*>& operands,
                             const Attributes& attributes, const EvaluationContext& context = {});

/// The same on literals, in native precision.
std::vector<LiteralPtr> evaluate(Op op, const std::vector<LiteralPtr>& operands,
                                 const Attributes& attributes);

/// Runs steps of a graph on one replica.
class Interpreter {
 public:
  /// States get their initial values; feeds and controls are zero, "step" is 1. `graph` must
  /// outlive the interpreter.
  explicit Interpreter(const Graph& graph, Precision precision = Precision::kNative);

  /// Sets a state or a control, or a feed for all micro-batches. Throws Error when there is no such
  /// value or the type does not fit.
  void set(const std::string& name, const Tensor& tensor);
  /// The same with values in row-major order, converted to the dtype; in kFloat64 floats are kept.
  void set(const std::string& name, const std::vector<double>& values);
  /// Sets a feed of one micro-batch (0 … micro_batches - 1).
  void set_feed(const std::string& name, int64_t micro_batch, const std::vector<double>& values);
  /// Which replica this is: its micro-batches have the global numbers from replica * M.
  void set_replica(int64_t replica) { replica_ = replica; }

  /// One step: clears the accumulators, runs prologue, then forward and backward of each
  /// micro-batch in order, then update, and binds the updates.
  void run();

  /// After `run`: a value (of the last micro-batch that computed it), a state with its new
  /// contents.
  const Tensor& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const Tensor& value(const std::string& name) const;
  const Tensor& output(const std::string& name) const;
  /// Values of the named output for each micro-batch, in order; one for an update-phase output.
  std::vector<Tensor> outputs_by_micro_batch(const std::string& name) const;

 private:
  ValueId find(const std::string& name) const;
  Tensor initial_value(const Value& value) const;
  Tensor converted(ValueId id, const std::vector<double>& values) const;
  void load_feeds(int64_t micro_batch);
  void run_phases(Phase first, Phase last, int64_t micro_batch);
  void run_node(const Node& node, int64_t micro_batch);
  void collect_outputs(int64_t micro_batch);

  const Graph& graph_;
  Precision precision_;
  int64_t replica_ = 0;
  std::vector<Tensor> values_;
  std::map<ValueId, std::vector<Tensor>> feeds_;  // per micro-batch
  std::map<std::string, std::vector<Tensor>> outputs_;
};

}  // namespace sgtc
