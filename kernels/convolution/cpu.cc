// Convolution and its two gradients, each as a product of matrices that exist only in panels:
//
//                   rows             columns           depth
//   convolution     output channels  output positions  (input channel, tap)
//   input gradient  input channels   input positions   (output channel, tap)
//   weight gradient output channels  (channel, tap)    (sample, output position)
//
// for each sample and group (the weight gradient: for each group), summed over the depth in the
// order that tile_product.h states. The packing of the second
// operand reads the image where the window lies over it and zeros elsewhere (so an infinite weight
// over padding gives NaN, as it does in frameworks that pad the image).
//
// This serves any shape and type. Where there are enough channels, in single and double precision,
// the compiler chooses a box of positions (ConvShape::box) and the products of channels_last.h and
// weight_gradient.h, which copy less. Left out: Winograd's and Fourier methods, which round
// differently.
#include "convolution/channels_last.h"
#include "convolution/weight_gradient.h"
#include "element.h"
#include "shapes.h"
#include "tile_product.h"
#include "tile_store.h"
#include "window.h"

SGTC_KERNELS_BEGIN

namespace sgtc::kernels {
namespace {

/// A tile of the product for sample and group.
struct ConvBlock {
  int64_t sample, group, row, column;
  int64_t rows, columns;  // extent of the tile
};

SGTC_INLINE ConvBlock block_at(const ConvShape& s, int64_t rows, int64_t columns, int64_t index) {
  const int64_t column_blocks = ceil_divide(columns, s.block_columns);
  const int64_t row_blocks = ceil_divide(rows, s.block_rows);
  ConvBlock block;
  block.column = index % column_blocks * s.block_columns;
  block.row = index / column_blocks % row_blocks * s.block_rows;
  const int64_t rest = index / column_blocks / row_blocks;
  block.group = rest % s.groups;
  block.sample = rest / s.groups;
  block.rows = minimum(s.block_rows, rows - block.row);
  block.columns = minimum(s.block_columns, columns - block.column);
  return block;
}

/// line[j] = row[(begin + j) * step + offset] for j < n, or 0 where that is not in [0, size).
template <typename E, typename T>
SGTC_INLINE void copy_run(E* line, const T* row, int64_t begin, int64_t n, int64_t step,
                          int64_t offset, int64_t size) {
  const int64_t end = begin + n;
  const int64_t low = offset >= 0 ? 0 : ceil_divide(-offset, step);
  const int64_t high = offset >= size ? 0 : ceil_divide(size - offset, step);
  const int64_t first = minimum(maximum(begin, low), end);
  const int64_t last = maximum(minimum(high, end), first);
  for (int64_t j = begin; j < first; ++j) line[j - begin] = 0;
  if (step == 1) {
    for (int64_t j = first; j < last; ++j)
      line[j - begin] = static_cast<E>(widened(row[j + offset]));
  } else {
    for (int64_t j = first; j < last; ++j) {
      line[j - begin] = static_cast<E>(widened(row[j * step + offset]));
    }
  }
  for (int64_t j = last; j < end; ++j) line[j - begin] = 0;
}

template <typename E>
SGTC_INLINE void clear(E* line, int64_t n) {
  for (int64_t j = 0; j < n; ++j) line[j] = 0;
}

/// What tap `tap` sees at the n output positions from `o` on, all in one row.
template <typename E, typename T>
SGTC_INLINE void read_input(E* line, const WindowShape& w, const T* image, Position o, int64_t n,
                            Position tap) {
  const int64_t t0 = input_coordinate(w, 0, o.d0, tap.d0);
  const int64_t t1 = input_coordinate(w, 1, o.d1, tap.d1);
  if (!is_inside(t0, w.input[0]) || !is_inside(t1, w.input[1])) return clear(line, n);
  copy_run(line, image + (t0 * w.input[1] + t1) * w.input[2], o.d2, n, w.strides[2],
           tap.d2 * w.dilations[2] - w.pads[2], w.input[2]);
}

/// The outputs whose tap `tap` lies over the n input positions from `t` on, all in one row.
template <typename E, typename T>
SGTC_INLINE void read_output(E* line, const WindowShape& w, const T* image, Position t, int64_t n,
                             Position tap) {
  const int64_t o0 = output_coordinate(w, 0, t.d0, tap.d0);
  const int64_t o1 = output_coordinate(w, 1, t.d1, tap.d1);
  if ((o0 | o1) < 0) return clear(line, n);
  const T* row = image + (o0 * w.output[1] + o1) * w.output[2];
  if (w.strides[2] == 1) {
    return copy_run(line, row, t.d2, n, 1, w.pads[2] - tap.d2 * w.dilations[2], w.output[2]);
  }
  for (int64_t j = 0; j < n; ++j) {
    const int64_t o2 = output_coordinate(w, 2, t.d2 + j, tap.d2);
    line[j] = o2 < 0 ? E{} : static_cast<E>(widened(row[o2]));
  }
}

/// Fills a line with `count` positions of an image of `sizes` from flat position `begin` on, by
/// read(line, position, n) for each stretch in one row.
template <typename E, typename Read>
SGTC_INLINE void read_positions(E* line, const int64_t (&sizes)[kSpatial], int64_t begin,
                                int64_t count, Read read) {
  for (int64_t done = 0; done < count;) {
    const Position at = position_in(sizes, begin + done);
    const int64_t n = minimum(count - done, sizes[2] - at.d2);
    read(line + done, at, n);
    done += n;
  }
}

/// Packs a slice of columns that are positions of an image: the depth is (channel, tap), and
/// read(line, plane, position, n, tap) fills a line of `columns` elements.
template <int64_t Width, typename E, typename T, typename Read>
SGTC_INLINE void pack_image(E* to, const WindowShape& w, const int64_t (&sizes)[kSpatial],
                            const T* image, int64_t plane, int64_t column, int64_t columns,
                            int64_t begin, int64_t depth, Read read) {
  alignas(64) E line[kMaxBlockColumns] = {};
  const int64_t taps = volume(w.kernel);
  for (int64_t k = 0; k < depth; ++k) {
    const T* channel = image + (begin + k) / taps * plane;
    const Position tap = position_in(w.kernel, (begin + k) % taps);
    read_positions(line, sizes, column, columns,
                   [&](E* part, Position at, int64_t n)
                       __attribute__((always_inline)) { read(part, channel, at, n, tap); });
    for (int64_t panel = 0; panel < columns; panel += Width) {
      __builtin_memcpy_inline(to + panel * depth + k * Width, line + panel, Width * sizeof(E));
    }
  }
}

/// Packs lines whose elements along the depth are (sample, output position): read(line, sample,
/// position, count) fills `count` elements of a line.
template <int64_t Width, int64_t MaxDepth, typename E, typename Read>
SGTC_INLINE void pack_samples(E* to, int64_t positions, int64_t count, int64_t begin, int64_t depth,
                              Read read) {
  alignas(64) E lines[Width * MaxDepth];
  for (int64_t line = 0; line < count; line += Width) {
    for (int64_t i = 0; i < Width; ++i) {
      E* row = lines + i * MaxDepth;
      if (line + i >= count) {
        clear(row, depth);
        continue;
      }
      for (int64_t done = 0; done < depth;) {
        const int64_t sample = (begin + done) / positions, position = (begin + done) % positions;
        const int64_t n = minimum(depth - done, positions - position);
        read(row + done, line + i, sample, position, n);
        done += n;
      }
    }
    if constexpr (__is_same(E, float)) {
      pack_panel<Width>(to + line * depth, lines, MaxDepth, depth);
    } else {
      pack_lines<Width>(to + line * depth, Width, depth,
                        [&](int64_t i, int64_t k) { return lines[i * MaxDepth + k]; });
    }
  }
}

template <typename Tile, typename T>
struct Convolution {
  using E = typename Tile::E;
  using V = typename Tile::V;
  const ConvShape& s;
  void* const* args;
  const T* first;
  const T* second;
  T* result;

