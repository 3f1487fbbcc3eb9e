// Every placement can be turned into a canonical one of no greater peak: buffers are placed in the
// order of their offsets, each on top of those below it at the same times. So a search needs to
// choose the order alone. It follows MiniMalloc (Moffitt, ASPLOS 2023):
// - Offsets never decrease along the order. So the floor of every time is at least the last offset,
//   and a branch ends when a floor and the bytes that still have to lie above it exceed the limit.
// - A buffer is no candidate if another one fits completely below the offset that it would get:
//   the other could be moved down there in any solution.
// - Of equal buffers at equal offsets only the first is tried.
// - Buffers that are left and fall into groups with no time in common are searched apart, so that
//   trouble in one group undoes nothing in another.
// Times are reduced to those at which the live set is no subset of a neighbour's. Left out: learned
// orders, and offsets that alignment alone would allow to be smaller than canonical ones.
#include "memory/canonical_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

int64_t round_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

struct Item {
  size_t interval = 0;
  int64_t size = 0;  // rounded up
  int64_t alignment = 64;
  int32_t first = 0;  // sections, both included
  int32_t last = 0;
  int64_t offset = 0;  // the lowest one above what is placed; final once it is placed itself
};

// Starts of runs of positions after which an interval ends, before another begins.
std::vector<int64_t> section_starts(const std::vector<Interval>& intervals) {
  std::vector<std::pair<int64_t, bool>> events;  // an end at a position comes before a start
  for (const Interval& interval : intervals) {
    if (interval.size == 0) continue;
    events.emplace_back(interval.first, true);
    events.emplace_back(interval.last + 1, false);
  }
  std::sort(events.begin(), events.end());
  std::vector<int64_t> starts;
  for (size_t e = 0; e + 1 < events.size(); ++e) {
    if (events[e].second && !events[e + 1].second) starts.push_back(events[e].first);
  }
  return starts;
}

std::vector<Item> items_of(const std::vector<Interval>& intervals,
                           const std::vector<int64_t>& starts) {
  std::vector<Item> items;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (interval.size == 0) continue;
    const auto first = std::lower_bound(starts.begin(), starts.end(), interval.first);
    const auto last = std::upper_bound(starts.begin(), starts.end(), interval.last);
    items.push_back({i, round_up(interval.size, interval.alignment), interval.alignment,
                     static_cast<int32_t>(first - starts.begin()),
                     static_cast<int32_t>(last - starts.begin()) - 1, 0});
  }
  // Preferred first among equal offsets: those that take most space for longest.
  const auto area = [](const Item& item) {
    return static_cast<double>(item.size) * (item.last - item.first + 1);
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const Item& a, const Item& b) { return area(a) > area(b); });
  return items;
}

using ItemId = int32_t;
using ItemList = std::vector<ItemId>;

class Search {
 public:
  Search(const std::vector<Interval>& intervals, int64_t limit, int64_t most_steps)
      : intervals_(intervals), limit_(limit), most_steps_(most_steps) {
    const std::vector<int64_t> starts = section_starts(intervals);
    items_ = items_of(intervals, starts);
    floors_.assign(starts.size(), 0);
    open_bytes_.assign(starts.size(), 0);
    for (const Item& item : items_) {
      for (int32_t s = item.first; s <= item.last; ++s) open_bytes_[index(s)] += item.size;
    }
  }

  CanonicalSearch run() {
    ItemList all;
    for (size_t i = 0; i < items_.size(); ++i) all.push_back(static_cast<ItemId>(i));
    const bool fits = std::all_of(open_bytes_.begin(), open_bytes_.end(),
                                  [&](int64_t bytes) { return bytes <= limit_; });
    const bool found = fits && place_groups(all, 0);
    CanonicalSearch result;
    if (found) result.placement = placement();
    result.is_impossible = !found && !is_spent();
    result.steps = steps_;
    return result;
  }

 private:
  struct Change {
    int64_t* place = nullptr;
    int64_t before = 0;
  };

  static size_t index(int32_t number) { return static_cast<size_t>(number); }
  Item& item(ItemId id) { return items_[index(id)]; }
  bool is_spent() const { return steps_ > most_steps_; }

  Offsets placement() {
    Offsets result;
    result.offsets.assign(intervals_.size(), 0);
    for (const Item& placed : items_) {
      result.offsets[placed.interval] = placed.offset;
      result.peak = std::max(result.peak, placed.offset + intervals_[placed.interval].size);
    }
    return result;
  }

  // Places what is left, at `least` or above, group by group.
  bool place_groups(const ItemList& open, int64_t least) {
    for (const ItemList& group : split(open)) {
      if (!place_next(group, least)) return false;
    }
    return true;
  }

