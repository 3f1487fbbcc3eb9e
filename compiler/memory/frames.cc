// In a pipeline several micro-batches are between their forward and backward passes at once, and
// what they keep is in as many equal frames. But a pass works on one micro-batch alone, and its
// frame is full only between its two passes: what the backward pass has read is free, and so is
// what the forward pass has not written. So temporary buffers of a pass lie in the frame of its
// micro-batch where they fit, and only the others need bytes beside the frames. With s slots the
// arena then has s frames and the part of a pass that exceeds one, which is the largest live set.
//
// What a pass leaves to be sent while the next one runs would need two instances beside the frames.
// Where backward passes follow each other and no forward pass takes a frame between them (GPipe),
// it may lie in the frame before, which the last backward pass has left: then only the first
// micro-batch needs bytes for it, in front of all frames.
//
// What is read last lies lowest, so that the backward pass frees bytes that are next to each other.
#include "memory/frames.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace sgtc {
namespace {

struct Placed {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first = 0;
  int64_t last = 0;
};

class FramePlanner {
 public:
  FramePlanner(const std::vector<FrameBuffer>& buffers, FrameOrder order)
      : buffers_(buffers), order_(order) {
    frame_.offsets.resize(buffers.size());
  }

  Frame run() {
    for (const size_t b : order(true)) put(b, lowest_gap(b));
    for (const size_t b : order(false)) {
      const int64_t offset = lowest_gap(b);
      if (offset + interval(b).size <= frame_.bytes) {
        put(b, offset);
      } else {
        put_before(b);
      }
    }
    return std::move(frame_);
  }

 private:
  const Interval& interval(size_t b) const { return buffers_[b].interval; }

  // What is kept: the last to be read first.
  std::vector<size_t> order(bool kept) const {
    std::vector<size_t> numbers;
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (buffers_[b].kept == kept) numbers.push_back(b);
    }
    const auto key = [&](size_t b) { return kept ? interval(b).last : weight(interval(b)); };
    std::stable_sort(numbers.begin(), numbers.end(),
                     [&](size_t a, size_t b) { return key(a) > key(b); });
    return numbers;
  }

  int64_t weight(const Interval& interval) const {
    const int64_t duration = interval.last - interval.first + 1;
    switch (order_) {
      case FrameOrder::kLargest:
        return interval.size;
      case FrameOrder::kLongest:
        return duration;
      case FrameOrder::kLargestForLongest:
        return interval.size * duration;
      case FrameOrder::kEarliest:
        return -interval.first;
    }
    return 0;
  }

  int64_t lowest_gap(size_t b) const {
    const Interval& own = interval(b);
    int64_t offset = 0;
    for (const Placed& placed : placed_) {
      if (placed.last < own.first || own.last < placed.first) continue;
      if (offset + own.size <= placed.begin) break;
      offset = std::max(offset, (placed.end + own.alignment - 1) & ~(own.alignment - 1));
    }
    return offset;
  }

  void put(size_t b, int64_t offset) {
    const Interval& own = interval(b);
    frame_.offsets[b] = offset;
    if (own.size == 0) return;
    const Placed placed = {offset, offset + own.size, own.first, own.last};
    add(placed);
    if (!buffers_[b].kept) return;
    frame_.bytes = std::max(frame_.bytes, (placed.end + own.alignment - 1) & ~(own.alignment - 1));
  }

  void add(const Placed& placed) {
    placed_.insert(
        std::upper_bound(placed_.begin(), placed_.end(), placed,
                         [](const Placed& a, const Placed& c) { return a.begin < c.begin; }),
        placed);
  }

  // Puts a buffer into the frame before if there is room, as high as it can.
  void put_before(size_t b) {
    if (!buffers_[b].before) return;
    Interval own = interval(b);
    std::tie(own.first, own.last) = *buffers_[b].before;
    const int64_t offset = highest_gap(own);
    if (offset < 0) return;
    add({offset, offset + own.size, own.first, own.last});
    frame_.offsets[b] = offset - frame_.bytes;
    frame_.bytes_before = std::max(frame_.bytes_before, frame_.bytes - offset);
  }

  // Negative if there is none.
  int64_t highest_gap(const Interval& own) const {
    std::vector<Placed> conflicts;
    for (const Placed& placed : placed_) {
      if (own.first <= placed.last && placed.first <= own.last) conflicts.push_back(placed);
    }
    std::sort(conflicts.begin(), conflicts.end(),
              [](const Placed& a, const Placed& b) { return a.end > b.end; });
    int64_t end = frame_.bytes;
    for (const Placed& placed : conflicts) {
      if (round_down(end - own.size, own.alignment) >= placed.end) break;
      end = std::min(end, placed.begin);
    }
    return end < own.size ? -1 : round_down(end - own.size, own.alignment);
  }

  static int64_t round_down(int64_t value, int64_t alignment) { return value & ~(alignment - 1); }

  const std::vector<FrameBuffer>& buffers_;
  const FrameOrder order_;
  Frame frame_;
  std::vector<Placed> placed_;  // by `begin`
};

}  // namespace

Frame plan_frame(const std::vector<FrameBuffer>& buffers, FrameOrder order) {
  return FramePlanner(buffers, order).run();
}

}  // namespace sgtc
