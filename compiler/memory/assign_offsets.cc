#include "memory/assign_offsets.h"

#include <algorithm>
#include <map>
#include <string>

#include "memory/frames.h"
#include "memory/plan_offsets.h"
#include "schedule/arena_alignment.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

// Of all instances.
int64_t size_of(const plan::Buffer& buffer) {
  return (buffer.count - 1) * buffer.stride + buffer.bytes;
}

class PositionPlacer {
 public:
  PositionPlacer(plan::Position& position, const std::vector<BufferUse>& uses, int64_t alignment)
      : position_(position), uses_(uses), alignment_(alignment) {
    SGTC_CHECK(uses.size() == position.buffers.size(), "a use per buffer is expected");
  }

  void run() {
    std::map<std::string, std::vector<size_t>> regions;  // buffers of each schedule
    int64_t end = 0;
    for (size_t b = 0; b < uses_.size(); ++b) {
      if (!uses_[b].schedule.empty()) {
        regions[uses_[b].schedule].push_back(b);
        continue;
      }
      buffer(b).offset = end;
      end += align(size_of(buffer(b)), alignment_);
    }
    position_.arena_bytes = end;
    for (const auto& [schedule, buffers] : regions) {
      position_.arena_bytes = std::max(position_.arena_bytes, place_region(buffers, end));
    }
  }

 private:
  plan::Buffer& buffer(size_t b) { return position_.buffers[b]; }

  // All frames of a schedule: one interval for `plan_offsets`.
  struct Frames {
    std::vector<size_t> buffers;   // that lie in them
    std::vector<int64_t> offsets;  // of these, from the first frame's begin
    int64_t stride = 0;            // from frame to frame
    int64_t bytes_before = 0;      // the first frame
    Interval interval;
    std::vector<size_t> rest;  // buffers that lie in none
  };

  // Where what transfers bring and take may lie.
  enum class Rings { kOutside, kInOwnFrame, kInFrameBefore };

  // Places a schedule's buffers from `begin` on and returns the end.
  int64_t place_region(const std::vector<size_t>& buffers, int64_t begin) {
    int64_t slots = 1;
    for (const size_t b : buffers) slots = std::max(slots, is_kept(b) ? buffer(b).count : 1);
    Frames best;
    int64_t least = INT64_MAX;
    // What transfers bring and take may be worth less room in a frame than what it would keep out.
    for (const Rings rings : {Rings::kOutside, Rings::kInOwnFrame, Rings::kInFrameBefore}) {
      for (const FrameOrder order : kFrameOrders) {
        Frames frames = form_frames(buffers, slots, order, rings);
        const int64_t peak = live_bound(intervals_of(frames));
        if (peak < least) {
          least = peak;
          best = std::move(frames);
        }
        if (slots == 1) break;
      }
    }
    const Offsets offsets = plan_offsets(intervals_of(best));
    for (size_t i = 0; i < best.buffers.size(); ++i) {
      plan::Buffer& placed = buffer(best.buffers[i]);
      placed.scope = "slot";
      placed.count = slots;
      placed.stride = best.stride;
      placed.offset = begin + offsets.offsets[0] + best.bytes_before + best.offsets[i];
    }
    for (size_t i = 0; i < best.rest.size(); ++i) {
      buffer(best.rest[i]).offset = begin + offsets.offsets[i + 1];
    }
    return begin + align(offsets.peak, alignment_);
  }

  // The frames first.
  std::vector<Interval> intervals_of(const Frames& frames) {
    std::vector<Interval> intervals = {frames.interval};
    for (const size_t b : frames.rest) {
      const BufferUse& use = uses_[b];
      intervals.push_back(
          {size_of(buffer(b)), use.first, use.last, alignment_, use.hole_first, use.hole_last});
    }
    return intervals;
  }

  // Forms frames for what several micro-batches keep, if any do, and what fits beside it.
  Frames form_frames(const std::vector<size_t>& buffers, int64_t slots, FrameOrder order,
                     Rings rings) {
    Frames frames;
    std::vector<size_t> members;
    std::vector<FrameBuffer> frame_buffers;
    for (const size_t b : buffers) {
      const bool stays_out = buffer(b).scope == "ring" && rings == Rings::kOutside;
      const BufferUse& use = uses_[b];
      if (slots == 1 || !use.in_frame || stays_out) {
        frames.rest.push_back(b);
        continue;
      }
      members.push_back(b);
      frame_buffers.push_back(
          {{buffer(b).bytes, use.in_frame->first, use.in_frame->last, alignment_}, is_kept(b), {}});
      if (use.in_frame_before && rings == Rings::kInFrameBefore) {
        frame_buffers.back().before = {use.in_frame_before->first, use.in_frame_before->last};
      }
    }
    const Frame frame = plan_frame(frame_buffers, order);
    frames.stride = frame.bytes;
    frames.bytes_before = frame.bytes_before;
    frames.interval = {frame.bytes_before + slots * frame.bytes, 0, 0, alignment_};
    for (size_t i = 0; i < members.size(); ++i) {
      const size_t b = members[i];
      if (!frame.offsets[i]) {
        frames.rest.push_back(b);
        continue;
      }
      const bool is_first = frames.buffers.empty();
      frames.interval.first =
          is_first ? uses_[b].first : std::min(frames.interval.first, uses_[b].first);
      frames.interval.last = std::max(frames.interval.last, uses_[b].last);
      frames.buffers.push_back(b);
      frames.offsets.push_back(*frame.offsets[i]);
    }
    return frames;
  }

  bool is_kept(size_t b) { return buffer(b).scope == "slot" && buffer(b).count > 1; }

  plan::Position& position_;
  const std::vector<BufferUse>& uses_;
  const int64_t alignment_;
};

}  // namespace

void assign_offsets(plan::Plan& plan, const std::vector<std::vector<BufferUse>>& uses) {
  plan.prediction.peak_bytes.clear();
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    PositionPlacer(plan.positions[p], uses[p], arena_alignment(plan)).run();
    plan.prediction.peak_bytes.push_back(plan.positions[p].arena_bytes);
  }
}

}  // namespace sgtc
