#include "passes/channels_last_geometry.h"

#include <algorithm>

#include "include/conv_box.h"
#include "passes/block_parts.h"

namespace sgtc {
namespace {

using kernels::ConvShape;
using kernels::Reach;

constexpr int64_t kWantedBlocks = 32;  // enough to share among the cores of a machine
constexpr int64_t kSliceBytes = 1024;  // of a line of an operand, as in tile_product.h
constexpr int64_t kLanes = 16;
constexpr int64_t kLeastColumns = 8;  // of the 16 of a register tile
constexpr int64_t kMinColumns = 32;
constexpr int64_t kWantedRows = 192;  // weights are packed for each block
constexpr int64_t kMinRows = 48;
constexpr int64_t kRowStep = 12;
constexpr int64_t kGradientChannels = 16;
constexpr int64_t kGradientColumns = 32;

// Samples and positions of the grid, outermost first.
using Extents = std::array<int64_t, 1 + kernels::kSpatial>;

int64_t product(const Extents& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

int64_t boxes_of(const Extents& grid, const Extents& box) {
  int64_t count = 1;
  for (size_t d = 0; d < grid.size(); ++d) count *= ceil_divide(grid[d], box[d]);
  return count;
}

// At most `most` positions: whole innermost dimensions as far as they go, the next one in equal
// parts.
Extents box_of(const Extents& grid, int64_t most) {
  Extents box = {1, 1, 1, 1};
  for (size_t d = grid.size(); d-- > 0;) {
    const int64_t parts = ceil_divide(grid[d], most);
    box[d] = ceil_divide(grid[d], parts);
    if (box[d] < grid[d]) break;
    most = std::max<int64_t>(1, most / box[d]);
  }
  return box;
}

// What one of the three operators does.
struct Direction {
  bool input_gradient;
  int64_t image_channels, result_channels;
  int64_t phases = 1;
  Extents grid{};
};

Direction direction_of(Op op, const ConvShape& s) {
  Direction direction = {op == Op::kConvInputGrad, s.input_channels, s.output_channels};
  direction.grid[0] = s.batch;
  for (size_t d = 0; d < static_cast<size_t>(kernels::kSpatial); ++d) {
    const int64_t phases = direction.input_gradient ? s.window.strides[d] : 1;
    direction.grid[1 + d] =
        direction.input_gradient ? ceil_divide(s.window.input[d], phases) : s.window.output[d];
    direction.phases *= phases;
  }
  if (direction.input_gradient) std::swap(direction.image_channels, direction.result_channels);
  return direction;
}

int64_t strip_pixels(const ConvShape& s, bool input_gradient, const Extents& box) {
  int64_t pixels = box[0];
  for (int d = 0; d < kernels::kSpatial; ++d) {
    const Reach reach = kernels::reach_of(s.window, d, input_gradient);
    pixels *= kernels::strip_extent(reach, box[static_cast<size_t>(1 + d)]);
  }
  return pixels;
}

// Positions as rows, channels of the result as columns.
std::optional<AnchorGeometry> positions_by_channels(const ConvShape& s, const Direction& direction,
                                                    int64_t slice) {
  const int64_t chunk = kernels::chunk_channels(s.window, direction.image_channels, slice);
  if (chunk == 0 || direction.result_channels < kLeastColumns ||
      direction.phases > kernels::kMaxPhases) {
    return std::nullopt;
  }
  int64_t most = kernels::kMaxBoxRows / direction.phases / kRowStep * kRowStep;
  Extents box = box_of(direction.grid, most);
  while (strip_pixels(s, direction.input_gradient, box) * chunk > kernels::kMaxStripElements) {
    if (most == 1) return std::nullopt;
    box = box_of(direction.grid, most /= 2);
  }
  AnchorGeometry geometry;
  geometry.block_columns =
      std::min(kernels::kMaxBlockColumns, round_up(direction.result_channels, kMinColumns));
  const auto blocks = [&] {
    return boxes_of(direction.grid, box) * s.groups *
           ceil_divide(direction.result_channels, geometry.block_columns);
  };
  while (blocks() < kWantedBlocks) {
    const int64_t rows = most * direction.phases;
    if (rows < 2 * kWantedRows && geometry.block_columns >= 2 * kMinColumns) {
      geometry.block_columns = round_up(geometry.block_columns / 2, kMinColumns);
    } else if (rows >= 2 * kMinRows) {
      box = box_of(direction.grid, most /= 2);
    } else {
      break;
    }
  }
  geometry.box = box;
  geometry.blocks = std::max<int64_t>(1, blocks());
  return geometry;
}

// (tap, channel of the image) as rows, channels of the result as columns, boxes of positions as
// slices of the depth. A block's rows are the channels of the result.
std::optional<AnchorGeometry> weight_gradient(const ConvShape& s, const Direction& direction,
                                              int64_t slice) {
  if (direction.result_channels < kLeastColumns) return std::nullopt;
  const int64_t taps = s.window.kernel[0] * s.window.kernel[1] * s.window.kernel[2];
  const int64_t channels =
      std::min({s.input_channels, kGradientChannels, kernels::kMaxGradientRows / taps});
  if (channels == 0) return std::nullopt;
  AnchorGeometry geometry;
  for (int64_t most = slice; geometry.box[0] == 0; most /= 2) {
    if (most == 0) return std::nullopt;
    const Extents box = box_of(direction.grid, most);
    if (kernels::gradient_channels(s.window, strip_pixels(s, false, box)) >= channels) {
      geometry.box = box;
      geometry.block_columns = channels;
    }
  }
  geometry.block_rows = even_part(s.output_channels, kGradientColumns, kGradientColumns);
  geometry.blocks =
      std::max<int64_t>(1, s.groups * ceil_divide(s.output_channels, geometry.block_rows) *
                               ceil_divide(s.input_channels, geometry.block_columns));
  return geometry;
}

}  // namespace

std::optional<AnchorGeometry> channels_last_geometry(Op op, const ConvShape& shape,
                                                     int64_t element_bytes) {
  const Direction direction = direction_of(op, shape);
  if (product(direction.grid) == 0 || shape.groups == 0 || shape.input_channels == 0 ||
      shape.output_channels == 0) {
    return std::nullopt;
  }
  const int64_t slice = kSliceBytes / element_bytes;
  if (op == Op::kConvWeightGrad) return weight_gradient(shape, direction, slice);
  return positions_by_channels(shape, direction, slice);
}

}  // namespace sgtc
