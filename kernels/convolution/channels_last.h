// Convolution and its input gradient as products whose rows are positions and whose columns are
// channels of the result.
//
// The problem: as a product of matrices a convolution reads each element of an image once per tap.
// Copying them all (im2col) costs up to a third of the time where there are few channels; the known
// alternatives are tensors with channels last everywhere, which a graph of ONNX does not have, and
// direct loops over the image. Taken is a mixture: a block copies what its windows see into strips
// with channels last (strip.h), register tiles read six positions there where they lie, and nothing
// but weights is packed.
//
// The depth is (chunk of channels, tap, channel). Slices of it end with a run of taps and with a
// chunk, so a chain has at most Tile::kDepth terms; the sums of slices are added in order. Left
// out: groups of chains, as a depth beyond 4096 is rare here, and sharing packed weights between
// blocks: 3% of the time, a tenth where images are as small as 7 x 7.
#pragma once

#include "convolution/strip.h"
#include "tile_product.h"
#include "tile_store.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {

/// c (kRows x kColumns) = (first ? 0 : c) + a b for rows of a that lie in a strip: the elements
/// strip[pixels[i] * channels + runs[r] + k] of row i meet the rows of b in order.
template <typename Tile>
SGTC_INLINE void multiply_runs(const typename Tile::E* strip, const int32_t* pixels,
                               int64_t channels, const typename Tile::E* b, typename Tile::E* c,
                               const int32_t* runs, int64_t run_count, int64_t run_length,
                               bool first) {
  using E = typename Tile::E;
  typename Tile::Sums sums = {};
  const E* lines[Tile::kRows];
#pragma clang loop unroll(full)
  for (int i = 0; i < Tile::kRows; ++i) lines[i] = strip + pixels[i] * channels;
  for (int64_t r = 0; r < run_count; ++r) {
    const int64_t end = runs[r] + run_length;
#pragma clang loop unroll_count(4)
    for (int64_t k = runs[r]; k < end; ++k) {
      add_products<Tile>(sums, b,
                         [&](int i) __attribute__((always_inline)) { return lines[i][k]; });
      b += Tile::kColumns;
    }
  }
  put_sums<Tile>(c, sums, first);
}

template <typename E>
struct ChannelsLastMemory {
  StripMemory<E> strip;
  int32_t rows[kMaxBoxRows + kLanes];  // of c, for each result in the order of memory
  int64_t places[kMaxBoxRows];         // of those results in the planes of the block's samples
  int32_t b_rows[kMaxChunkDepth];      // of b, for each (channel, tap) in the order of weights
  alignas(64) E b[kMaxChunkDepth * kMaxBlockColumns];
  alignas(64) E c[kMaxBoxRows * kMaxBlockColumns];
};

/// One block: a box of positions and up to kMaxBlockColumns channels of the result.
template <typename Tile, typename T, bool kGradient>
class ChannelsLastBlock {
  using E = typename Tile::E;
  using V = typename Tile::V;

 public:
  SGTC_INLINE ChannelsLastBlock(const ConvShape& s, int64_t index, ChannelsLastMemory<E>& memory)
      : s_(s),
        memory_(memory),
        strip_(s, memory.strip),
        columns_(kGradient ? s.input_channels : s.output_channels) {
    const int64_t column_blocks = ceil_divide(columns_, s.block_columns);
    column_ = index % column_blocks * s.block_columns;
    width_ = minimum(s.block_columns, columns_ - column_);
    group_ = index / column_blocks % s.groups;
    strip_.set_box(index / column_blocks / s.groups, Tile::kRows);
    row_tiles_ = ceil_divide(strip_.positions(), Tile::kRows);
  }

  /// Calls ahead(sample, channel of all groups, position) before the last products for some
  /// results, one of each cache line.
  template <typename Ahead>
  SGTC_INLINE void compute(const T* image, const T* weights, Ahead ahead) {
    list_results();
    const int64_t most = chunk_channels(s_.window, strip_.channels(), Tile::kDepth);
    clear_unmet();
    for (int64_t channel = 0; channel < strip_.channels(); channel += most) {
      const int64_t count = minimum(most, strip_.channels() - channel);
      strip_.list_runs(count);
      strip_.copy(image, group_, channel, count);
      pack_weights(weights, channel, count);
      for (int64_t p = 0; p < strip_.phases(); ++p) {
        multiply_phase(p, count, channel == 0, channel + count == strip_.channels(), ahead);
      }
    }
  }

  /// visit(sample, channel of all groups, position, values, lanes) for all results.
  template <typename Visit>
  SGTC_INLINE void visit(Visit visit) {
    const int64_t plane = volume(kGradient ? s_.window.input : s_.window.output);
    for (int64_t at = 0; at < results_;) {
      const int64_t place = memory_.places[at], position = place % plane;
      const int64_t most = minimum(kLanes, minimum(results_ - at, plane - position));
      int64_t lanes = 1;
      while (lanes < most && memory_.places[at + lanes] == place + lanes) ++lanes;
      for (int64_t column = 0; column < width_; column += kLanes) {
        V across[kLanes];
        transpose_square(across, [&](int64_t i) __attribute__((always_inline)) {
          return result_row(memory_.rows[at + i], column);
        });
        for (int64_t i = 0; i < minimum(kLanes, width_ - column); ++i) {
          visit(strip_.sample() + place / plane, group_ * columns_ + column_ + column + i, position,
                across[i], lanes);
        }
      }
      at += lanes;
    }
  }

