#include "passes/anchor_geometry.h"

#include <algorithm>
#include <string>

#include "passes/block_parts.h"
#include "passes/channels_last_geometry.h"
#include "passes/window_shapes.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// Tiles of contractions, as in kernels/include/shapes.h: multiples of the register tiles.
constexpr int64_t kMaxBlockRows = 192;
constexpr int64_t kMaxBlockColumns = 128;
constexpr int64_t kMinBlockRows = 48;
constexpr int64_t kMinBlockColumns = 32;
constexpr int64_t kRowStep = 12;
constexpr int64_t kColumnStep = 32;

constexpr int64_t kWantedBlocks = 32;             // enough to share among the cores of a machine
constexpr int64_t kLeastBlockProducts = 1 << 18;  // less than this is not worth a block
constexpr int64_t kBlockElements = 16384;         // elementwise work of a block
constexpr int64_t kScatterColumns = 64;
constexpr int64_t kAttentionRows = 48;
constexpr int64_t kLeastWholeHeads = 8;  // fewer are split, which costs 7 products instead of 5

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t d = begin; d < end; ++d) result *= shape[d];
  return result;
}

// `batch` products of rows x columns x depth.
AnchorGeometry contraction(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
  AnchorGeometry geometry;
  geometry.block_rows = even_part(rows, kMaxBlockRows, kRowStep);
  geometry.block_columns = even_part(columns, kMaxBlockColumns, kColumnStep);
  const auto blocks = [&] {
    return batch * ceil_divide(rows, geometry.block_rows) *
           ceil_divide(columns, geometry.block_columns);
  };
  const auto is_large = [&] {
    return geometry.block_rows * geometry.block_columns * depth > kLeastBlockProducts;
  };
  while (blocks() < kWantedBlocks && is_large()) {
    if (geometry.block_rows >= 2 * kMinBlockRows) {
      geometry.block_rows = round_up(geometry.block_rows / 2, kRowStep);
    } else if (geometry.block_columns >= 2 * kMinBlockColumns) {
      geometry.block_columns = round_up(geometry.block_columns / 2, kColumnStep);
    } else {
      break;
    }
  }
  geometry.blocks = std::max<int64_t>(1, blocks());
  return geometry;
}

AnchorGeometry matmul(const Attributes& attributes, const Shape& a, const Shape& result) {
  const size_t rank = result.size();
  const bool transposed = attributes.integer_or("transpose_a", 0) != 0;
  return contraction(product(result, 0, rank - 2), result[rank - 2], result[rank - 1],
                     a[a.size() - (transposed ? 2 : 1)]);
}

// `rows` of one group: `channels` / groups; columns are the positions of `result`.
AnchorGeometry convolution(Op op, const Attributes& attributes,
                           const std::vector<TensorType>& operands, const TensorType& type) {
  const Shape& result = type.shape;
  // Products of 16-bit floats may be f32.
  const bool is_wide = size_of(type.dtype) >= 4 && size_of(operands[0].dtype) >= 4;
  if (is_wide && result.size() - 2 <= static_cast<size_t>(kernels::kSpatial)) {
    const kernels::ConvShape shape = uncut_convolution(op, attributes, operands, result);
    const auto geometry = channels_last_geometry(op, shape, size_of(type.dtype));
    if (geometry) return *geometry;
  }
  const int64_t groups = attributes.integer("groups");
  const Shape& first = operands[0].shape;
  const Shape& second = operands[1].shape;
  if (op == Op::kConvWeightGrad) {
    return contraction(groups, result[0] / groups, product(result, 1, result.size()),
                       second[0] * product(second, 2, second.size()));
  }
  const int64_t depth = op == Op::kConv ? product(second, 1, second.size())
                                        : first[1] / groups * product(second, 2, second.size());
  return contraction(result[0] * groups, result[1] / groups, product(result, 2, result.size()),
                     depth);
}

// `units` independent pieces of `size` elements.
AnchorGeometry pieces(int64_t units, int64_t size) {
  AnchorGeometry geometry;
  geometry.block_columns = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, size));
  geometry.blocks = std::max<int64_t>(1, ceil_divide(units, geometry.block_columns));
  return geometry;
}

