// The operands of a matrix product (tile_product.h says what an operand is).
#pragma once

#include "shapes.h"
#include "tile_product.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// Lines of an operand in memory, rows of A or columns of B, of elements T.
template <typename T>
struct Lines {
  const T* from;
  int64_t count;
  int64_t line_stride, depth_stride;

  SGTC_INLINE Lines part(int64_t line, int64_t lines, int64_t depth_begin) const {
    return {from + line * line_stride + depth_begin * depth_stride, lines, line_stride,
            depth_stride};
  }
};

/// Packs lines into panels of Width.
template <int64_t Width, typename E, typename T>
SGTC_INLINE void pack(E* to, const Lines<T>& lines, int64_t depth) {
  const auto get = [&](int64_t line, int64_t k) __attribute__((always_inline)) {
    return static_cast<E>(widened(lines.from[line * lines.line_stride + k * lines.depth_stride]));
  };
  if (lines.line_stride == 1) {
    pack_across<Width>(to, lines.from, lines.depth_stride, lines.count, depth);
  } else if (lines.depth_stride != 1) {
    pack_lines<Width>(to, lines.count, depth, get);
  } else if constexpr (__is_same(T, float)) {
    pack_contiguous_lines<Width>(to, lines.from, lines.line_stride, lines.count, depth);
  } else {
    pack_lines<Width>(to, lines.count, depth, get);
  }
}

/// A. Rows that are contiguous along the depth are read where they lie, if they make up a whole
/// panel and do not compete for a few places in the first-level cache; others are packed into the
/// given memory, a slice of all rows.
template <typename Tile, typename T>
class RowOperand {
  using E = typename Tile::E;
  static constexpr int64_t kPageBytes = 4096;  // lines that far apart have one place in the cache

 public:
  SGTC_INLINE RowOperand(const Lines<T>& rows, E* packed) : rows_(rows), packed_(packed) {
    if constexpr (__is_same(T, E)) {
      const int64_t bytes = rows.line_stride * static_cast<int64_t>(sizeof(T));
      const bool in_place = rows.depth_stride == 1 && bytes % kPageBytes != 0;
      if (in_place) rows_in_place_ = rows.count / Tile::kRows * Tile::kRows;
    }
  }

  SGTC_INLINE void begin_slice(int64_t begin, int64_t depth) {
    begin_ = begin;
    depth_ = depth;
    const int64_t left = rows_.count - rows_in_place_;
    if (left > 0) pack<Tile::kRows>(packed_, rows_.part(rows_in_place_, left, begin), depth);
  }

  template <typename Use>
  SGTC_INLINE void with_panel(int64_t index, Use use) const {
    const int64_t row = index * Tile::kRows;
    if constexpr (__is_same(T, E)) {
      if (row < rows_in_place_) {
        return use(Panel<E>{rows_.part(row, Tile::kRows, begin_).from, rows_.line_stride, 1});
      }
    }
    use(Panel<E>{packed_ + (row - rows_in_place_) * depth_, 1, Tile::kRows});
  }

 private:
  Lines<T> rows_;
  E* packed_;
  int64_t rows_in_place_ = 0;
  int64_t begin_ = 0, depth_ = 0;
};

/// B. A panel is packed when its tiles begin, so it need not come back from the second-level cache.
/// The given memory holds a slice of one panel. Where rows of B are contiguous, a panel is a short
/// read from each of many pages, which the hardware does not prefetch: the tiles before it do.
template <typename Tile, typename T>
class ColumnOperand {
  using E = typename Tile::E;

 public:
  SGTC_INLINE ColumnOperand(const Lines<T>& columns, E* panel) : columns_(columns), panel_(panel) {}

  SGTC_INLINE void begin_slice(int64_t begin, int64_t depth) {
    begin_ = begin;
    depth_ = depth;
  }

  SGTC_INLINE ColumnPanel<E> panel(int64_t index) {
    const int64_t column = index * Tile::kColumns;
    const int64_t count = minimum(Tile::kColumns, columns_.count - column);
    pack<Tile::kColumns>(panel_, columns_.part(column, count, begin_), depth_);
    return {panel_, Tile::kColumns};
  }

  /// Prefetches a part of a panel, of so many parts.
  SGTC_INLINE void prefetch(int64_t index, int64_t part, int64_t parts) const {
    const int64_t column = index * Tile::kColumns;
    if (columns_.line_stride != 1 || column >= columns_.count) return;
    const int64_t rows = ceil_divide(depth_, parts), first = part * rows;
    const T* row = columns_.part(column, 0, begin_ + first).from;
    for (int64_t k = first; k < minimum(first + rows, depth_); ++k) {
      prefetch_to_second_level(row);
      prefetch_to_second_level(row + Tile::kColumns / 2);
      prefetch_to_second_level(row + Tile::kColumns - 1);
      row += columns_.depth_stride;
    }
  }

 private:
  static SGTC_INLINE void prefetch_to_second_level(const T* at) { __builtin_prefetch(at, 0, 2); }

  Lines<T> columns_;
  E* panel_;
  int64_t begin_ = 0, depth_ = 0;
};

/// B that is packed already, of a matrix of so many rows (MatmulShape::b_packed): from a column on
/// that is a multiple of kPackedColumns.
template <typename Tile>
class PrepackedColumns {
  using E = typename Tile::E;
  static_assert(kPackedColumns % Tile::kColumns == 0);

 public:
  SGTC_INLINE PrepackedColumns(const E* b, int64_t column, int64_t matrix_depth)
      : from_(b + column * matrix_depth), matrix_depth_(matrix_depth) {}

  SGTC_INLINE void begin_slice(int64_t begin, int64_t) { begin_ = begin; }

  SGTC_INLINE ColumnPanel<E> panel(int64_t index) const {
    const int64_t column = index * Tile::kColumns, inside = column % kPackedColumns;
    return {from_ + (column - inside) * matrix_depth_ + begin_ * kPackedColumns + inside,
            kPackedColumns};
  }

 private:
  const E* from_;
  int64_t matrix_depth_;
  int64_t begin_ = 0;
};

}  // namespace sgtc::kernels

SGTC_KERNELS_END
