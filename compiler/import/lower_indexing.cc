// Gathers, scatters and searches along an axis.
#include <algorithm>

#include "import/export_record.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

int64_t axis_of(Lowering& n, int64_t otherwise) {
  return normalized_axis(n.integer("axis", otherwise), n.input_rank(0));
}

// The row that gets no gradient: what the user says of the tensor, else what the exporter recorded.
std::optional<int64_t> padding_of(Lowering& n) {
  ImportState& state = n.state();
  const auto given = state.padding_index.find(state.graph.value(n.input(0)).name);
  if (given == state.padding_index.end()) return recorded_padding(n.node());
  state.padded.insert(given->first);
  return given->second;
}

// Indices that are known now must not wait for the first step to be found wrong.
void check_known_indices(Lowering& n, int64_t axis) {
  const LiteralPtr indices = n.literal(n.input(1));
  if (!indices) return;
  const int64_t size = n.input_shape(0)[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < indices->element_count(); ++i) {
    const int64_t index = indices->as_int(i);
    if (index >= -size && index < size) continue;
    throw Error("index " + std::to_string(index) + " is out of range: dimension " +
                std::to_string(axis) + " of the data has the size " + std::to_string(size));
  }
}

ValueIds lower_gather(Lowering& n) {
  const int64_t axis = axis_of(n, 0);
  check_known_indices(n, axis);
  Attributes attributes = {{"axis", axis}};
  const std::optional<int64_t> padding = padding_of(n);
  if (padding) attributes.set("padding", *padding);
  return {n.add(Op::kGather, {n.input(0), n.input(1)}, attributes)};
}

ValueIds lower_gather_elements(Lowering& n) {
  const int64_t axis = axis_of(n, 0);
  check_known_indices(n, axis);
  return {n.add(Op::kGatherElements, {n.input(0), n.input(1)}, {{"axis", axis}})};
}

ValueIds lower_gather_nd(Lowering& n) {
  return {
      n.add(Op::kGatherNd, {n.input(0), n.input(1)}, {{"batch_dims", n.integer("batch_dims", 0)}})};
}

std::string reduction_of(Lowering& n) {
  const std::string reduction = n.text("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return reduction;
  }
  throw Error("attribute \"reduction\": expected none, add, mul, max or min, found \"" + reduction +
              "\"");
}

ValueIds lower_scatter_elements(Lowering& n) {
  return {n.add(Op::kScatterElements, {n.input(0), n.input(1), n.input(2)},
                {{"axis", axis_of(n, 0)}, {"reduction", reduction_of(n)}})};
}

ValueIds lower_scatter_nd(Lowering& n) {
  return {n.add(Op::kScatterNd, {n.input(0), n.input(1), n.input(2)},
                {{"reduction", reduction_of(n)}})};
}

ValueIds lower_one_hot(Lowering& n) {
  const int64_t depth = n.integer_input(1, "the depth of a one-hot");
  if (depth < 0) throw Error("the depth of a one-hot is negative: " + std::to_string(depth));
  const ValueId raw = n.cast(n.input(0), DType::kInt64);
  const int64_t rank = n.rank(raw) + 1;
  const int64_t axis = normalized_axis(n.integer("axis", -1), rank);
  const ValueId negative = n.add(Op::kLess, {raw, n.scalar(DType::kInt64, 0)});
  const ValueId wrapped = n.where(negative, n.add_scalar(raw, static_cast<double>(depth)), raw);
  Shape line(static_cast<size_t>(rank), 1);
  line[static_cast<size_t>(axis)] = depth;
  const ValueId hit =
      n.add(Op::kEqual, {n.unsqueeze(wrapped, {axis}), n.iota(line, axis, DType::kInt64)});
  const ValueId values = n.input(2);
  if (n.shape(values) != Shape{2}) {
    throw Error("values: expected shape [2], found " + to_string(n.shape(values)));
  }
  const ValueId off = n.reshape(n.slice(values, 0, 0, 1), {});
  const ValueId on = n.reshape(n.slice(values, 0, 1, 1), {});
  return {n.where(hit, on, off)};
}

