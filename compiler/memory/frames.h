// Buffers of one pipeline position whose micro-batches overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memory/plan_offsets.h"

namespace sgtc {

/// A buffer that the passes of each micro-batch use anew. Times are those of one micro-batch.
struct FrameBuffer {
  Interval interval;
  bool kept = false;  // from the forward to the backward pass: each micro-batch has its own
  /// Its first and last time if it lies in the frame before that of its micro-batch, where it may:
  /// times of the two micro-batches one after the other.
  std::optional<std::pair<int64_t, int64_t>> before = {};
};

/// The layout of what one micro-batch keeps. Every slot has such a frame, one behind the other.
struct Frame {
  int64_t bytes = 0;
  /// Of each buffer from the frame's begin; nothing for those that found no room in it. What is
  /// kept always has an offset. A negative one lies in the frame before.
  std::vector<std::optional<int64_t>> offsets;
  int64_t bytes_before = 0;  // that the first frame needs in front of it
};

/// Which of the buffers that are not kept are put into a frame first; each fits some steps best.
enum class FrameOrder { kLargest, kLongest, kLargestForLongest, kEarliest };
inline constexpr FrameOrder kFrameOrders[] = {FrameOrder::kLargest, FrameOrder::kLongest,
                                              FrameOrder::kLargestForLongest,
                                              FrameOrder::kEarliest};

/// Lays out a frame with everything that is kept, as small as that allows, and puts as many of the
/// other buffers into it as fit where nothing is kept yet or any more, in the given order.
Frame plan_frame(const std::vector<FrameBuffer>& buffers, FrameOrder order = FrameOrder::kLargest);

}  // namespace sgtc
