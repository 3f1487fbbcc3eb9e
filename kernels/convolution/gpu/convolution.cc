// Convolution and its two gradients without tensor cores, each as a product of matrices that exist
// only in shared memory (rows, columns and depth as in convolution/cpu.cc). Reading an operand's
// element computes where the window puts it; that is a fifth of the instructions at most, since
// each element that is read serves 64 multiply-adds. A group with few channels leaves most rows of
// its tiles empty.
#include "gpu/simt_product.h"
#include "shapes.h"
#include "window.h"

namespace sgtc::gpu {
namespace {

/// A tile of the product for a sample and a group, or a block's share of its depth.
struct ConvBlock {
  uint32_t sample, group, row, column;
  uint32_t rows, columns;  // of the matrix
  uint32_t row_end, column_end;
  DepthPart part;
};

template <typename Tile>
SGTC_DEVICE ConvBlock block_at(const ConvShape& s, void* const* tensors, int64_t rows,
                               int64_t columns) {
  const auto column_tiles = static_cast<uint32_t>(ceil_divide(columns, Tile::kLines));
  const auto row_tiles = static_cast<uint32_t>(ceil_divide(rows, Tile::kLines));
  const auto count = static_cast<uint32_t>(s.depth_parts);
  const uint32_t tile = block_index() / count;
  const uint32_t rest = tile / column_tiles / row_tiles;
  ConvBlock block;
  block.part = {tile, count, block_index() % count, tensors[4], static_cast<uint32_t*>(tensors[5])};
  block.column = tile % column_tiles * Tile::kLines;
  block.row = tile / column_tiles % row_tiles * Tile::kLines;
  block.group = rest % static_cast<uint32_t>(s.groups);
  block.sample = rest / static_cast<uint32_t>(s.groups);
  block.rows = static_cast<uint32_t>(rows);
  block.columns = static_cast<uint32_t>(columns);
  block.row_end = static_cast<uint32_t>(minimum(rows, block.row + Tile::kLines));
  block.column_end = static_cast<uint32_t>(minimum(columns, block.column + Tile::kLines));
  return block;
}

template <typename Tile, typename T>
struct Convolution {
  using E = typename Tile::E;
  const ConvShape& s;
  void* const* args;
  const T* first;
  const T* second;
  T* result;
  void* const* tensors;

  SGTC_METHOD static E element(const T* from, int32_t at) {
    return at < 0 ? E{} : static_cast<E>(widened(from[at]));
  }

  /// Lines beyond the last row or column are copies of it.
  template <typename GetA, typename GetB>
  SGTC_METHOD void multiply(const ConvBlock& block, uint32_t depth, GetA a, bool b_line_major,
                            GetB b) const {
    const auto row_of = [&](uint32_t line) SGTC_LAMBDA {
      return block.row + line < block.row_end ? block.row + line : block.row_end - 1;
    };
    const auto column_of = [&](uint32_t line) SGTC_LAMBDA {
      return block.column + line < block.column_end ? block.column + line : block.column_end - 1;
    };
    const Operand rows{false,
                       [=](uint32_t line, uint32_t k) SGTC_LAMBDA { return a(row_of(line), k); }};
    const Operand columns{
        b_line_major, [=](uint32_t line, uint32_t k) SGTC_LAMBDA { return b(column_of(line), k); }};
    typename Tile::Sums sums;
    if (!sum_tile<Tile>(sums, rows, columns, depth, block.part)) return;
    const auto at = TilePosition<Tile>::of(thread_index());
    const uint32_t first_row = block.group * block.rows;
    store_tile<Tile>(sums, TileResult<T>{args, result, s.groups * block.rows, block.columns},
                     block.sample, first_row + block.row + at.row, block.column + at.column,
                     first_row + block.row_end, block.column_end);
  }

  SGTC_METHOD void forward() const {
    const auto pixels = static_cast<uint32_t>(volume(s.window.input));
    const auto taps = static_cast<uint32_t>(volume(s.window.kernel));
    const auto channels = static_cast<uint32_t>(s.input_channels);
    const ConvBlock block = block_at<Tile>(s, tensors, s.output_channels, volume(s.window.output));
    const uint32_t depth = channels * taps;
    const T* weights = second + static_cast<uint64_t>(block.group * block.rows) * depth;
    const uint64_t plane = (block.sample * s.groups + block.group) * channels;
    const T* image = first + plane * pixels;
    multiply(
        block, depth,
        [=](uint32_t row, uint32_t k) SGTC_LAMBDA {
          return static_cast<E>(widened(weights[row * static_cast<uint64_t>(depth) + k]));
        },
        true,
        [=, this](uint32_t column, uint32_t k) SGTC_LAMBDA {
          const auto o = position_in(s.window.output, static_cast<int32_t>(column));
          const auto tap = position_in(s.window.kernel, static_cast<int32_t>(k % taps));
          return element(image + k / taps * static_cast<uint64_t>(pixels),
                         input_under_tap(s.window, o, tap));
        });
  }

