#include "memory/frames.h"

#include <random>
#include <tuple>

#include "support/catch.h"

using namespace sgtc;

namespace {

bool meet(const Interval& a, const Interval& b) {
  return a.size > 0 && b.size > 0 && a.first <= b.last && b.first <= a.last;
}

// A buffer's times and offset within the frame in which it lies.
struct InFrame {
  Interval interval;
  int64_t offset = 0;
};

InFrame in_frame(const FrameBuffer& buffer, int64_t offset, const Frame& frame) {
  if (offset >= 0) return {buffer.interval, offset};
  Interval interval = buffer.interval;
  std::tie(interval.first, interval.last) = buffer.before.value();
  return {interval, offset + frame.bytes};
}

bool is_valid(const std::vector<FrameBuffer>& buffers, const Frame& frame) {
  std::vector<InFrame> placed;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].kept && (!frame.offsets[b] || *frame.offsets[b] < 0)) return false;
    if (!frame.offsets[b]) continue;
    if (*frame.offsets[b] < -frame.bytes_before) return false;
    const InFrame own = in_frame(buffers[b], *frame.offsets[b], frame);
    const int64_t end = own.offset + own.interval.size;
    if (own.offset < 0 || own.offset % own.interval.alignment != 0 || end > frame.bytes) {
      return false;
    }
    for (const InFrame& other : placed) {
      if (!meet(own.interval, other.interval)) continue;
      if (own.offset < other.offset + other.interval.size && other.offset < end) return false;
    }
    placed.push_back(own);
  }
  return true;
}

}  // namespace

TEST_CASE("without kept buffers a frame is empty") {
  const Frame frame = plan_frame({{{64, 0, 1}, false}});
  CHECK(frame.bytes == 0);
  CHECK(!frame.offsets[0].has_value());
}

TEST_CASE("what the backward pass has read makes room") {
  // Kept: 128 until 4 and 64 until 6. The temporary of 128 fits at 5, not at 4.
  const std::vector<FrameBuffer> buffers = {
      {{128, 1, 4}, true}, {{64, 0, 6}, true}, {{128, 5, 6}, false}, {{128, 4, 4}, false}};
  const Frame frame = plan_frame(buffers);
  CHECK(frame.bytes == 192);
  CHECK(frame.offsets[2] == 64);
  CHECK(!frame.offsets[3].has_value());
}

TEST_CASE("what is left to be sent lies at the end of the frame before") {
  // Kept: 64 until 4 and 128 until 6, where the backward pass writes what it sends.
  std::vector<FrameBuffer> buffers = {
      {{64, 0, 4}, true}, {{128, 1, 6}, true}, {{128, 6, 7}, false}};
  CHECK(!plan_frame(buffers).offsets[2].has_value());
  buffers[2].before = {7, 15};
  const Frame frame = plan_frame(buffers);
  CHECK(frame.bytes == 192);
  CHECK(frame.offsets[2] == -128);
  CHECK(frame.bytes_before == 128);
  CHECK(is_valid(buffers, frame));
}

TEST_CASE("what the frame before still holds keeps others out of it") {
  std::vector<FrameBuffer> buffers = {
      {{64, 0, 4}, true}, {{128, 1, 6}, true}, {{128, 6, 7}, false, {{6, 15}}}};
  CHECK(!plan_frame(buffers).offsets[2].has_value());
  buffers[2].interval.size = 64;
  const Frame frame = plan_frame(buffers);
  CHECK(frame.offsets[2] == 128);  // in its own frame, behind what is read last
  CHECK(frame.bytes_before == 0);
}

TEST_CASE("random frames are valid") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<FrameBuffer> buffers;
    for (int i = 0; i < 60; ++i) {
      const auto first = static_cast<int64_t>(random() % 50);
      const auto size = static_cast<int64_t>(random() % 1000);
      const bool kept = random() % 2 == 0;
      const auto last = kept ? 99 - first : first + static_cast<int64_t>(random() % 3);
      buffers.push_back({{size, first, last}, kept});
      const auto begin = 60 + static_cast<int64_t>(random() % 60);
      if (!kept && random() % 2 == 0) {
        buffers.back().before = {begin, begin + static_cast<int64_t>(random() % 60)};
      }
    }
    INFO("seed " << seed);
    for (const FrameOrder order : kFrameOrders)
      CHECK(is_valid(buffers, plan_frame(buffers, order)));
  }
}
