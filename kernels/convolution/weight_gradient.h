// The gradient of a convolution's weights as a product whose rows are channels of the result, whose
// columns are (tap, channel of the image) and whose depth are the positions of all samples.
//
// A slice of the depth is a box of positions. Both operands have to be packed, as their lines are
// far apart; the image comes out of a strip (strip.h), where a column tile is 16 neighbours. The
// sums of 16 slices are added in order, and those of the groups as in tile_product.h.
#pragma once

#include "convolution/strip.h"
#include "tile_product.h"
#include "tile_store.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

template <typename Tile>
struct WeightGradientMemory {
  using E = typename Tile::E;
  StripMemory<E> strip;
  int64_t places[Tile::kDepth];  // of the box's positions in the planes of its samples
  alignas(64) E a[kMaxGradientRows * Tile::kDepth];
  alignas(64) E b[kMaxGradientColumns * Tile::kDepth];
  alignas(64) E c[kMaxGradientRows * kMaxGradientColumns];      // of one group of slices
  alignas(64) E total[kMaxGradientRows * kMaxGradientColumns];  // used if there are several groups
  E line[kMaxChunkDepth + kLanes];
};

/// `rows` channels of the result from `row` on, by `channels` channels of the image from `channel`
/// on, of one group.
struct WeightRegion {
  int64_t group, row, rows, channel, channels;
};

template <typename Tile, typename T>
class WeightGradient {
  using E = typename Tile::E;
  using V = typename Tile::V;

 public:
  SGTC_INLINE WeightGradient(const ConvShape& s, const WeightRegion& region,
                             WeightGradientMemory<Tile>& memory)
      : s_(s), region_(region), memory_(memory), strip_(s, memory.strip) {
    strip_.list_runs(region.channels);
    run_length_ = memory.strip.phases[0].run_length;
    run_tiles_ = ceil_divide(run_length_, Tile::kColumns);
    column_tiles_ = memory.strip.phases[0].runs * run_tiles_;
    row_tiles_ = ceil_divide(region.rows, Tile::kRows);
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
      pack_strip_columns();
      const int64_t depth = strip_.positions();
      for_each_tile(row_tiles_, column_tiles_,
                    [&](int64_t i, int64_t j) __attribute__((always_inline)) {
                      multiply_panels<Tile>({memory_.a + i * Tile::kRows * depth, 1, Tile::kRows},
                                            memory_.b + j * Tile::kColumns * depth,
                                            memory_.c + (j * row_tiles_ + i) * Tile::kElements,
                                            depth, box % kGroup == 0);
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
    const int64_t count = region_.channels * taps;
    for (int64_t row = 0; row < region_.rows; ++row) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = memory_.strip.tap_rows[tap];
        const int64_t column = at / run_length_ * run_tiles_ * Tile::kColumns + at % run_length_;
        for (int64_t c = 0; c < region_.channels; ++c) {
          memory_.line[c * taps + tap] = element(row, column + c);
        }
      }
      for (int64_t i = 0; i < count; i += kLanes) {
        visit(region_.group * s_.output_channels + region_.row + row, region_.channel * taps + i,
              load<V>(memory_.line + i), minimum(kLanes, count - i));
      }
    }
  }

 private:
  SGTC_INLINE E element(int64_t row, int64_t column) const {
    return result_[(column / Tile::kColumns * row_tiles_ * Tile::kRows + row) * Tile::kColumns +
                   column % Tile::kColumns];
  }

  /// Packs the rows of the box, in stretches of neighbouring positions.
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
          region_.row;
      const T* from = gradient + channel * plane + place % plane;
      for (int64_t row = 0; row < region_.rows; row += Tile::kRows) {
        pack_panel_part(memory_.a + row * depth + begin * Tile::kRows, from + row * plane, plane,
                        minimum(Tile::kRows, region_.rows - row), count);
      }
      begin += count;
    }
  }

  SGTC_INLINE static void pack_panel_part(E* to, const T* from, int64_t stride, int64_t rows,
                                          int64_t depth) {
    if constexpr (__is_same(T, float)) {
      if (rows == Tile::kRows) return pack_panel<Tile::kRows>(to, from, stride, depth);
    }
    pack_lines<Tile::kRows>(to, rows, depth,
                            [=](int64_t i, int64_t k) __attribute__((always_inline)) {
                              return static_cast<E>(widened(from[i * stride + k]));
                            });
  }

  /// Packs what the taps see; the columns beyond a run hold anything.
  SGTC_INLINE void pack_strip_columns() {
    const int64_t depth = strip_.positions();
    for (int64_t j = 0; j < column_tiles_; ++j) {
      const E* from = memory_.strip.elements + memory_.strip.runs[j / run_tiles_] +
                      j % run_tiles_ * Tile::kColumns;
      E* to = memory_.b + j * Tile::kColumns * depth;
      for (int64_t k = 0; k < depth; ++k) {
        __builtin_memcpy_inline(to + k * Tile::kColumns,
                                from + memory_.strip.pixels[k] * region_.channels,
                                Tile::kColumns * sizeof(E));
      }
    }
  }

  const ConvShape& s_;
  WeightRegion region_;
  WeightGradientMemory<Tile>& memory_;
  Strip<E, T, false> strip_;
  int64_t run_length_, run_tiles_, column_tiles_, row_tiles_;
  const E* result_ = nullptr;
};

}  // namespace sgtc::kernels

SGTC_KERNELS_END