  template <typename PackA, typename PackB>
  SGTC_INLINE void multiply(const ConvBlock& block, int64_t batch, int64_t channels,
                            int64_t columns, int64_t depth, PackA pack_a, PackB pack_b) const {
    const int64_t first_row = block.group * (channels / s.groups) + block.row;
    alignas(64) E panels_a[kMaxBlockRows * Tile::kDepth];
    alignas(64) E panels_b[kMaxBlockColumns * Tile::kDepth];
    PackedOperand<Tile::kRows, E, PackA> a(pack_a, panels_a);
    PackedOperand<Tile::kColumns, E, PackB> b(pack_b, panels_b);
    multiply_operands<Tile, kMaxBlockRows * kMaxBlockColumns>(
        block.rows, channels / s.groups % Tile::kRows, block.columns, depth, a, b,
        [&](int64_t row, int64_t column) __attribute__((always_inline)) {
          prefetch_operands<T>(args, batch, first_row + row, block.column + column);
        },
        [&](int64_t row, int64_t column, V values, int64_t lanes) __attribute__((always_inline)) {
          store_result(args, result, channels, columns, batch, first_row + row,
                       block.column + column, values, lanes);
        });
  }

  SGTC_INLINE void forward(int64_t index) const {
    const int64_t positions = volume(s.window.output), pixels = volume(s.window.input);
    const int64_t depth = s.input_channels * volume(s.window.kernel);
    const ConvBlock block = block_at(s, s.output_channels, positions, index);
    const T* weights = second + (block.group * s.output_channels + block.row) * depth;
    const T* image = first + (block.sample * s.groups + block.group) * s.input_channels * pixels;
    multiply(
        block, block.sample, s.groups * s.output_channels, positions, depth,
        [&](E* to, int64_t begin, int64_t count) __attribute__((always_inline)) {
          if constexpr (__is_same(T, float)) {
            pack_contiguous_lines<Tile::kRows>(to, weights + begin, depth, block.rows, count);
          } else {
            pack_lines<Tile::kRows>(to, block.rows, count, [&](int64_t row, int64_t k) {
              return static_cast<E>(widened(weights[row * depth + begin + k]));
            });
          }
        },
        [&](E* to, int64_t begin, int64_t count) __attribute__((always_inline)) {
          pack_image<Tile::kColumns>(
              to, s.window, s.window.output, image, pixels, block.column, block.columns, begin,
              count,
              [&](E* line, const T* plane, Position o, int64_t n, Position tap)
                  __attribute__((always_inline)) { read_input(line, s.window, plane, o, n, tap); });
        });
  }

