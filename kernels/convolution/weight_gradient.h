// The gradient of a convolution's weights as a product whose rows are (tap, channel of the image),
// whose columns are channels of the result and whose depth are the positions of all samples.
//
// A slice of the depth is a box of positions. Its image is copied into a strip (strip.h), where the
// register tiles read rows in place: at a position each row is one element at a fixed distance
// from where the position's window begins, so few channels fill a tile as well as many. The
// gradient of the result is packed with channels last. The sums of 16 slices are added in order,
// and those of the groups as in tile_product.h.
#pragma once

#include "convolution/strip.h"
#include "tile_product.h"
#include "tile_store.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

template <typename Tile>
struct WeightGradientMemory {
  using E = typename Tile::E;
  static constexpr int64_t kElements = (kMaxGradientRows + Tile::kRows) * kMaxGradientColumns;
  StripMemory<E> strip;
  int64_t places[Tile::kDepth];             // of the box's positions in the planes of its samples
  int32_t begins[Tile::kDepth];             // of their windows in the strip
  int32_t rows[kMaxGradientRows + kLanes];  // from such a begin to the element of each row
  alignas(64) E b[kMaxGradientColumns * Tile::kDepth];
  alignas(64) E c[kElements];      // of one group of slices
  alignas(64) E total[kElements];  // used if there are several groups
};

/// `results` channels of the result from `result` on, by `channels` channels of the image from
/// `channel` on, of one group.
struct WeightRegion {
  int64_t group, result, results, channel, channels;
};

/// c (kRows x kColumns) = (first ? 0 : c) + a b, where element k of line i of a is
/// strip[begins[k] + rows[i]]. AreNeighbours: rows[i] is rows[0] + i; otherwise the lines fill the
/// general registers, and unrolling would spill them.
template <typename Tile, bool AreNeighbours>
SGTC_INLINE void multiply_windows(const typename Tile::E* strip, const int32_t* begins,
                                  const int32_t* rows, const typename Tile::E* b,
                                  typename Tile::E* c, int64_t depth, bool first) {
  using E = typename Tile::E;
  typename Tile::Sums sums = {};
  const E* lines[Tile::kRows];
#pragma clang loop unroll(full)
  for (int i = 0; i < Tile::kRows; ++i) lines[i] = strip + (AreNeighbours ? rows[0] + i : rows[i]);
#pragma clang loop unroll_count(AreNeighbours ? 4 : 1)
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t at = begins[k];
    add_products<Tile>(sums, b, [&](int i) __attribute__((always_inline)) { return lines[i][at]; });
    b += Tile::kColumns;
  }
  put_sums<Tile>(c, sums, first);
}

template <typename Tile, typename T>
class WeightGradient {
  using E = typename Tile::E;
  using V = typename Tile::V;

 public:
  SGTC_INLINE WeightGradient(const ConvShape& s, const WeightRegion& region,
                             WeightGradientMemory<Tile>& memory)
      : s_(s), region_(region), memory_(memory), strip_(s, memory.strip) {
    strip_.list_runs(region.channels);
    rows_ = strip_.window_elements();
    row_tiles_ = ceil_divide(rows_, Tile::kRows);
    column_tiles_ = ceil_divide(region.results, Tile::kColumns);
    run_length_ = memory.strip.phases[0].run_length;
    for (int64_t n = 0; n < row_tiles_ * Tile::kRows; ++n) {
      memory.rows[n] =
          n < rows_ ? static_cast<int32_t>(memory.strip.runs[n / run_length_] + n % run_length_)
                    : memory.rows[n - 1] + 1;
    }
  }

  SGTC_INLINE void compute(const T* image, const T* gradient) {
    constexpr int64_t kGroup = Tile::kGroupDepth / Tile::kDepth;
    const int64_t boxes = s_.batch == 0 ? 0 : strip_.boxes();
    const int64_t tiles = row_tiles_ * column_tiles_;
    for (int64_t i = 0; boxes == 0 && i < tiles * Tile::kElements; ++i) memory_.c[i] = 0;
    for (int64_t box = 0; box < boxes; ++box) {
      strip_.set_box(box, 1);
      strip_.copy(image, region_.group, region_.channel, region_.channels);
      pack_gradient(gradient);
      const int64_t depth = strip_.positions();
      for (int64_t k = 0; k < depth; ++k) {
        memory_.begins[k] = static_cast<int32_t>(memory_.strip.pixels[k] * region_.channels);
      }
      for_each_tile(row_tiles_, column_tiles_,
                    [&](int64_t i, int64_t j) __attribute__((always_inline)) {
                      multiply_tile(i, j, depth, box % kGroup == 0);
                    });
      if (boxes > kGroup && (box % kGroup == kGroup - 1 || box == boxes - 1)) {
        add_tiles<Tile>(memory_.total, memory_.c, tiles, box < kGroup);
      }
    }
    result_ = boxes > kGroup ? memory_.total : memory_.c;
  }

