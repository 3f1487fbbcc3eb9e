// The core of all contractions: one tile of C = A B by packed panels and register tiles.
//
// The problem: a tile of C needs rows of A and columns of B many times over; read in place they
// come with strides that defeat vector loads, caches and address translation. The known answer
// (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008) is taken: copy
// both operands, a slice of the depth at a time, into panels in the order in which the inner loop
// reads them, and keep a small tile of C in registers for the whole slice. What differs:
// - An operand is an object that gives its panels (PackedOperand and what else has its functions),
//   so a convolution needs no matrix in memory: its packing reads the image. Packing is up to a
//   sixth of the time, so an operand may leave lines where they lie (kernels/matmul/operands.h).
// - The order of a sum follows its length alone. One chain of n additions loses up to n roundings,
//   which long products (18432 terms and more in weight gradients of convolutions) cannot afford.
//   So each slice of kDepth terms is a chain of fused multiply-adds of its own that starts from
//   zero, the results of up to 16 slices are added in order, and the sums of these groups are added
//   in order. Bits depend on neither the sizes of tiles nor vector width nor threads. Splitting the
//   depth over threads is left out; long products of small results are slower for it.
// - Blocks are independent and need no shared workspace: what is packed lies on the stack of the
//   call. A call of many blocks joins neighbours to larger tiles (matmul), so that it packs little
//   more than once; threads still pack for themselves.
#pragma once

#include "element.h"
#include "transpose.h"
#include "vector.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// The register tile: Rows x (Vectors * 16) elements of type E. Slices are of one depth for all
/// tiles of a type, since results depend on it.
template <typename E_, int Rows_, int Vectors_>
struct RegisterTile {
  using E = E_;
  using V = E __attribute__((vector_size(kLanes * sizeof(E_))));
  using Sums = V[Rows_][Vectors_];
  static constexpr int kRows = Rows_;
  static constexpr int kVectors = Vectors_;
  static constexpr int64_t kColumns = Vectors_ * kLanes;
  static constexpr int64_t kElements = Rows_ * kColumns;
  static constexpr int64_t kDepth = 1024 / sizeof(E_);
  static constexpr int64_t kGroupDepth = 16 * kDepth;
};

// 12 and 24 accumulators for 16 registers of 256 and 32 of 512 bits.
using NarrowTile = RegisterTile<float, 6, 1>;
using WideTile = RegisterTile<float, 12, 2>;
using DoubleTile = RegisterTile<double, 2, 1>;
/// For products of at most 16 columns.
template <typename Tile>
using SlimTile = RegisterTile<typename Tile::E, Tile::kRows, 1>;
/// The first Rows rows of a register tile.
template <typename Tile, int Rows>
using LowTile = RegisterTile<typename Tile::E, Rows, Tile::kVectors>;

/// The rows of A that a tile has: element k of row i is at[i * line_stride + k * depth_stride].
template <typename E>
struct Panel {
  const E* at;
  int64_t line_stride, depth_stride;
};

/// The columns of B that a tile has: those of row k are neighbours that begin at
/// at[k * depth_stride].
template <typename E>
struct ColumnPanel {
  const E* at;
  int64_t depth_stride;
};

/// sums[i] += factor(i) * b: each a fused multiply-add; b is a row of kColumns elements.
template <typename Tile, typename Factor>
SGTC_INLINE void add_products(typename Tile::Sums& sums, const typename Tile::E* b, Factor factor) {
  using V = typename Tile::V;
  V row[Tile::kVectors];
#pragma clang loop unroll(full)
  for (int j = 0; j < Tile::kVectors; ++j) row[j] = load<V>(b + j * kLanes);
#pragma clang loop unroll(full)
  for (int i = 0; i < Tile::kRows; ++i) {
    const V wide = splat<V>(factor(i));
#pragma clang loop unroll(full)
    for (int j = 0; j < Tile::kVectors; ++j) sums[i][j] = fma(wide, row[j], sums[i][j]);
  }
}