  SGTC_INLINE void input_gradient(int64_t index) const {
    const int64_t positions = volume(s.window.output), pixels = volume(s.window.input);
    const int64_t taps = volume(s.window.kernel);
    const int64_t depth = s.output_channels * taps;
    const ConvBlock block = block_at(s, s.input_channels, pixels, index);
    const T* image =
        first + (block.sample * s.groups + block.group) * s.output_channels * positions;
    const T* weights = second + block.group * s.output_channels * s.input_channels * taps;
    multiply(
        block, block.sample, s.groups * s.input_channels, pixels, depth,
        [&](E* to, int64_t begin, int64_t count) __attribute__((always_inline)) {
          pack_lines<Tile::kRows>(to, block.rows, count, [&](int64_t row, int64_t k) {
            const int64_t channel = (begin + k) / taps, tap = (begin + k) % taps;
            const int64_t at = (channel * s.input_channels + block.row + row) * taps + tap;
            return static_cast<E>(widened(weights[at]));
          });
        },
        [&](E* to, int64_t begin, int64_t count) __attribute__((always_inline)) {
          pack_image<Tile::kColumns>(to, s.window, s.window.input, image, positions, block.column,
                                     block.columns, begin, count,
                                     [&](E* line, const T* plane, Position t, int64_t n,
                                         Position tap) __attribute__((always_inline)) {
                                       read_output(line, s.window, plane, t, n, tap);
                                     });
        });
  }

