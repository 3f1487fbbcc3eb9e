// How convolutions with channels last (kernels/convolution/channels_last.h) cut their work. The
// compiler chooses the box of positions that a block has by the same functions.
#pragma once

#include "shapes.h"

namespace sgtc::kernels {

inline constexpr int64_t kMaxBoxRows = 432;  // rows of a block, all phases, in whole register tiles
inline constexpr int64_t kMaxPhases = 36;
inline constexpr int64_t kMaxStripElements = 1 << 16;
inline constexpr int64_t kMaxChunkDepth = 640;  // channels of a chunk x taps

inline constexpr int64_t kMaxGradientRows = 640;     // weight gradient: (tap, channel)
inline constexpr int64_t kMaxGradientColumns = 256;  // and channels of the result

/// Position u of the grid reads elements step * u + low … step * u + high of the image, in one
/// dimension.
struct Reach {
  int64_t step, low, high;
};

constexpr int64_t floor_divide(int64_t a, int64_t b) { return (a >= 0 ? a : a - b + 1) / b; }

/// The grid of a convolution is its output. That of the input gradient has every stride-th position
/// of the input; the others are further phases of the same grid.
constexpr Reach reach_of(const WindowShape& w, int d, bool gradient) {
  const int64_t extent = (w.kernel[d] - 1) * w.dilations[d];
  if (!gradient) return {w.strides[d], -w.pads[d], extent - w.pads[d]};
  return {1, -floor_divide(extent - w.pads[d], w.strides[d]),
          floor_divide(w.strides[d] - 1 + w.pads[d], w.strides[d])};
}

/// Elements of the image under `positions` positions of the grid that follow each other.
constexpr int64_t strip_extent(Reach reach, int64_t positions) {
  return (positions - 1) * reach.step + reach.high - reach.low + 1;
}

/// How many of `channels` channels are in the strip at a time: the taps along the last dimension
/// make up at most one slice of `slice` terms. 0 if the window is too large.
constexpr int64_t chunk_channels(const WindowShape& w, int64_t channels, int64_t slice) {
  const int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  const int64_t by_slice = slice / w.kernel[2], by_depth = kMaxChunkDepth / taps;
  const int64_t most = by_slice < by_depth ? by_slice : by_depth;
  if (most == 0) return 0;
  const int64_t chunks = (channels + most - 1) / most;
  const int64_t even = chunks == 0 ? most : (channels + chunks - 1) / chunks;
  const int64_t rounded = (even + 7) / 8 * 8;
  return rounded <= most ? rounded : even;
}

/// How many channels of the image the weight gradient can have at a time; `pixels` are those of a
/// strip. 0 if the window is too large.
constexpr int64_t gradient_channels(const WindowShape& w, int64_t pixels) {
  const int64_t by_rows = kMaxGradientRows / (w.kernel[0] * w.kernel[1] * w.kernel[2]);
  const int64_t by_strip = kMaxStripElements / pixels;
  return by_rows < by_strip ? by_rows : by_strip;
}

}  // namespace sgtc::kernels
