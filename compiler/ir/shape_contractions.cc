// Shape rules of matrix products, convolutions and pools.
#include <utility>

#include "ir/shape_rules.h"

namespace sgtc::shape_rules {
namespace {

// strides, pads, dilations of a window operator, one per spatial dimension.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> pads;
  std::vector<int64_t> dilations;
};

Window window_of(const Call& call, const std::vector<int64_t>& kernel) {
  const auto spatial = static_cast<int64_t>(kernel.size());
  return {kernel, call.integers("strides", spatial, 1), call.integers("pads", 2 * spatial, 0),
          call.integers("dilations", spatial, 1)};
}

int64_t spatial_rank(const Call& call) {
  if (call.rank(0) < 3) mismatch("operand 0 of rank 3 or more", to_string(call.shape(0)));
  return call.rank(0) - 2;
}

// Number of window positions that lie within input and padding.
int64_t positions(const Window& window, size_t d, int64_t input) {
  const size_t spatial = window.kernel.size();
  if (window.kernel[d] < 1) {
    mismatch("a window of at least 1 element in spatial dimension " + std::to_string(d),
             std::to_string(window.kernel[d]));
  }
  int64_t extent = 0;
  int64_t padded = 0;
  const bool overflow =
      __builtin_mul_overflow(window.kernel[d] - 1, window.dilations[d], &extent) ||
      __builtin_add_overflow(extent, 1, &extent) ||
      __builtin_add_overflow(input, window.pads[d], &padded) ||
      __builtin_add_overflow(padded, window.pads[spatial + d], &padded);
  if (overflow) mismatch("a window of less than 2^63 elements", to_string(window.kernel));
  if (padded < extent) {
    mismatch("a window of at most " + std::to_string(padded) + " elements in spatial dimension " +
                 std::to_string(d),
             std::to_string(extent));
  }
  return (padded - extent) / window.strides[d] + 1;
}

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

// Spatial sizes of the convolution of `input` sizes.
Shape conv_output(const Window& window, const Shape& input) {
  Shape output;
  for (size_t d = 0; d < input.size(); ++d) output.push_back(positions(window, d, input[d]));
  return output;
}

int64_t group_count(const Call& call, int64_t channels, const char* what) {
  const int64_t groups = call.integer("groups");
  if (groups < 1 || channels % groups != 0) {
    mismatch(std::string("groups that divide the ") + std::to_string(channels) + ' ' + what,
             std::to_string(groups));
  }
  return groups;
}

// A weight without output channels has any number of groups.
int64_t product_of(int64_t channels, int64_t groups) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(channels, groups, &product)) return product;
  mismatch("fewer groups", std::to_string(groups));
}

Shape with_spatial(int64_t first, int64_t second, const Shape& spatial) {
  Shape shape = {first, second};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

// The attribute `output` of a pool: each window must start within input or the low padding.
Shape pool_output(const Call& call, const Shape& input) {
  const auto spatial = static_cast<int64_t>(input.size());
  const Window window = window_of(call, call.integers("kernel", spatial, 1));
  const Shape& output = call.integers("output", spatial, 0);
  for (size_t d = 0; d < output.size(); ++d) {
    int64_t last = 0;
    const bool overflow = __builtin_mul_overflow(output[d] - 1, window.strides[d], &last) ||
                          __builtin_sub_overflow(last, window.pads[d], &last);
    if (output[d] > 0 && (overflow || last >= input[d])) {
      mismatch("windows that start within " + std::to_string(input[d]) +
                   " elements of spatial dimension " + std::to_string(d),
               std::to_string(output[d]) + " windows");
    }
  }
  return output;
}

// Of a product: the operands', or the attribute `result`.
DType product_dtype(const Call& call) {
  if (!call.attributes.has("result")) return call.dtype(0);
  const DType wanted = call.dtype_attribute("result");
  const bool narrow = call.dtype(0) == DType::kBFloat16 || call.dtype(0) == DType::kFloat16;
  if (!narrow || wanted != DType::kFloat32) {
    mismatch("result=f32 and operands of type bf16 or f16",
             "result=" + std::string(name_of(wanted)) + " and operands of type " +
                 std::string(name_of(call.dtype(0))));
  }
  return wanted;
}

// A product with packed columns.
Types packed_matmul(const Call& call) {
  call.need_float(0);
  call.need_rank(0, 2);
  call.need_rank(1, 3);
  const bool transposed = call.attributes.integer_or("transpose_a", 0) != 0;
  const Shape& a = call.shape(0);
  const Shape& panels = call.shape(1);
  if (a[transposed ? 0 : 1] != panels[1]) {
    mismatch("equal inner sizes", to_string(a) + " and panels of " + to_string(panels));
  }
  const int64_t columns = call.attributes.integer("packed_columns");
  const int64_t most = element_count({panels[0], panels[2]});
  if (columns > most || columns <= most - panels[2]) {
    mismatch("panels of " + std::to_string(columns) + " columns", to_string(panels));
  }
  return one(product_dtype(call), {a[transposed ? 1 : 0], columns});
}

}  // namespace

