#include "schedule/transfer_lifetimes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

using Range = std::pair<int64_t, int64_t>;  // calls, both included

// A task that uses a storage.
struct Use {
  size_t task = 0;
  Range calls;  // the first and the last that do
};

class TransferLifetimes {
 public:
  TransferLifetimes(const StepCalls& step, const std::vector<StepTask>& tasks,
                    const std::vector<plan::Entry>& entries)
      : step_(step), tasks_(tasks), entries_(entries) {
    std::map<std::string, size_t> numbers;
    for (size_t t = 0; t < tasks.size(); ++t) numbers[tasks[t].name] = t;
    for (size_t e = 0; e < entries.size(); ++e) {
      task_of_.push_back(numbers.at(entries[e].task));
      runs_[{task_of_.back(), entries[e].micro_batch}] = e;
      micro_batches_ = std::max(micro_batches_, entries[e].micro_batch + 1);
      slots_ = std::max(slots_, entries[e].slot + 1);
      order(e);
    }
    entries_of_.resize(static_cast<size_t>(micro_batches_));
    for (size_t e = 0; e < entries.size(); ++e) {
      if (is_in_pass(e)) entries_of_[static_cast<size_t>(entries[e].micro_batch)].push_back(e);
    }
  }

  void run(std::vector<Lifetime>& lifetimes) {
    const std::vector<std::vector<Use>> uses = find_uses(lifetimes);
    for (size_t s = 0; s < lifetimes.size(); ++s) {
      if (!lifetimes[s].used || !lifetimes[s].beside_passes) continue;
      live_.clear();
      for (int64_t m = 0; m < micro_batches_; ++m) add_live(uses[s], m);
      set_times(lifetimes[s]);
      if (lifetimes[s].scope != "ring") continue;
      lifetimes[s].in_frame = times_in_frame(uses[s]);
      lifetimes[s].in_frame_before = times_in_frame_before(uses[s]);
    }
  }

 private:
  // Appends an entry to its stream, behind what comes before it: per stream the number of entries.
  void order(size_t e) {
    const auto stream = static_cast<size_t>(entries_[e].stream);
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    std::vector<size_t> before(streams_.size(), 0);
    const auto come_after = [&](size_t earlier) {
      for (size_t s = 0; s < before_[earlier].size(); ++s) {
        before[s] = std::max(before[s], before_[earlier][s]);
      }
      size_t& own = before[static_cast<size_t>(entries_[earlier].stream)];
      own = std::max(own, place_[earlier] + 1);
    };
    if (!streams_[stream].empty()) come_after(streams_[stream].back());
    for (const int64_t wait : entries_[e].waits) come_after(static_cast<size_t>(wait));
    before_.push_back(std::move(before));
    place_.push_back(streams_[stream].size());
    streams_[stream].push_back(e);
  }

  size_t count_before(size_t e, size_t stream) const {
    return stream < before_[e].size() ? before_[e][stream] : 0;
  }

  bool is_before(size_t earlier, size_t e) const {
    return place_[earlier] < count_before(e, static_cast<size_t>(entries_[earlier].stream));
  }

  std::vector<std::vector<Use>> find_uses(const std::vector<Lifetime>& lifetimes) const {
    std::vector<std::vector<Use>> uses(lifetimes.size());
    for (size_t t = 0; t < tasks_.size(); ++t) {
      for (const size_t c : tasks_[t].calls) {
        const auto call = static_cast<int64_t>(c);
        for (const StorageId id : step_.calls[c].arguments) {
          std::vector<Use>& known = uses[static_cast<size_t>(id)];
          if (!lifetimes[static_cast<size_t>(id)].beside_passes) continue;
          if (known.empty() || known.back().task != t) known.push_back({t, {call, call}});
          known.back().calls.second = call;
        }
      }
    }
    return uses;
  }

  // Entries that use a storage, and which of their calls do.
  using Users = std::map<size_t, Range>;

  Users users_of(const std::vector<Use>& uses, int64_t micro_batch) const {
    Users users;
    for (const Use& use : uses) {
      const auto run = runs_.find({use.task, micro_batch});
      if (run != runs_.end()) users[run->second] = use.calls;
    }
    return users;
  }

  // Adds the calls at which what a micro-batch has in the storage may be needed.
  void add_live(const std::vector<Use>& uses, int64_t micro_batch) {
    const Users users = users_of(uses, micro_batch);
    if (users.empty()) return;
    const size_t first = users.begin()->first;
    for (size_t s = 0; s < streams_.size(); ++s) {
      for (size_t place = count_before(first, s); place < streams_[s].size(); ++place) {
        const size_t e = streams_[s][place];
        if (is_after(e, users)) break;
        live_.insert(live_calls(e, users));
      }
    }
  }

  bool is_after(size_t e, const Users& users) const {
    return std::all_of(users.begin(), users.end(),
                       [&](const auto& user) { return is_before(user.first, e); });
  }