  SGTC_INLINE void weight_gradient(int64_t index) const {
    const int64_t positions = volume(s.window.output), pixels = volume(s.window.input);
    const int64_t taps = volume(s.window.kernel);
    const int64_t columns = s.input_channels * taps;
    const ConvBlock block = block_at(s, s.output_channels, columns, index);
    const auto plane = [&](const T* tensor, int64_t sample, int64_t channels, int64_t channel,
                           int64_t size) __attribute__((always_inline)) {
      return tensor + ((sample * s.groups + block.group) * channels + channel) * size;
    };
    multiply(
        block, 0, s.groups * s.output_channels, columns, s.batch * positions,
        [&](E* to, int64_t begin, int64_t count) __attribute__((always_inline)) {
          pack_samples<Tile::kRows, Tile::kDepth>(
              to, positions, block.rows, begin, count,
              [&](E* line, int64_t row, int64_t sample, int64_t position, int64_t n) {
                const T* from =
                    plane(second, sample, s.output_channels, block.row + row, positions);
                copy_run(line, from, position, n, 1, 0, positions);
              });
        },
        [&](E* to, int64_t begin, int64_t count) __attribute__((always_inline)) {
          pack_samples<Tile::kColumns, Tile::kDepth>(
              to, positions, block.columns, begin, count,
              [&](E* line, int64_t column, int64_t sample, int64_t position, int64_t n) {
                const int64_t flat = block.column + column;
                const T* image = plane(first, sample, s.input_channels, flat / taps, pixels);
                const Position tap = position_in(s.window.kernel, flat % taps);
                read_positions(line, s.window.output, position, n,
                               [&](E* part, Position o, int64_t stretch) {
                                 read_input(part, s.window, image, o, stretch, tap);
                               });
              });
        });
  }
};

enum class Direction { kForward, kInputGradient, kWeightGradient };

SGTC_INLINE bool is_empty(const ConvShape& s, Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return s.batch * s.groups * s.output_channels * volume(s.window.output) == 0;
    case Direction::kInputGradient:
      return s.batch * s.groups * s.input_channels * volume(s.window.input) == 0;
    default:
      return s.groups * s.output_channels * s.input_channels * volume(s.window.kernel) == 0;
  }
}

template <bool kGradient, typename Tile, typename T>
SGTC_INLINE void convolve_boxes(const ConvShape& s, void* const* args, void* const* tensors,
                                int64_t begin, int64_t end) {
  ChannelsLastMemory<typename Tile::E> memory;
  for (int64_t index = begin; index < end; ++index) {
    ChannelsLastBlock<Tile, T, kGradient> block(s, index, memory);
    block.compute(static_cast<const T*>(tensors[0]), static_cast<const T*>(tensors[1]),
                  [&](int64_t sample, int64_t channel, int64_t position) __attribute__((
                      always_inline)) { prefetch_operands<T>(args, sample, channel, position); });
    block.visit([&](int64_t sample, int64_t channel, int64_t position, typename Tile::V values,
                    int64_t lanes) __attribute__((always_inline)) {
      store_result(args, static_cast<T*>(tensors[2]),
                   s.groups * (kGradient ? s.input_channels : s.output_channels),
                   volume(kGradient ? s.window.input : s.window.output), sample, channel, position,
                   values, lanes);
    });
  }
}

/// Neighbouring blocks are computed together, as far as memory on the stack goes: rows, and where
/// all rows are there, channels of the image.
template <typename Tile, typename T>
SGTC_INLINE void weight_gradient_regions(const ConvShape& s, void* const* args,
                                         void* const* tensors, int64_t begin, int64_t end) {
  WeightGradientMemory<Tile> memory;
  const int64_t row_blocks = ceil_divide(s.output_channels, s.block_rows);
  const int64_t channel_blocks = ceil_divide(s.input_channels, s.block_columns);
  const int64_t pixels = Strip<typename Tile::E, T, false>(s, memory.strip).pixels();
  const int64_t most_channels = gradient_channels(s.window, pixels);
  const int64_t most_rows = kMaxGradientColumns / s.block_rows * s.block_rows;
  for (int64_t index = begin; index < end;) {
    const int64_t row_block = index % row_blocks;
    const int64_t channel_block = index / row_blocks % channel_blocks;
    int64_t height = minimum(row_blocks - row_block, end - index), width = 1;
    if (height == row_blocks) {
      width = minimum((end - index) / row_blocks, channel_blocks - channel_block);
      width = minimum(width, maximum(1, most_channels / s.block_columns));
    }
    const int64_t channel = channel_block * s.block_columns;
    const int64_t last_row = minimum((row_block + height) * s.block_rows, s.output_channels);
    for (int64_t row = row_block * s.block_rows; row < last_row; row += most_rows) {
      const WeightRegion region = {index / row_blocks / channel_blocks, row,
                                   minimum(most_rows, last_row - row), channel,
                                   minimum(width * s.block_columns, s.input_channels - channel)};
      WeightGradient<Tile, T> gradient(s, region, memory);
      gradient.compute(static_cast<const T*>(tensors[0]), static_cast<const T*>(tensors[1]));
      gradient.visit([&](int64_t out, int64_t column, typename Tile::V values,
                         int64_t lanes) __attribute__((always_inline)) {
        store_result(args, static_cast<T*>(tensors[2]), s.groups * s.output_channels,
                     s.input_channels * volume(s.window.kernel), 0, out, column, values, lanes);
      });
    }
    index += height * width;
  }
}

template <Direction direction, typename Tile, typename T>
SGTC_INLINE void convolve_tiles(const ConvShape& s, void* const* args, void* const* tensors,
                                int64_t begin, int64_t end) {
  if constexpr (__is_same(T, typename Tile::E) && direction == Direction::kWeightGradient) {
    if (s.box[0] != 0) {
      if (s.output_channels <= kLanes) {
        return weight_gradient_regions<SlimTile<Tile>, T>(s, args, tensors, begin, end);
      }
      return weight_gradient_regions<Tile, T>(s, args, tensors, begin, end);
    }
  } else if constexpr (__is_same(T, typename Tile::E)) {
    constexpr bool kGradient = direction == Direction::kInputGradient;
    if (s.box[0] != 0) {
      const int64_t columns = kGradient ? s.input_channels : s.output_channels;
      if (columns <= kLanes) {
        return convolve_boxes<kGradient, SlimTile<Tile>, T>(s, args, tensors, begin, end);
      }
      return convolve_boxes<kGradient, Tile, T>(s, args, tensors, begin, end);
    }
  }
  const Convolution<Tile, T> convolution = {s, args, static_cast<const T*>(tensors[0]),
                                            static_cast<const T*>(tensors[1]),
                                            static_cast<T*>(tensors[2])};
  for (int64_t index = begin; index < end; ++index) {
    if constexpr (direction == Direction::kForward) {
      convolution.forward(index);
    } else if constexpr (direction == Direction::kInputGradient) {
      convolution.input_gradient(index);
    } else {
      convolution.weight_gradient(index);
    }
  }
}

template <Direction direction, typename T>
SGTC_INLINE void convolve(const ConvShape* shape, void* const* args, void* const* tensors,
                          int64_t begin, int64_t end) {
  const ConvShape& s = *shape;
  if (is_empty(s, direction)) return;
  if constexpr (__is_same(T, double)) {
    convolve_tiles<direction, DoubleTile, T>(s, args, tensors, begin, end);
  } else if (s.wide_vectors != 0) {
    convolve_tiles<direction, WideTile, T>(s, args, tensors, begin, end);
  } else {
    convolve_tiles<direction, NarrowTile, T>(s, args, tensors, begin, end);
  }
}

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_CONVOLUTION(entry, direction, type)                                           \
  SGTC_EXPORT void sgtc_##entry(const sgtc::kernels::ConvShape* shape, void* const* args,  \
                                void* const* tensors, int64_t begin, int64_t end) {        \
    using sgtc::kernels::Direction;                                                        \
    sgtc::kernels::convolve<Direction::direction, type>(shape, args, tensors, begin, end); \
  }
#define SGTC_CONVOLUTIONS(name, type)                            \
  SGTC_CONVOLUTION(conv_##name, kForward, type)                  \
  SGTC_CONVOLUTION(conv_input_grad_##name, kInputGradient, type) \
  SGTC_CONVOLUTION(conv_weight_grad_##name, kWeightGradient, type)
SGTC_FOR_EACH_FLOAT(SGTC_CONVOLUTIONS)

SGTC_KERNELS_END
