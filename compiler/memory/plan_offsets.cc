// Placing buffers is dynamic storage allocation, which is NP-hard, but the instances of training
// steps are mild: lifetimes nest (what forward writes first, backward reads last) and few sizes
// occur. So buffers are placed one by one, each at the lowest offset where it meets no placed
// buffer that it conflicts with, in several orders; the best order is then improved by moving
// single buffers within it, those that reach the peak most often. Where that does not reach the
// largest live set, an exhaustive search (canonical_search.h) halves the distance between the two
// again and again: it finds a placement below a limit, or proves that there is none, or gives up.
// Small instances get the least peak that way, large ones keep what was found. All work is bounded
// in steps, so the result is equal on every machine.
//
// What lasts from one micro-batch into the next has a hole amid its time, which others may use. The
// exhaustive search knows no holes.
//
// Left out: integer programming, which takes minutes at 1000 buffers, and splitting or moving of
// buffers, which would cost copies.
#include "memory/plan_offsets.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "memory/canonical_search.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

using Order = std::vector<int32_t>;

/// `conflicts[i]`: the intervals that overlap interval i in time. Symmetric.
using Conflicts = std::vector<std::vector<int32_t>>;

constexpr int64_t kWorkBudget = 30'000'000;  // visited conflicts; about half a second
constexpr int kMaxRounds = 10000;
constexpr int64_t kSearchSteps = 100'000'000;  // about half a second
constexpr int64_t kTries = 4;                  // a limit gets this part of the steps that are left

int64_t round_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Where a buffer lies once it is placed.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// The lowest aligned offset at which `interval` meets none of `taken`, which gets sorted.
int64_t lowest_gap(std::vector<Range>& taken, const Interval& interval) {
  std::sort(taken.begin(), taken.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  int64_t offset = 0;
  for (const Range& range : taken) {
    if (offset + interval.size <= range.begin) break;
    offset = std::max(offset, round_up(range.end, interval.alignment));
  }
  return offset;
}

Offsets place_in_order(const std::vector<Interval>& intervals, const Conflicts& conflicts,
                       const Order& order) {
  Offsets result;
  result.offsets.assign(intervals.size(), -1);
  std::vector<Range> taken;
  for (const int32_t i : order) {
    const Interval& interval = intervals[static_cast<size_t>(i)];
    taken.clear();
    for (const int32_t other : conflicts[static_cast<size_t>(i)]) {
      const int64_t begin = result.offsets[static_cast<size_t>(other)];
      const int64_t size = intervals[static_cast<size_t>(other)].size;
      if (begin >= 0 && size > 0) taken.push_back({begin, begin + size});
    }
    const int64_t offset = interval.size == 0 ? 0 : lowest_gap(taken, interval);
    result.offsets[static_cast<size_t>(i)] = offset;
    result.peak = std::max(result.peak, offset + interval.size);
  }
  return result;
}

// Numbers 0 .. count-1, those with the greatest key first, equal keys in order of number.
Order order_by(size_t count, const std::function<int64_t(size_t)>& key) {
  std::vector<int64_t> keys(count);
  for (size_t i = 0; i < count; ++i) keys[i] = key(i);
  Order order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  return order;
}

struct Candidate {
  Order order;
  Offsets offsets;
};

// Places in the order of the buffers that reach the peak.
std::vector<size_t> places_at_peak(const Candidate& best, const std::vector<Interval>& intervals) {
  std::vector<size_t> places;
  for (size_t place = 0; place < best.order.size(); ++place) {
    const auto i = static_cast<size_t>(best.order[place]);
    if (best.offsets.offsets[i] + intervals[i].size == best.offsets.peak) places.push_back(place);
  }
  return places;
}

// Moves a buffer to a random place: every other time one that reaches the peak to an earlier one.
Order changed_order(const Candidate& best, const std::vector<Interval>& intervals,
                    std::mt19937_64& random) {
  Order order = best.order;
  size_t from = random() % order.size();
  size_t to = random() % order.size();
  if (random() % 2 == 0) {
    const std::vector<size_t> at_peak = places_at_peak(best, intervals);
    from = at_peak[random() % at_peak.size()];
    if (from > 0) to = random() % from;
  }
  const int32_t moved = order[from];
  order.erase(order.begin() + static_cast<int64_t>(from));
  order.insert(order.begin() + static_cast<int64_t>(to), moved);
  return order;
}

int64_t work_of(const Conflicts& conflicts) {
  int64_t work = 1;
  for (const std::vector<int32_t>& list : conflicts) work += static_cast<int64_t>(list.size()) + 8;
  return work;
}

Offsets place_greedily(const std::vector<Interval>& intervals, const Conflicts& conflicts,
                       int64_t bound, const std::vector<Order>& orders) {
  Candidate best;
  for (const Order& order : orders) {
    Offsets offsets = place_in_order(intervals, conflicts, order);
    if (best.order.empty() || offsets.peak < best.offsets.peak) best = {order, std::move(offsets)};
  }
  std::mt19937_64 random(1);
  const int64_t rounds = std::min<int64_t>(kMaxRounds, kWorkBudget / work_of(conflicts));
  for (int64_t round = 0; round < rounds && best.offsets.peak > bound; ++round) {
    Order order = changed_order(best, intervals, random);
    Offsets offsets = place_in_order(intervals, conflicts, order);
    if (offsets.peak <= best.offsets.peak) best = {std::move(order), std::move(offsets)};
  }
  return best.offsets;
}

// The best placement that an exhaustive search finds between the bound, which it tries first, and
// the greedy one.
Offsets approach(const std::vector<Interval>& intervals, int64_t bound, Offsets best) {
  int64_t low = bound - 1;  // too little, or given up
  int64_t left = kSearchSteps;
  for (int64_t limit = bound; limit < best.peak && left > 0;
       limit = low + (best.peak - low + 1) / 2) {
    CanonicalSearch found = search_canonical(intervals, limit, left / kTries);
    left -= found.steps;
    if (found.placement) {
      best = std::move(*found.placement);
    } else {
      low = limit;
    }
  }
  return best;
}

// A part of an interval without a hole.
struct Piece {
  int32_t interval = 0;
  int64_t first = 0;
  int64_t last = 0;
};

bool has_hole(const Interval& interval) { return interval.hole_first <= interval.hole_last; }

std::vector<Piece> pieces_of(const std::vector<Interval>& intervals) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    const Interval& interval = intervals[i];
    if (has_hole(interval)) {
      pieces.push_back({number, interval.first, interval.hole_first - 1});
      pieces.push_back({number, interval.hole_last + 1, interval.last});
    } else {
      pieces.push_back({number, interval.first, interval.last});
    }
  }
  return pieces;
}

