// Part of an image with channels last: what a box of positions sees through its windows.
//
// A strip is [sample, d0, d1, d2, channel] with zeros for the padding, so neighbouring taps of a
// window are one run of memory and no position asks whether it is inside. It holds a chunk of the
// channels at a time.
//
// A stride s of a convolution is one of its input gradient's too: positions t of one phase t mod s
// meet every s-th tap, so each phase is a convolution with stride 1 by part of the taps, and
// nothing is multiplied by the zeros between strides.
#pragma once

#include "element.h"
#include "shapes.h"
#include "transpose.h"
#include "window.h"

SGTC_KERNELS_BEGIN

#include "conv_box.h"  // shared with the compiler, so it does not say which instructions it takes

namespace sgtc::kernels {

/// The taps that positions of one phase meet in one dimension, by ascending element of the image.
struct TapLine {
  int64_t count;
  int64_t first_offset, offset_step;  // elements from step * u on
  int64_t first_tap, tap_step;
  SGTC_INLINE int64_t offset(int64_t j) const { return first_offset + j * offset_step; }
  SGTC_INLINE int64_t tap(int64_t j) const { return first_tap + j * tap_step; }
};

template <bool kGradient>
SGTC_INLINE TapLine tap_line(const WindowShape& w, int d, int64_t phase) {
  const int64_t taps = w.kernel[d], stride = w.strides[d], dilation = w.dilations[d];
  if constexpr (!kGradient) return {taps, -w.pads[d], dilation, 0, 1};
  int64_t divisor = stride;
  while (stride % divisor != 0 || dilation % divisor != 0) --divisor;
  const int64_t step = stride / divisor;
  int64_t tap = 0;
  while (tap < taps && (phase + w.pads[d] - tap * dilation) % stride != 0) ++tap;
  if (tap == taps) return {0, 0, 1, 0, 1};
  const int64_t count = (taps - 1 - tap) / step + 1;
  const int64_t last = tap + (count - 1) * step;
  return {count, (phase + w.pads[d] - last * dilation) / stride, dilation / divisor, last, -step};
}

/// What a strip keeps on the stack.
template <typename E>
struct StripMemory {
  /// How windows of one phase lie in the strip: runs of `run_length` elements.
  struct Phase {
    int64_t first_run, runs, run_length;
    int64_t first_row;  // of the taps' rows
  };
  Phase phases[kMaxPhases];
  int32_t runs[kMaxChunkDepth];      // where they begin, from a position's pixel on
  int32_t tap_rows[kMaxChunkDepth];  // number of the first element of a tap in the runs
  int32_t pixels[kMaxBoxRows];       // where the windows of the box begin
  alignas(64) E elements[kMaxStripElements + 2 * kLanes];  // and what a tile reads beyond the end
};

/// The image of a convolution (of its input gradient: the gradient of the result) under one box of
/// positions of the grid.
template <typename E, typename T, bool kGradient>
class Strip {
 public:
  SGTC_INLINE Strip(const ConvShape& s, StripMemory<E>& memory)
      : s_(s),
        image_(kGradient ? s.window.output : s.window.input),
        result_(kGradient ? s.window.input : s.window.output),
        channels_(kGradient ? s.output_channels : s.input_channels),
        memory_(memory) {
#pragma clang loop unroll(full)
    for (int d = 0; d < kSpatial; ++d) {
      phases_[d] = kGradient ? s.window.strides[d] : 1;
      grid_[d] = ceil_divide(result_[d], phases_[d]);
      reach_[d] = reach_of(s.window, d, kGradient);
      extent_[d] = strip_extent(reach_[d], s.box[1 + d]);
    }
  }

  SGTC_INLINE int64_t channels() const { return channels_; }  // of one group
  SGTC_INLINE int64_t phases() const { return phases_[0] * phases_[1] * phases_[2]; }
  SGTC_INLINE int64_t positions() const { return positions_; }  // of the box, in each phase
  SGTC_INLINE int64_t window_elements() const { return window_elements_; }
  SGTC_INLINE int64_t sample() const { return sample_; }
  SGTC_INLINE int64_t samples() const { return samples_; }
  SGTC_INLINE int64_t boxes() const {
    return ceil_divide(s_.batch, s_.box[0]) * ceil_divide(grid_[0], s_.box[1]) *
           ceil_divide(grid_[1], s_.box[2]) * ceil_divide(grid_[2], s_.box[3]);
  }
  SGTC_INLINE int64_t pixels() const { return s_.box[0] * extent_[0] * extent_[1] * extent_[2]; }

  /// Goes to box `index` and lists where its windows begin, with zeros up to a multiple of `step`.
  SGTC_INLINE void set_box(int64_t index, int64_t step) {
#pragma clang loop unroll(full)
    for (int d = kSpatial - 1; d >= 0; --d) {
      const int64_t boxes = ceil_divide(grid_[d], s_.box[1 + d]);
      begin_[d] = index % boxes * s_.box[1 + d];
      size_[d] = minimum(s_.box[1 + d], grid_[d] - begin_[d]);
      index /= boxes;
    }
    sample_ = index * s_.box[0];
    samples_ = minimum(s_.box[0], s_.batch - sample_);
    int64_t n = 0;
    for (int64_t line = 0; line < samples_ * size_[0] * size_[1]; ++line) {
      const int64_t d1 = line % size_[1], d0 = line / size_[1] % size_[0];
      const int64_t sample = line / size_[1] / size_[0];
      const int64_t first =
          ((sample * extent_[0] + d0 * reach_[0].step) * extent_[1] + d1 * reach_[1].step) *
          extent_[2];
      for (int64_t d2 = 0; d2 < size_[2]; ++d2) {
        memory_.pixels[n++] = static_cast<int32_t>(first + d2 * reach_[2].step);
      }
    }
    positions_ = n;
    while (n % step != 0) memory_.pixels[n++] = 0;
  }