Types matmul(const Call& call) {
  call.need_number(0);
  call.same_dtypes(0, 2);
  if (call.rank(0) < 2 || call.rank(1) < 2) {
    mismatch("operands of rank 2 or more",
             to_string(call.shape(0)) + " and " + to_string(call.shape(1)));
  }
  if (call.attributes.has("packed_columns")) return packed_matmul(call);
  const bool transpose_a = call.attributes.integer_or("transpose_a", 0) != 0;
  const bool transpose_b = call.attributes.integer_or("transpose_b", 0) != 0;
  const size_t a = call.shape(0).size();
  const size_t b = call.shape(1).size();
  const int64_t rows = call.shape(0)[transpose_a ? a - 1 : a - 2];
  const int64_t inner_a = call.shape(0)[transpose_a ? a - 2 : a - 1];
  const int64_t inner_b = call.shape(1)[transpose_b ? b - 1 : b - 2];
  const int64_t columns = call.shape(1)[transpose_b ? b - 2 : b - 1];
  if (inner_a != inner_b) {
    mismatch("equal inner sizes", std::to_string(inner_a) + " of " + to_string(call.shape(0)) +
                                      " and " + std::to_string(inner_b) + " of " +
                                      to_string(call.shape(1)));
  }
  Shape shape;
  const Shape batch_a(call.shape(0).begin(), call.shape(0).end() - 2);
  const Shape batch_b(call.shape(1).begin(), call.shape(1).end() - 2);
  if (!broadcast_shapes(batch_a, batch_b, &shape)) {
    mismatch("leading dimensions that broadcast",
             to_string(call.shape(0)) + " and " + to_string(call.shape(1)));
  }
  shape.push_back(rows);
  shape.push_back(columns);
  element_count(shape);
  return one(product_dtype(call), std::move(shape));
}

Types conv(const Call& call) {
  call.need_float(0);
  call.same_dtypes(0, 2);
  spatial_rank(call);
  call.need_rank(1, call.rank(0));
  const Shape& x = call.shape(0);
  const Shape& w = call.shape(1);
  const int64_t groups = group_count(call, w[0], "output channels");
  const int64_t channels = product_of(w[1], groups);
  if (x[1] != channels) {
    mismatch(std::to_string(channels) + " input channels (" + std::to_string(groups) +
                 " groups of " + std::to_string(w[1]) + ")",
             std::to_string(x[1]));
  }
  const Window window = window_of(call, spatial_of(w));
  return one(product_dtype(call), with_spatial(x[0], w[0], conv_output(window, spatial_of(x))));
}

Types conv_input_grad(const Call& call) {
  call.need_float(0);
  call.same_dtypes(0, 2);
  const int64_t spatial = spatial_rank(call);
  call.need_rank(1, call.rank(0));
  const Shape& w = call.shape(1);
  const int64_t groups = group_count(call, w[0], "output channels");
  const Shape& input = call.integers("input", spatial, 0);
  const Window window = window_of(call, spatial_of(w));
  call.need_shape(0, with_spatial(call.shape(0)[0], w[0], conv_output(window, input)));
  const int64_t channels = product_of(w[1], groups);
  return one(product_dtype(call), with_spatial(call.shape(0)[0], channels, input));
}

Types conv_weight_grad(const Call& call) {
  call.need_float(0);
  call.same_dtypes(0, 2);
  const int64_t spatial = spatial_rank(call);
  call.need_rank(1, call.rank(0));
  const Shape& x = call.shape(0);
  const int64_t channels = call.shape(1)[1];
  const int64_t groups = group_count(call, x[1], "input channels");
  group_count(call, channels, "output channels");
  const Shape& kernel = call.integers("kernel", spatial, 1);
  const Shape output = conv_output(window_of(call, kernel), spatial_of(x));
  call.need_shape(1, with_spatial(x[0], channels, output));
  return one(product_dtype(call), with_spatial(channels, x[1] / groups, kernel));
}

Types max_pool(const Call& call) {
  call.need_number(0);
  spatial_rank(call);
  const Shape& x = call.shape(0);
  return one(call.dtype(0), with_spatial(x[0], x[1], pool_output(call, spatial_of(x))));
}

Types max_pool_grad(const Call& call) {
  call.need_float(0);
  call.same_dtypes(0, 2);
  call.need_shape(1, max_pool(call)[0].shape);
  return one(call.dtype(0), call.shape(0));
}

Types average_pool(const Call& call) {
  call.need_float(0);
  spatial_rank(call);
  const Shape& x = call.shape(0);
  return one(call.dtype(0), with_spatial(x[0], x[1], pool_output(call, spatial_of(x))));
}

Types average_pool_grad(const Call& call) {
  call.need_float(0);
  const int64_t spatial = spatial_rank(call);
  const Shape& dy = call.shape(0);
  const Shape& input = call.integers("input", spatial, 0);
  call.need_shape(0, with_spatial(dy[0], dy[1], pool_output(call, input)));
  return one(call.dtype(0), with_spatial(dy[0], dy[1], input));
}

}  // namespace sgtc::shape_rules
