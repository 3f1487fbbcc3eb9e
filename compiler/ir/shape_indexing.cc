// Shape rules of gathers, scatters and picks.
#include "ir/shape_rules.h"

namespace sgtc::shape_rules {
namespace {

Shape gathered_shape(const Call& call) {
  call.need_index(1);
  const auto axis = call.axis(call.rank(0));
  Shape shape(call.shape(0).begin(), call.shape(0).begin() + axis);
  shape.insert(shape.end(), call.shape(1).begin(), call.shape(1).end());
  shape.insert(shape.end(), call.shape(0).begin() + axis + 1, call.shape(0).end());
  return shape;
}

// The indices must not exceed data in any dimension but `axis`.
void check_element_indices(const Call& call) {
  call.need_index(1);
  call.need_rank(1, call.rank(0));
  const auto axis = static_cast<size_t>(call.axis(call.rank(0)));
  for (size_t d = 0; d < call.shape(0).size(); ++d) {
    if (d != axis && call.shape(1)[d] > call.shape(0)[d]) {
      mismatch(
          "indices within " + to_string(call.shape(0)) + " outside axis " + std::to_string(axis),
          to_string(call.shape(1)));
    }
  }
}

// indices.shape[:-1] + data.shape[batch_dims + indices.shape[-1]:]
Shape nd_shape(const Call& call, int64_t batch_dims) {
  call.need_index(1);
  const Shape& data = call.shape(0);
  const Shape& indices = call.shape(1);
  if (batch_dims < 0 || batch_dims >= call.rank(1) || batch_dims > call.rank(0)) {
    mismatch("batch_dims within both ranks", std::to_string(batch_dims));
  }
  for (size_t d = 0; d < static_cast<size_t>(batch_dims); ++d) {
    if (data[d] == indices[d]) continue;
    mismatch("equal batch dimensions", to_string(data) + " and " + to_string(indices));
  }
  const int64_t depth = indices.back();
  if (depth > call.rank(0) - batch_dims) {
    mismatch("index tuples of at most " + std::to_string(call.rank(0) - batch_dims) + " elements",
             std::to_string(depth));
  }
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch_dims + depth, data.end());
  return shape;
}

void check_reduction(const Call& call) {
  const std::string& reduction = call.text("reduction");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return;
  }
  mismatch("reduction none, add, mul, max or min", '"' + reduction + '"');
}

}  // namespace

Types gather(const Call& call) {
  Types types = {{call.dtype(0), gathered_shape(call)}};
  if (!call.attributes.has("padding")) return types;
  const int64_t extent = call.shape(0)[static_cast<size_t>(call.axis(call.rank(0)))];
  const int64_t padding = call.integer("padding");
  if (padding < 0 || padding >= extent) {
    mismatch("attribute padding from 0 to " + std::to_string(extent - 1), std::to_string(padding));
  }
  return types;
}

Types gather_elements(const Call& call) {
  check_element_indices(call);
  return one(call.dtype(0), call.shape(1));
}

Types gather_nd(const Call& call) {
  return one(call.dtype(0), nd_shape(call, call.integer("batch_dims")));
}

Types pick(const Call& call) {
  call.need_index(1);
  Shape expected = call.shape(0);
  expected[static_cast<size_t>(call.axis(call.rank(0)))] = 1;
  call.need_shape(1, expected);
  return {{call.dtype(0), expected}};
}

Types scatter_add(const Call& call) {
  call.need_number(0);
  call.need_shape(2, gathered_shape(call));
  if (call.dtype(2) != call.dtype(0)) {
    mismatch("updates of type " + std::string(name_of(call.dtype(0))),
             std::string(name_of(call.dtype(2))));
  }
  return one(call.dtype(0), call.shape(0));
}

Types scatter_elements(const Call& call) {
  check_element_indices(call);
  check_reduction(call);
  call.need_shape(2, call.shape(1));
  if (call.dtype(2) != call.dtype(0)) {
    mismatch("updates of type " + std::string(name_of(call.dtype(0))),
             std::string(name_of(call.dtype(2))));
  }
  return one(call.dtype(0), call.shape(0));
}

Types scatter_nd(const Call& call) {
  check_reduction(call);
  call.need_shape(2, nd_shape(call, 0));
  if (call.dtype(2) != call.dtype(0)) {
    mismatch("updates of type " + std::string(name_of(call.dtype(0))),
             std::string(name_of(call.dtype(2))));
  }
  return one(call.dtype(0), call.shape(0));
}

}  // namespace sgtc::shape_rules
