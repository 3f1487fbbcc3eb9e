// Movement operators of the interpreter.
#include "ir/interpret_ops.h"
#include "support/diagnostics.h"

namespace sgtc::interpret {
namespace {

void copy_all(const Call& call) {
  for (int64_t i = 0; i < call.result().count(); ++i) {
    call.result().copy_element(i, call.operand(0), i);
  }
}

// Fills the result with the operand's elements at the multi-index that `source_of` gives.
template <typename SourceOf>
void copy_from(const Call& call, SourceOf source_of) {
  int64_t i = 0;
  for_each_index(call.result().type.shape, [&](const Shape& index) {
    call.result().copy_element(i++, call.operand(0), position_in(call.shape(0), source_of(index)));
  });
}

void transpose(const Call& call) {
  const std::vector<int64_t>& perm = call.attributes.integers("perm");
  Shape source(perm.size());
  copy_from(call, [&](const Shape& index) {
    for (size_t d = 0; d < perm.size(); ++d) source[static_cast<size_t>(perm[d])] = index[d];
    return source;
  });
}

void slice(const Call& call) {
  const std::vector<int64_t>& starts = call.attributes.integers("starts");
  const std::vector<int64_t>& steps = call.attributes.integers("steps");
  Shape source(starts.size());
  copy_from(call, [&](const Shape& index) {
    for (size_t d = 0; d < starts.size(); ++d) source[d] = starts[d] + index[d] * steps[d];
    return source;
  });
}

void pad(const Call& call) {
  const std::vector<int64_t>& low = call.attributes.integers("low");
  Shape source(low.size());
  int64_t i = 0;
  for_each_index(call.result().type.shape, [&](const Shape& index) {
    bool inside = true;
    for (size_t d = 0; d < low.size(); ++d) {
      source[d] = index[d] - low[d];
      inside = inside && source[d] >= 0 && source[d] < call.shape(0)[d];
    }
    if (inside) {
      call.result().copy_element(i++, call.operand(0), position_in(call.shape(0), source));
    } else {
      call.result().copy_element(i++, call.operand(1), 0);
    }
  });
}

void concat(const Call& call) {
  const int64_t axis = call.attributes.integer("axis");
  const AxisView to(call.result().type.shape, axis);
  int64_t begin = 0;
  for (const Tensor* operand : call.operands) {
    const AxisView from(operand->type.shape, axis);
    for (int64_t i = 0; i < operand->count(); ++i) {
      const int64_t block = from.size * from.inner;
      call.result().copy_element(to.at(i / block, begin, i % block), *operand, i);
    }
    begin += from.size;
  }
}

void place(const Call& call) {
  const Shape& shape = call.result().type.shape;
  const std::vector<int64_t>& starts = call.attributes.integers("starts");
  for (int64_t i = 0; call.operands.size() > 1 && i < call.result().count(); ++i) {
    call.result().copy_element(i, call.operand(1), i);
  }
  Shape to(shape.size());
  int64_t i = 0;
  for_each_index(call.shape(0), [&](const Shape& index) {
    for (size_t d = 0; d < to.size(); ++d) to[d] = starts[d] + index[d];
    call.result().copy_element(position_in(shape, to), call.operand(0), i++);
  });
}

void iota(const Call& call) {
  const AxisView view(call.result().type.shape, call.attributes.integer("axis"));
  for (int64_t i = 0; i < call.result().count(); ++i) {
    const int64_t along = i / view.inner % view.size;
    if (call.result().is_real()) {
      call.result().reals[static_cast<size_t>(i)] = call.rounded(static_cast<double>(along));
    } else {
      call.result().integers[static_cast<size_t>(i)] = wrap_to(call.result().type.dtype, along);
    }
  }
}

}  // namespace

void movement(const Call& call) {
  switch (call.op) {
    case Op::kReshape:
      return copy_all(call);
    case Op::kTranspose:
      return transpose(call);
    case Op::kBroadcast:
      return copy_from(call, [](const Shape& index) -> const Shape& { return index; });
    case Op::kSlice:
      return slice(call);
    case Op::kPad:
      return pad(call);
    case Op::kConcat:
      return concat(call);
    case Op::kPlace:
      return place(call);
    case Op::kIota:
      return iota(call);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(call.op)) + " is no movement");
  }
}

}  // namespace sgtc::interpret