  SGTC_METHOD void input_gradient() const {
    const auto positions = static_cast<uint32_t>(volume(s.window.output));
    const auto taps = static_cast<uint32_t>(volume(s.window.kernel));
    const auto channels = static_cast<uint32_t>(s.output_channels);
    const ConvBlock block = block_at<Tile>(s, tensors, s.input_channels, volume(s.window.input));
    const uint64_t plane = (block.sample * s.groups + block.group) * channels;
    const T* image = first + plane * positions;
    const uint32_t matrix = block.rows * taps;  // weights of an output channel
    const T* weights = second + static_cast<uint64_t>(block.group * channels) * matrix;
    multiply(
        block, channels * taps,
        [=](uint32_t row, uint32_t k) SGTC_LAMBDA {
          const uint64_t at = k / taps * static_cast<uint64_t>(matrix) + row * taps + k % taps;
          return static_cast<E>(widened(weights[at]));
        },
        true,
        [=, this](uint32_t column, uint32_t k) SGTC_LAMBDA {
          const auto t = position_in(s.window.input, static_cast<int32_t>(column));
          const auto tap = position_in(s.window.kernel, static_cast<int32_t>(k % taps));
          return element(image + k / taps * static_cast<uint64_t>(positions),
                         output_over_tap(s.window, t, tap));
        });
  }

  SGTC_METHOD void weight_gradient() const {
    const auto positions = static_cast<uint32_t>(volume(s.window.output));
    const auto pixels = static_cast<uint32_t>(volume(s.window.input));
    const auto taps = static_cast<uint32_t>(volume(s.window.kernel));
    const auto channels = static_cast<uint32_t>(s.input_channels);
    const ConvBlock block = block_at<Tile>(s, tensors, s.output_channels, channels * taps);
    const T* inputs = first + static_cast<uint64_t>(block.group * channels) * pixels;
    const T* outputs = second + static_cast<uint64_t>(block.group * block.rows) * positions;
    const uint64_t input_sample = static_cast<uint64_t>(s.groups) * channels * pixels;
    const uint64_t output_sample = static_cast<uint64_t>(s.groups) * block.rows * positions;
    multiply(
        block, static_cast<uint32_t>(s.batch) * positions,
        [=](uint32_t row, uint32_t k) SGTC_LAMBDA {
          const uint64_t at = k / positions * output_sample +
                              row * static_cast<uint64_t>(positions) + k % positions;
          return static_cast<E>(widened(outputs[at]));
        },
        false,
        [=, this](uint32_t column, uint32_t k) SGTC_LAMBDA {
          const auto o = position_in(s.window.output, static_cast<int32_t>(k % positions));
          const auto tap = position_in(s.window.kernel, static_cast<int32_t>(column % taps));
          const uint64_t plane =
              k / positions * input_sample + column / taps * static_cast<uint64_t>(pixels);
          return element(inputs + plane, input_under_tap(s.window, o, tap));
        });
  }
};

enum class Direction { kForward, kInputGradient, kWeightGradient };

SGTC_DEVICE bool is_empty(const ConvShape& s, Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return s.batch * s.groups * s.output_channels * volume(s.window.output) == 0;
    case Direction::kInputGradient:
      return s.batch * s.groups * s.input_channels * volume(s.window.input) == 0;
    default:
      return s.groups * s.output_channels * s.input_channels * volume(s.window.kernel) == 0;
  }
}

template <Direction direction, typename Tile, typename T>
SGTC_DEVICE void convolve_tile(const ConvShape& s, void* const* args, void* const* tensors) {
  const Convolution<Tile, T> convolution = {s,
                                            args,
                                            static_cast<const T*>(tensors[0]),
                                            static_cast<const T*>(tensors[1]),
                                            static_cast<T*>(tensors[2]),
                                            tensors};
  if constexpr (direction == Direction::kForward) {
    convolution.forward();
  } else if constexpr (direction == Direction::kInputGradient) {
    convolution.input_gradient();
  } else {
    convolution.weight_gradient();
  }
}

template <Direction direction, typename T>
SGTC_DEVICE void convolve(const ConvShape& s, void* const* args, void* const* tensors) {
  using E = SumTypeOf<T>;
  if (is_empty(s, direction)) return;
  if constexpr (__is_same(E, float)) {
    if (s.block_rows == kLargeTileLines) {
      return convolve_tile<direction, LargeTile<E>, T>(s, args, tensors);
    }
  }
  convolve_tile<direction, SmallTile<E>, T>(s, args, tensors);
}

}  // namespace
}  // namespace sgtc::gpu

#define SGTC_CONVOLUTION(entry, direction, type)                                          \
  SGTC_EXPORT void sgtc_##entry(const sgtc::kernels::ConvShape* shape, void* const* args, \
                                void* const* tensors) {                                   \
    using sgtc::gpu::Direction;                                                           \
    sgtc::gpu::convolve<Direction::direction, type>(*shape, args, tensors);               \
  }
#define SGTC_CONVOLUTIONS(name, type)                            \
  SGTC_CONVOLUTION(conv_##name, kForward, type)                  \
  SGTC_CONVOLUTION(conv_input_grad_##name, kInputGradient, type) \
  SGTC_CONVOLUTION(conv_weight_grad_##name, kWeightGradient, type)
SGTC_FOR_EACH_FLOAT(SGTC_CONVOLUTIONS)
