#include "memory/frames.h"

#include <random>

#include "support/catch.h"

using namespace sgtc;

namespace {

bool meet(const Interval& a, const Interval& b) {
  return a.size > 0 && b.size > 0 && a.first <= b.last && b.first <= a.last;
}

bool is_valid(const std::vector<FrameBuffer>& buffers, const Frame& frame) {
  for (size_t a = 0; a < buffers.size(); ++a) {
    if (buffers[a].kept && !frame.offsets[a]) return false;
    if (!frame.offsets[a]) continue;
    const int64_t begin = *frame.offsets[a];
    const int64_t end = begin + buffers[a].interval.size;
    if (begin < 0 || begin % buffers[a].interval.alignment != 0 || end > frame.bytes) return false;
    for (size_t b = 0; b < a; ++b) {
      if (!frame.offsets[b] || !meet(buffers[a].interval, buffers[b].interval)) continue;
      if (begin < *frame.offsets[b] + buffers[b].interval.size && *frame.offsets[b] < end) {
        return false;
      }
    }
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
    }
    INFO("seed " << seed);
    CHECK(is_valid(buffers, plan_frame(buffers)));
  }
}
