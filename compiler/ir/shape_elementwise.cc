// Shape rules of elementwise operators.
#include "ir/shape_rules.h"

namespace sgtc::shape_rules {
namespace {

Shape broadcast_all(const Call& call) {
  Shape shape = call.shape(0);
  for (size_t i = 1; i < call.operands.size(); ++i) {
    if (shape == call.shape(i)) continue;
    if (!broadcast_shapes(shape, call.shape(i), &shape)) {
      mismatch("operands that broadcast", to_string(shape) + " and " + to_string(call.shape(i)));
    }
  }
  return shape;
}

Types compare(const Call& call) {
  call.same_dtypes(0, 2);
  return one(DType::kBool, broadcast_all(call));
}

}  // namespace

Types float_unary(const Call& call) {
  call.need_float(0);
  return one(call.dtype(0), call.shape(0));
}

Types number_unary(const Call& call) {
  call.need_number(0);
  return one(call.dtype(0), call.shape(0));
}

Types bool_unary(const Call& call) {
  call.need_bool(0);
  return one(call.dtype(0), call.shape(0));
}

Types integer_unary(const Call& call) {
  call.need_integer(0);
  return one(call.dtype(0), call.shape(0));
}

Types float_test(const Call& call) {
  call.need_float(0);
  return one(DType::kBool, call.shape(0));
}

Types cast(const Call& call) { return one(call.dtype_attribute("to"), call.shape(0)); }

Types number_binary(const Call& call) {
  call.need_number(0);
  call.same_dtypes(0, 2);
  return one(call.dtype(0), broadcast_all(call));
}

Types pow(const Call& call) {
  call.need_number(0);
  call.need_number(1);
  return one(call.dtype(0), broadcast_all(call));
}

Types equality(const Call& call) { return compare(call); }

Types comparison(const Call& call) {
  call.need_number(0);
  return compare(call);
}

Types bool_binary(const Call& call) {
  call.need_bool(0);
  return compare(call);
}

Types integer_binary(const Call& call) {
  call.need_integer(0);
  call.same_dtypes(0, 2);
  return one(call.dtype(0), broadcast_all(call));
}

Types where(const Call& call) {
  call.need_bool(0);
  call.same_dtypes(1, 3);
  return one(call.dtype(1), broadcast_all(call));
}

}  // namespace sgtc::shape_rules