  // Groups that have no section in common.
  std::vector<ItemList> split(const ItemList& open) {
    steps_ += static_cast<int64_t>(open.size());
    ItemList by_first = open;
    std::sort(by_first.begin(), by_first.end(), [&](ItemId a, ItemId b) {
      return std::tie(item(a).first, a) < std::tie(item(b).first, b);
    });
    std::vector<ItemList> groups;
    int32_t end = -1;
    for (const ItemId id : by_first) {
      if (groups.empty() || item(id).first > end) groups.emplace_back();
      groups.back().push_back(id);
      end = std::max(end, item(id).last);
    }
    for (ItemList& group : groups) std::sort(group.begin(), group.end());
    return groups;
  }

  int64_t offset_from(const Item& candidate, int64_t least) const {
    return round_up(std::max(candidate.offset, least), candidate.alignment);
  }

  // Items below whose offset no other one fits, the lowest first.
  std::vector<std::pair<int64_t, ItemId>> candidates(const ItemList& open, int64_t least) {
    int64_t lowest_top = INT64_MAX;
    for (const ItemId id : open) {
      lowest_top = std::min(lowest_top, offset_from(item(id), least) + item(id).size);
    }
    std::vector<std::pair<int64_t, ItemId>> result;
    for (const ItemId id : open) {
      const int64_t offset = offset_from(item(id), least);
      if (offset < lowest_top) result.emplace_back(offset, id);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  bool place_next(const ItemList& open, int64_t least) {
    steps_ += 2 * static_cast<int64_t>(open.size());
    if (is_spent()) return false;
    const std::vector<std::pair<int64_t, ItemId>> tried = candidates(open, least);
    for (size_t c = 0; c < tried.size(); ++c) {
      const auto& [offset, id] = tried[c];
      if (repeats(tried, c)) continue;
      const size_t mark = changes_.size();
      if (put(id, offset, open)) {
        ItemList rest = open;
        rest.erase(std::find(rest.begin(), rest.end(), id));
        if (place_groups(rest, offset)) return true;
      }
      undo(mark);
      if (is_spent()) return false;
    }
    return false;
  }

  // Whether an equal item was tried at the same offset.
  bool repeats(const std::vector<std::pair<int64_t, ItemId>>& tried, size_t c) {
    const Item& own = item(tried[c].second);
    for (size_t before = c; before-- > 0 && tried[before].first == tried[c].first;) {
      const Item& other = item(tried[before].second);
      if (other.size == own.size && other.first == own.first && other.last == own.last &&
          other.alignment == own.alignment) {
        return true;
      }
    }
    return false;
  }

  void set(int64_t& place, int64_t value) {
    changes_.push_back({&place, place});
    place = value;
  }

  void undo(size_t mark) {
    while (changes_.size() > mark) {
      *changes_.back().place = changes_.back().before;
      changes_.pop_back();
    }
  }

  // Places an item; false if what is left can then no longer lie below the limit.
  bool put(ItemId id, int64_t offset, const ItemList& open) {
    Item& placed = item(id);
    const int64_t top = offset + placed.size;
    set(placed.offset, offset);
    int32_t begin = placed.first;
    int32_t end = placed.last;
    for (const ItemId other : open) {
      begin = std::min(begin, item(other).first);
      end = std::max(end, item(other).last);
    }
    steps_ += end - begin;
    for (int32_t s = begin; s <= end; ++s) {
      const bool inside = placed.first <= s && s <= placed.last;
      if (inside) {
        set(floors_[index(s)], top);
        set(open_bytes_[index(s)], open_bytes_[index(s)] - placed.size);
      }
      const int64_t floor = std::max(floors_[index(s)], offset);
      const bool has_open = open_bytes_[index(s)] > 0;
      if (has_open ? floor + open_bytes_[index(s)] > limit_ : inside && top > limit_) return false;
    }
    for (const ItemId other : open) {
      Item& above = item(other);
      const bool meets = above.first <= placed.last && placed.first <= above.last;
      if (other != id && meets && above.offset < top) set(above.offset, top);
    }
    return true;
  }

  const std::vector<Interval>& intervals_;
  const int64_t limit_;
  const int64_t most_steps_;
  int64_t steps_ = 0;
  std::vector<Item> items_;
  std::vector<int64_t> floors_;      // per section: what is placed ends there
  std::vector<int64_t> open_bytes_;  // per section: of items that are not placed
  std::vector<Change> changes_;      // to undo
};

}  // namespace

CanonicalSearch search_canonical(const std::vector<Interval>& intervals, int64_t limit,
                                 int64_t most_steps) {
  return Search(intervals, limit, most_steps).run();
}

}  // namespace sgtc
