// Random differentiable graphs.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "autodiff/expressions.h"
#include "ir/graph.h"

namespace sgtc::test {

/// What a set of graphs has.
struct Coverage {
  std::map<Op, int> used;  // graphs with the operator
  int deep = 0;            // with a chain of 10 operators or more
  int empty = 0;           // with a tensor without elements
  int single = 0;          // with a dimension of size 1 beside larger ones
  int fanning = 0;         // with a value that has three users or more

  void add(const Graph& graph);
  void add(const Coverage& other);
};

/// Builds a forward graph operator by operator. Operands are values that exist, the newest with
/// probability one half, so that chains get deep and values have several users, or new parameters.
/// Where an operator is steep or undefined its operand is mapped into a harmless range first.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed), e_(graph_) {}

  /// A graph with `operators` draws and the sum of all that nothing uses as its loss, which is not
  /// part of what is added to `coverage`.
  Graph build(int operators, Coverage& coverage);

  /// The operators that `build` draws from.
  static std::vector<Op> operators();

 private:
  friend struct Makers;

  int64_t integer(int64_t low, int64_t high);  // both included
  bool chance(double probability);
  /// Up to four dimensions of 1 to 5 elements, at times 0.
  Shape shape(size_t least_rank, size_t most_rank);
  ValueId parameter(const Shape& shape);
  ValueId integers(const Shape& shape, int64_t low, int64_t high);
  /// A value of a rank in the range.
  ValueId value(size_t least_rank = 0, size_t most_rank = 4);
  /// A value or new parameter of exactly this shape, or of one that broadcasts to it.
  ValueId like(const Shape& shape);
  ValueId broadcast_like(const Shape& shape);
  ValueId bounded(ValueId x) { return e_.apply(Op::kTanh, {x}); }
  ValueId positive(ValueId x) { return e_.add(e_.square(bounded(x)), 0.5); }
  /// An axis of x with elements, or -1.
  int64_t axis(ValueId x);
  std::vector<int64_t> axes(ValueId x);
  void keep(ValueId x);

  Graph graph_;
  std::mt19937 random_;
  Expressions e_;
  std::vector<ValueId> values_;
  int parameters_ = 0;
};

}  // namespace sgtc::test