AnchorGeometry along_axis(const Attributes& attributes, const Shape& shape) {
  const int64_t size = shape[static_cast<size_t>(attributes.integer("axis"))];
  const int64_t elements = element_count(shape);
  return pieces(size == 0 ? 0 : elements / size, size);
}

AnchorGeometry scatter_columns(int64_t outer, int64_t inner) {
  AnchorGeometry geometry;
  geometry.block_columns = kScatterColumns;
  geometry.blocks = std::max<int64_t>(1, outer * ceil_divide(inner, kScatterColumns));
  return geometry;
}

AnchorGeometry attention(const Shape& q) {
  AnchorGeometry geometry;
  geometry.block_rows = kAttentionRows;
  geometry.blocks = std::max<int64_t>(1, q[0] * q[1] * ceil_divide(q[2], kAttentionRows));
  return geometry;
}

AnchorGeometry attention_grad(const TensorType& q, const Shape& k) {
  AnchorGeometry geometry = attention(q.shape);
  const int64_t heads = k[0] * k[1];
  if (size_of(q.dtype) >= 4 && heads >= kLeastWholeHeads && k[2] > 0) {
    geometry.block_rows = kAttentionRows + std::max(q.shape[2], k[2]);
    geometry.blocks = heads;
  } else {
    geometry.blocks += heads * ceil_divide(k[2], kAttentionRows);
  }
  return geometry;
}

}  // namespace

bool has_anchor_kernel(Op op) {
  switch (op) {
    case Op::kScatterAdd:
    case Op::kAccumulateRows:
    case Op::kScatterElements:
    case Op::kScatterNd:
    case Op::kArgMax:
    case Op::kArgMin:
    case Op::kCumSum:
    case Op::kTopK:
    case Op::kMatMul:
    case Op::kConv:
    case Op::kConvInputGrad:
    case Op::kConvWeightGrad:
    case Op::kMaxPool:
    case Op::kMaxPoolGrad:
    case Op::kAveragePool:
    case Op::kAveragePoolGrad:
    case Op::kAttention:
    case Op::kAttentionGrad:
      return true;
    default:
      return false;
  }
}

bool anchor_visits_tiles(Op op, DType result) {
  const bool contracts =
      op == Op::kMatMul || op == Op::kConv || op == Op::kConvInputGrad || op == Op::kConvWeightGrad;
  return contracts && is_float(result) && result != DType::kFloat64;
}

AnchorGeometry anchor_geometry(Op op, const Attributes& attributes,
                               const std::vector<TensorType>& operands,
                               const std::vector<TensorType>& results) {
  const Shape& first = operands[0].shape;
  const Shape& result = results[0].shape;
  switch (op) {
    case Op::kMatMul:
      return matmul(attributes, first, result);
    case Op::kConv:
    case Op::kConvInputGrad:
    case Op::kConvWeightGrad:
      return convolution(op, attributes, operands, results[0]);
    case Op::kMaxPool:
    case Op::kMaxPoolGrad:
    case Op::kAveragePool:
      return pieces(first[0] * first[1], product(first, 2, first.size()));
    case Op::kAveragePoolGrad:
      return pieces(result[0] * result[1], product(result, 2, result.size()));
    case Op::kArgMax:
    case Op::kArgMin:
    case Op::kCumSum:
    case Op::kTopK:
      return along_axis(attributes, first);
    case Op::kScatterAdd:
    case Op::kAccumulateRows: {
      const auto axis = static_cast<size_t>(attributes.integer("axis"));
      return scatter_columns(product(first, 0, axis), product(first, axis + 1, first.size()));
    }
    case Op::kScatterNd: {
      const auto depth = static_cast<size_t>(operands[1].shape.back());
      return scatter_columns(1, product(first, depth, first.size()));
    }
    case Op::kScatterElements:
      return {};
    case Op::kAttention:
      return attention(first);
    case Op::kAttentionGrad:
      return attention_grad(operands[0], operands[1].shape);
    default:
      internal_error(__FILE__, __LINE__, std::string(name_of(op)) + " has no written kernel");
  }
}

}  // namespace sgtc
