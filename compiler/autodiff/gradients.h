// Gradient rules: one per operator, in one table.
#pragma once

#include <string>
#include <vector>

#include "autodiff/expressions.h"

namespace sgtc {

/// What a rule works with: one forward node and the gradients of the loss with respect to its
/// results. A rule appends backward nodes and hands over one gradient per operand with `give`.
/// Gradients that are known to be zero are never given, so nothing is computed for them.
class Backward : public Expressions {
 public:
  /// `upstream`: per result, kNone for zero. `needed`: per operand, whether a trainable parameter
  /// reaches it.
  Backward(Graph& graph, const Node& node, std::vector<ValueId> upstream, std::vector<bool> needed);

  ValueId x(size_t operand = 0) const { return node_.operands[operand]; }
  ValueId y(size_t result = 0) const { return node_.results[result]; }
  /// The gradient of a result; kNone for zero.
  ValueId g(size_t result = 0) const { return upstream_[result]; }
  size_t operands() const { return node_.operands.size(); }
  const Attributes& attributes() const { return node_.attributes; }
  int64_t axis() const { return attributes().integer("axis"); }
  bool needs(size_t operand) const { return needed_[operand]; }

  /// Sets the gradient of an operand that is needed; ignored for others. Dimensions in which the
  /// operand was broadcast are summed.
  void give(size_t operand, ValueId gradient);
  /// Says that this node cannot be differentiated, and why.
  void refuse(std::string reason) { refusal_ = std::move(reason); }

  const std::vector<ValueId>& gradients() const { return gradients_; }
  const std::string& refusal() const { return refusal_; }

 private:
  const Node node_;  // a copy: appending moves the graph's nodes
  std::vector<ValueId> upstream_;
  std::vector<bool> needed_;
  std::vector<ValueId> gradients_;
  std::string refusal_;
};

using GradientRule = void (*)(Backward&);

/// The rule of `op`, or null when it has none.
GradientRule gradient_rule(Op op);

}  // namespace sgtc
