#include "passes/anchor_shapes.h"

#include <algorithm>
#include <string>

#include "passes/anchor_geometry.h"
#include "passes/window_shapes.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

using kernels::AttentionShape;
using kernels::AxisShape;
using kernels::ConvShape;
using kernels::MatmulShape;
using kernels::PoolShape;
using kernels::ScatterAddShape;
using kernels::ScatterElementsShape;
using kernels::ScatterNdShape;
using kernels::ScatterReduction;

// Whether the written kernels have an instance of `op` for elements of type `dtype`.
bool has_instance(Op op, DType dtype) {
  switch (op) {
    case Op::kConv:
    case Op::kConvInputGrad:
    case Op::kConvWeightGrad:
    case Op::kMaxPoolGrad:
    case Op::kAveragePool:
    case Op::kAveragePoolGrad:
    case Op::kAttention:
    case Op::kAttentionGrad:
      return is_float(dtype);
    case Op::kScatterElements:
    case Op::kScatterNd:
      return true;
    default:
      return dtype != DType::kBool;
  }
}

// `shape` for a CPU.
template <typename T>
std::vector<int64_t> cpu_words(T shape, bool wide_vectors) {
  shape.wide_vectors = wide_vectors ? 1 : 0;
  return words_of(shape);
}

const Shape& operand(const KernelSpec& spec, size_t i) { return spec.operand_types[i].shape; }
const Shape& result(const KernelSpec& spec) { return spec.result_types[0].shape; }

AnchorGeometry geometry_of(const KernelSpec& spec) {
  return anchor_geometry(spec.anchor, spec.attributes, spec.operand_types, spec.result_types);
}

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t d = begin; d < end; ++d) result *= shape[d];
  return result;
}

void check_dims(const KernelSpec& spec, size_t count, int64_t most) {
  if (static_cast<int64_t>(count) <= most) return;
  throw Error(std::string(name_of(spec.anchor)) + ": expected at most " + std::to_string(most) +
              " dimensions, found " + std::to_string(count) +
              "; reshape the tensor to fewer dimensions");
}

// Anchors that take no strides have row-major tensors.
StridedLayout layout_of(const std::vector<StridedLayout>& layouts,
                        const std::vector<TensorType>& types, size_t i) {
  return layouts.empty() ? StridedLayout{0, row_major_strides(types[i].shape)} : layouts[i];
}
StridedLayout operand_layout(const KernelSpec& spec, size_t i) {
  return layout_of(spec.operand_layouts, spec.operand_types, i);
}
StridedLayout result_layout(const KernelSpec& spec, size_t i) {
  return layout_of(spec.result_layouts, spec.result_types, i);
}

kernels::HeadStrides head_strides(const StridedLayout& layout) {
  return {layout.offset, {layout.strides[0], layout.strides[1], layout.strides[2]}};
}

// One dimension of the batch with the strides of both operands.
struct BatchDim {
  int64_t size, a_stride, b_stride;
};

// The batch of a matrix product; neighbours that advance together are merged.
std::vector<BatchDim> batch_of(const Shape& a, const Shape& b, const Shape& y) {
  std::vector<BatchDim> dims;  // innermost first
  int64_t a_stride = a[a.size() - 2] * a.back();
  int64_t b_stride = b[b.size() - 2] * b.back();
  for (size_t i = 2; i < y.size(); ++i) {
    const int64_t a_size = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t b_size = i < b.size() ? b[b.size() - 1 - i] : 1;
    const BatchDim dim = {y[y.size() - 1 - i], a_size == 1 ? 0 : a_stride,
                          b_size == 1 ? 0 : b_stride};
    a_stride *= a_size;
    b_stride *= b_size;
    if (dim.size == 1) continue;
    if (!dims.empty() && dim.a_stride == dims.back().a_stride * dims.back().size &&
        dim.b_stride == dims.back().b_stride * dims.back().size) {
      dims.back().size *= dim.size;
    } else {
      dims.push_back(dim);
    }
  }
  std::reverse(dims.begin(), dims.end());
  return dims;
}

ScatterReduction reduction_of(const KernelSpec& spec) {
  const std::string& name = spec.attributes.text("reduction");
  if (name == "add") return ScatterReduction::kAdd;
  if (name == "mul") return ScatterReduction::kMultiply;
  if (name == "max") return ScatterReduction::kMax;
  if (name == "min") return ScatterReduction::kMin;
  return ScatterReduction::kNone;
}

}  // namespace