 private:
  /// Columns from `column` on, a multiple of kLanes, of a row of c; each phase has whole tiles.
  SGTC_INLINE E* result_row(int64_t row, int64_t column) const {
    const int64_t tiles = strip_.phases() * row_tiles_;
    return memory_.c + column / Tile::kColumns * tiles * Tile::kElements + row * Tile::kColumns +
           column % Tile::kColumns;
  }

  /// Packs the weights of `count` channels from `channel` on: for each kColumns columns of the
  /// result, a row per tap and channel.
  SGTC_INLINE void pack_weights(const T* weights, int64_t channel, int64_t count) {
    const int64_t taps = volume(s_.window.kernel);
    const int64_t line = (kGradient ? 1 : strip_.channels()) * taps;  // from column to column
    const int64_t depth = strip_.window_elements();
    const int32_t* rows = memory_.strip.tap_rows;
    for (int64_t k = 0; k < count * taps; ++k) {
      memory_.b_rows[k] = rows[k % taps] + static_cast<int32_t>(k / taps);
    }
    const T* from = weights + group_ * columns_ * strip_.channels() * taps + column_ * line +
                    channel * (kGradient ? columns_ : 1) * taps;
    for (int64_t column = 0; column < width_; column += Tile::kColumns) {
      E* to = memory_.b + column * depth;
      const int64_t lines = minimum(Tile::kColumns, width_ - column);
      for (int64_t i = 0; lines < Tile::kColumns && i < depth * Tile::kColumns; ++i) to[i] = 0;
      if constexpr (kGradient) {
        for (int64_t c = 0; c < count; ++c) {
          transpose_lines(from + c * columns_ * taps + column * line, line, lines, taps,
                          [=](int64_t tap) __attribute__((always_inline)) {
                            return to + (rows[tap] + c) * Tile::kColumns;
                          });
        }
      } else {
        transpose_lines(from + column * line, line, lines, count * taps,
                        [=](int64_t k) __attribute__((always_inline)) {
                          return to + memory_.b_rows[k] * Tile::kColumns;
                        });
      }
    }
  }

  template <typename Ahead>
  SGTC_INLINE void multiply_phase(int64_t p, int64_t channels, bool is_first, bool is_last,
                                  Ahead ahead) {
    const auto phase = memory_.strip.phases[p];
    if (phase.runs == 0) return;
    const int64_t at_once = maximum(1, Tile::kDepth / phase.run_length);
    for (int64_t run = 0; run < phase.runs; run += at_once) {
      const int64_t runs = minimum(at_once, phase.runs - run);
      const int64_t depth_begin = phase.first_row + run * phase.run_length;
      for_each_tile(row_tiles_, ceil_divide(width_, Tile::kColumns),
                    [&](int64_t i, int64_t j) __attribute__((always_inline)) {
                      if (is_last && run + runs == phase.runs) look_ahead(p, i, j, ahead);
                      multiply_runs<Tile>(
                          memory_.strip.elements, memory_.strip.pixels + i * Tile::kRows, channels,
                          memory_.b + (j * strip_.window_elements() + depth_begin) * Tile::kColumns,
                          result_row((p * row_tiles_ + i) * Tile::kRows, j * Tile::kColumns),
                          memory_.strip.runs + phase.first_run + run, runs, phase.run_length,
                          is_first && run == 0);
                    });
    }
  }

  /// A tile has fewer neighbouring results than a cache line, so the last of them is on a line
  /// which that of the tile before is not on, or the two have one line. Phases are taken for
  /// neighbours, though only where there is one of them the results are.
  template <typename Ahead>
  SGTC_INLINE void look_ahead(int64_t p, int64_t i, int64_t j, Ahead ahead) {
    const int64_t plane = volume(kGradient ? s_.window.input : s_.window.output);
    const int64_t number = (p * row_tiles_ + i + 1) * Tile::kRows - 1;
    const int64_t place = memory_.places[minimum(number, results_ - 1)];
    const int64_t end = minimum(width_, (j + 1) * Tile::kColumns);
    for (int64_t column = j * Tile::kColumns; column < end; ++column) {
      ahead(strip_.sample() + place / plane, group_ * columns_ + column_ + column, place % plane);
    }
  }

  /// Results of phases that meet no tap are zero.
  SGTC_INLINE void clear_unmet() {
    strip_.list_runs(0);
    for (int64_t p = 0; p < strip_.phases(); ++p) {
      if (memory_.strip.phases[p].runs != 0 && strip_.channels() != 0) continue;
      for (int64_t column = 0; column < width_; column += Tile::kColumns) {
        E* rows = result_row(p * row_tiles_ * Tile::kRows, column);
        for (int64_t i = 0; i < row_tiles_ * Tile::kElements; ++i) rows[i] = 0;
      }
    }
  }

  SGTC_INLINE void list_results() {
    int64_t n = 0;
    strip_.for_each_result(row_tiles_ * Tile::kRows,
                           [&](int64_t place, int64_t row) __attribute__((always_inline)) {
                             memory_.places[n] = place;
                             memory_.rows[n++] = static_cast<int32_t>(row);
                           });
    for (int64_t i = 0; i < kLanes; ++i) memory_.rows[n + i] = 0;
    results_ = n;
  }

  const ConvShape& s_;
  ChannelsLastMemory<E>& memory_;
  Strip<E, T, kGradient> strip_;
  int64_t columns_;  // of one group
  int64_t column_, width_, group_, row_tiles_;
  int64_t results_ = 0;
};

}  // namespace sgtc::kernels

SGTC_KERNELS_END
