// Batched matrix products without tensor cores, for all types, layouts and sizes. A block has a
// tile of the result, or its share of the depth of one (gpu/simt_product.h).
#include "gpu/simt_product.h"
#include "shapes.h"

namespace sgtc::gpu {
namespace {

/// The tile of a block and the operands from its first row and column on.
template <typename T>
struct MatmulBlock {
  uint32_t batch, row, column;
  DepthPart part;
  const T* a;
  const T* b;
};

template <typename Tile, typename T>
SGTC_DEVICE MatmulBlock<T> block_at(const MatmulShape& s, void* const* tensors, uint32_t index) {
  const auto column_tiles = static_cast<uint32_t>(ceil_divide(s.columns, Tile::kLines));
  const auto row_tiles = static_cast<uint32_t>(ceil_divide(s.rows, Tile::kLines));
  const auto count = static_cast<uint32_t>(s.depth_parts);
  MatmulBlock<T> block;
  const uint32_t tile = index / count;
  block.part = {tile, count, index % count, tensors[4], static_cast<uint32_t*>(tensors[5])};
  block.column = tile % column_tiles * Tile::kLines;
  block.row = tile / column_tiles % row_tiles * Tile::kLines;
  block.batch = tile / column_tiles / row_tiles;
  block.a = static_cast<const T*>(tensors[0]) + block.row * s.a_row_stride;
  block.b = static_cast<const T*>(tensors[1]) + block.column * s.b_column_stride;
  uint32_t rest = block.batch;
  for (int64_t d = s.batch_rank - 1; d >= 0; --d) {
    const auto size = static_cast<uint32_t>(s.batch[d]);
    block.a += rest % size * s.a_batch_strides[d];
    block.b += rest % size * s.b_batch_strides[d];
    rest /= size;
  }
  return block;
}

/// Lines (rows of A or columns of B) of a matrix. Of a tile that has fewer, the last one stands in
/// for those that are missing, so that no read needs a condition.
template <typename T>
SGTC_DEVICE auto operand_of(const T* from, int64_t line_stride, int64_t depth_stride,
                            uint32_t lines) {
  using E = SumTypeOf<T>;
  return Operand{line_stride == 1, [=](uint32_t line, uint32_t k) SGTC_LAMBDA {
                   const uint32_t own = line < lines ? line : lines - 1;
                   return static_cast<E>(widened(from[own * line_stride + k * depth_stride]));
                 }};
}

template <typename Tile, typename T>
SGTC_DEVICE void multiply(const MatmulShape& s, void* const* args, void* const* tensors) {
  const MatmulBlock<T> block = block_at<Tile, T>(s, tensors, block_index());
  const auto row_end = static_cast<uint32_t>(minimum(s.rows, block.row + Tile::kLines));
  const auto column_end = static_cast<uint32_t>(minimum(s.columns, block.column + Tile::kLines));
  const auto a = operand_of(block.a, s.a_row_stride, s.a_depth_stride, row_end - block.row);
  const auto b =
      operand_of(block.b, s.b_column_stride, s.b_depth_stride, column_end - block.column);
  typename Tile::Sums sums;
  if (!sum_tile<Tile>(sums, a, b, static_cast<uint32_t>(s.depth), block.part)) return;
  const auto at = TilePosition<Tile>::of(thread_index());
  store_tile<Tile>(sums, TileResult<T>{args, static_cast<T*>(tensors[2]), s.rows, s.columns},
                   block.batch, block.row + at.row, block.column + at.column, row_end, column_end);
}

template <typename T>
SGTC_DEVICE void matmul(const MatmulShape& s, void* const* args, void* const* tensors) {
  using E = SumTypeOf<T>;
  if (s.rows == 0 || s.columns == 0) return;
  if constexpr (__is_same(E, float)) {
    if (s.block_rows == kLargeTileLines) return multiply<LargeTile<E>, T>(s, args, tensors);
  }
  multiply<SmallTile<E>, T>(s, args, tensors);
}

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_MATMUL(name, type)                                                                   \
  SGTC_EXPORT void sgtc_matmul_##name(const sgtc::kernels::MatmulShape* shape, void* const* args, \
                                      void* const* tensors) {                                     \
    sgtc::gpu::matmul<type>(*shape, args, tensors);                                               \
  }
SGTC_FOR_EACH_NUMBER(SGTC_MATMUL)
