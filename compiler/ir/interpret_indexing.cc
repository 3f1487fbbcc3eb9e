// Gathers, scatters and picks of the interpreter.
#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {
namespace {

int64_t index_at(const Call& call, int64_t i, int64_t extent) {
  const int64_t index = call.operand(1).integers[static_cast<size_t>(i)];
  return checked_index(index, extent, call.op != Op::kPick);
}

// Calls visit(position in data, position in the gathered tensor) for gather and its gradient.
template <typename Visit>
void for_each_gathered(const Call& call, Visit visit) {
  const AxisView data(call.shape(0), call.attributes.integer("axis"));
  const int64_t count = call.operand(1).count();
  for (int64_t o = 0; o < data.outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = index_at(call, i, data.size);
      for (int64_t n = 0; n < data.inner; ++n) {
        visit(data.at(o, row, n), (o * count + i) * data.inner + n);
      }
    }
  }
}

// The same for gather_elements, pick and scatter_elements.
template <typename Visit>
void for_each_gathered_element(const Call& call, Visit visit) {
  const auto axis = static_cast<size_t>(call.attributes.integer("axis"));
  int64_t i = 0;
  for_each_index(call.shape(1), [&](const Shape& index) {
    Shape source = index;
    source[axis] = index_at(call, i, call.shape(0)[axis]);
    int64_t position = 0;
    for (size_t d = 0; d < source.size(); ++d) position = position * call.shape(0)[d] + source[d];
    visit(position, i++);
  });
}

// The same for gather_nd and scatter_nd.
template <typename Visit>
void for_each_gathered_slice(const Call& call, int64_t batch_dims, Visit visit) {
  const Shape& data = call.shape(0);
  const int64_t depth = call.shape(1).back();
  int64_t batches = 1;
  for (int64_t d = 0; d < batch_dims; ++d) batches *= data[static_cast<size_t>(d)];
  int64_t tuples = 1;
  for (size_t d = 0; d + 1 < call.shape(1).size(); ++d) tuples *= call.shape(1)[d];
  int64_t slice = 1;
  for (auto d = static_cast<size_t>(batch_dims + depth); d < data.size(); ++d) slice *= data[d];
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t position = t / (tuples / batches);
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t extent = data[static_cast<size_t>(batch_dims + k)];
      position = position * extent + index_at(call, t * depth + k, extent);
    }
    for (int64_t n = 0; n < slice; ++n) visit(position * slice + n, t * slice + n);
  }
}

// Combines element `from` of the updates into element `to` of the result.
void scatter_element(const Call& call, Op op, int64_t to, int64_t from) {
  Tensor& result = call.result();
  const Tensor& updates = call.operand(2);
  if (op == Op::kReshape) return result.copy_element(to, updates, from);
  const TensorType scalar = {result.type.dtype, {}};
  Tensor a(scalar);
  Tensor b(scalar);
  a.copy_element(0, result, to);
  b.copy_element(0, updates, from);
  result.copy_element(to, evaluate(op, {&a, &b}, {}, call.context)[0], 0);
}

// The operator of a scatter's reduction; kReshape stands for "none".
Op reduction_op(const std::string& reduction) {
  if (reduction == "add") return Op::kAdd;
  if (reduction == "mul") return Op::kMul;
  if (reduction == "max") return Op::kMax;
  if (reduction == "min") return Op::kMin;
  return Op::kReshape;
}

}  // namespace

void indexing(const Call& call) {
  const auto copy = [&](int64_t data, int64_t gathered) {
    call.result().copy_element(gathered, call.operand(0), data);
  };
  const auto scatter_as = [&](Op op) {
    call.results[0] = call.operand(0);
    return
        [&call, op](int64_t data, int64_t gathered) { scatter_element(call, op, data, gathered); };
  };
  switch (call.op) {
    case Op::kGather:
      return for_each_gathered(call, copy);
    case Op::kGatherElements:
    case Op::kPick:
      return for_each_gathered_element(call, copy);
    case Op::kGatherNd:
      return for_each_gathered_slice(call, call.attributes.integer("batch_dims"), copy);
    case Op::kScatterAdd:
      return for_each_gathered(call, scatter_as(Op::kAdd));
    case Op::kScatterElements:
      return for_each_gathered_element(call,
                                       scatter_as(reduction_op(call.attributes.text("reduction"))));
    case Op::kScatterNd:
      return for_each_gathered_slice(call, 0,
                                     scatter_as(reduction_op(call.attributes.text("reduction"))));
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(call.op)) + " does not index");
  }
}

}  // namespace sgtc::interpret
