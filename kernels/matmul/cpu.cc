// Batched matrix products, summed over the depth in the order that tile_product.h states.
#include "element.h"
#include "matmul/operands.h"
#include "shapes.h"
#include "tile_product.h"
#include "tile_store.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// The block of a tile: where it begins, and the operands of its batch.
template <typename T>
struct Block {
  int64_t batch, row, column;
  const T* a;
  const T* b;
};

/// How the blocks of a result are numbered: along the shorter side first. So a range of blocks is a
/// part of the longer side, of which alone it packs an operand that no other range needs.
struct BlockOrder {
  bool rows_first;
  int64_t inner, outer;  // blocks along the first and the other side

  SGTC_INLINE explicit BlockOrder(const MatmulShape& s) : rows_first(s.rows < s.columns) {
    const int64_t in_column = ceil_divide(s.rows, s.block_rows);
    const int64_t in_row = ceil_divide(s.columns, s.block_columns);
    inner = rows_first ? in_column : in_row;
    outer = rows_first ? in_row : in_column;
  }
};

template <typename T>
SGTC_INLINE Block<T> block_at(const MatmulShape& s, void* const* tensors, int64_t index) {
  const BlockOrder order(s);
  const int64_t inner = index % order.inner, outer = index / order.inner % order.outer;
  Block<T> block;
  block.row = (order.rows_first ? inner : outer) * s.block_rows;
  block.column = (order.rows_first ? outer : inner) * s.block_columns;
  block.batch = index / order.inner / order.outer;
  block.a = static_cast<const T*>(tensors[0]);
  block.b = static_cast<const T*>(tensors[1]);
  int64_t rest = block.batch;
  for (int64_t d = s.batch_rank - 1; d >= 0; --d) {
    block.a += rest % s.batch[d] * s.a_batch_strides[d];
    block.b += rest % s.batch[d] * s.b_batch_strides[d];
    rest /= s.batch[d];
  }
  return block;
}

SGTC_INLINE bool is_empty(const MatmulShape& s) {
  bool empty = s.rows == 0 || s.columns == 0;
  for (int64_t d = 0; d < s.batch_rank; ++d) empty = empty || s.batch[d] == 0;
  return empty;
}

/// The tile of `rows` x `columns` elements that begins with `block`, of the columns `b`.
template <typename Tile, typename T, typename B>
SGTC_INLINE void multiply_region(const MatmulShape& s, void* const* args, void* const* tensors,
                                 const Block<T>& block, int64_t rows, int64_t columns, B b) {
  alignas(64) typename Tile::E rows_of_a[kMaxSliceRows * Tile::kDepth];
  RowOperand<Tile, T> a(
      {block.a + block.row * s.a_row_stride, rows, s.a_row_stride, s.a_depth_stride}, rows_of_a);
  multiply_operands<Tile, kMaxRegionRows * kMaxRegionColumns>(
      rows, s.rows % Tile::kRows, columns, s.depth, a, b,
      [&](int64_t row, int64_t column) __attribute__((always_inline)) {
        prefetch_operands<T>(args, block.batch, block.row + row, block.column + column);
      },
      [&](int64_t row, int64_t column, typename Tile::V values, int64_t lanes)
          __attribute__((always_inline)) {
            store_result(args, static_cast<T*>(tensors[2]), s.rows, s.columns, block.batch,
                         block.row + row, block.column + column, values, lanes);
          });
}

template <typename Tile, typename T>
SGTC_INLINE void multiply_region(const MatmulShape& s, void* const* args, void* const* tensors,
                                 const Block<T>& block, int64_t rows, int64_t columns) {
  if constexpr (__is_same(T, typename Tile::E)) {
    if (s.b_packed != 0) {
      return multiply_region<Tile>(s, args, tensors, block, rows, columns,
                                   PrepackedColumns<Tile>(block.b, block.column, s.depth));
    }
  }
  alignas(64) typename Tile::E panel_of_b[Tile::kColumns * Tile::kDepth];
  const Lines<T> lines = {block.b + block.column * s.b_column_stride, columns, s.b_column_stride,
                          s.b_depth_stride};
  multiply_region<Tile>(s, args, tensors, block, rows, columns,
                        ColumnOperand<Tile, T>(lines, panel_of_b));
}