  /// visit(channel of all groups, flat (channel, tap), values, lanes) for all results.
  template <typename Visit>
  SGTC_INLINE void visit(Visit visit) {
    const int64_t taps = volume(s_.window.kernel);
    const int64_t first = region_.group * s_.output_channels + region_.result;
    for (int64_t at = 0; at < rows_; at += kLanes) {
      int64_t lines[kLanes];  // of c; where there are fewer, the last one again
      for (int64_t i = 0; i < kLanes; ++i) {
        const int64_t n = minimum(at + i, rows_ - 1);
        lines[i] = memory_.strip.tap_rows[n % taps] + n / taps;
      }
      for (int64_t row = 0; row < region_.results; row += kLanes) {
        const E* from =
            result_ + row / Tile::kColumns * row_tiles_ * Tile::kElements + row % Tile::kColumns;
        V across[kLanes];
        transpose_square(across, [&](int64_t i) __attribute__((always_inline)) {
          return from + lines[i] * Tile::kColumns;
        });
        for (int64_t i = 0; i < minimum(kLanes, region_.results - row); ++i) {
          visit(first + row + i, region_.channel * taps + at, across[i],
                minimum(kLanes, rows_ - at));
        }
      }
    }
  }

 private:
  SGTC_INLINE void multiply_tile(int64_t i, int64_t j, int64_t depth, bool first) {
    const int32_t* rows = memory_.rows + i * Tile::kRows;
    const E* b = memory_.b + j * Tile::kColumns * depth;
    E* c = memory_.c + (j * row_tiles_ + i) * Tile::kElements;
    if (run_length_ % Tile::kRows == 0 || rows[Tile::kRows - 1] == rows[0] + Tile::kRows - 1) {
      multiply_windows<Tile, true>(memory_.strip.elements, memory_.begins, rows, b, c, depth,
                                   first);
    } else {
      multiply_windows<Tile, false>(memory_.strip.elements, memory_.begins, rows, b, c, depth,
                                    first);
    }
  }

  /// Packs the channels of the result in the box, in stretches of neighbouring positions.
  SGTC_INLINE void pack_gradient(const T* gradient) {
    const int64_t plane = volume(s_.window.output), depth = strip_.positions();
    int64_t n = 0;
    strip_.for_each_result(0, [&](int64_t place, int64_t)
                                  __attribute__((always_inline)) { memory_.places[n++] = place; });
    for (int64_t begin = 0; begin < depth;) {
      const int64_t place = memory_.places[begin];
      const int64_t most = minimum(depth - begin, plane - place % plane);
      int64_t count = 1;
      while (count < most && memory_.places[begin + count] == place + count) ++count;
      const int64_t channel =
          ((strip_.sample() + place / plane) * s_.groups + region_.group) * s_.output_channels +
          region_.result;
      for (int64_t row = 0; row < region_.results; row += Tile::kColumns) {
        E* to = memory_.b + row * depth + begin * Tile::kColumns;
        const int64_t lines = minimum(Tile::kColumns, region_.results - row);
        for (int64_t i = 0; lines < Tile::kColumns && i < count * Tile::kColumns; ++i) to[i] = 0;
        transpose_lines(gradient + (channel + row) * plane + place % plane, plane, lines, count,
                        [=](int64_t k)
                            __attribute__((always_inline)) { return to + k * Tile::kColumns; });
      }
      begin += count;
    }
  }

  const ConvShape& s_;
  WeightRegion region_;
  WeightGradientMemory<Tile>& memory_;
  Strip<E, T, false> strip_;
  int64_t run_length_, rows_, row_tiles_, column_tiles_;
  const E* result_ = nullptr;
};

}  // namespace sgtc::kernels

SGTC_KERNELS_END