MatmulShape matmul_shape(const KernelSpec& spec) {
  const Shape& a = operand(spec, 0);
  const Shape& b = operand(spec, 1);
  const Shape& y = result(spec);
  const bool transpose_a = spec.attributes.integer_or("transpose_a", 0) != 0;
  const bool transpose_b = spec.attributes.integer_or("transpose_b", 0) != 0;
  const AnchorGeometry geometry = geometry_of(spec);
  MatmulShape shape = {};
  const std::vector<BatchDim> batch = batch_of(a, b, y);  // none where b is packed
  check_dims(spec, batch.size(), kernels::kMaxDims);
  shape.batch_rank = static_cast<int64_t>(batch.size());
  for (size_t d = 0; d < batch.size(); ++d) {
    shape.batch[d] = batch[d].size;
    shape.a_batch_strides[d] = batch[d].a_stride;
    shape.b_batch_strides[d] = batch[d].b_stride;
  }
  shape.rows = y[y.size() - 2];
  shape.columns = y.back();
  shape.depth = a[a.size() - (transpose_a ? 2 : 1)];
  shape.a_row_stride = transpose_a ? 1 : shape.depth;
  shape.a_depth_stride = transpose_a ? shape.rows : 1;
  shape.b_packed = spec.attributes.has("packed_columns") ? 1 : 0;
  shape.b_depth_stride = transpose_b ? 1 : shape.columns;
  shape.b_column_stride = transpose_b ? shape.depth : 1;
  shape.block_rows = geometry.block_rows;
  shape.block_columns = geometry.block_columns;
  return shape;
}

ConvShape convolution_shape(const KernelSpec& spec) {
  check_dims(spec, result(spec).size() - 2, kernels::kSpatial);
  ConvShape shape =
      uncut_convolution(spec.anchor, spec.attributes, spec.operand_types, result(spec));
  const AnchorGeometry geometry = geometry_of(spec);
  shape.block_rows = geometry.block_rows;
  shape.block_columns = geometry.block_columns;
  std::copy(geometry.box.begin(), geometry.box.end(), shape.box);
  return shape;
}

PoolShape pool_shape(const KernelSpec& spec) {
  const bool is_average_grad = spec.anchor == Op::kAveragePoolGrad;
  const Shape& x = is_average_grad ? result(spec) : operand(spec, 0);
  const Shape& y = is_average_grad                   ? operand(spec, 0)
                   : spec.anchor == Op::kMaxPoolGrad ? operand(spec, 1)
                                                     : result(spec);
  check_dims(spec, x.size() - 2, kernels::kSpatial);
  PoolShape shape = {};
  shape.planes = x[0] * x[1];
  shape.window = window_shape(spec.attributes, x, y, spec.attributes.integers("kernel"));
  shape.count_include_pad = spec.attributes.integer_or("count_include_pad", 0);
  shape.planes_per_block = geometry_of(spec).block_columns;
  return shape;
}

AxisShape axis_shape(const KernelSpec& spec) {
  const Shape& x = operand(spec, 0);
  const auto axis = static_cast<size_t>(spec.attributes.integer("axis"));
  AxisShape shape = {};
  shape.outer = product(x, 0, axis);
  shape.size = x[axis];
  shape.inner = product(x, axis + 1, x.size());
  shape.lines_per_block = geometry_of(spec).block_columns;
  shape.exclusive = spec.attributes.integer_or("exclusive", 0);
  shape.reverse = spec.attributes.integer_or("reverse", 0);
  shape.k = spec.attributes.integer_or("k", 0);
  shape.largest = spec.attributes.integer_or("largest", 1);
  shape.select_last = spec.attributes.integer_or("select_last", 0);
  return shape;
}

ScatterAddShape scatter_add_shape(const KernelSpec& spec) {
  const Shape& data = operand(spec, 0);
  const auto axis = static_cast<size_t>(spec.attributes.integer("axis"));
  ScatterAddShape shape = {};
  shape.outer = product(data, 0, axis);
  shape.size = data[axis];
  shape.inner = product(data, axis + 1, data.size());
  shape.indices = element_count(operand(spec, 1));
  shape.index_bytes = size_of(spec.operand_types[1].dtype);
  shape.checked_node = spec.checked_node;
  shape.columns_per_block = geometry_of(spec).block_columns;
  return shape;
}

ScatterElementsShape scatter_elements_shape(const KernelSpec& spec) {
  const Shape& data = operand(spec, 0);
  const Shape& indices = operand(spec, 1);
  check_dims(spec, data.size(), kernels::kMaxDims);
  ScatterElementsShape shape = {};
  shape.rank = static_cast<int64_t>(data.size());
  shape.axis = spec.attributes.integer("axis");
  std::copy(data.begin(), data.end(), shape.data);
  std::copy(indices.begin(), indices.end(), shape.indices);
  shape.index_bytes = size_of(spec.operand_types[1].dtype);
  shape.checked_node = spec.checked_node;
  shape.reduction = reduction_of(spec);
  return shape;
}