// Pairs that overlap in time, found by a sweep over the starts.
Conflicts conflicts_of(const std::vector<Interval>& intervals) {
  Conflicts conflicts(intervals.size());
  std::vector<Piece> pieces = pieces_of(intervals);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.first < b.first; });
  std::vector<Piece> live;
  for (const Piece& piece : pieces) {
    std::erase_if(live, [&](const Piece& other) { return other.last < piece.first; });
    for (const Piece& other : live) {
      conflicts[static_cast<size_t>(piece.interval)].push_back(other.interval);
      conflicts[static_cast<size_t>(other.interval)].push_back(piece.interval);
    }
    live.push_back(piece);
  }
  if (pieces.size() == intervals.size()) return conflicts;
  for (std::vector<int32_t>& list : conflicts) {  // both pieces may have met another interval
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return conflicts;
}

// Change of live bytes at a position, sorted by position.
std::vector<std::pair<int64_t, int64_t>> live_changes(const std::vector<Interval>& intervals) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Piece& piece : pieces_of(intervals)) {
    const Interval& interval = intervals[static_cast<size_t>(piece.interval)];
    const int64_t size = round_up(interval.size, interval.alignment);
    changes.emplace_back(piece.first, size);
    changes.emplace_back(piece.last + 1, -size);
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

struct LivePeak {
  int64_t bytes = 0;
  int64_t position = 0;
};

LivePeak live_peak(const std::vector<Interval>& intervals) {
  LivePeak peak;
  int64_t live = 0;
  for (const auto& [position, change] : live_changes(intervals)) {
    live += change;
    if (live > peak.bytes) peak = {live, position};
  }
  return peak;
}

std::vector<Order> orders_of(const std::vector<Interval>& intervals, int64_t peak_position) {
  const size_t count = intervals.size();
  const auto size = [&](size_t i) { return intervals[i].size; };
  const auto duration = [&](size_t i) {
    const Interval& interval = intervals[i];
    const int64_t hole = has_hole(interval) ? interval.hole_last - interval.hole_first + 1 : 0;
    return interval.last - interval.first + 1 - hole;
  };
  const auto at_peak = [&](size_t i) {
    const Interval& interval = intervals[i];
    const bool in_hole =
        interval.hole_first <= peak_position && peak_position <= interval.hole_last;
    return interval.first <= peak_position && peak_position <= interval.last && !in_hole;
  };
  return {
      order_by(count, size),
      order_by(count, [&](size_t i) { return size(i) * duration(i); }),
      order_by(count, duration),
      order_by(count, [&](size_t i) { return -intervals[i].first; }),
      order_by(count, [&](size_t i) { return intervals[i].last; }),
      order_by(count,
               [&](size_t i) { return at_peak(i) ? duration(i) + (int64_t{1} << 40) : size(i); }),
  };
}

}  // namespace

int64_t live_bound(const std::vector<Interval>& intervals) { return live_peak(intervals).bytes; }

Offsets plan_offsets(const std::vector<Interval>& intervals) {
  for (const Interval& interval : intervals) {
    const bool in_order = interval.first <= interval.last &&
                          (!has_hole(interval) || (interval.first < interval.hole_first &&
                                                   interval.hole_last < interval.last));
    SGTC_CHECK(interval.size >= 0 && in_order, "interval ends before it starts");
    SGTC_CHECK(interval.alignment > 0 && (interval.alignment & (interval.alignment - 1)) == 0,
               "alignment is not a power of two");
  }
  const LivePeak peak = live_peak(intervals);
  Offsets greedy = place_greedily(intervals, conflicts_of(intervals), peak.bytes,
                                  orders_of(intervals, peak.position));
  return approach(intervals, peak.bytes, std::move(greedy));
}

}  // namespace sgtc