ValueIds lower_cumulative_sum(Lowering& n) {
  const int64_t axis = normalized_axis(n.integer_input(1, "the axis"), n.input_rank(0));
  return {n.add(Op::kCumSum, {n.input(0)},
                {{"axis", axis},
                 {"exclusive", n.integer("exclusive", 0)},
                 {"reverse", n.integer("reverse", 0)}})};
}

ValueIds lower_top_k(Lowering& n) {
  const int64_t k = n.since() < 10 ? n.required_integer("k") : n.integer_input(1, "k");
  return n.add_node(Op::kTopK, {n.input(0)},
                    {{"axis", axis_of(n, -1)}, {"k", k}, {"largest", n.integer("largest", 1)}});
}

template <Op op>
ValueIds lower_arg_extreme(Lowering& n) {
  const int64_t axis = axis_of(n, 0);
  const ValueId found =
      n.add(op, {n.input(0)}, {{"axis", axis}, {"select_last", n.integer("select_last_index", 0)}});
  return {n.integer("keepdims", 1) != 0 ? found : n.squeeze(found, {axis})};
}

// Reverses the first elements of each sequence, as many as its length says.
ValueIds lower_reverse_sequence(Lowering& n) {
  const ValueId x = n.input(0), lengths = n.cast(n.input(1), DType::kInt64);
  const Shape shape = n.shape(x);
  const int64_t time = n.integer("time_axis", 0), batch = n.integer("batch_axis", 1);
  if (shape.size() < 2 || std::min(time, batch) != 0 || std::max(time, batch) != 1) {
    throw Error("expected time_axis and batch_axis 0 and 1 of a tensor of rank 2 or more, found " +
                std::to_string(time) + " and " + std::to_string(batch) + " of " + to_string(shape));
  }
  const int64_t rows = shape[static_cast<size_t>(batch)];
  if (n.shape(lengths) != Shape{rows}) {
    throw Error("lengths: expected shape [" + std::to_string(rows) + "], found " +
                to_string(n.shape(lengths)));
  }
  Shape along_batch(shape.size(), 1), along_time = along_batch;
  along_batch[static_cast<size_t>(batch)] = rows;
  along_time[static_cast<size_t>(time)] = shape[static_cast<size_t>(time)];
  const ValueId length = n.reshape(lengths, along_batch);
  const ValueId step = n.iota(along_time, time, DType::kInt64);
  const ValueId mirrored = n.sub(n.add_scalar(length, -1), step);
  const ValueId source = n.where(n.add(Op::kLess, {step, length}), mirrored, step);
  return {n.add(Op::kGatherElements, {x, n.broadcast(source, shape)}, {{"axis", time}})};
}

const std::vector<Rule> kRules = {
    {"", "Gather", {1, 11, 13}, lower_gather},
    {"", "GatherElements", {11, 13}, lower_gather_elements},
    {"", "GatherND", {11, 12, 13}, lower_gather_nd},
    {"", "Scatter", {9, 11}, lower_scatter_elements},
    {"", "ScatterElements", {11, 13, 16, 18}, lower_scatter_elements},
    {"", "ScatterND", {11, 13, 16, 18}, lower_scatter_nd},
    {"", "OneHot", {9, 11}, lower_one_hot},
    {"", "ReverseSequence", {10}, lower_reverse_sequence},
    {"", "CumSum", {11, 14}, lower_cumulative_sum},
    {"", "TopK", {1, 10, 11, 24}, lower_top_k},
    {"", "ArgMax", {1, 11, 12, 13}, lower_arg_extreme<Op::kArgMax>},
    {"", "ArgMin", {1, 11, 12, 13}, lower_arg_extreme<Op::kArgMin>},
};

}  // namespace

std::span<const Rule> indexing_rules() { return kRules; }

}  // namespace sgtc
