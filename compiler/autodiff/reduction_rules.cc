// Gradients of reductions and scans.
#include <algorithm>
#include <string>

#include "autodiff/gradient_rules.h"

namespace sgtc::gradient {
namespace {

/// The whole gradient at the first element that attains the bound along `axis`.
ValueId one_hot(Backward& b, Op arg, ValueId x, ValueId g, int64_t axis) {
  ValueId first = b.apply(arg, {x}, {{"axis", axis}, {"select_last", int64_t{0}}});
  ValueId position = b.index_along(b.shape(x), axis, b.dtype(first));
  return b.keep(b.apply(Op::kEqual, {position, first}), g);
}

/// Kept dimensions first, then the reduced ones.
std::vector<int64_t> reduced_last(int64_t rank, const std::vector<int64_t>& axes) {
  std::vector<int64_t> perm;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) perm.push_back(axis);
  }
  perm.insert(perm.end(), axes.begin(), axes.end());
  return perm;
}

/// reduce_max and reduce_min. Several axes are first made one, in row-major order, so that the
/// first maximum is unique.
void reduce_bound(Backward& b, Op arg) {
  const std::vector<int64_t> axes = b.attributes().integers("axes");
  const int64_t rank = b.rank(b.x());
  if (axes.empty()) return b.give(0, b.g());
  if (axes.size() == 1) return b.give(0, one_hot(b, arg, b.x(), b.g(), axes[0]));

  const std::vector<int64_t> perm = reduced_last(rank, axes);
  ValueId moved = b.transpose(b.x(), perm);
  const Shape moved_shape = b.shape(moved);
  const int64_t kept = element_count(b.shape(b.g()));
  int64_t reduced = 1;
  for (int64_t axis : axes) reduced *= b.size(b.x(), axis);
  ValueId rows = b.reshape(moved, {kept, reduced});
  ValueId hot = one_hot(b, arg, rows, b.reshape(b.g(), {kept, 1}), 1);
  b.give(0, b.transpose(b.reshape(hot, moved_shape), inverse_permutation(perm)));
}

}  // namespace

void reduce_sum(Backward& b) { b.give(0, b.broadcast(b.g(), b.shape(b.x()))); }

void reduce_max(Backward& b) { reduce_bound(b, Op::kArgMax); }

void reduce_min(Backward& b) { reduce_bound(b, Op::kArgMin); }

void reduce_prod(Backward& b) {
  // The product of the others: with zeros replaced by 1, the product of all non-zeros over the
  // element, and 0 wherever one of the others is zero.
  const std::vector<int64_t> axes = b.attributes().integers("axes");
  const DType dtype = b.dtype(b.x());
  ValueId is_zero = b.compare(Op::kEqual, b.x(), 0);
  ValueId non_zero = b.where(is_zero, b.constant(dtype, 1), b.x());
  ValueId product = b.apply(Op::kReduceProd, {non_zero}, {{"axes", axes}});
  ValueId zero_count = b.cast(is_zero, dtype);
  ValueId other_zeros = b.sub(b.sum(zero_count, axes), zero_count);
  ValueId has_other_zero = b.compare(Op::kGreater, other_zeros, 0);
  b.give(0, b.drop(has_other_zero, b.mul(b.g(), b.div(product, non_zero))));
}

void cum_sum(Backward& b) {
  Attributes reversed = b.attributes();
  reversed.set("reverse", int64_t{b.attributes().integer_or("reverse", 0) == 0});
  b.give(0, b.apply(Op::kCumSum, {b.g()}, reversed));
}

void top_k(Backward& b) {
  if (b.g(0) == kNone) return;
  ValueId zeros = b.zeros(b.dtype(b.x()), b.shape(b.x()));
  b.give(0, b.apply(Op::kScatterElements, {zeros, b.y(1), b.g(0)},
                    {{"axis", b.axis()}, {"reduction", std::string("add")}}));
}

}  // namespace sgtc::gradient
