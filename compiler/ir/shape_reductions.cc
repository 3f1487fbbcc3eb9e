// Shape rules of reductions and scans along axes.
#include <utility>

#include "ir/shape_rules.h"

namespace sgtc::shape_rules {

Types reduce(const Call& call) {
  call.need_number(0);
  Shape shape = call.shape(0);
  for (const int64_t axis : call.axes(call.rank(0))) {
    const bool ordered = call.op == Op::kReduceMax || call.op == Op::kReduceMin;
    if (ordered && shape[static_cast<size_t>(axis)] == 0) {
      mismatch("at least one element along axis " + std::to_string(axis), to_string(shape));
    }
    shape[static_cast<size_t>(axis)] = 1;
  }
  return one(call.dtype(0), std::move(shape));
}

Types arg_reduce(const Call& call) {
  call.need_number(0);
  const auto axis = static_cast<size_t>(call.axis(call.rank(0)));
  Shape shape = call.shape(0);
  if (shape[axis] == 0) {
    mismatch("at least one element along axis " + std::to_string(axis), to_string(shape));
  }
  shape[axis] = 1;
  return one(DType::kInt64, std::move(shape));
}

Types cum_sum(const Call& call) {
  call.need_number(0);
  call.axis(call.rank(0));
  return one(call.dtype(0), call.shape(0));
}

Types top_k(const Call& call) {
  call.need_number(0);
  const auto axis = static_cast<size_t>(call.axis(call.rank(0)));
  const int64_t k = call.integer("k");
  Shape shape = call.shape(0);
  if (k < 0 || k > shape[axis]) {
    mismatch("k from 0 to " + std::to_string(shape[axis]), std::to_string(k));
  }
  shape[axis] = k;
  return {{call.dtype(0), shape}, {DType::kInt64, shape}};
}

}  // namespace sgtc::shape_rules