  // Of an entry that is not after all users: from the first use and up to the last one where these
  // are its own.
  Range live_calls(size_t e, const Users& users) const {
    const std::vector<size_t>& calls = tasks_[task_of_[e]].calls;
    const auto [low, high] = std::minmax_element(calls.begin(), calls.end());
    Range live = {static_cast<int64_t>(*low), static_cast<int64_t>(*high)};
    const auto own = users.find(e);
    if (own == users.end()) return live;
    if (own == users.begin()) live.first = own->second.first;
    const bool ends = std::all_of(users.begin(), users.end(), [&](const auto& user) {
      return user.first == e || is_before(user.first, e);
    });
    if (ends) live.second = own->second.second;
    return live;
  }

  // From the first to the last time, but for the longest run of calls in between without any.
  void set_times(Lifetime& lifetime) const {
    SGTC_CHECK(!live_.empty(), "a transfer is in no schedule");
    std::tie(lifetime.first, lifetime.last) = *live_.begin();
    for (const auto& [first, last] : live_) {
      if (first - 1 - lifetime.last > lifetime.hole_last - lifetime.hole_first + 1) {
        lifetime.hole_first = lifetime.last + 1;
        lifetime.hole_last = first - 1;
      }
      lifetime.last = std::max(lifetime.last, last);
    }
  }

  bool is_in_pass(size_t e) const {
    const Phase phase = tasks_[task_of_[e]].phase;
    return phase == Phase::kForward || phase == Phase::kBackward;
  }

  // If each micro-batch leaves the storage before the next one of its slot begins, and comes to it
  // when the one before has ended, it may lie in the slot's frame: the times at which the
  // micro-batch's own calls may run beside what uses it.
  std::optional<FrameTimes> times_in_frame(const std::vector<Use>& uses) const {
    FrameTimes times = {INT64_MAX, -1};
    for (int64_t m = 0; m < micro_batches_; ++m) {
      const Users users = users_of(uses, m);
      if (users.empty()) continue;
      if (!is_alone_in_slot(users, m)) return std::nullopt;
      add_times(users, m, 0, times);
    }
    return times;
  }

  // Adds the calls of a micro-batch that may run beside users of a storage, counted from `origin`.
  void add_times(const Users& users, int64_t micro_batch, int64_t origin, FrameTimes& times) const {
    const size_t first = users.begin()->first;
    for (const size_t e : entries_of(micro_batch)) {
      if (is_before(e, first) || is_after(e, users)) continue;
      const Range calls = live_calls(e, users);
      times.first = std::min(times.first, origin + calls.first);
      times.last = std::max(times.last, origin + calls.second);
    }
  }

  // The same for the frame before, whose micro-batch comes before as well. What that one keeps is
  // there between its passes too, when none of its calls runs: so the times begin with the first of
  // its calls that does not run before the users. In front of the first frame only such storages
  // lie.
  std::optional<FrameTimes> times_in_frame_before(const std::vector<Use>& uses) const {
    FrameTimes times = {INT64_MAX, -1};
    for (int64_t m = 0; m < micro_batches_; ++m) {
      const Users users = users_of(uses, m);
      if (users.empty()) continue;
      if (!is_alone_in_slot(users, m)) return std::nullopt;
      add_times(users, m, static_cast<int64_t>(step_.calls.size()), times);
      if (m % slots_ == 0) continue;
      if (!is_alone_in_slot(users, m - 1)) return std::nullopt;
      for (const size_t e : entries_of(m - 1)) {
        if (is_before(e, users.begin()->first)) continue;
        times.first = std::min(times.first, live_calls(e, users).first);
      }
    }
    return times;
  }

  // Whether what uses a storage runs after all of the micro-batch that had the slot of
  // `micro_batch` before it, and before all of the next one.
  bool is_alone_in_slot(const Users& users, int64_t micro_batch) const {
    const int64_t next = micro_batch + slots_;
    const int64_t previous = micro_batch - slots_;
    const size_t first = users.begin()->first;
    const bool leaves =
        next >= micro_batches_ || std::all_of(entries_of(next).begin(), entries_of(next).end(),
                                              [&](size_t e) { return is_after(e, users); });
    return leaves && (previous < 0 || std::all_of(
                                          entries_of(previous).begin(), entries_of(previous).end(),
                                          [&](size_t e) { return is_before(e, first); }));
  }

  const std::vector<size_t>& entries_of(int64_t micro_batch) const {
    return entries_of_[static_cast<size_t>(micro_batch)];
  }

  const StepCalls& step_;
  const std::vector<StepTask>& tasks_;
  const std::vector<plan::Entry>& entries_;
  std::vector<size_t> task_of_;                        // of each entry
  std::map<std::pair<size_t, int64_t>, size_t> runs_;  // by task and micro-batch
  int64_t micro_batches_ = 0;
  int64_t slots_ = 1;
  std::vector<std::vector<size_t>> entries_of_;  // the passes of each micro-batch
  std::vector<std::vector<size_t>> streams_;     // their entries
  std::vector<size_t> place_;                    // of each entry in its stream
  std::vector<std::vector<size_t>> before_;  // of each entry: how many of each stream come first
  std::set<Range> live_;                     // of the storage at hand, over all micro-batches
};

}  // namespace

void set_transfer_lifetimes(const StepCalls& step, const std::vector<StepTask>& tasks,
                            const std::vector<plan::Entry>& entries,
                            std::vector<Lifetime>& lifetimes) {
  TransferLifetimes(step, tasks, entries).run(lifetimes);
}

}  // namespace sgtc