/// c (kRows x kColumns, row-major) = (first ? 0 : c) + sums.
template <typename Tile>
SGTC_INLINE void put_sums(typename Tile::E* c, const typename Tile::Sums& sums, bool first) {
  using V = typename Tile::V;
#pragma clang loop unroll(full)
  for (int i = 0; i < Tile::kRows; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < Tile::kVectors; ++j) {
      typename Tile::E* to = c + i * Tile::kColumns + j * kLanes;
      store<V>(to, first ? sums[i][j] : load<V>(to) + sums[i][j]);
    }
  }
}

/// c (kRows x kColumns, row-major) = (first ? 0 : c) + a b over `depth`. Elements of a b are chains
/// of fused multiply-adds from zero. Unrolled, because the counting takes issue slots that a core
/// may share with another hardware thread.
template <typename Tile>
SGTC_INLINE void multiply_panels(Panel<typename Tile::E> a, ColumnPanel<typename Tile::E> b,
                                 typename Tile::E* c, int64_t depth, bool first) {
  typename Tile::Sums sums = {};
#pragma clang loop unroll_count(4)
  for (int64_t k = 0; k < depth; ++k) {
    add_products<Tile>(
        sums, b.at, [&](int i) __attribute__((always_inline)) { return a.at[i * a.line_stride]; });
    a.at += a.depth_stride;
    b.at += b.depth_stride;
  }
  put_sums<Tile>(c, sums, first);
}

/// multiply_panels for the last register tile of a matrix, of whose rows only `rows` count. Of
/// others the results are left as they are: at small batches they would be a tenth of the work.
template <typename Tile>
SGTC_INLINE void multiply_last_panels(int64_t rows, Panel<typename Tile::E> a,
                                      ColumnPanel<typename Tile::E> b, typename Tile::E* c,
                                      int64_t depth, bool first) {
  constexpr int kThird = Tile::kRows / 3;
  if constexpr (kThird != 0) {
    if (rows <= kThird) return multiply_panels<LowTile<Tile, kThird>>(a, b, c, depth, first);
    if (rows <= 2 * kThird) {
      return multiply_panels<LowTile<Tile, 2 * kThird>>(a, b, c, depth, first);
    }
  }
  multiply_panels<Tile>(a, b, c, depth, first);
}

/// Calls use(row tile, column tile) for all tiles of a matrix, in an order in which a panel of B
/// stays in the first-level cache and up to kHeldRowTiles panels of A in the second; before the
/// first of the tiles that use a panel of B one after another: begin(column tile).
template <typename Begin, typename Use>
SGTC_INLINE void for_each_tile(int64_t row_tiles, int64_t column_tiles, Begin begin, Use use) {
  constexpr int64_t kHeldRowTiles = 64;
  for (int64_t first = 0; first < row_tiles; first += kHeldRowTiles) {
    const int64_t last = minimum(first + kHeldRowTiles, row_tiles);
    for (int64_t j = 0; j < column_tiles; ++j) {
      begin(j);
      for (int64_t i = first; i < last; ++i) use(i, j);
    }
  }
}

template <typename Use>
SGTC_INLINE void for_each_tile(int64_t row_tiles, int64_t column_tiles, Use use) {
  for_each_tile(row_tiles, column_tiles, [](int64_t) __attribute__((always_inline)) {}, use);
}

/// Packs `count` lines (rows of A or columns of B) into panels of Width lines; lines that are
/// missing in the last panel become zeros. get(line, k) is element k of a line.
template <int64_t Width, typename E, typename Get>
SGTC_INLINE void pack_lines(E* to, int64_t count, int64_t depth, Get get) {
  for (int64_t line = 0; line < count; line += Width) {
    const int64_t lines = minimum(Width, count - line);
    for (int64_t i = 0; i < lines; ++i) {
      for (int64_t k = 0; k < depth; ++k) to[k * Width + i] = get(line + i, k);
    }
    for (int64_t i = lines; i < Width; ++i) {
      for (int64_t k = 0; k < depth; ++k) to[k * Width + i] = 0;
    }
    to += Width * depth;
  }
}