  /// Lists the runs of all phases for a strip of `count` channels.
  SGTC_INLINE void list_runs(int64_t count) {
    int64_t run = 0, row = 0;
    for (int64_t phase = 0; phase < phases(); ++phase) {
      const TapLine t0 = tap_line<kGradient>(s_.window, 0, phase / phases_[2] / phases_[1]);
      const TapLine t1 = tap_line<kGradient>(s_.window, 1, phase / phases_[2] % phases_[1]);
      const TapLine t2 = tap_line<kGradient>(s_.window, 2, phase % phases_[2]);
      const bool joined = t2.offset_step == 1;
      const int64_t first_run = run, first_row = row;
      for (int64_t j = 0; j < t0.count * t1.count * t2.count; ++j) {
        const int64_t j2 = j % t2.count, j1 = j / t2.count % t1.count, j0 = j / t2.count / t1.count;
        const int64_t line =
            (t0.offset(j0) - reach_[0].low) * extent_[1] + t1.offset(j1) - reach_[1].low;
        const int64_t pixel = line * extent_[2] + t2.offset(j2) - reach_[2].low;
        if (j2 == 0 || !joined) memory_.runs[run++] = static_cast<int32_t>(pixel * count);
        const int64_t tap =
            (t0.tap(j0) * s_.window.kernel[1] + t1.tap(j1)) * s_.window.kernel[2] + t2.tap(j2);
        memory_.tap_rows[tap] = static_cast<int32_t>(row);
        row += count;
      }
      memory_.phases[phase] = {first_run, run - first_run, (joined ? t2.count : 1) * count,
                               first_row};
    }
    window_elements_ = row;
  }

  /// Fills the strip with `count` channels of `group` from `channel` on.
  SGTC_INLINE void copy(const T* image, int64_t group, int64_t channel, int64_t count) {
    const int64_t plane = volume(image_);
    int64_t from[kSpatial];
#pragma clang loop unroll(full)
    for (int d = 0; d < kSpatial; ++d) from[d] = begin_[d] * reach_[d].step + reach_[d].low;
    const int64_t first = minimum(maximum(0, -from[2]), extent_[2]);
    const int64_t last = maximum(first, minimum(extent_[2], image_[2] - from[2]));
    E* line = memory_.elements;
    for (int64_t i = 0; i < samples_ * extent_[0] * extent_[1]; ++i) {
      const int64_t d1 = from[1] + i % extent_[1], d0 = from[0] + i / extent_[1] % extent_[0];
      const int64_t sample = sample_ + i / extent_[1] / extent_[0];
      const bool inside = is_inside(d0, image_[0]) && is_inside(d1, image_[1]);
      const int64_t begin = inside ? first : extent_[2], end = inside ? last : extent_[2];
      clear_elements(line, begin * count);
      if (begin < end) {
        const int64_t line_of_image = (d0 * image_[1] + d1) * image_[2] + from[2] + begin;
        E* to = line + begin * count;
        transpose_lines(
            image + ((sample * s_.groups + group) * channels_ + channel) * plane + line_of_image,
            plane, count, end - begin,
            [=](int64_t k) __attribute__((always_inline)) { return to + k * count; });
      }
      clear_elements(line + end * count, (extent_[2] - end) * count);
      line += extent_[2] * count;
    }
  }

  /// Calls visit(place, row) for the results of the box in the order of memory: `place` is that in
  /// the planes of its samples, `row` the number of the position among those of all phases, of
  /// which each has `phase_rows`.
  template <typename Visit>
  SGTC_INLINE void for_each_result(int64_t phase_rows, Visit visit) const {
    int64_t end[kSpatial];
#pragma clang loop unroll(full)
    for (int d = 0; d < kSpatial; ++d) {
      end[d] = minimum(result_[d], (begin_[d] + size_[d]) * phases_[d]);
    }
    for (int64_t sample = 0; sample < samples_; ++sample) {
      for (int64_t d0 = begin_[0] * phases_[0]; d0 < end[0]; ++d0) {
        for (int64_t d1 = begin_[1] * phases_[1]; d1 < end[1]; ++d1) {
          for (int64_t d2 = begin_[2] * phases_[2]; d2 < end[2]; ++d2) {
            const int64_t line = (sample * size_[0] + d0 / phases_[0] - begin_[0]) * size_[1] +
                                 d1 / phases_[1] - begin_[1];
            const int64_t phase =
                (d0 % phases_[0] * phases_[1] + d1 % phases_[1]) * phases_[2] + d2 % phases_[2];
            visit(((sample * result_[0] + d0) * result_[1] + d1) * result_[2] + d2,
                  phase * phase_rows + line * size_[2] + d2 / phases_[2] - begin_[2]);
          }
        }
      }
    }
  }

 private:
  SGTC_INLINE static void clear_elements(E* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = 0;
  }

  const ConvShape& s_;
  const int64_t (&image_)[kSpatial];
  const int64_t (&result_)[kSpatial];
  int64_t channels_;
  StripMemory<E>& memory_;
  Reach reach_[kSpatial];
  int64_t phases_[kSpatial], grid_[kSpatial], extent_[kSpatial];
  int64_t sample_, samples_, begin_[kSpatial], size_[kSpatial], positions_;  // of the box
  int64_t window_elements_ = 0;
};

}  // namespace sgtc::kernels

SGTC_KERNELS_END
