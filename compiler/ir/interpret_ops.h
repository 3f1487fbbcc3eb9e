// The interpreter's operators, by theme. Internal to ir/.
#pragma once

#include <vector>

#include "ir/interpret.h"

namespace sgtc::interpret {

/// One evaluation: operands, and results allocated as zeros of the inferred types.
struct Call {
  Op op;
  const std::vector<const Tensor*>& operands;
  const Attributes& attributes;
  const EvaluationContext& context;
  std::vector<Tensor>& results;

  const Tensor& operand(size_t i) const { return *operands[i]; }
  const Shape& shape(size_t i) const { return operands[i]->type.shape; }
  Tensor& result() const { return results[0]; }
  /// `value` as an element of result `i`.
  double rounded(double value, size_t i = 0) const {
    return round_to(results[i].type.dtype, value, context.precision);
  }
};

/// Calls `visit(index)` for each multi-index of `shape` in row-major order.
template <typename Visit>
void for_each_index(const Shape& shape, Visit visit) {
  if (element_count(shape) == 0) return;
  Shape index(shape.size(), 0);
  while (true) {
    visit(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// The position of `index` in a row-major tensor of `shape`, right-aligned, size 1 stretched.
int64_t position_in(const Shape& shape, const Shape& index);

/// A checked index along an axis of `extent`: negative ones count from the end.
int64_t checked_index(int64_t index, int64_t extent, bool from_end = true);

/// A shape seen as [outer, size, inner] around an axis.
struct AxisView {
  AxisView(const Shape& shape, int64_t axis);
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
  int64_t at(int64_t o, int64_t i, int64_t n) const { return (o * size + i) * inner + n; }
};

void elementwise(const Call& call);
void movement(const Call& call);
void indexing(const Call& call);
void reduction(const Call& call);
void contraction(const Call& call);
void convolution(const Call& call);  // part of contraction
void pool(const Call& call);         // part of contraction
void composition(const Call& call);
void attention(const Call& call);             // part of composition
void attention_grad(const Call& call);        // part of composition
void attention_query_grad(const Call& call);  // part of composition
void attention_key_grad(const Call& call);    // part of composition
void random(const Call& call);

/// Element `index` of a random tensor: normal (mean 0, deviation 1) or uniform in [0, 1).
double random_element(bool normal, uint64_t key, int64_t index, int64_t step, int64_t micro_batch);

}  // namespace sgtc::interpret
