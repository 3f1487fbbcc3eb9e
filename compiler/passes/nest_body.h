// The expressions of a nest under construction: interned, so that equal ones exist once.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/loop_nest.h"

namespace sgtc {

class NestBody {
 public:
  explicit NestBody(const Graph& graph) : graph_(graph) {}

  void reserve(size_t expressions) {
    expressions_.reserve(expressions);
    hashes_.reserve(expressions);
  }

  /// The id of the expression, which is added unless an equal one exists.
  ExpressionId add(Expression expression);
  ExpressionId constant(DType dtype, double real, int64_t integer);
  ExpressionId compute(Op op, DType dtype, std::vector<ExpressionId> operands);
  /// argument[index] of an outside value where the guards hold, else 0.
  ExpressionId load(ValueId value, AffineIndex index, std::vector<Guard> guards);
  /// Marks the value's argument as written and returns its number.
  int32_t written_argument(ValueId value);

  const Expression& operator[](ExpressionId id) const {
    return expressions_[static_cast<size_t>(id)];
  }
  size_t size() const { return expressions_.size(); }
  /// Hands expressions and arguments over to the nest.
  void move_to(LoopNest& nest);

 private:
  int32_t argument(ValueId value);

  const Graph& graph_;
  std::vector<Expression> expressions_;
  std::vector<NestArgument> arguments_;
  std::vector<uint64_t> hashes_;  // of the expressions
};

}  // namespace sgtc