/// The same for lines of floats that are contiguous along the depth, `stride` apart.
template <int64_t Width>
SGTC_INLINE void pack_contiguous_lines(float* to, const float* from, int64_t stride, int64_t count,
                                       int64_t depth) {
  const int64_t whole = count / Width * Width;
  for (int64_t line = 0; line < whole; line += Width) {
    pack_panel<Width>(to + line * depth, from + line * stride, stride, depth);
  }
  const float* rest = from + whole * stride;
  pack_lines<Width>(to + whole * depth, count - whole, depth,
                    [=](int64_t line, int64_t k)
                        __attribute__((always_inline)) { return rest[line * stride + k]; });
}

/// The same, when neighbouring lines lie next to each other in memory: element k of line i is
/// from[k * stride + i]. Some rows are read at once, because a short read from each of many pages
/// is what the hardware prefetches least, and not more than give a panel whole cache lines; and not
/// more panels at once than the first-level cache holds lines of equal place in each.
template <int64_t Width, typename E, typename T>
SGTC_INLINE void pack_across(E* to, const T* from, int64_t stride, int64_t count, int64_t depth) {
  constexpr int64_t kRowsAtOnce = 8, kLinesAtOnce = 8 * Width;
  const int64_t whole = count / Width * Width;
  for (int64_t begin = 0; begin < whole; begin += kLinesAtOnce) {
    const int64_t end = minimum(begin + kLinesAtOnce, whole);
    for (int64_t first = 0; first < depth; first += kRowsAtOnce) {
      const int64_t last = minimum(first + kRowsAtOnce, depth);
      for (int64_t line = begin; line < end; line += Width) {
        // Not as one vector of many k, which would be scattered.
#pragma clang loop vectorize(disable)
        for (int64_t k = first; k < last; ++k) {
          const T* group = from + k * stride + line;
          if constexpr (__is_same(E, T)) {
            __builtin_memcpy_inline(to + line * depth + k * Width, group, Width * sizeof(E));
          } else {
            E values[Width];
#pragma clang loop unroll(full)
            for (int64_t i = 0; i < Width; ++i) values[i] = static_cast<E>(widened(group[i]));
            __builtin_memcpy(to + line * depth + k * Width, values, sizeof(values));
          }
        }
      }
    }
  }
  if (whole == count) return;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < Width; ++i) {
      to[whole * depth + k * Width + i] =
          whole + i < count ? static_cast<E>(widened(from[k * stride + whole + i])) : E{};
    }
  }
}

/// Calls visit(row, column, values, lanes) for each 16 elements of the rows of a register tile that
/// begins at (row, column), without what lies beyond `rows` and `columns`.
template <typename Tile, typename Visit>
SGTC_INLINE void visit_tile(const typename Tile::E* c, int64_t row, int64_t column, int64_t rows,
                            int64_t columns, Visit visit) {
  using V = typename Tile::V;
  const int64_t tile_rows = minimum(Tile::kRows, rows - row);
  for (int64_t i = 0; i < tile_rows; ++i) {
#pragma clang loop unroll(full)
    for (int64_t part = 0; part < Tile::kVectors; ++part) {
      const int64_t first = column + part * kLanes;
      if (first >= columns) continue;
      visit(row + i, first, load<V>(c + i * Tile::kColumns + part * kLanes),
            minimum(kLanes, columns - first));
    }
  }
}

/// to = (first ? 0 : to) + from, for `count` register tiles.
template <typename Tile>
SGTC_INLINE void add_tiles(typename Tile::E* to, const typename Tile::E* from, int64_t count,
                           bool first) {
  using V = typename Tile::V;
  for (int64_t i = 0; i < count * Tile::kElements; i += kLanes) {
    store<V>(to + i, first ? load<V>(from + i) : load<V>(to + i) + load<V>(from + i));
  }
}

/// An operand of which a slice of the depth is packed at once: pack(to, depth begin, depth) fills
/// the panels of all its lines in the given memory. Width: kRows or kColumns of the tile. (Objects
/// that have the memory in them are not split into registers by the compiler.)
template <int64_t Width, typename E, typename Pack>
class PackedOperand {
 public:
  SGTC_INLINE PackedOperand(Pack pack, E* panels) : pack_(pack), panels_(panels) {}