ScatterNdShape scatter_nd_shape(const KernelSpec& spec) {
  const Shape& data = operand(spec, 0);
  const Shape& indices = operand(spec, 1);
  const auto depth = static_cast<size_t>(indices.back());
  check_dims(spec, depth, kernels::kMaxDims);
  ScatterNdShape shape = {};
  shape.tuples = product(indices, 0, indices.size() - 1);
  shape.depth = static_cast<int64_t>(depth);
  shape.slice = product(data, depth, data.size());
  const Shape strides = row_major_strides(data);
  std::copy_n(data.begin(), depth, shape.extents);
  std::copy_n(strides.begin(), depth, shape.strides);
  shape.elements = element_count(data);
  shape.index_bytes = size_of(spec.operand_types[1].dtype);
  shape.checked_node = spec.checked_node;
  shape.reduction = reduction_of(spec);
  shape.columns_per_block = geometry_of(spec).block_columns;
  return shape;
}

AttentionShape attention_shape(const KernelSpec& spec) {
  const Shape& q = operand(spec, 0);
  const Shape& k = operand(spec, 1);
  const size_t mask = spec.anchor == Op::kAttention ? 3 : 7;
  AttentionShape shape = {};
  shape.batch = q[0];
  shape.heads = q[1];
  shape.key_heads = k[1];
  shape.queries = q[2];
  shape.keys = k[2];
  shape.key_size = q[3];
  shape.value_size = operand(spec, 2)[3];
  shape.causal = spec.attributes.integer_or("causal", 0);
  shape.zero_empty = spec.attributes.integer_or("zero_empty", 0);
  shape.scale = spec.attributes.real("scale");
  shape.whole_heads = geometry_of(spec).block_rows > kernels::kAttentionRows;
  if (spec.operand_types.size() > mask) {
    shape.has_mask = 1;
    const Shape& m = operand(spec, mask);
    const StridedLayout layout = operand_layout(spec, mask);
    shape.mask_offset = layout.offset;
    for (size_t i = 0; i < m.size(); ++i) {
      const size_t d = m.size() - 1 - i;
      shape.mask_strides[3 - i] = m[d] == 1 ? 0 : layout.strides[d];
    }
  }
  shape.q = head_strides(operand_layout(spec, 0));
  shape.k = head_strides(operand_layout(spec, 1));
  shape.v = head_strides(operand_layout(spec, 2));
  const bool is_gradient = spec.anchor == Op::kAttentionGrad;
  const auto of_forward = [&](size_t i) {
    return head_strides(is_gradient ? operand_layout(spec, 3 + i) : result_layout(spec, i));
  };
  shape.output = of_forward(0);
  shape.maximum = of_forward(1);
  shape.sum = of_forward(2);
  if (is_gradient) {
    shape.doutput = head_strides(operand_layout(spec, 6));
    shape.dq = head_strides(result_layout(spec, 0));
    shape.dk = head_strides(result_layout(spec, 1));
    shape.dv = head_strides(result_layout(spec, 2));
  }
  return shape;
}

std::string anchor_entry(Op op, DType dtype) {
  if (!has_instance(op, dtype)) return "";
  // Truth values are scattered as bytes.
  const DType stored = dtype == DType::kBool ? DType::kUInt8 : dtype;
  const Op written = op == Op::kAccumulateRows ? Op::kScatterAdd : op;  // its data is the result
  return "sgtc_" + std::string(name_of(written)) + "_" + std::string(name_of(stored));
}

std::vector<int64_t> anchor_shape_words(const KernelSpec& spec, bool wide_vectors) {
  switch (spec.anchor) {
    case Op::kMatMul:
      return cpu_words(matmul_shape(spec), wide_vectors);
    case Op::kConv:
    case Op::kConvInputGrad:
    case Op::kConvWeightGrad:
      return cpu_words(convolution_shape(spec), wide_vectors);
    case Op::kMaxPool:
    case Op::kMaxPoolGrad:
    case Op::kAveragePool:
    case Op::kAveragePoolGrad:
      return words_of(pool_shape(spec));
    case Op::kArgMax:
    case Op::kArgMin:
    case Op::kCumSum:
    case Op::kTopK:
      return words_of(axis_shape(spec));
    case Op::kScatterAdd:
    case Op::kAccumulateRows:
      return words_of(scatter_add_shape(spec));
    case Op::kScatterElements:
      return words_of(scatter_elements_shape(spec));
    case Op::kScatterNd:
      return words_of(scatter_nd_shape(spec));
    case Op::kAttention:
    case Op::kAttentionGrad:
      return cpu_words(attention_shape(spec), wide_vectors);
    default:
      internal_error(__FILE__, __LINE__,
                     std::string(name_of(spec.anchor)) + " has no written kernel");
  }
}

}  // namespace sgtc