/// Neighbouring blocks make up one region, for which operands are packed once: whole lines of
/// blocks as far as the range has them, else what it has of one line.
template <typename Tile, typename T>
SGTC_INLINE void multiply_regions(const MatmulShape& s, void* const* args, void* const* tensors,
                                  int64_t begin, int64_t end) {
  const BlockOrder order(s);
  const bool one_slice = s.depth <= Tile::kDepth;
  const int64_t most_rows = maximum(1, (one_slice ? kMaxSliceRows : kMaxRegionRows) / s.block_rows);
  const int64_t most_columns = one_slice ? ceil_divide(s.columns, s.block_columns)
                                         : maximum(1, kMaxRegionColumns / s.block_columns);
  const int64_t most_inner = order.rows_first ? most_rows : most_columns;
  const int64_t most_outer = order.rows_first ? most_columns : most_rows;
  for (int64_t index = begin; index < end;) {
    int64_t length = minimum(order.inner - index % order.inner, end - index), lines = 1;
    if (length == order.inner) {
      const int64_t left = order.outer - index / order.inner % order.outer;
      lines = minimum(minimum(most_outer, left), (end - index) / order.inner);
    }
    for (int64_t at = 0; at < length; at += most_inner) {
      const Block<T> block = block_at<T>(s, tensors, index + at);
      const int64_t blocks = minimum(most_inner, length - at);
      const int64_t rows = (order.rows_first ? blocks : lines) * s.block_rows;
      const int64_t columns = (order.rows_first ? lines : blocks) * s.block_columns;
      multiply_region<Tile>(s, args, tensors, block, minimum(rows, s.rows - block.row),
                            minimum(columns, s.columns - block.column));
    }
    index += lines * length;
  }
}

template <typename T>
SGTC_INLINE void multiply(const MatmulShape* shape, void* const* args, void* const* tensors,
                          int64_t begin, int64_t end) {
  const MatmulShape& s = *shape;
  if (is_empty(s)) return;
  if constexpr (__is_same(T, double)) {
    multiply_regions<DoubleTile, T>(s, args, tensors, begin, end);
  } else if (s.wide_vectors != 0) {
    multiply_regions<WideTile, T>(s, args, tensors, begin, end);
  } else {
    multiply_regions<NarrowTile, T>(s, args, tensors, begin, end);
  }
}

/// Integers wrap; rows of the result are accumulated in place, without tiles.
template <typename T>
SGTC_INLINE void multiply_integers(const MatmulShape* shape, void* const* tensors, int64_t begin,
                                   int64_t end) {
  const MatmulShape& s = *shape;
  if (is_empty(s)) return;
  for (int64_t index = begin; index < end; ++index) {
    const Block<T> block = block_at<T>(s, tensors, index);
    const int64_t row_end = minimum(s.rows, block.row + s.block_rows);
    const int64_t columns = minimum(s.block_columns, s.columns - block.column);
    for (int64_t row = block.row; row < row_end; ++row) {
      T* to = static_cast<T*>(tensors[2]) + (block.batch * s.rows + row) * s.columns + block.column;
      for (int64_t i = 0; i < columns; ++i) to[i] = 0;
      for (int64_t k = 0; k < s.depth; ++k) {
        const T factor = block.a[row * s.a_row_stride + k * s.a_depth_stride];
        const T* line = block.b + k * s.b_depth_stride + block.column * s.b_column_stride;
        for (int64_t i = 0; i < columns; ++i) {
          to[i] = add_elements(to[i], multiply_elements(factor, line[i * s.b_column_stride]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_MATMUL(name, type)                                                                   \
  SGTC_EXPORT void sgtc_matmul_##name(const sgtc::kernels::MatmulShape* shape, void* const* args, \
                                      void* const* tensors, int64_t begin, int64_t end) {         \
    sgtc::kernels::multiply<type>(shape, args, tensors, begin, end);                              \
  }
SGTC_FOR_EACH_FLOAT(SGTC_MATMUL)

#define SGTC_MATMUL_INTEGER(name, type)                                                      \
  SGTC_EXPORT void sgtc_matmul_##name(const sgtc::kernels::MatmulShape* shape, void* const*, \
                                      void* const* tensors, int64_t begin, int64_t end) {    \
    sgtc::kernels::multiply_integers<type>(shape, tensors, begin, end);                      \
  }
SGTC_FOR_EACH_INTEGER(SGTC_MATMUL_INTEGER)

SGTC_KERNELS_END