  /// Before the panels of a slice are asked for.
  SGTC_INLINE void begin_slice(int64_t begin, int64_t depth) {
    depth_ = depth;
    pack_(panels_, begin, depth);
  }
  /// Of columns; what it shows stays until it is called again.
  SGTC_INLINE ColumnPanel<E> panel(int64_t index) const { return {begin_of(index), Width}; }
  /// Of rows: calls use(Panel).
  template <typename Use>
  SGTC_INLINE void with_panel(int64_t index, Use use) const {
    use(Panel<E>{begin_of(index), 1, Width});
  }

 private:
  SGTC_INLINE const E* begin_of(int64_t index) const { return panels_ + index * Width * depth_; }

  Pack pack_;
  E* panels_;
  int64_t depth_ = 0;
};

/// Calls ahead(row, column) for what `visit_tile` will visit.
template <typename Tile, typename Ahead>
SGTC_INLINE void look_ahead(int64_t row, int64_t column, int64_t rows, int64_t columns,
                            Ahead ahead) {
  for (int64_t i = row; i < minimum(row + Tile::kRows, rows); ++i) {
    for (int64_t j = column; j < minimum(column + Tile::kColumns, columns); j += kLanes)
      ahead(i, j);
  }
}

/// The product of the operands a and b, `rows` x `columns` elements and at most MaxElements. If b
/// has prefetch(index, part, parts), each tile asks for its part of the panel after its own.
/// visit(row, column, values, lanes) gets all its elements, ahead(row, column) says so before their
/// last slice is computed. `last_rows` is how many rows of the last register tile count if `rows`
/// is no multiple of its height: a constant, so that there is code for that number alone.
template <typename Tile, int64_t MaxElements, typename A, typename B, typename Ahead,
          typename Visit>
SGTC_INLINE void multiply_operands(int64_t rows, int64_t last_rows, int64_t columns, int64_t depth,
                                   A& a, B& b, Ahead ahead, Visit visit) {
  using E = typename Tile::E;
  alignas(64) E c[MaxElements];      // of one group of slices
  alignas(64) E total[MaxElements];  // of the groups before, if there are several
  const int64_t row_tiles = ceil_divide(rows, Tile::kRows);
  const int64_t column_tiles = ceil_divide(columns, Tile::kColumns);
  int64_t begin = 0;
  do {
    const int64_t slice = minimum(Tile::kDepth, depth - begin);
    const bool first = begin % Tile::kGroupDepth == 0, last = begin + slice == depth;
    ColumnPanel<E> panel = {};
    a.begin_slice(begin, slice);
    b.begin_slice(begin, slice);
    for_each_tile(
        row_tiles, column_tiles,
        [&](int64_t j) __attribute__((always_inline)) { panel = b.panel(j); },
        [&](int64_t i, int64_t j) __attribute__((always_inline)) {
          // A tile of one slice is done at once, and the next one may have its place.
          const int64_t at = depth <= Tile::kDepth ? 0 : (j * row_tiles + i) * Tile::kElements;
          if (last) {
            look_ahead<Tile>(i * Tile::kRows, j * Tile::kColumns, rows, columns, ahead);
          }
          if constexpr (requires { b.prefetch(j, i, row_tiles); }) b.prefetch(j + 1, i, row_tiles);
          a.with_panel(i, [&](Panel<E> rows_of_a) __attribute__((always_inline)) {
            if (last_rows != 0 && rows - i * Tile::kRows < Tile::kRows) {
              multiply_last_panels<Tile>(last_rows, rows_of_a, panel, c + at, slice, first);
            } else {
              multiply_panels<Tile>(rows_of_a, panel, c + at, slice, first);
            }
          });
          if (!last) return;
          if (depth > Tile::kGroupDepth) add_tiles<Tile>(c + at, total + at, 1, false);
          visit_tile<Tile>(c + at, i * Tile::kRows, j * Tile::kColumns, rows, columns, visit);
        });
    begin += slice;
    if (!last && begin % Tile::kGroupDepth == 0) {
      add_tiles<Tile>(total, c, row_tiles * column_tiles, begin == Tile::kGroupDepth);
    }
  } while (begin < depth);
}

}  // namespace sgtc::kernels

SGTC_KERNELS_END
