// The expressions of a nest under construction: interned, so that equal ones exist once.
#pragma once

#include <map>
#include <vector>

#include "passes/loop_nest.h"

namespace sgtc {

class NestBody {
 public:
  explicit NestBody(const Graph& graph) : graph_(graph) {}

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
  std::map<std::vector<int64_t>, ExpressionId> interned_;
};

/// Appends numbers that identify an index or guards: for keys of maps.
void append_key(const AffineIndex& index, std::vector<int64_t>& key);
void append_key(const std::vector<Guard>& guards, std::vector<int64_t>& key);

}  // namespace sgtc
