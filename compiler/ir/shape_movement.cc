// Shape rules of operators that move elements.
#include <utility>

#include "ir/shape_rules.h"

namespace sgtc::shape_rules {
namespace {

const Shape& shape_attribute(const Call& call) {
  const Shape& shape = call.integers("shape");
  for (const int64_t size : shape) {
    if (size < 0) mismatch("a shape of sizes that are not negative", to_string(shape));
  }
  return shape;
}

}  // namespace

Types reshape(const Call& call) {
  const Shape& shape = shape_attribute(call);
  if (element_count(shape) != element_count(call.shape(0))) {
    mismatch("a shape with the " + std::to_string(element_count(call.shape(0))) + " elements of " +
                 to_string(call.shape(0)),
             to_string(shape));
  }
  return one(call.dtype(0), shape);
}

Types transpose(const Call& call) {
  const std::vector<int64_t>& perm = call.integers("perm");
  std::vector<bool> seen(call.shape(0).size(), false);
  bool valid = perm.size() == seen.size();
  Shape shape;
  for (size_t d = 0; valid && d < perm.size(); ++d) {
    valid = perm[d] >= 0 && perm[d] < call.rank(0) && !seen[static_cast<size_t>(perm[d])];
    if (!valid) break;
    seen[static_cast<size_t>(perm[d])] = true;
    shape.push_back(call.shape(0)[static_cast<size_t>(perm[d])]);
  }
  if (!valid) {
    mismatch("a permutation of " + std::to_string(call.rank(0)) + " dimensions", to_string(perm));
  }
  return one(call.dtype(0), std::move(shape));
}

Types broadcast(const Call& call) {
  const Shape& shape = shape_attribute(call);
  Shape both;
  if (!broadcast_shapes(call.shape(0), shape, &both) || both != shape) {
    mismatch("an operand that broadcasts to " + to_string(shape), to_string(call.shape(0)));
  }
  return one(call.dtype(0), shape);
}

Types slice(const Call& call) {
  const int64_t rank = call.rank(0);
  const auto& sizes = call.integers("sizes", rank, 0);
  const auto& starts = call.integers("starts", rank, 0);
  const auto& steps = call.integers("steps", rank, INT64_MIN);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (steps[d] == 0) mismatch("steps that are not zero", to_string(steps));
    if (sizes[d] == 0) continue;
    const int64_t size = call.shape(0)[d];
    int64_t last = 0;
    const bool overflow = __builtin_mul_overflow(sizes[d] - 1, steps[d], &last) ||
                          __builtin_add_overflow(last, starts[d], &last);
    if (overflow || starts[d] >= size || last < 0 || last >= size) {
      mismatch("a slice within size " + std::to_string(size) + " of dimension " + std::to_string(d),
               "start " + std::to_string(starts[d]) + ", size " + std::to_string(sizes[d]) +
                   ", step " + std::to_string(steps[d]));
    }
  }
  return one(call.dtype(0), sizes);
}

Types pad(const Call& call) {
  call.same_dtypes(0, 2);
  call.need_shape(1, {});
  const auto& low = call.integers("low", call.rank(0), 0);
  const auto& high = call.integers("high", call.rank(0), 0);
  Shape shape = call.shape(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (__builtin_add_overflow(shape[d], low[d], &shape[d]) ||
        __builtin_add_overflow(shape[d], high[d], &shape[d])) {
      mismatch("paddings of less than 2^63", to_string(low) + " and " + to_string(high));
    }
  }
  element_count(shape);
  return one(call.dtype(0), std::move(shape));
}

Types concat(const Call& call) {
  call.same_dtypes(0, call.operands.size());
  const auto axis = static_cast<size_t>(call.axis(call.rank(0)));
  Shape shape = call.shape(0);
  for (size_t i = 1; i < call.operands.size(); ++i) {
    Shape expected = shape;
    call.need_rank(i, call.rank(0));
    expected[axis] = call.shape(i)[axis];
    call.need_shape(i, expected);
    shape[axis] += expected[axis];
  }
  element_count(shape);
  return one(call.dtype(0), std::move(shape));
}

Types place(const Call& call) {
  const Shape& shape = shape_attribute(call);
  call.need_rank(0, static_cast<int64_t>(shape.size()));
  const auto& starts = call.integers("starts", call.rank(0), 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t end = 0;
    if (__builtin_add_overflow(starts[d], call.shape(0)[d], &end) || end > shape[d]) {
      mismatch("a place within " + to_string(shape),
               to_string(call.shape(0)) + " at " + to_string(starts));
    }
  }
  call.same_dtypes(0, call.operands.size());
  if (call.operands.size() > 1) call.need_shape(1, shape);
  return one(call.dtype(0), shape);
}

Types iota(const Call& call) {
  const Shape& shape = shape_attribute(call);
  call.axis(static_cast<int64_t>(shape.size()));
  const DType dtype = call.dtype_attribute("dtype");
  if (dtype == DType::kBool) mismatch("a number type as attribute dtype", "bool");
  return one(dtype, shape);
}

}  // namespace sgtc::shape_rules
