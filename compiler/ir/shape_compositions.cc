// Shape rules of compositions, random numbers and micro-batch operators.
#include "ir/shape_rules.h"

namespace sgtc::shape_rules {
namespace {

// Checks q, k, v and the mask at operand `mask` if there is one; returns the output's shape.
Shape attention_output(const Call& call, size_t mask) {
  call.need_float(0);
  call.real("scale");
  for (size_t i = 0; i < 3; ++i) call.need_rank(i, 4);
  call.same_dtypes(0, 3);
  const Shape& q = call.shape(0);
  const Shape& k = call.shape(1);
  const Shape& v = call.shape(2);
  call.need_shape(1, {q[0], k[1], k[2], q[3]});
  call.need_shape(2, {q[0], k[1], k[2], v[3]});
  if (k[1] == 0 || q[1] % k[1] != 0) {
    mismatch("key heads that divide the " + std::to_string(q[1]) + " query heads",
             std::to_string(k[1]));
  }
  if (mask < call.operands.size()) {
    if (call.dtype(mask) != call.dtype(0)) {
      mismatch("a mask of type " + std::string(name_of(call.dtype(0))),
               std::string(name_of(call.dtype(mask))));
    }
    const Shape scores = {q[0], q[1], q[2], k[2]};
    Shape both;
    if (!broadcast_shapes(call.shape(mask), scores, &both) || both != scores) {
      mismatch("a mask that broadcasts to " + to_string(scores), to_string(call.shape(mask)));
    }
  }
  return {q[0], q[1], q[2], v[3]};
}

// Of the maximum and the sum.
TensorType statistics_type(const Call& call) {
  const Shape& q = call.shape(0);
  const bool wide = call.dtype(0) == DType::kFloat64;
  return {wide ? DType::kFloat64 : DType::kFloat32, {q[0], q[1], q[2]}};
}

// Of what one half of the gradient knows of the queries for the other.
TensorType terms_type(const Call& call, bool has_mask) {
  const Shape& q = call.shape(0);
  return {DType::kFloat32, {q[0], q[1], (q[2] + 63) / 64 * 64, has_mask ? 4 : 2}};
}

void need_type(const Call& call, size_t i, const TensorType& expected) {
  call.need_shape(i, expected.shape);
  if (call.dtype(i) == expected.dtype) return;
  mismatch("operand " + std::to_string(i) + " of type " + std::string(name_of(expected.dtype)),
           std::string(name_of(call.dtype(i))));
}

}  // namespace

Types softmax(const Call& call) {
  call.need_float(0);
  call.axis(call.rank(0));
  return {call.operand(0)};
}

Types normalize(const Call& call) {
  call.need_float(0);
  call.real("epsilon");
  Shape statistics = call.shape(0);
  for (const int64_t axis : call.axes(call.rank(0))) statistics[static_cast<size_t>(axis)] = 1;
  return {call.operand(0), {call.dtype(0), statistics}, {call.dtype(0), statistics}};
}

Types attention(const Call& call) {
  const Shape output = attention_output(call, 3);
  return {{call.dtype(0), output}, statistics_type(call), statistics_type(call)};
}

Types attention_grad(const Call& call) {
  const TensorType output = {call.dtype(0), attention_output(call, 7)};
  const TensorType statistics = statistics_type(call);
  for (const size_t i : {3, 4, 5, 6}) need_type(call, i, i == 4 || i == 5 ? statistics : output);
  return {call.operand(0), call.operand(1), call.operand(2)};
}

Types attention_query_grad(const Call& call) {
  return {attention_grad(call)[0], terms_type(call, call.operands.size() > 7)};
}

Types attention_key_grad(const Call& call) {
  need_type(call, 3, {call.dtype(0), attention_output(call, 5)});
  need_type(call, 4, terms_type(call, call.operands.size() > 5));
  return {call.operand(1), call.operand(2)};
}

Types random(const Call& call) {
  for (const size_t i : {0, 1}) {
    call.need_shape(i, {});
    if (call.dtype(i) != DType::kInt64) {
      mismatch("operand " + std::to_string(i) + " of type i64",
               std::string(name_of(call.dtype(i))));
    }
  }
  call.integer("stream");
  const Shape& shape = call.integers("shape");
  for (const int64_t size : shape) {
    if (size < 0) mismatch("a shape of sizes that are not negative", to_string(shape));
  }
  element_count(shape);
  return {{DType::kFloat32, shape}};
}

Types accumulate(const Call& call) {
  call.need_number(0);
  call.same_dtypes(0, 2);
  call.need_shape(1, call.shape(0));
  return {call.operand(0)};
}

Types stack_micro_batches(const Call& call) {
  const int64_t count = call.integer("micro_batches");
  if (count < 1) mismatch("micro_batches of at least 1", std::to_string(count));
  Shape shape = {count};
  shape.insert(shape.end(), call.shape(0).begin(), call.shape(0).end());
  return {{call.dtype(0), shape}};
}

Types all_reduce(const Call& call) {
  if (!is_float(call.dtype(0))) mismatch("a float", std::string(name_of(call.dtype(0))));
  return {call.operand(0)};
}

Types all_gather(const Call& call) {
  if (call.shape(0).empty()) mismatch("rows", to_string(call.shape(0)));
  return {call.operand(0)};
}

Types reduce_scatter(const Call& call) {
  if (!is_float(call.dtype(0))) mismatch("a float", std::string(name_of(call.dtype(0))));
  return shard(call);
}

Types shard(const Call& call) {
  const int64_t replicas = call.integer("replicas");
  const int64_t count = element_count(call.shape(0));
  if (replicas < 1 || count % replicas != 0) {
    mismatch("elements in " + std::to_string(replicas) + " equal parts", std::to_string(count));
  }
  return {{call.dtype(0), {count / replicas}}};
}

Types gather_shards(const Call& call) {
  const int64_t count = element_count(call.shape(0)) * call.integer("replicas");
  const Shape& shape = call.integers("shape");
  if (element_count(shape) != count) {
    mismatch("a shape of " + std::to_string(count) + " elements", to_string(shape));
  }
  return {{call.dtype(0), shape}};
}

}  // namespace sgtc::shape_rules
